#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --threads: set, measured (auto), with one CPU of the affinity mask, and under a CPU quota: the same answer,
# and what --verbose and --json say.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
# ask COMMAND...: an answer with figures in $work/out; what --verbose says in $work/err.
ask() { expect 0 '^threads: ' "$@" "$tiny" -p 'a b c' -n 40 --ignore-eos --temperature 0 --json -v; }
says() { grep -qE -- "$1" "$work/err" || { cat "$work/err"; fail "--verbose does not say /$1/"; }; }
has() { grep -qE -- "$1" "$work/out" || { cat "$work/out"; fail "no /$1/ in the object"; }; }
same() { [ "$(answer_text)" = "$text" ] || fail "another answer: $*"; }

ask "$run" -t 3
says '^threads: 3, as set$'
has '"threads": 3, "prefill_threads": 3, "threads_measured": false'
text=$(answer_text)
[ -n "$text" ] || fail "no answer"
for how in '' '-t auto' '-t 0'; do
    # shellcheck disable=SC2086  # words
    ask "$run" $how
    says '^threads: [0-9+ ]+ cores?'
    says '^threads: [0-9]+ for tokens; (measured|not measured yet): |^threads: 1 for tokens; nothing'
    says '^threads: [0-9]+ for prompts; '
    same "$how"
done

if have taskset; then
    first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    ask taskset -c "$first" "$run"
    says '^threads: 1 core($|,)'
    says '^threads: 1 for tokens; nothing to choose from$'
    has '"threads": 1, "prefill_threads": 1, "threads_measured": false'
    same 'one CPU'
fi

# A quota of half a CPU, in a group of the version whose cpu controller is there.
v1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)cpu(,|$)/ { print $2; exit }' /proc/mounts)
v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$v1" ] || { echo +cpu >"$v2/cgroup.subtree_control"; } 2>/dev/null
group=${v1:-$v2}/qsf-threads-$$
mkdir "$group" 2>/dev/null || { echo "skip: no writable cpu cgroup"; finish; }
trap 'rmdir "$group"; rm -rf "$work"' EXIT
if [ -n "$v1" ]; then
    { echo 100000 >"$group/cpu.cfs_period_us" && echo 50000 >"$group/cpu.cfs_quota_us"; } 2>/dev/null
else
    { echo '50000 100000' >"$group/cpu.max"; } 2>/dev/null
fi || { echo "skip: no CPU quota in a new cgroup"; finish; }
# shellcheck disable=SC2016  # for the shell that is started
ask sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$run"
says '^threads: .*quota of 0\.50 CPUs$'
says '^threads: 1 for tokens; nothing to choose from$'
same 'a quota'
finish
