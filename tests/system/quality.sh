#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-run --quality: 1 is exact; lower values give the same answer for any threads, budget and I/O mode, read
# less, and say so; prompts stay exact, also in snapshots.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
deep=$work/deep.gguf
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$deep" ctx=512 layers=14 vocab=1000 hidden=128 ||
    fail "mktiny cannot write a model"
prompt=$(words 40)
# ask OPTIONS...: the answer is in $text, what was left out on stderr or in the JSON object.
ask() {
    "$run" "$deep" -p "$prompt" --temperature 1.5 --top-p 1 --top-k 0 --seed 7 --ignore-eos -n 12 --json \
        "$@" >"$work/out" 2>"$work/err" </dev/null ||
        { cat "$work/err"; fail "failed: $*"; }
    text=$(answer_text)
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
}
whole() { number "$1" | sed 's/[^0-9].*//'; }

ask
plain=$text
grep -q quality "$work/out" && fail "a quality is reported although nothing is left out"
ask --quality 1
[ "$text" = "$plain" ] || fail "--quality 1 gives another answer"
grep -q quality "$work/out" && fail "--quality 1 is reported as if something were left out"

layers=99 read=999999999
for q in 0.9 0.6 0.3; do
    ask --quality $q
    [ "$text" != "$plain" ] || fail "--quality $q: nothing has changed"
    want=$text used=$(whole layers_used) left=$(whole layers_skipped)
    [ $((used + left)) = 14 ] || fail "$used layers used and $left skipped, of 14"
    [ "$used" -le $layers ] || fail "--quality $q uses $used layers, a higher one $layers"
    layers=$used
    [ $q != 0.6 ] ||
        for options in '-t 1 --pin 0 --io pread' '-t 3 --batch 2 --pin 0 --io mmap --slots 1' '--pin 1M'; do
        # shellcheck disable=SC2086
        ask --quality $q $options
        [ "$text" = "$want" ] || fail "--quality $q: another answer with $options"
    done
    ask --quality $q --pin 0
    now=$(whole bytes_per_token)
    [ "$now" -lt $read ] || fail "--quality $q reads $now bytes per token, a higher one $read"
    read=$now
done
at_most "$read" 2500000 || fail "$read bytes per token at the lowest quality"

# ---- visible without --json, too
"$run" "$deep" -p "$prompt" --quality 0.7 -n 4 --seed 1 >"$work/out" 2>"$work/err" </dev/null
grep -q '^quality 0.70: [0-9]* of 14 layers$' "$work/err" ||
    { cat "$work/err"; fail "the quality is not reported"; }

# ---- a snapshot has only what was evaluated with everything
ask --quality 0.5
want=$text
ask --quality 0.5 --prompt-cache "$work/snap"
[ "$text" = "$want" ] || fail "another answer with a prompt cache"
ask --prompt-cache "$work/snap"
[ "$text" = "$plain" ] || fail "a snapshot of a reduced answer changes a full one"
[ "$(whole reused_tokens)" -ge 30 ] || fail "a snapshot of a reduced answer has no prompt"
ask --quality 0.5 --prompt-cache "$work/snap"
[ "$text" = "$want" ] || fail "another answer with the snapshot of a full one"

# ---- other modes
words 400 >"$work/text"
"$run" "$deep" --perplexity "$work/text" --kl-save "$work/kl" --ctx 128 >"$work/out" 2>"$work/err" ||
    fail "--perplexity failed"
"$run" "$deep" --perplexity "$work/text" --kl-base "$work/kl" --ctx 128 --quality 1 --json >"$work/out" \
    2>"$work/err" || fail "--kl-base failed"
at_most "$(number mean_kl)" 0 || { cat "$work/out"; fail "--quality 1 diverges"; }
"$run" "$deep" --perplexity "$work/text" --kl-base "$work/kl" --ctx 128 --quality 0.5 --json >"$work/out" \
    2>"$work/err" || fail "--kl-base failed"
at_most "$(number mean_kl)" 0 && { cat "$work/out"; fail "--quality 0.5 does not diverge"; }
want=$(number mean_kl)
"$run" "$deep" --perplexity "$work/text" --kl-base "$work/kl" --ctx 128 --quality 0.5 --pin 0 --json \
    >"$work/out" 2>"$work/err" ||
    { cat "$work/err"; fail "--kl-base with weights that stream"; }
[ "$(number mean_kl)" = "$want" ] || fail "another divergence with weights that stream"
"$run" "$deep" --bench -p 20 -n 4 -r 1 --quality 0.5 --json >"$work/out" 2>"$work/err" ||
    { cat "$work/err"; fail "--bench failed"; }
[ "$(whole layers_skipped)" -gt 4 ] || fail "--bench skips nothing"
finish
