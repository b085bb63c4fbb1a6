#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# qsf-run --perplexity: the same figures for any budget and threads, windows and strides, distributions stored
# and compared, and refusals.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
text=$work/text
words 300 >"$text"
ppl="$run --perplexity"
figures() { sed 's/, "seconds".*//' "$work/out"; }

# shellcheck disable=SC2086
{
expect 0 '' $ppl "$text" "$tiny"
grep -q '^perplexity  *[0-9.]* +- [0-9.]*$' "$work/out" || { cat "$work/out"; fail "no perplexity"; }
grep -q '^tokens .*1 window of 512, stride 256, each starts with BOS$' "$work/out" ||
    { cat "$work/out"; fail "not the default window"; }
[ ! -s "$work/err" ] || { cat "$work/err"; fail "progress without a terminal"; }

# the same figures however it is run
expect 0 '' $ppl "$text" --json -c 64 "$tiny"
for key in tokens nll nll_error ppl ppl_error text_tokens windows window stride bos peak_rss_mb budget_mb \
    threads backend; do
    grep -q "\"$key\": " "$work/out" || { cat "$work/out"; fail "--json lacks $key"; }
done
[ "$(wc -l <"$work/out")" = 1 ] || fail "--json is not one line"
once=$(figures)
same() {
    expect 0 '' "$@"
    [ "$(figures)" = "$once" ] || { figures; echo "$once"; fail "other figures: $*"; }
}
for t in 1 2 3; do same $ppl "$text" --json -c 64 -t $t "$tiny"; done
same $ppl "$text" --json -c 64 --pin 0 "$tiny"
same $ppl "$text" --json -c 64 --pin 300K -t 1 --batch 7 "$tiny"
same $ppl "$text" --json -c 64 --ram-budget auto "$tiny"
expect 4 'smallest budget' $ppl "$text" --json -c 64 --ram-budget 1 "$tiny"
least=$(sed -n '$s/^smallest budget that works: \([0-9]*\) MB$/\1/p' "$work/err")
if [ -z "${QSF_SAN:-}" ]; then
    same $ppl "$text" --json -c 64 --ram-budget "$least" "$tiny"
    at_most "$(number peak_rss_mb)" "$least" ||
        fail "the peak of $(number peak_rss_mb) MB is above the budget of $least"
fi
"$run" --perplexity - --json -c 64 "$tiny" <"$text" >"$work/out" 2>"$work/err" ||
    { cat "$work/err"; fail "text on stdin"; }
[ "$(figures)" = "$once" ] || fail "stdin gives other figures"

# counts: BOS, a space and 300 letters with their spaces are n tokens
n=$(number text_tokens)
scored() { # TOKENS WINDOWS OPTIONS...
    tokens=$1 count=$2
    shift 2
    expect 0 '' $ppl "$text" --json "$@" "$tiny"
    [ "$(number tokens) $(number windows)" = "$tokens $count" ] ||
        { cat "$work/out"; fail "not $tokens tokens in $count windows: $*"; }
}
scored $((n - 1)) 1 -c "$n"
scored $((n - 1)) 2 -c $((n - 1)) --stride 1
scored $((n - 1)) 2 -c $((n - 10)) --stride 10
scored $((n - 1)) 3 -c $((n - 11)) --stride 10
scored $((n - 2)) 2 -c $((n - 10)) --stride $((n - 10))
scored $((n - 2)) 1 -c $((n - 1)) --stride $((n - 1))
scored $((n - 2)) 1 -c 512 --no-bos

# texts that are too short, or none
: >"$work/empty"
expect 3 'empty: the text is empty' $ppl "$work/empty" "$tiny"
expect 3 'stdin: the text is empty' $ppl - "$tiny"
expect 3 'absent: No such file' $ppl "$work/absent" "$tiny"
expect 3 'directory' $ppl "$work" "$tiny"
printf a >"$work/one"
expect 0 '' $ppl "$work/one" "$tiny"
printf '\n' >"$work/newline"
expect 3 'only one token' $ppl "$work/newline" --no-bos --override-kv \
    tokenizer.ggml.add_space_prefix=bool:false "$tiny"
head -c 3000 /dev/urandom >"$work/noise"
expect 0 '' $ppl "$work/noise" "$tiny"

# wrong usage
expect 2 'stride.*more than the window' $ppl "$text" -c 64 --stride 65 "$tiny"
for word in 0 -1 x '' 1.5 99999999999; do expect 2 'stride' $ppl "$text" --stride "$word" "$tiny"; done
expect 2 'require --perplexity' "$run" --stride 3 "$tiny" -p x
expect 2 'require --perplexity' "$run" --kl-save "$work/x" "$tiny" -p x
expect 2 'cannot be combined' $ppl "$text" --kl-save "$work/x" --kl-base "$work/x" "$tiny"
expect 2 'only one of' $ppl "$text" --bench "$tiny"
expect 2 'prompt' $ppl "$text" -p x "$tiny"

# kept and compared; the base brings window and stride along
base=$work/base.kl
expect 0 '' $ppl "$text" -c 64 --stride 24 --exact --kl-save "$base" "$tiny"
expect 0 '' $ppl "$text" --json --exact --pin 0 --kl-base "$base" "$tiny"
for key in mean_kl mean_kl_error median_kl p99_kl max_kl same_top base_nll base_ppl ppl_ratio base; do
    grep -q "\"$key\": " "$work/out" || { cat "$work/out"; fail "--json lacks $key"; }
done
[ "$(number window) $(number stride) $(number mean_kl) $(number same_top) $(number ppl_ratio)" = \
    '64 24 0 1 1' ] || { cat "$work/out"; fail "a model compared with itself differs"; }
grep -q '"base": "tiny.gguf"' "$work/out" || fail "the base has no name"
# types of the KV cache, against f32
expect 0 '' $ppl "$text" -c 64 --stride 24 --kv-type f32 --kl-save "$work/f32.kl" "$tiny"
for type in 'f16 1e-3' 'q8 1e-3' 'q6 1e-3' 'q4 5e-2' 'q2 1e-3'; do
    expect 0 '' $ppl "$text" --json --kv-type "${type% *}" --kl-base "$work/f32.kl" "$tiny"
    awk -v kl="$(number mean_kl)" -v most="${type#* }" 'BEGIN { exit !(kl > 0 && kl < most) }' ||
        { cat "$work/out"; fail "--kv-type $type: far from f32, or the same"; }
done
expect 0 '' $ppl "$text" --kl-base "$base" "$tiny"
grep -q '^mean KL ' "$work/out" || { cat "$work/out"; fail "no mean KL"; }
# a window longer than the text needs no more memory, whatever the file claims; a file of the first version,
# without checksums, is read with a note
expect 0 '' $ppl "$text" -c 512 --exact --kl-save "$work/wide.kl" "$tiny"
at=$((8 + (n - 1) * 300 * 4)) end=$(($(wc -c <"$work/wide.kl") - (n - 1) * 4 - 4))
byte() { tail -c +$(($1 + 1)) "$work/wide.kl" | head -c $(($2 - $1)); }
{ byte 0 $((at + 8)); printf '\001\000\000\000'; byte $((at + 12)) $((at + 16)); printf '\000\000\000\001';
byte $((at + 20)) $end; } >"$work/huge.kl"
expect 0 'huge.kl was written .* without checksums' $ppl "$text" --json --kl-base "$work/huge.kl" "$tiny"
[ "$(number window) $(number tokens)" = "16777216 $((n - 1))" ] ||
    { cat "$work/out"; fail "not the window of the file"; }
cp "$base" "$work/first"
expect 0 '' $ppl "$text" -c 64 --stride 24 --exact -t 1 --pin 0 --kl-save "$base" "$tiny"
cmp -s "$base" "$work/first" || fail "the same distributions are not the same file"
[ "$(find "$work" -name 'base.kl*' | wc -l)" = 1 ] ||
    { ls "$work"; fail "a temporary file was left beside the base"; }

# a base of another text, another model, another window
expect 2 'ctx 64 --stride 24, but this run uses --ctx 32' $ppl "$text" -c 32 --kl-base "$base" "$tiny"
expect 2 'stride 24, but this run uses --ctx 64 --stride 3' $ppl "$text" --stride 3 --kl-base "$base" "$tiny"
tr a b <"$text" >"$work/other"
expect 3 'base.kl.*different text.*byte offset' $ppl "$work/other" --kl-base "$base" "$tiny"
expect 3 'base.kl.*tokens' $ppl "$work/one" --kl-base "$base" "$tiny"
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/wide.gguf" ctx=512 vocab=310
expect 3 'base.kl.*300 tokens, the model has 310' $ppl "$text" --kl-base "$base" "$work/wide.gguf"

# damaged: truncated, false counts, invalid probabilities; other files are not overwritten
size=$(wc -c <"$base")
for cut in 0 4 8 1000 $((size / 2)) $((size - 1)); do
    head -c "$cut" "$base" >"$work/cut.kl"
    expect 3 'cut.kl.*byte offset' $ppl "$text" --kl-base "$work/cut.kl" "$tiny"
    [ ! -s "$work/out" ] || fail "a damaged base gave a result"
done
{ printf '\377\377\377\377'; tail -c +5 "$base"; } >"$work/lie.kl"
expect 3 'lie.kl.*too few' $ppl "$text" --kl-base "$work/lie.kl" "$tiny"
{ head -c 5008 "$base"; head -c 40 /dev/zero; tail -c +5049 "$base"; } >"$work/sum.kl"
expect 3 'sum.kl: the probabilities of row 4 add up to' $ppl "$text" --kl-base "$work/sum.kl" "$tiny"
{ head -c 5008 "$base"; printf '\377\377\377\377'; tail -c +5013 "$base"; } >"$work/nan.kl"
expect 3 'nan.kl: not a log-probability at byte offset 5008' $ppl "$text" --kl-base "$work/nan.kl" "$tiny"
{ head -c 5008 "$base"; printf '\001'; tail -c +5010 "$base"; } >"$work/bit.kl"
expect 3 'bit.kl: damaged from byte offset 4808: checksum' $ppl "$text" --kl-base "$work/bit.kl" "$tiny"
[ ! -s "$work/out" ] || fail "a damaged base gave a result"
{ head -c $((size - 10)) "$base"; printf '\001\002'; tail -c 8 "$base"; } >"$work/end.kl"
expect 3 'end.kl: damaged from byte offset' $ppl "$text" --kl-base "$work/end.kl" "$tiny"
expect 3 'absent.kl' $ppl "$text" --kl-base "$work/absent.kl" "$tiny"
expect 2 'not overwritten' $ppl "$text" --kl-save "$tiny" "$tiny"
expect 1 'no-dir' $ppl "$text" --kl-save "$work/no-dir/x" "$tiny"

# the rows alone are a valid base too
expect 0 '' $ppl "$text" --json -c 64 --stride 24 --kl-base "$base" "$tiny"
rows=$(number tokens) kl=$(number mean_kl)
head -c $((8 + rows * 300 * 4)) "$base" >"$work/plain.kl"
expect 0 'does not identify its text' $ppl "$text" --json -c 64 --stride 24 --kl-base "$work/plain.kl" "$tiny"
[ "$(number mean_kl)" = "$kl" ] || fail "the rows alone give another divergence"

# ^C: 130, no file left
words 1000000 >"$work/long"
mkdir "$work/s"
"$run" --perplexity "$work/long" --kl-save "$work/s/stopped.kl" "$tiny" >"$work/out" 2>"$work/err" </dev/null &
pid=$!
# The new file has no name if the file system supports that: it is visible among the open ones.
written() { find "/proc/$pid/fd" -lname "$work/s/*" -exec stat -L -c %s {} \; 2>/dev/null; }
until [ "$(written)" -gt 100000 ] 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -TERM $pid
wait $pid
got=$?
[ $got = 143 ] || { cat "$work/err"; fail "stopped with $got instead of 143"; }
[ -z "$(ls "$work/s")" ] || fail "a stopped run left a file"
}

