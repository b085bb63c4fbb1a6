#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-run --quality with a large vocabulary: the head is found with its sketch. The most likely tokens are
# those of the whole head, for any threads, budget, I/O mode and file format; what is read falls; without
# memory for it the head is whole.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
tools=$QSF_BUILDDIR/obj/tests/tools
"$tools/mktiny" "$work/tied.gguf" ctx=512 vocab=33003 hidden=256 wtype=8 tied=1 ||
    fail "mktiny cannot write a model"
"$tools/mktiny" "$work/own.gguf" ctx=512 vocab=33003 hidden=256 wtype=8 seed=2 ||
    fail "mktiny cannot write a model"
for kind in tied own; do
    "$QSF_BUILDDIR/qsf-convert" "$work/$kind.gguf" "$work/$kind.qsf" >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "$kind: cannot convert"; }
done
prompt=$(words 20)
# ask OPTIONS...: the answer is in $text, what was left out on stderr or in the JSON object.
ask() {
    "$run" "$model" -p "$prompt" --temperature 0 --seed 7 --ignore-eos -n 12 --json "$@" >"$work/out" \
        2>"$work/err" </dev/null ||
        { cat "$work/err"; fail "failed: $model $*"; }
    text=$(answer_text)
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
}
whole() { number "$1" | sed 's/[^0-9].*//'; }

for model in "$work/tied.gguf" "$work/own.gguf" "$work/tied.qsf" "$work/own.qsf"; do
    ask
    want=$text
    grep -q sketched "$work/out" && fail "$model: a sketch is used at quality 1"
    ask --pin 0
    read=$(whole bytes_per_token)
    for options in '-t 1' '-t 3 --pin 0 --io pread' '--pin 0 --io mmap --slots 1'; do
        # shellcheck disable=SC2086
        ask --quality 0.9 $options
        [ "$text" = "$want" ] || fail "$model: other likely tokens with $options"
        [ "$(whole sketched_heads)" -ge 11 ] || { cat "$work/out"; fail "$model: no sketch with $options"; }
        [ "$(whole layers_skipped)" = 0 ] ||
            fail "$model: layers are skipped before the head is found with a sketch"
    done
    # ---- kernels that multiply plain rows: the rows of a QSF file are then unpacked
    ask --cpu-mask ref -n 6
    want=$text
    for options in '' '--pin 0'; do
        # shellcheck disable=SC2086
        ask --cpu-mask ref -n 6 --quality 0.9 $options
        [ "$text" = "$want" ] || fail "$model: other likely tokens from plain kernels, with '$options'"
    done
    ask --quality 0.9 --pin 0
    now=$(whole bytes_per_token)
    at_most "$(number head_part)" 0.3 || { cat "$work/out"; fail "$model: most of the head is needed"; }
    [ "$now" -lt "$read" ] || fail "$model: $now bytes per token, not fewer than $read"
    # ---- the same text when tokens are drawn, wherever the head is
    ask --quality 0.9 --temperature 1 --top-k 0 --top-p 1
    want=$text
    ask --quality 0.9 --temperature 1 --top-k 0 --top-p 1 --pin 0 -t 3
    [ "$text" = "$want" ] || fail "$model: other tokens are drawn when the head is not in RAM"
done

# ---- visible without --json
"$run" "$work/tied.gguf" -p "$prompt" --quality 0.9 -n 4 --seed 1 >"$work/out" 2>"$work/err" </dev/null
grep -q '^quality 0.90: 2 of 2 layers, the head by its sketch$' "$work/err" ||
    { cat "$work/err"; fail "the sketch is not reported"; }

# ---- where it is not used
model=$work/own.gguf
ask --exact
want=$text
ask --exact --quality 0.9
[ "$text" = "$want" ] || fail "--exact uses a sketch"
grep -q sketched "$work/out" && fail "a sketch is reported with --exact"
expect 2 'quality 0.9 does not work with --eviction-policy sliding' "$run" "$model" -p a -n 1 \
    --eviction-policy sliding --quality 0.9

# ---- divergence is small
words 200 >"$work/text"
model=$work/tied.gguf
"$run" "$model" --perplexity "$work/text" --kl-save "$work/kl" --ctx 128 >"$work/out" 2>"$work/err" ||
    fail "--perplexity failed"
"$run" "$model" --perplexity "$work/text" --kl-base "$work/kl" --ctx 128 --quality 0.9 --json >"$work/out" \
    2>"$work/err" || fail "--kl-base failed"
at_most "$(number mean_kl)" 0.05 || { cat "$work/out"; fail "the sketch diverges"; }
at_most "$(number mean_kl)" 0 && { cat "$work/out"; fail "--perplexity does not use the sketch"; }
finish
