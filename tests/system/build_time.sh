#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What it costs to compile. The unit is a file that this script writes, so that neither the machine nor the
# version of the compiler matters much. Usually some kernels, one of each kind, as this build compiles them;
# with QSF_TEST_QUICK empty everything that make builds after a configure without arguments.
. "$(dirname "$0")/lib.sh"
cc=$(config CC)
cc=${cc#ccache }
export CCACHE_DISABLE=1
unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS MAKELEVEL MFLAGS
[ "${QSF_SAN:-}" != yes ] || skip "sanitizers take as long as they take"
[ "$(config ARCH)" = x86 ] || skip "the budget is that of the kernels for x86"

# Units. The test fails when it takes half as long again.
case $($cc --version 2>/dev/null) in
*clang*) budget_some=14 budget_all=380 ;;
*) budget_some=14 budget_all=380 ;;
esac
some='kvrows_avx2 q3_k_avx2 iq1_m_avx2 q4_0_avx2'

# Milliseconds of processor time of all commands so far.
spent() {
    times >"$work/times"
    awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); n += t[1] * 60000 + t[2] * 1000 } printf "%d", n }' "$work/times"
}
# took COMMAND...: its processor time in $ms. If it fails, its output, and the test ends.
took() {
    spent >"$work/before"
    "$@" >"$work/out" 2>&1 || { tail -n 20 "$work/out"; fail "$*"; finish; }
    spent >"$work/after"
    ms=$(($(cat "$work/after") - $(cat "$work/before")))
}

awk 'BEGIN {
    for (i = 0; i < 60; i++) {
        printf "static __attribute__((noinline)) int f%d(const int *a, int n) {\n    int s[8] = { %d };\n", i, i
        print "    for (int j = 0; j < n; j++)\n        for (int k = 0; k < 8; k++) {"
        printf "            s[k] += a[j + k] * %d ^ s[(k + %d) & 7];\n", i * 7 + 3, i % 5 + 1
        printf "            if (s[k] > %d) s[k] -= a[k] %% %d;\n        }\n", i * 1000, i + 2
        print "    return s[0] + s[1] * s[2] - s[3] + (s[4] ^ s[5]) - s[6] * s[7];\n}"
    }
    print "int reference(const int *a, int n) {\n    int s = 0;"
    for (i = 0; i < 60; i++) printf "    s += f%d(a, n);\n", i
    print "    return s;\n}"
}' >"$work/reference.c"
unit=0
for _ in 1 2 3; do
    # shellcheck disable=SC2086
    took $cc -std=c11 -O2 -c -o "$work/reference.o" "$work/reference.c"
    [ $unit -ne 0 ] && [ $unit -le $ms ] || unit=$ms
done
[ $unit -gt 0 ] || skip "the shell does not know how much time commands take"

if [ -n "${QSF_TEST_QUICK-}" ]; then
    cd "$QSF_BUILDDIR" || exit 1
    what='some kernels' budget=$budget_some targets="O=$work/obj"
    for f in $some; do targets="$targets $work/obj/kernels/generated/$f.o"; done
else
    mkdir "$work/build" && cd "$work/build" || exit 1
    took sh "$QSF_SRCDIR/configure" CC="$cc"
    what='the whole build' budget=$budget_all targets=all
fi
[ "$(sed -n 's/^KERNEL_OPT = //p' config.mk)" = -O3 ] || skip "this build does not optimize"
# shellcheck disable=SC2086
took "$MAKE" -j2 $targets
echo "$what: $((ms / 100)) tenths of a second, $((ms / unit)) units of $unit ms, of $budget"
[ $((ms * 2)) -le $((unit * budget * 3)) ] ||
    fail "$what: more than half above the budget; look for loops that are unrolled around others (docs/KERNELS.md)"
finish
