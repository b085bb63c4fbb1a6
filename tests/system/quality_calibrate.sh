#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-run --calibrate-quality: the same file for any threads, budget and I/O mode; programs use it; answers
# that may end early are the same for any of them, too; what is predicted is what --perplexity measures;
# damaged files are ignored.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
export XDG_STATE_HOME="$work/state"
deep=$work/deep.gguf
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$deep" ctx=512 layers=14 vocab=1000 hidden=128 ||
    fail "mktiny cannot write a model"
words 150 >"$work/text" # 129 is the least
calibrate() {
    rm -rf "$work/state"
    "$run" "$deep" --calibrate-quality "$work/text" "$@" >"$work/out" 2>"$work/err" </dev/null ||
        { cat "$work/err"; fail "--calibrate-quality failed: $*"; }
    ! sanitized "$work/err" || { cat "$work/err"; fail "sanitizer report: $*"; }
    file=$(ls "$work"/state/qsf/quality/*.txt)
}

calibrate --json
cp "$file" "$work/want"
[ "$(wc -l <"$file")" = 11 ] || { cat "$file"; fail "the file has not one line for each quality"; }
grep -q '"rows": \[{"quality": 0.9, ' "$work/out" || { cat "$work/out"; fail "--json has no rows"; }
for options in '-t 1 --pin 0 --io pread' '-t 3 --batch 2 --io mmap --pin 1M'; do
    # shellcheck disable=SC2086
    calibrate $options
    cmp -s "$file" "$work/want" || { diff "$file" "$work/want"; fail "another result with $options"; }
done
grep -q ' KL  perpl' "$work/out" || { cat "$work/out"; fail "no table"; }
grep -q "saved as $file" "$work/err" || fail "where the result is is not said"

# ---- answers; every quality from 0.9 to 0.1 reads no more than the one above it
ask() {
    "$run" "$deep" -p "$(words 40)" --temperature 1.5 --top-p 1 --top-k 0 --seed 7 --ignore-eos -n 24 --json \
        "$@" >"$work/out" 2>"$work/err" </dev/null ||
        { cat "$work/err"; fail "failed: $*"; }
    text=$(answer_text)
}
ask
plain=$text
# use LINE: the same for all qualities
use() { sed -i "s/^\([0-9]*\) [es][xk].*/\1 $1/" "$file"; }
use "exit 9 margin 1000000 full 1000 kl 0 perplexity 1000000"
ask --quality 0.5
[ "$text" = "$plain" ] || fail "a margin that no token reaches changes the answer"
[ "$(number exited_tokens)" = 0 ] || fail "tokens have ended early"
for margin in 0 300 1200; do
    use "exit 9 margin $margin full 500 kl 0 perplexity 1000000"
    ask --quality 0.5
    want=$text exited=$(number exited_tokens)
    echo "margin $margin: $exited tokens ended early"
    for options in '-t 1 --pin 0 --io pread' '-t 3 --batch 2 --pin 0 --io mmap --slots 1' '--pin 1M' \
        '--batch 1'; do
        # shellcheck disable=SC2086
        ask --quality 0.5 $options
        [ "$text" = "$want" ] || fail "margin $margin: another answer with $options"
        [ "$(number exited_tokens)" = "$exited" ] ||
            fail "margin $margin: other tokens ended early with $options"
    done
done
use "exit 9 margin 0 full 0 kl 0 perplexity 1000000"
ask --quality 0.5 --pin 0
[ "$(number exited_tokens)" = 23 ] || { cat "$work/out"; fail "not all tokens have ended early"; }
read=$(number bytes_per_token | sed 's/[^0-9].*//')
ask --pin 0
[ "$read" -lt $(($(number bytes_per_token | sed 's/[^0-9].*//') * 8 / 10)) ] ||
    fail "an early end reads $read bytes per token"
"$run" "$deep" -p "$(words 40)" --quality 0.5 -n 4 --seed 1 >"$work/out" 2>"$work/err" </dev/null
grep -q '^quality 0.50: about [0-9]* of 14 layers (tokens may end after 9)$' "$work/err" ||
    { cat "$work/err"; fail "early exit is not reported"; }

# ---- the prediction of what happens to a text is what --perplexity measures
"$run" "$deep" --perplexity "$work/text" --kl-save "$work/kl" --ctx 128 >"$work/out" 2>"$work/err" ||
    fail "--perplexity failed"
use "exit 9 margin 1000000 full 1000 kl 0 perplexity 1000000"
"$run" "$deep" --perplexity "$work/text" --kl-base "$work/kl" --ctx 128 --quality 0.5 --json >"$work/out" \
    2>"$work/err" || fail "--kl-base failed"
at_most "$(number mean_kl)" 0 || { cat "$work/out"; fail "no token ends early, but the text diverges"; }
use "exit 9 margin 50 full 500 kl 0 perplexity 1000000"
"$run" "$deep" --perplexity "$work/text" --kl-base "$work/kl" --ctx 128 --quality 0.5 --json >"$work/out" \
    2>"$work/err" || fail "--kl-base failed"
at_most "$(number mean_kl)" 0 && { cat "$work/out"; fail "tokens end early, but the text does not diverge"; }

# ---- damaged, of another model, not possible: ignored, with one message
for line in 'exit 0 margin 0 full 0 kl 0 perplexity 1' 'skip 0 kl 0 perplexity 1' \
    'skip 3,2 kl 0 perplexity 1' 'exit 99 margin 0 full 0 kl 0 perplexity 1' nonsense; do
    cp "$work/want" "$file"
    use "$line"
    ask --quality 0.5
    [ "$(grep -c 'it is ignored' "$work/err")" = 1 ] || { cat "$work/err"; fail "accepted: $line"; }
done
cp "$work/want" "$file"
sed -i 's/^model ..../model 0000/' "$file"
ask --quality 0.5
grep -q 'another model; it is ignored' "$work/err" ||
    { cat "$work/err"; fail "the file of another model is used"; }

# ---- refused
refused() {
    want=$1 status=$2
    shift 2
    "$run" "$deep" "$@" >"$work/out" 2>"$work/err" </dev/null
    [ $? = "$status" ] && grep -q "$want" "$work/err" ||
        { cat "$work/err"; fail "expected $status and \"$want\": $*"; }
}
words 50 >"$work/short"
refused 'at least' 2 --calibrate-quality "$work/short"
refused 'is empty' 3 --calibrate-quality /dev/null
refused 'No such file' 3 --calibrate-quality "$work/missing"
refused 'cannot be combined with --quality' 2 --calibrate-quality "$work/text" --quality 0.5
refused 'eviction' 2 --calibrate-quality "$work/text" --eviction-policy sliding
mkdir "$work/closed"
: >"$work/closed/qsf"
XDG_STATE_HOME="$work/closed" refused 'cannot create' 1 --calibrate-quality "$work/text"
finish
