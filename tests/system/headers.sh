#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# libqsf.a exports exactly the functions of its two headers. Every header compiles alone as C11, those of
# include/ as C++ too: it includes all it uses. The templates below kernels/x86 and kernels/arm do not: the
# including file completes them.
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

# compile_alone COMPILER LANGUAGE HEADER FLAGS...
compile_alone() {
    compiler=$1 language=$2 header=$3
    shift 3
    # Twice, to test the include guard.
    printf '#include "%s"\n#include "%s"\nextern int nothing;\n' "$header" "$header" >"$work/one.$language"
    # shellcheck disable=SC2086
    $compiler "$@" $warn -D_GNU_SOURCE $config_h -I. -Iinclude -fsyntax-only "$work/one.$language" \
        >"$work/out" 2>&1 ||
        { head -n 20 "$work/out"; fail "$header does not compile alone ($compiler)"; }
}

for header in $(find include src ui kernels/*.h kernels/ref -name '*.h' | sort); do
    compile_alone "$CC" c "$header" -std=c11
done

cxx=''
for c in "$(config CC | sed 's/gcc/g++/; s/clang/clang++/; s/^cc$/c++/')" g++ clang++ c++; do
    # shellcheck disable=SC2086
    [ -n "$cxx" ] || ! $c -x c++ -fsyntax-only /dev/null >/dev/null 2>&1 || cxx=$c
done
if [ -n "$cxx" ]; then
    for header in include/*.h; do compile_alone "$cxx" cc "$header" -std=c++11; done
else
    echo "skip: no C++ compiler: include/ was compiled as C only"
fi
finish