# the real model on the text for which there are independent logits: their plain mean, computed with python3
if [ -f "$stories" ] && [ -f "${stories%.gguf}.logits.f32" ] && have python3; then
    plain=$(python3 - "${stories%.gguf}" <<'END'
import math, struct, sys
ids = [int(x) for x in open(sys.argv[1] + ".tokens.txt").read().replace(",", " ").split()]
data = open(sys.argv[1] + ".logits.f32", "rb").read()
v = len(data) // 4 // len(ids)
rows = [struct.unpack_from("<%df" % v, data, 4 * v * i) for i in range(len(ids) - 1)]
nll = [math.log(sum(map(math.exp, r))) - r[t] for r, t in zip(rows, ids[1:])]
print(sum(nll) / len(nll), len(nll))
END
    ) || fail "python3 failed"
    expect 0 '' "$run" --perplexity "${stories%.gguf}.greedy.txt" --json --exact "$stories"
    [ "$(number tokens)" = "${plain#* }" ] || fail "$(number tokens) tokens scored, not ${plain#* }"
    awk -v a="$(number nll)" -v b="${plain% *}" 'BEGIN { exit !(a - b < 1e-5 && b - a < 1e-5) }' ||
        fail "stories260K: mean nll $(number nll), the reference has $plain"
else
    echo "skip: no independent logits or no python3"
fi
finish
