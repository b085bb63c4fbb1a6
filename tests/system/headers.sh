#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every header compiles alone as C11, those of include/ as C++ too: it includes all that it uses.
. "$(dirname "$0")/lib.sh"
cd "$QSF_SRCDIR" || exit 1

warn='-Wall -Wextra -Werror'
[ -f "$QSF_BUILDDIR/config.h" ] && config_h="-include $QSF_BUILDDIR/config.h" || config_h=''

# compile_alone COMPILER LANGUAGE HEADER FLAGS...
compile_alone() {
    compiler=$1 language=$2 header=$3
    shift 3
    # Twice, so that the include guard is seen to work.
    printf '#include "%s"\n#include "%s"\nextern int nothing;\n' "$header" "$header" >"$work/one.$language"
    # shellcheck disable=SC2086
    $compiler "$@" $warn -D_GNU_SOURCE $config_h -I. -Iinclude -fsyntax-only "$work/one.$language" >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "$header does not compile alone ($compiler)"; }
}

arch=$(config ARCH)
for header in $(find include src ui kernels -name '*.h' | sort); do
    case $header in
    kernels/x86/*) [ "$arch" = x86 ] || continue; set -- -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c ;;
    kernels/arm/*) [ "$arch" = arm ] || continue; set -- ;;
    *) set -- ;;
    esac
    compile_alone "$CC" c "$header" -std=c11 "$@"
done

cxx=''
for c in "$(config CC | sed 's/gcc/g++/; s/clang/clang++/; s/^cc$/c++/')" g++ clang++ c++; do
    [ -n "$cxx" ] || ! have "${c%% *}" || cxx=$c
done
if [ -n "$cxx" ]; then
    for header in include/*.h; do compile_alone "$cxx" cc "$header" -std=c++11; done
else
    echo "skip: no C++ compiler: include/ was tried as C only"
fi
finish
