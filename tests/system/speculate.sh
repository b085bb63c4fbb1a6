#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --speculate: the same text and number of tokens as without, for prompts, budgets, threads and seeds; a text
# made to fool it; an answer that is interrupted in the middle and asked for again; the numbers in JSON.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
guide=$QSF_SRCDIR/models/guide.qsf
[ -f "$guide" ] || skip "no $guide"

# ask OPTIONS...: the JSON of an answer of the guide is in $work/out, what must not differ of it in $same.
ask() {
    "$run" "$guide" --json --seed 3 -n "$tokens" "$@" >"$work/out" 2>"$work/err" </dev/null ||
        { cat "$work/err"; fail "failed: $*"; }
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
    same=$(sed 's/, "prefill_tps".*//' "$work/out")
}
# compare OPTIONS...: off, lookup and auto.
compare() {
    ask --speculate off "$@"
    plain=$same
    for source in lookup pinned draft auto; do
        ask --speculate $source --draft-model "$guide" "$@"
        [ "$same" = "$plain" ] || fail "--speculate $source $*: another answer"
    done
}
accepted() { sed -n 's/.*"accepted": {"lookup": \[\([0-9]*\),.*/\1/p' "$work/out"; }

# A text that repeats; of a model that repeats itself some drafts are right, and the numbers say so.
tokens=80
text='how do I set the budget? how do I set the budget? how do I set the budget? how do I set the'
compare -p "$text" --temperature 0 --ignore-eos --template raw -t 1
compare -p "$text" --temperature 0.8 --template raw --ignore-eos -t 2 --kv-type q2
# A model that repeats itself.
"$QSF_BUILDDIR/obj/tests/tools/mkbig" "$work/chain.gguf" layers=2 hidden=256 heads=4 ffn=512 vocab=900 chain=30 ||
    fail "mkbig"
own=$guide guide=$work/chain.gguf
compare -p hello --temperature 0 --ignore-eos
ask -p hello --temperature 0 --ignore-eos --speculate lookup
[ "$(accepted)" -gt 0 ] || fail "no draft was right: $(cat "$work/out")"
grep -q '"tokens_per_pass": 1\.[0-9]*[1-9]\|"tokens_per_pass": [2-9]' "$work/out" || fail "tokens_per_pass"
guide=$own
# Every sequence was there before, and is continued in another way: drafts are made, and wrong.
fool=$(i=1; while [ $i -le 40 ]; do printf 'to set the %s ' $((i * 7919 % 1000)); i=$((i + 1)); done)
compare -p "$fool" --temperature 1.5 --template raw --ignore-eos -t 1

# Interrupted after its first words, with what was evaluated in a file, and asked again.
mkfifo "$work/pipe"
"$run" "$guide" -p "$text" --template raw --temperature 0 --ignore-eos -n 3000 --speculate lookup -q \
    --prompt-cache "$work/cache" >"$work/pipe" 2>"$work/err" &
pid=$!
dd bs=1 count=40 <"$work/pipe" >"$work/part" 2>/dev/null &
reader=$!
wait $reader
kill -INT $pid 2>/dev/null
wait $pid
ask -p "$text" --temperature 0 --ignore-eos --template raw --speculate off
plain=$same
ask -p "$text" --temperature 0 --ignore-eos --template raw --speculate lookup --prompt-cache "$work/cache"
[ "$(printf %s "$same" | sed 's/, "reused_tokens".*//')" = "$plain" ] || fail "after an interrupt: another answer"

expect 2 'speculate takes auto, off, lookup, nextn, pinned or draft' "$run" "$guide" -p x --speculate fast
expect 2 'bench-text requires --bench' "$run" "$guide" -p x --bench-text "$work/part"
expect 2 'works with neither -p nor' "$run" "$guide" -p 4 --bench --bench-text "$work/part"
printf %s "$text" >"$work/text"
expect 0 '' "$run" "$guide" --bench --bench-text "$work/text" -n 20 -r 2 --json
grep -q '"tokens_per_pass": ' "$work/out" || fail "no tokens_per_pass in --bench"
grep -q '"accepted": {"lookup": \[' "$work/out" || fail "no accepted in --bench"

# ---- long: 200 prompts, budgets, threads
if [ -n "${QSF_TEST_QUICK-}" ]; then finish; fi
least=$(sure "$(least_budget "$guide")")
tokens=40
sed -n 's/^  \(.*[a-z].*\)/\1/p' "$QSF_SRCDIR"/tools/guide/facts/*.txt | tr -d '{}|' | awk 'NR % 7 == 1' | head -n 200 >"$work/prompts"
n=0
while read -r prompt; do
    n=$((n + 1))
    case $((n % 4)) in
    0) budget=$least ;;
    1) budget=$((least + 3)) ;;
    2) budget=$(mb 40) ;;
    *) budget=auto ;;
    esac
    compare -p "$prompt $prompt" --ram-budget $budget -t $((n / 4 % 2 + 1)) --temperature $((n / 8 % 2)) --ignore-eos
done <"$work/prompts"
[ $n -ge 150 ] || fail "only $n prompts"
finish
