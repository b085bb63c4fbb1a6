#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every source of drafts, off among them, gives the same answers: for models of several kinds, plans, threads,
# greedy and sampled; a text made to fool them; with adapters, an aLoRA that a later message invokes, and
# control vectors; grammars and stop strings; and a conversation in the chat with retries, evictions and other
# settings in between. drafts_all.sh has many prompts.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
export XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state"
deep=$work/deep.gguf blocks=$work/blocks.gguf copy=$work/copy.gguf mamba=$work/mamba.gguf
sparse=$work/sparse.gguf
"$mktiny" "$deep" layers=6 ctx=512 wtype=2 && "$mktiny" "$work/draft.gguf" layers=6 ctx=96 wtype=8 &&
    "$mktiny" "$blocks" nextn=2 && "$mktiny" "$copy" nextn=copy && "$mktiny" "$mamba" mamba=3 &&
    "$mktiny" "$sparse" experts=stacked seed=5 && "$mktiny" "$work/recurrent.gguf" mamba=4 || fail "mktiny"
draft_of() { case $1 in "$mamba" | "$blocks") echo "$work/recurrent.gguf" ;; *) echo "$work/draft.gguf" ;; esac; }

# ask MODEL OPTIONS...: what must not differ of an answer is in $same.
ask() {
    "$run" --json --seed 3 -q "$@" >"$work/out" 2>"$work/err" </dev/null || { cat "$work/err"; fail "failed: $*"; }
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
    same=$(sed 's/, "prefill_tps".*//; s/, "reused_tokens": [0-9]*//' "$work/out")
}
# same MODEL OPTIONS...: all sources. What drafted is counted in $drafted.
drafted=
same() {
    ask "$@" --speculate off
    plain=$same
    for source in lookup nextn pinned draft auto; do
        ask "$@" --speculate $source --draft-model "$(draft_of "$1")"
        [ "$same" = "$plain" ] || { echo "$plain"; echo "$same"; fail "--speculate $source, $*: another answer"; }
        if grep -q "\"drafted\": {.*\"$source\": \[[1-9].*\"accepted\"" "$work/out"; then drafted="$drafted$source "; fi
    done
}

# ---- models, plans, threads, greedy and sampled; of each model two plans in the quick part
text='a b c d a b c d a b c' n=0 m=0
for model in "$deep" "$blocks" "$copy" "$mamba" "$sparse"; do
    m=$((m + 1))
    for pin in "$((1 << 30))" 0 200K 400K; do
        n=$((n + 1))
        if [ -n "${QSF_TEST_QUICK-}" ] && [ $(((n + m) % 2)) = 0 ]; then continue; fi
        same "$model" -p "$text" -n 24 -c 256 --ignore-eos --pin "$pin" -t $((n % 2 + 1)) \
            --temperature "$(echo 0 0.9 | cut -d ' ' -f $((n % 3 % 2 + 1)))" \
            --kv-type "$(echo f16 q8 q4 q2 | cut -d ' ' -f $((n % 4 + 1)))"
    done
done
for source in lookup nextn pinned draft; do
    case $drafted in *$source*) ;; *) fail "$source never drafted" ;; esac
done
# Each sequence was there before, and continues in another way.
fool=$(awk 'BEGIN { for (i = 0; i < 60; i++) printf "ab cd %c%c ", 97 + i * 7 % 26, 97 + i * 11 % 26 }')
same "$deep" -p "$fool" -n 40 -c 512 --temperature 1.5 --ignore-eos
same "$copy" -p "$fool" -n 40 -c 512 --temperature 1.5 --ignore-eos

# ---- grammars, bans, stop strings, penalties
for more in '--regex ([a-c]x|hello*world)*' '--stop e --dry 0.8 --repeat-penalty 1.3' '--eviction-policy sliding -c 128 -n 200'; do
    # shellcheck disable=SC2086  # several options
    same "$deep" -p "$text" -n 40 --temperature 0.8 $more
done
for more in '--mirostat 2' '--json-schema any' '--max-tokens 3' '--logit-bias e=2'; do
    # shellcheck disable=SC2086  # several options
    [ -n "${QSF_TEST_QUICK-}" ] || same "$copy" -p "$text" -n 40 --temperature 0.8 $more
done

# ---- adapters
if have python3; then
    base=$work/base.gguf at=$work/adapters
    "$mktiny" "$base" ctx=256 wtype=0 && py "$QSF_SRCDIR/tests/system/lora.py" "$base" "$at" || fail "lora.py"
    for more in "--lora $at/a.gguf --control-vector $at/control.gguf:2" \
        "--lora $at/a.gguf:0.5 --lora $at/b.gguf:-0.75 --pin 0"; do
        # shellcheck disable=SC2086  # several options
        same "$base" -p "$text" -n 30 --temperature 0 --ignore-eos $more
    done
    # Tokens 5 and 6 are these bytes. The second prompt continues the first one.
    invoked=$(printf 'a b \002\003 c d')
    temperatures='0 0.9'
    [ -z "${QSF_TEST_QUICK-}" ] || temperatures=0.9
    for temperature in $temperatures; do
        rm -f "$work"/cache.*
        for source in off lookup nextn pinned draft auto; do
            for prompt in "$text" "$text $invoked"; do
                ask "$base" -p "$prompt" -n 30 --temperature "$temperature" --ignore-eos --lora "$at/alora.gguf" --speculate \
                    $source --draft-model "$work/draft.gguf" --prompt-cache "$work/cache.$source"
                [ "$prompt" = "$text" ] && first=$same
            done
            [ $source = off ] && plain="$first $same"
            [ "$first $same" = "$plain" ] || fail "--speculate $source with an aLoRA: another answer"
        done
        ask "$base" -p "$text $invoked" -n 30 --temperature "$temperature" --ignore-eos --speculate off
        case $plain in *"$same") fail "the aLoRA was not invoked" ;; esac
    done
fi

# ---- conversations
# talk SOURCE OPTIONS...: with commands that must not matter, for sources other than off.
talk() {
    source=$1 && shift
    {
        printf 'a b c\nd e f\n/retry\n'
        [ "$source" = off ] || printf '/speculate auto\n/threads 1\n/stats\n'
        printf 'a b c d\n/undo\nb c d\n'
        [ "$source" = off ] || printf '/speculate %s\n/budget %s\n' "$source" "$(mb 40)"
        printf '/retry\ng h a b c\n'
        [ "$source" = off ] || printf '/draft-model off\n/budget %s\n' "$(mb 60)"
        printf 'i j\n/clear\na b c\n'
    } | "$chat" "$deep" --plain --seed 5 --ignore-eos -n 30 -c 512 --kv-type f16 --ram-budget "$(mb 60)" \
        --speculate "$source" "$@" \
        >"$work/out" 2>"$work/err" || { cat "$work/err"; fail "exit $?: talk $source $*"; }
}
for more in '--temperature 0.8' '--temperature 0 -c 160 --eviction-policy sliding'; do
    # shellcheck disable=SC2086  # several options
    talk off $more
    mv "$work/out" "$work/plain"
    for source in lookup nextn pinned draft; do
        # shellcheck disable=SC2086
        talk $source $more --draft-model "$work/draft.gguf"
        cmp "$work/out" "$work/plain" || { cat "$work/err"; fail "--speculate $source $more: another conversation"; }
    done
done
finish
