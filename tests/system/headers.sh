#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# libqsf.a exports exactly the functions of its two headers. Every header compiles alone as C11, those of
# include/ as C++ too: it includes all it uses. The templates below kernels/x86 and kernels/arm do not: the
# including file completes them. The fuzz targets compile, too: without clang's libFuzzer nothing else would.
. "$(dirname "$0")/lib.sh"
cd "$QSF_SRCDIR" || exit 1

have nm && {
    nm -g --defined-only "$QSF_BUILDDIR/libqsf.a" 2>"$work/out" | awk 'NF == 3 { print $3 }' |
        sort -u >"$work/exported"
    cat include/qsf.h include/qsf_engine.h >"$work/both.h"
    # CC may be several words, such as "ccache gcc".
    # shellcheck disable=SC2086
    $CC -E -P -Iinclude -x c "$work/both.h" | tr '\n' ' ' | grep -oE '\bqsf_[a-z0-9_]+ *\(' | tr -d ' (' |
        sort -u >"$work/declared"
    [ "$(wc -l <"$work/declared")" -gt 40 ] || fail "too few functions found in the public headers"
    diff "$work/declared" "$work/exported" >"$work/out" ||
        { cat "$work/out"; fail "libqsf.a exports (>) or lacks (<) these"; }
}

if [ -n "${QSF_SAN-}" ]; then
    echo "skip: the headers are the same with sanitizers: only exports were compared"
    finish
fi
warn='-Wall -Wextra -Werror'
[ -f "$QSF_BUILDDIR/config.h" ] && config_h="-include $QSF_BUILDDIR/config.h" || config_h=''

# alone LANGUAGE: a file for each header whose name is read, which includes nothing else; twice, to test the
# include guard.
alone() {
    mkdir "$work/$1"
    while read -r header; do
        printf '#include "%s"\n#include "%s"\nextern int nothing;\n' "$header" "$header" \
            >"$work/$1/$(printf %s "$header" | tr / .).$1"
    done
}
# compile_alone LANGUAGE COMPILER FLAGS...: these files. Messages name the header.
compile_alone() {
    language=$1 compiler=$2
    shift 2
    # shellcheck disable=SC2086
    set -- $compiler "$@" $warn -D_GNU_SOURCE $config_h -I. -Iinclude -fsyntax-only
    if [ "$compiler" = clang ] && clang_many "$work/many" "$@" "$work/$language/include.qsf.h.$language"; then
        set -- sh "$work/many"
    fi
    "$@" "$work/$language"/*."$language" >"$work/out" 2>&1 ||
        { head -n 40 "$work/out"; fail "headers do not compile alone ($compiler)"; }
}

# Not those for web browsers, which need headers of Emscripten.
find include src ui get serve kernels/*.h kernels/ref -name '*.h' -exec grep -L '<emscripten' {} + | sort | alone c
[ "$(find "$work/c" -type f | wc -l)" -gt 100 ] || fail "too few headers found"
# gcc, which has compiled each of them in some source, would start a process for every header.
! have clang || CC=clang
compile_alone c "$CC" -std=c11

# shellcheck disable=SC2046,SC2086
$CC -std=c11 -D_GNU_SOURCE $warn $config_h -I. -Iinclude $(config LIB_CFLAGS) $(config UI_CFLAGS) \
    -fsyntax-only tests/fuzz/fuzz_*.c >"$work/out" 2>&1 ||
    { head -n 40 "$work/out"; fail "fuzz targets do not compile"; }

cxx=''
for c in "$(config CC | sed 's/gcc/g++/; s/clang/clang++/; s/^cc$/c++/')" g++ clang++ c++; do
    # shellcheck disable=SC2086
    [ -n "$cxx" ] || ! $c -x c++ -fsyntax-only /dev/null >/dev/null 2>&1 || cxx=$c
done
if [ -n "$cxx" ]; then
    printf '%s\n' include/*.h | alone cc
    compile_alone cc "$cxx" -std=c++11
else
    echo "skip: no C++ compiler: include/ was compiled as C only"
fi
finish
