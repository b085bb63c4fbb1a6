#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make amalgamation: the same bytes each time; one file that compiles without warnings, with all libraries and
# with none; gives the same answers as qsf-run; and names what it was built without when it refuses a request.
. "$(dirname "$0")/lib.sh"
have python3 || skip "no python3: the amalgamation was not made"
. "$(dirname "$0")/model.sh"
cd "$work" || exit 1

make_one() { # in its own build directory: other builds may be running
    mkdir "$1" && cp "$QSF_BUILDDIR/config.mk" "$1/" && : >"$1/config.h" && : >"$1/config.stamp" &&
        (cd "$1" &&
        "$MAKE" --no-print-directory -f "$QSF_SRCDIR/Makefile" srcdir="$QSF_SRCDIR" amalgamation) >log 2>&1 \
        || { cat log; fail "make amalgamation"; finish; }
}
make_one one
make_one two
cmp one/qsf.c two/qsf.c && cmp one/qsf.h two/qsf.h || fail "the same files gave another amalgamation"
rm -r two
size=$(wc -c <one/qsf.c)
[ "$size" -lt 12000000 ] || fail "qsf.c has $size bytes, 12 MB are wanted"
! grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' one/qsf.c ||
    fail "qsf.c includes files of the source tree"
[ "$(grep -c '^/\* ==== src/base/err.h \*/$' one/qsf.c)" = 1 ] || fail "a header is not there once"

# With every library, and as a library for other programs, it is only compiled; one program is built.
# On a file of this size gcc takes 46 of 48 seconds for misleading indentation.
warn='-Wall -Werror -Wno-unknown-warning-option -Wno-misleading-indentation'
all="$(config LIB_CFLAGS) -DQSF_WITH_PCRE2 -DQSF_WITH_JANSSON -DQSF_WITH_INIH -DQSF_WITH_UTF8PROC -DQSF_WITH_LIBDEFLATE"
! grep -q 'QSF_HAVE_URING 1' "$QSF_BUILDDIR/config.h" || all="$all -DQSF_WITH_URING"
! grep -q 'QSF_HAVE_ZSTD 1' "$QSF_BUILDDIR/config.h" || all="$all -DQSF_WITH_ZSTD"
# shellcheck disable=SC2086
$CC $warn $all -DQSF_NO_MAIN -fsyntax-only one/qsf.c >log 2>&1 ||
    { head -n 20 log; fail "qsf.c does not compile with '$all -DQSF_NO_MAIN'"; }
# Each level that -march=native may choose.
avx2='-mavx2 -mfma -mf16c'
avx512="$avx2 -mavx512f -mavx512bw -mavx512dq -mavx512vl"
case $(config ARCH) in
x86) isas="$avx2|$avx2 $(config AVXVNNI_FLAG)|$avx512|$avx512 -mavx512vnni|$avx512 -mavx512vnni -mavx512vbmi" ;;
*) isas='-march=armv8.2-a+dotprod' ;;
esac
echo "$isas" | tr '|' '\n' >isas
while read -r isa; do
    # shellcheck disable=SC2086
    $CC $warn $isa -fsyntax-only one/qsf.c >log 2>&1 ||
        { head -n 20 log; fail "qsf.c does not compile with '$isa'"; }
done <isas
# The command is the one in its first lines, with PCRE2, the lowest x86 kernels, and less optimization to save
# time.
libs=$(sed -n 's/^ \*     cc .*qsf\.c \(-l.*\)$/\1/p' one/qsf.c)
[ -n "$libs" ] || fail "qsf.c does not say how it is compiled"
level=ref
case $(config ARCH) in x86) isa=-msse4.2 level=sse42 ;; *) isa='' ;; esac
# shellcheck disable=SC2046,SC2086
$CC -O0 $isa $warn -DQSF_WITH_PCRE2 $(config LIB_CFLAGS) -o all-in-one one/qsf.c $libs -lpcre2-8 >log 2>&1 ||
    { head -n 20 log; fail "qsf.c does not build"; finish; }

# same OPTIONS...: both programs print the same, and it is not empty.
same() {
    ./all-in-one "$@" >got 2>err </dev/null || { cat err; fail "all-in-one $*"; }
    "$run" "$@" >wanted 2>err </dev/null || { cat err; fail "qsf-run $*"; }
    [ -s got ] && cmp -s got wanted || { diff got wanted; fail "another output: $*"; }
}
guide=$QSF_SRCDIR/models/guide.qsf
same "$guide" --temperature 0 -n 12 -p 'How do I change the RAM budget?' --cpu-mask "$level"
for mask in ref "$level"; do
    same "$tiny" --temperature 0 --ignore-eos -n 8 -p 'a the in' --pin 0 --cpu-mask $mask
done
same --inspect "$guide"
expect 0 '' ./all-in-one --plan "$guide"
grep -q 'KV cache' out || fail "--plan prints nothing"
expect 0 '' ./all-in-one --bench -p 4 -n 2 -r 1 "$tiny"
grep -q '^decode' out || fail "--bench prints nothing"
if [ -x "$QSF_BUILDDIR/qsf-convert" ]; then # its own CRC-32 accepts checksums made by libdeflate
    "$QSF_BUILDDIR/qsf-convert" "$tiny" t.qsf >log 2>&1 || { cat log; fail "qsf-convert"; }
    same t.qsf --temperature 0 --ignore-eos -n 4 -p 'a the in' --cpu-mask $level
fi

[ $level = ref ] || expect 1 'this build, has no avx2' ./all-in-one "$tiny" -p a --cpu-mask avx2
echo '{"a": 1}' >vars
./all-in-one --render vars <vars >out 2>err
grep -q 'built without jansson' out err || { cat out err; fail "JSON is not refused by name"; }
finish
