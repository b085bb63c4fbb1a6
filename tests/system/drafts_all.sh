#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# 60 prompts (QSF_DRAFTS_PROMPTS; make check-hour: 200) with every source of drafts, four plans, one and two
# threads, greedy and sampled: the answers are those without drafts. The prompts of a combination are asked by
# one process; of a difference, the combination and the first prompt are named.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
chat=$QSF_BUILDDIR/qsf-chat mktiny=$QSF_BUILDDIR/obj/tests/tools/mktiny
export XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state"
prompts=${QSF_DRAFTS_PROMPTS:-60}
[ -z "${QSF_SAN-}" ] || prompts=${QSF_DRAFTS_PROMPTS:-20} # a combination starts a process, which is slow
"$mktiny" "$work/layers.gguf" layers=6 ctx=512 wtype=2 && "$mktiny" "$work/block.gguf" nextn=copy &&
    "$mktiny" "$work/mamba.gguf" mamba=3 && "$mktiny" "$work/layers.draft" layers=6 ctx=96 wtype=8 &&
    "$mktiny" "$work/mamba.draft" mamba=4 && cp "$work/mamba.draft" "$work/block.draft" || fail "mktiny"

# Words that repeat; every fifth prompt continues the conversation.
awk -v n="$prompts" 'BEGIN {
    srand(1)
    for (k = 1; k <= n; k++) {
        line = ""
        for (i = 0; i < 6 + k % 40; i++) line = line sprintf("%c%s", 97 + rand() * 6, rand() < 0.6 ? " " : "")
        print line
        if (k % 5 != 0) print "/clear"
    }
    print "/stats"
}' >"$work/talk"
grep -v '^/' "$work/talk" >"$work/prompts"
[ "$(wc -l <"$work/prompts")" = "$prompts" ] || fail "the prompts were not made"

ask() {
    "$chat" --plain --json --no-config --seed 3 --ignore-eos -n 24 -c 512 --kv-type f16 "$@" >"$work/out" 2>"$work/err"
}
# The smallest budget of the chat for a model, in MB.
least_of_chat() {
    ask --ram-budget 1 "$1" </dev/null
    sed -n 's/.*smallest budget that works: \([0-9]*\) MB.*/\1/p' "$work/out"
}
# answer FILE OPTIONS...: what must not differ of the answers to all prompts.
answer() {
    to=$1 && shift
    ask "$@" <"$work/talk" || { head -c 1000 "$work/out" && cat "$work/err"; fail "not answered: $*"; }
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
    sed -n '/"type": "answer"/s/, "tokens_per_second".*//p' "$work/out" >"$to"
    [ "$(wc -l <"$to")" = "$prompts" ] || fail "$(wc -l <"$to") answers to $prompts prompts: $*"
}
# compare COMBINATION: with the answers without drafts.
compare() {
    cmp -s "$work/plain" "$work/answers" && return
    at=$(diff "$work/plain" "$work/answers" | sed -n '1s/[^0-9].*//p')
    echo "prompt $at: $(sed -n "${at}p" "$work/prompts")"
    diff "$work/plain" "$work/answers" | head -n 4
    fail "another answer: $*"
}

drafted='' combinations=0
for model in layers block mamba; do
    file=$work/$model.gguf
    least=$(least_of_chat "$file")
    for plan in "--ram-budget $least" "--ram-budget $(mb 40) --pin 0" "--ram-budget $(mb 40) --pin 300K" '--ram-budget auto'; do
        for temperature in 0 0.9; do
            for threads in 1 2; do
                more="$plan --temperature $temperature -t $threads"
                # shellcheck disable=SC2086  # several options
                answer "$work/plain" --speculate off $more "$file"
                for source in lookup nextn pinned draft auto; do
                    # shellcheck disable=SC2086
                    answer "$work/answers" --speculate $source --draft-model "$work/$model.draft" $more "$file"
                    compare "$model, --speculate $source $more"
                    combinations=$((combinations + 1))
                    if grep -q "$source: .* right by position; passes with drafts: [1-9]" "$work/out"; then
                        drafted="$drafted$model-$source "
                    fi
                done
            done
        done
    done
done
for expected in layers-lookup layers-pinned layers-draft block-nextn mamba-lookup mamba-draft; do
    case $drafted in *"$expected "*) ;; *) fail "$expected never drafted, only: $drafted" ;; esac
done
echo "$combinations combinations of $prompts prompts"
finish
