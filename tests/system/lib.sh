# SPDX-License-Identifier: GPL-3.0-or-later
# Shared by the scripts in this directory; sourced, never run.
# shellcheck shell=sh

: "${QSF_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}" "${QSF_BUILDDIR:=$(pwd)}"
: "${CC:=cc}" "${MAKE:=make}"
bad=0

skip() { echo "skip: $*"; exit 77; }
fail() { echo "FAIL: $*"; bad=1; }
finish() { exit $bad; }
have() { command -v "$1" >/dev/null 2>&1; }
# py ARGUMENTS...: python3, only with its own library. The command may be a wrapper that takes longer than the
# scripts: tests/run.sh looks for the interpreter once. What is compiled is kept for all scripts, whatever the
# caller's variables say.
py() { "${QSF_PYTHON:-python3}" -E -S -X pycache_prefix="$QSF_BUILDDIR/obj/tests/pycache" "$@"; }

# clang_many SCRIPT COMMAND... FILE: writes a script that does with all its arguments what this call of clang
# does with FILE, in one process: starting clang takes longer than most of our sources. After an error in one
# file the others have no output. False if this clang does not say how.
clang_many() {
    script=$1
    shift
    "$@" '-###' 2>&1 | sed -n '$s/^ *//; $s/ "-main-file-name" "[^"]*"//; $s/ "-o" "[^"]*"//
        $s/ "[^"]*"$/ "$@"/p' >"$script"
    grep -q '^"[^"]*" "-cc1" ' "$script"
}

# sure MB: a budget that another process has named. The memory of a program before it plans differs from run
# to run, with sanitizers by more than what that figure has in reserve (src/plan/pricing.c).
sure() { if [ -n "${QSF_SAN-}" ]; then echo $(($1 + 3)); else echo "$1"; fi; }

# make_static: make static for the tests that need it, of which one at a time runs it. Its output is in
# $work/log. False where packaging/static-libs cannot build the libraries that have no static form here.
make_static() {
    lock=
    ! have flock || lock="flock $QSF_BUILDDIR/obj/static.lock"
    (cd "$QSF_BUILDDIR" && $lock "$MAKE" static) >"$work/log" 2>&1 && return
    grep -q 'packaging/static-libs:' "$work/log" || { cat "$work/log"; fail "make static"; finish; }
    return 1
}

# Removed at the end: scripts create all their files below it.
work=$(mktemp -d "${TMPDIR:-/tmp}/qsfsys.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# One variable of this build's config.mk.
config() { sed -n "s/^$1 = //p" "$QSF_BUILDDIR/config.mk"; }

# expect CODE WORDS COMMAND...: the exit code, and WORDS (an extended expression) on stderr. Afterwards stdout
# is in $work/out, stderr in $work/err.
expect() {
    want=$1 words=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got = "$want" ] || { cat "$work/err"; fail "exit $got instead of $want: $*"; }
    [ -z "$words" ] || grep -qE -- "$words" "$work/err" ||
        { cat "$work/err"; fail "no /$words/ on stderr: $*"; }
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
}
# sanitized FILE...: do they have the report of a sanitizer? In other builds no process is started for it.
sanitized() { [ -n "${QSF_SAN-}" ] && grep -q 'Sanitizer\|runtime error:' "$@"; }

# ---- memory cgroups, version 1 or 2: one group at a time, $cg while it exists

# cgroup_open MB: makes a group with that limit and no swap; false if that is impossible.
cgroup_open() {
    cg=
    cg_v1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
    cg_v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    cg_root=${cg_v1:-$cg_v2}
    [ -n "$cg_root" ] || return 1
    [ -n "$cg_v1" ] || (echo +memory >"$cg_root/cgroup.subtree_control") 2>/dev/null
    mkdir "$cg_root/qsf.$$" 2>/dev/null || return 1
    cg=$cg_root/qsf.$$
    if [ -n "$cg_v1" ]; then cgroup_limits $(($1 * 1048576)) memory.limit_in_bytes $(($1 * 1048576)) \
        memory.memsw.limit_in_bytes
    else cgroup_limits $(($1 * 1048576)) memory.max 0 memory.swap.max
    fi || { cgroup_close; return 1; }
}
cgroup_limits() { # BYTES FILE SWAP_BYTES FILE: a kernel without swap accounting has no second file
    (echo "$1" >"$cg/$2") 2>/dev/null || return 1
    [ ! -e "$cg/$4" ] || (echo "$3" >"$cg/$4") 2>/dev/null
}
# cgroup_resize MB: another limit for its processes; false if the kernel could not free enough memory.
cgroup_resize() {
    if [ -n "$cg_v1" ]; then # the limit with swap is never below the one without
        cgroup_limits $(($1 * 1048576)) memory.limit_in_bytes $(($1 * 1048576)) memory.memsw.limit_in_bytes ||
            { cgroup_limits $(($1 * 1048576)) memory.memsw.limit_in_bytes $(($1 * 1048576)) \
            memory.limit_in_bytes; }
    else (echo $(($1 * 1048576)) >"$cg/memory.max") 2>/dev/null
    fi
}
# cgroup_run COMMAND...: in the group.
# shellcheck disable=SC2016
cgroup_enter='echo $$ >"$0/cgroup.procs" && exec "$@"'
cgroup_run() { sh -c "$cgroup_enter" "$cg" "$@"; }
# Processes killed by the kernel for lack of memory; peak memory charged, in MB, including the page cache; MB
# in swap; bytes read from disks.
cgroup_kills() { cat "$cg/memory.oom_control" "$cg/memory.events" 2>/dev/null |
    awk '$1 == "oom_kill" { n = $2 } END { print n + 0 }'; }
cgroup_peak() { cat "$cg/memory.max_usage_in_bytes" "$cg/memory.peak" 2>/dev/null |
    awk '{ m = $1 } END { printf "%.1f\n", m / 1048576 }'; }
cgroup_swap() {
    { cat "$cg/memory.swap.peak" "$cg/memory.swap.current";
    awk '$1 == "swap" { print $2 }' "$cg/memory.stat"; } 2>/dev/null |
        awk '$1 > m { m = $1 } END { printf "%.1f\n", m / 1048576 }'
}
cgroup_close() { # its last process may not be gone yet
    tries=1200
    [ -z "$cg" ] || until rmdir "$cg" 2>/dev/null || [ $tries = 0 ]; do
        tries=$((tries - 1))
        sleep 0.05
    done
    cg=
}

# count_reads FILE COMMAND...: runs it and writes to FILE how many bytes it read from disks, by any method
# (the kernel adds those of ended children to their parent's account).
# shellcheck disable=SC2016
count_reads() { sh -c 'f=$0; "$@"; rc=$?; sed -n "s/^read_bytes: //p" /proc/$$/io >"$f"; exit $rc' "$@"; }
count_reads_cgroup() { f=$1 && shift && count_reads "$f" sh -c "$cgroup_enter" "$cg" "$@"; }
# forget FILE...: drops their pages from the page cache, and no others.
forget() {
    for f; do
        sync "$f"
        dd if="$f" iflag=nocache count=0 2>/dev/null || return 1
    done
}
