#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --expert-top and --expert-drop: refused by models without experts, said while they are on, the same tokens
# at every budget, live in the chat and kept by its sessions. 0 is off.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat sparse=$work/sparse.gguf
export XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state"
mkdir -p "$work/config/qsf"
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$sparse" experts=stacked seed=5 || fail "mktiny"
four="--override-kv llama.expert_used_count=int:4"

# shellcheck disable=SC2086
# ask OPTIONS...: a greedy answer in JSON.
ask() { expect 0 '' "$run" --json --speculate off --temperature 0 --ignore-eos -n 12 -c 128 -p 'a b c' $four "$@" "$sparse"; }
has() { grep -q "\"$1\": $2[,}]" "$work/out" || { cat "$work/out"; fail "no \"$1\": $2"; }; }
hasnt() { if grep -q "\"$1\":" "$work/out"; then cat "$work/out"; fail "\"$1\" is there"; fi; }

ask
exact=$(answer_text)
has expert_uses_per_token 8
hasnt expert_top && hasnt experts_used
ask --expert-top 0 --expert-drop 0
[ "$(answer_text)" = "$exact" ] || fail "another answer with limits of 0"
ask --expert-top 4 # all that the router chooses
[ "$(answer_text)" = "$exact" ] || fail "another answer with all chosen experts"
hasnt experts_used
ask --expert-top 2
has expert_top 2 && has experts_used 2 && has experts_chosen 4 && has expert_uses_per_token 4
has quality 1
ask --expert-top 1
has expert_uses_per_token 2
text=$(answer_text)
[ "$text" != "$exact" ] || fail "--expert-top 1 changes nothing"
for way in "--pin 0" "--pin 200K" "--pin 300K --io pread" "-t 3 --pin 500K --io mmap"; do
    # shellcheck disable=SC2086
    ask --expert-top 1 $way
    [ "$(answer_text)" = "$text" ] || fail "another answer: $way"
done
ask --expert-drop 1 # the best expert alone
has expert_drop 1 && has expert_uses_per_token 2
[ "$(answer_text)" = "$text" ] || fail "the best expert alone, and another answer"
ask --expert-drop 0.5
uses=$(number expert_uses_per_token)
awk -v u="$uses" 'BEGIN { exit !(u > 2 && u < 8) }' || fail "$uses experts per token with --expert-drop 0.5"
# shellcheck disable=SC2086
expect 0 'at most 3 of 4 experts, none below 0.5 of the best' "$run" --temperature 0 -n 2 -p a --expert-top 3 \
    --expert-drop 0.5 $four "$sparse"
# shellcheck disable=SC2086
expect 0 '' "$run" --bench --json -p 4 -n 4 -r 1 -c 128 --expert-top 2 $four "$sparse"
has expert_top 2 && has experts_used 2
awk 'BEGIN { for (i = 0; i < 120; i++) printf "%c ", 97 + i * i % 26 }' >"$work/text"
for limit in "" "--expert-top 1" "--expert-drop 0.3"; do
    # shellcheck disable=SC2086
    expect 0 '' "$run" --perplexity "$work/text" --json -c 64 $four $limit "$sparse"
    number ppl
done | sort -u >"$work/several"
[ "$(wc -l <"$work/several")" = 3 ] || { cat "$work/several"; fail "limits do not change the perplexity"; }

# ---- refused
expect 2 'tiny.gguf has no experts: --expert-top is for sparse models' "$run" --expert-top 2 -p a "$tiny"
expect 2 'tiny.gguf has no experts: --expert-drop' "$run" --expert-drop 0.1 -p a "$tiny"
expect 2 'expert-top 2 does not work with --eviction-policy sliding' "$run" --expert-top 2 \
    --eviction-policy sliding -p a "$sparse"
expect 2 'expert-drop takes a number from 0 to 1' "$run" --expert-drop 1.5 -p a "$sparse"
expect 2 'expert-top takes a whole number from 0 to 1024' "$run" --expert-top -1 -p a "$sparse"
expect 2 'cannot be combined with --expert-top' "$run" --calibrate-quality "$work/text" --expert-top 2 "$sparse"
printf 'expert-top = 1\n' >"$work/config/qsf/config" # for all models
expect 0 '' "$run" --temperature 0 -n 2 -p a "$tiny"
expect 0 '1 of 2 experts' "$run" --temperature 0 -n 2 -p a "$sparse"
rm "$work/config/qsf/config"

# ---- in the chat
talk() { "$chat" --plain --temperature 0 --ignore-eos -n 3 -c 128 "$@" >"$work/out" 2>"$work/err"; }
said() { grep -qE -- "$1" "$work/err" || { cat "$work/err"; fail "the chat does not say /$1/"; }; }
printf '/set expert-top 2\n/expert-drop 0.25\nhello\n/set expert-top\n' | talk --session limits "$sparse"
said '^qsf-chat: expert-top 2$' && said '^qsf-chat: expert-drop 0.25$' && said '^expert-top 2$'
printf '/expert-top\n/expert-drop\n/expert-top 0\nhello\n' | talk --session limits
said '^expert-top 2$' && said '^expert-drop 0.25$' && said '^qsf-chat: expert-top 0$'
printf '/expert-top 2\n/expert-top\nhello\n' | talk "$tiny"
said 'expert-top 2: .*tiny.gguf has no experts' && said '^expert-top 0$'
printf 'hello\n/expert-drop\n' | talk --expert-drop 0.1 "$tiny"
said 'expert-drop is 0: .*tiny.gguf has no experts' && said '^expert-drop 0$'
finish
