#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --draft-model: the same text as without, at every budget, with a model that streams, in the chat while the
# budget changes; files that are refused, budgets that have no room for it, and what the plan says.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
export XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state"
"$mktiny" "$work/right.gguf" ctx=512 wtype=8 && "$mktiny" "$work/wrong.gguf" seed=3 ctx=128 &&
    "$mktiny" "$work/short.gguf" seed=4 vocab=280 && "$mktiny" "$work/mamba.gguf" mamba=5 || fail "mktiny"

# ask MODEL OPTIONS...: a greedy answer in JSON; its text is in $text.
ask() { expect 0 '' "$run" --json --temperature 0 --ignore-eos -n 40 -c 256 --kv-type f16 -p 'a b c d a b c' "$@"; text=$(answer_text); }
drafted() { grep -q '"drafted": {.*"draft": \[[1-9]' "$work/out"; }

# ---- what it drafts does not matter
ask "$tiny" --speculate off
plain=$text
for draft in right wrong short mamba; do
    for source in draft auto; do
        ask "$tiny" --speculate $source --draft-model "$work/$draft.gguf"
        [ "$text" = "$plain" ] || fail "--speculate $source with $draft.gguf: another answer"
        [ $source = auto ] || drafted || { cat "$work/out"; fail "$draft.gguf did not draft"; }
    done
done
ask "$tiny" --speculate draft --draft-model "$tiny"
awk -v n="$(number tokens_per_pass)" 'BEGIN { exit !(n >= 1.2) }' || { cat "$work/out"; fail "a model is not right about itself"; }
grep -q 'draft' "$work/err" && { cat "$work/err"; fail "a notice although it drafts"; }

# ---- refused
expect 3 'draft-model: .*/none.gguf: cannot open' "$run" "$tiny" -p a --draft-model "$work/none.gguf"
printf 'not a model' >"$work/text.gguf"
expect 3 'draft-model: .*/text.gguf' "$run" "$tiny" -p a --draft-model "$work/text.gguf"
"$mktiny" "$work/letters.gguf" ascii=1 || fail "mktiny"
expect 3 'draft-model: .*/letters.gguf: not the vocabulary of the model: token 131 is ".*", expected the byte "<0x80>"' \
    "$run" "$tiny" -p a --draft-model "$work/letters.gguf"
head -c 20000 "$work/right.gguf" >"$work/half.gguf"
expect 3 'draft-model: .*/half.gguf' "$run" "$tiny" -p a --draft-model "$work/half.gguf"
# Without drafts it is not opened.
expect 0 '' "$run" "$tiny" -p a -n 2 --speculate off --draft-model "$work/none.gguf"
expect 0 'there is no draft model, so there are no drafts' "$run" "$tiny" -p a -n 2 --speculate draft

# ---- the model streams, the draft model does not
big_model
"$mktiny" "$work/draft.gguf" vocab=2000 hidden=128 heads=4 ffn=256 layers=4 || fail "mktiny"
least=$(sure "$(least_budget "$big" -c 256 --kv-type f16)")
ask "$big" --speculate off --ram-budget "$(mb 60)" -n 12
plain=$text
threads=1
for budget in "$least" $((least + 4)) "$(mb 60)" auto; do
    for source in draft auto; do
        threads=$((3 - threads))
        ask "$big" --speculate $source --draft-model "$work/draft.gguf" --ram-budget "$budget" -n 12 -t $threads
        [ "$text" = "$plain" ] || fail "--speculate $source at $budget: another answer"
        [ "$budget" = auto ] || at_most "$(number peak_rss_mb)" "$budget" || [ -n "${QSF_SAN-}" ] ||
            fail "$(number peak_rss_mb) MB at a budget of $budget"
    done
done
ask "$big" --speculate draft --draft-model "$work/draft.gguf" --ram-budget "$(mb 60)" -n 12
drafted || { cat "$work/out" "$work/err"; fail "it does not draft beside a model that streams"; }
expect 0 'draft-model: not used: the budget has no room for it beside the model.*; --ram-budget [0-9]* has' \
    "$run" "$big" -p a -n 1 -c 256 --kv-type f16 --ram-budget "$least" --speculate draft --draft-model "$big"
expect 0 '' "$run" --plan "$big" --ram-budget "$(mb 60)" --speculate draft --draft-model "$work/draft.gguf"
grep -qE '^drafts +[0-9.]+ MB, up to [0-9] tokens in a pass$' "$work/out" || { cat "$work/out"; fail "no line in the plan"; }

# ---- in the chat: other budgets, other draft models and none, between and in answers
talk() { "$chat" --plain --kv-type f16 --temperature 0 --ignore-eos -n 12 -c 512 "$@" >"$work/out" 2>"$work/err"; }
printf 'a b c\nd e f\n/retry\n/undo\ng h\n' | talk "$big" --ram-budget "$(mb 60)" --speculate off
mv "$work/out" "$work/plain"
{
    printf 'a b c\n/budget %s\nd e f\n/draft-model %s\n/retry\n/undo\n' "$(mb 70)" "$work/mamba.gguf"
    printf '/draft-model %s\n/stats\n/draft-model off\n/draft-model %s\ng h\n/stats\n' "$work/none.gguf" "$work/draft.gguf"
} | talk "$big" --ram-budget "$(mb 60)" --speculate draft --draft-model "$work/draft.gguf"
cmp "$work/out" "$work/plain" || { cat "$work/err"; fail "another conversation"; }
grep -q 'draft-model: .*none.gguf: cannot open' "$work/err" || { cat "$work/err"; fail "a missing file is not named"; }
grep -q '^ *draft: .* right by position; passes with drafts: [1-9]' "$work/err" || { cat "$work/err"; fail "/stats"; }
printf '/speculate draft\n' | talk "$tiny"
grep -q 'there is no draft model' "$work/err" || { cat "$work/err"; fail "/speculate draft without a draft model"; }

# ---- killed in the middle of an answer, and asked again with what was kept
printf 'a b c d\n' >"$work/line"
"$run" "$tiny" -p 'a b c d' --temperature 0 --ignore-eos -n 200 -c 512 --speculate off -q >"$work/plain"
mkfifo "$work/pipe"
for signal in INT KILL; do
    "$run" "$tiny" -p 'a b c d' --temperature 0 --ignore-eos -n 100000 -c 512 --speculate draft -q \
        --draft-model "$work/mamba.gguf" --prompt-cache "$work/cache" >"$work/pipe" 2>"$work/err" &
    pid=$!
    dd bs=1 count=40 <"$work/pipe" >/dev/null 2>&1 &
    reader=$!
    wait $reader
    kill -$signal $pid 2>/dev/null
    wait $pid 2>/dev/null
    expect 0 '' "$run" "$tiny" -p 'a b c d' --temperature 0 --ignore-eos -n 200 -c 512 --speculate draft -q \
        --draft-model "$work/right.gguf" --prompt-cache "$work/cache"
    cmp "$work/out" "$work/plain" || fail "another answer after SIG$signal"
done
finish
