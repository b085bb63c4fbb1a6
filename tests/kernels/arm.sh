#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The kernel checks of the ARM build under an emulator (make check-arm): all levels of a CPU without dot
# product instructions, then those above it of one with them and of one with all.
. "$(dirname "$0")/../system/lib.sh"

[ -z "${ARM_LACKS-}" ] || skip "NO ARM KERNEL WAS BUILT OR CHECKED: there is no working $ARM_LACKS"
: "${ARM_QEMU:?} ${ARM_CHECKKERN:?}"

# on CPU BEST OPTION...: the CPU's best level must be BEST.
on() {
    cpu=$1 best=$2
    shift 2
    "$ARM_QEMU" -cpu "$cpu" "$ARM_CHECKKERN" --small "$@" >"$work/$cpu" 2>&1 || fail "-cpu $cpu"
    grep -q "best level $best\$" "$work/$cpu" || fail "-cpu $cpu: the best level is not $best"
    grep -v ' ok$' "$work/$cpu" | sed "s/^/$cpu: /"
    return $bad
}

# With the sanitizers all of this is slow, and the reference was already checked natively.
on cortex-a53 neon ${ARM_SAN:+--level=neon} >"$work/first" &
on cortex-a76 dotprod --level=dotprod
on max i8mm --level=i8mm
wait $! || bad=1
cat "$work/first"
finish
