#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --memory-threshold-mb, with made files of /proc: while memory is short the cache shrinks by the policy,
# which is said once; without a policy no position goes; with enough memory, or files that say nothing, the
# answer is the usual one.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
prompt=$(words 60)
root=$work/root
mkdir -p "$root/proc/self" "$root/proc/pressure"
# ask MB OPTIONS...: a greedy answer with that much memory available; $said: lines on stderr.
ask() {
    if [ "$1" = damaged ]; then echo "MemAvailable: lots" >"$root/proc/meminfo"
    else echo "MemAvailable: $(($1 * 1024)) kB" >"$root/proc/meminfo"; fi
    shift
    QSF_MEMORY_ROOT=$root "$run" "$tiny" --temperature 0 --ignore-eos -n 120 -p "$prompt" "$@" >"$work/out" \
        2>"$work/err" </dev/null ||
        { cat "$work/err"; fail "failed: $*"; }
    said=$(wc -l <"$work/err")
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
}
says() { grep -qE -- "$1" "$work/err" || { cat "$work/err"; fail "no /$1/"; }; }
same() { cmp -s "$work/out" "$work/plain" || fail "$1: another answer"; }
quiet() { [ "$said" = 0 ] || { cat "$work/err"; fail "$1: something was said"; }; }

ask 500
cp "$work/out" "$work/plain"
ask 500 --memory-threshold-mb 100 --eviction-policy sliding
same 'enough memory'
quiet 'enough memory'
ask 50 --memory-threshold-mb 0 --eviction-policy sliding
same 'no threshold'
quiet 'no threshold'
for policy in sliding h2o snapkv; do
    ask 50 --memory-threshold-mb 100 --eviction-policy $policy
    says 'memory is low: 50 MB are available, less than memory-threshold-mb 100: the cache shrinks by the eviction policy'
    [ "$said" = 1 ] || { cat "$work/err"; fail "$policy: $said lines instead of one"; }
    [ -s "$work/out" ] || fail "$policy: no answer"
done
ask 50 --memory-threshold-mb 100
same 'no policy'
says 'memory is low: 50 MB .*--eviction-policy sliding'
[ "$said" = 1 ] || { cat "$work/err"; fail "no policy: $said lines instead of one"; }
# A cgroup counts, too, and so does waiting for memory.
mkdir -p "$root/sys/fs/cgroup/box"
echo 0::/box >"$root/proc/self/cgroup"
echo $((60 << 20)) >"$root/sys/fs/cgroup/box/memory.max"
echo $((40 << 20)) >"$root/sys/fs/cgroup/box/memory.current"
ask 500 --memory-threshold-mb 100 --eviction-policy sliding
says 'memory is low: 20 MB'
echo max >"$root/sys/fs/cgroup/box/memory.max"
printf 'some avg10=30.00 avg60=1.0 avg300=0.0 total=9\nfull avg10=20.00 avg60=1.0 avg300=0.0 total=9\n' \
    >"$root/proc/pressure/memory"
ask 150 --memory-threshold-mb 100 --eviction-policy sliding
says 'memory is low: 150 MB'
# What cannot be read is not used, and --verbose says why.
ask damaged --memory-threshold-mb 100 --eviction-policy sliding
same 'damaged files'
quiet 'damaged files'
ask damaged --memory-threshold-mb 100 --eviction-policy sliding --verbose
says 'no number after MemAvailable'
expect 2 'memory-threshold-mb' "$run" "$tiny" -p x --memory-threshold-mb -1
finish
