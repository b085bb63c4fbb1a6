#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The budget of a sparse model changes in the middle of an answer, 20 budgets from the smallest that works, in
# which even the dense part streams, to more than the file: the tokens are those of the model in RAM. In a
# memory cgroup whose limit follows the budget nothing is killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
tools=$QSF_BUILDDIR/obj/tests/tools sparse=$work/sparse.gguf
"$tools/mkbig" "$sparse" layers=4 hidden=512 heads=8 ffn=512 experts=32 used=4 type=q4_k vocab=1000 ||
    fail "mkbig"
mb=$(($(wc -c <"$sparse") / 1048576 + 1))
least=$(least_budget --kv-type f16 -c 256 "$sparse")
[ -n "$least" ] || { cat "$work/err"; fail "the refusal does not end with the smallest budget"; finish; }
least=$((least + 2)) # the memory of a process before it plans differs from run to run
some=$((least + mb * 4 / 10))
# In an order in which large and small ones alternate.
list=$(awk -v a="$least" -v b=$((mb + 60)) 'BEGIN {
    for (i = 0; i < 20; i++) { k = i * 7 % 20; printf "%.0f ", a * (b / a) ^ (k / 19) } }')
"$run" --plan -c 256 --ram-budget $some "$sparse" 2>"$work/err" | grep -q '^expert slots *[1-9]' ||
    { cat "$work/err"; fail "no slots for experts with $some MB"; }
chunk=$("$run" --plan -c 1024 --ram-budget $some "$sparse" 2>&1 |
    sed -n 's/^prefill chunk *\([0-9]*\) tokens$/\1/p')
[ "${chunk:-0}" -gt 128 ] || fail "a prompt reads all experts for each $chunk tokens"
tokens=44

"$tools/budgetwalk" "$sparse" $tokens '' $((2 * mb + 100)) >"$work/whole" 2>"$work/err" ||
    { cat "$work/err"; fail "exit $? with everything in RAM"; }
[ "$(wc -l <"$work/whole")" = $tokens ] || { cat "$work/err"; fail "not $tokens tokens"; }

# walk GROUP COMMAND...
walk() {
    group=$1
    shift
    # shellcheck disable=SC2086
    "$@" "$tools/budgetwalk" "$sparse" $tokens "$group" $list >"$work/out" 2>"$work/err"
    got=$?
    [ $got = 0 ] || { cat "$work/err"; fail "exit $got with budgets of $list MB"; }
    cmp -s "$work/out" "$work/whole" || fail "other tokens with budgets of $list MB"
    grep -q "$tokens tokens, 22 changes" "$work/err" || { cat "$work/err"; fail "not 22 changes"; }
}
if [ -z "${QSF_SAN-}" ] && cgroup_open "${list%% *}"; then
    walk "$cg" cgroup_run
    [ "$(cgroup_kills)" = 0 ] || fail "killed"
    [ "$(cgroup_swap)" = 0.0 ] || fail "$(cgroup_swap) MB in swap"
    cgroup_close
else
    echo "skip: no writable memory cgroup, or sanitizers: only the tokens are compared"
    walk '' env
fi
# The budget that keeps all experts in RAM is named: with it nothing streams, with less something does.
"$run" -p a -n 1 -c 256 --ram-budget $some "$sparse" >"$work/out" 2>"$work/err" || fail "exit $?"
all=$(sed -n 's/.* of RAM are free: --ram-budget \([0-9]*\) keeps them in RAM$/\1/p' "$work/err")
[ -n "$all" ] || { cat "$work/err"; fail "no budget is named that keeps the weights in RAM"; finish; }
streams() {
    "$run" --plan --json -c 256 --ram-budget "$1" "$sparse" | sed -n 's/.*"streamed_bytes": \([0-9]*\).*/\1/p'
}
# --bench estimates what other budgets would mean; the last one is the one that was named, or nearly: the
# memory of a process differs from run to run.
"$run" --bench --json -r 1 -p 8 -n 40 -c 256 --ram-budget $some "$sparse" >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "--bench"; }
all_in='"expert_hit_rate": 1.0000, "resident": 1.0000, "decode_tps": [0-9.]+'
some_in='"expert_budgets": \[\{"budget_mb": [0-9]+, "expert_hit_rate": 0\.'
last=$(sed -nE "s/.*$some_in.*\\{\"budget_mb\": ([0-9]+), $all_in\\}\\].*/\\1/p" "$work/out")
{ [ "${last:-0}" -ge $((all - 3)) ] && [ "$last" -le $((all + 3)) ]; } ||
    { cat "$work/out"; fail "--bench does not say what $all MB would mean"; }
[ "$(streams "$all")" = 0 ] || fail "$(streams "$all") bytes stream with $all MB"
[ "$(streams $((all - 3)))" != 0 ] || fail "nothing streams with 3 MB less than $all, either"
finish
