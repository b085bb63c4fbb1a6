#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Adapters: as if their products were in the weights, of dense matrices and of experts, one and two at other
# scales; the same bytes for any chunk, number of threads and budget; control vectors; aLoRA; refusals by
# name; the cases of an independent engine.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
have python3 || skip "python3 is absent"

# kl OPTIONS...: the mean divergence from the distributions in $work/kl.
kl() {
    "$run" --perplexity "$work/text" --kl-base "$work/kl" -c 64 --json "$@" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "exit $? with $*"; }
    number mean_kl
}
# like REFERENCE MODEL OPTIONS...: does the model with its adapters have the distributions of the reference?
# The file of distributions has 16 bits for each number.
like() {
    reference=$1
    shift
    "$run" --perplexity "$work/text" --kl-save "$work/kl" -c 64 --exact "$reference" >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "$reference"; }
    at_most "$(kl --exact "$@")" 1e-7 || fail "not as $reference, but $(number mean_kl): $*"
}
answer() {
    "$run" --json --temp 0 -n 12 "$@" >"$work/out" 2>"$work/err" </dev/null || { cat "$work/err"; fail "$*"; }
    answer_text
}

words 60 >"$work/text"
kinds='dense experts=stacked'
[ -n "${QSF_TEST_QUICK-}" ] || kinds="$kinds experts=fused experts=separate"
for kind in $kinds; do
    base=$work/$kind.gguf at=$work/$kind
    more=${kind#dense}
    # shellcheck disable=SC2086  # no word where there is none
    "$QSF_BUILDDIR/obj/tests/tools/mktiny" "$base" ctx=128 wtype=0 $more || fail "mktiny $kind"
    py "$QSF_SRCDIR/tests/system/lora.py" "$base" "$at" 2>"$work/err" ||
        { cat "$work/err"; fail "lora.py $kind"; }
    like "$at/a-at-1.gguf" "$base" --lora "$at/a.gguf"
    like "$at/mix.gguf" "$base" --lora "$at/a.gguf:0.5" --lora "$at/b.gguf:-0.75"
    whole=$(kl "$base" --lora "$at/a.gguf:0.5" --lora "$at/b.gguf:-0.75")
    at_most "$whole" 0.05 || fail "$kind: not near, as shipped: $whole"
    for how in '--batch 7' '--batch 1' '--threads 1' '--pin 0 --slots 2' '--pin 0 --batch 5 -t 1'; do
        # shellcheck disable=SC2086  # several options
        got=$(kl "$base" --lora "$at/a.gguf:0.5" --lora "$at/b.gguf:-0.75" $how)
        [ "$got" = "$whole" ] || fail "$kind: $got instead of $whole with $how"
    done
done

# An adapter for stacked experts fits the same experts in other tensors.
[ -n "${QSF_TEST_QUICK-}" ] || like "$work/experts=stacked/mix.gguf" "$work/experts=separate.gguf" \
    --lora "$work/experts=stacked/a.gguf:0.5" --lora "$work/experts=stacked/b.gguf:-0.75"

base=$work/dense.gguf at=$work/dense
like "$at/a-at-1.gguf" "$base" --lora "$at/a-peft"
for broken in use_dora:true bias:'"all"' bias:true lora_alpha:'"x"' lora_alpha:0 peft_type:'"IA3"' \
    init_lora_weights:'"pissa"' use_bdlora:true use_rslora:1 r:0 r:4; do
    cp -r "$at/a-peft" "$work/peft" && key=${broken%%:*}
    sed -i "s/}\$/, \"$key\": ${broken#*:}}/" "$work/peft/adapter_config.json" # of two, the later one counts
    expect 3 "peft.*'$key'" "$run" "$base" -p a --lora "$work/peft"
    rm -r "$work/peft"
done
like "$at/bias.gguf" "$base" --control-vector "$at/control.gguf:2"

# Of one file, too.
like "$at/a-at-1.gguf" "$base" --lora "$at/a.gguf:0.5" --lora "$at/a.gguf:0.5"
like "$at/a-at-1.gguf" "$base" --lora "$at/a.gguf" --lora "$at/a.gguf" --lora "$at/a.gguf:-1"

# An aLoRA acts at and after its invocation.
plain=$(answer "$base" -p 'a b')
with=$(answer "$base" -p 'a b' --lora "$at/a.gguf")
[ "$plain" != "$with" ] || fail "the adapter changes nothing"
[ "$(answer "$base" -p 'a b' --lora "$at/alora.gguf")" = "$plain" ] || fail "an aLoRA acts without its invocation"
invoked=$(printf 'a b \002\003 c d') # tokens 5 and 6
[ "$(answer "$base" -p "$invoked" --lora "$at/alora.gguf:20")" != "$(answer "$base" -p "$invoked")" ] ||
    fail "an aLoRA does not act after its invocation"

for broken in alpha:alpha negative:alpha no-alpha:alpha arch:gpt2 type:general.type kind:vera \
    token:1073741824 \
    half:lora_b name:neither other:'does not have' norm:'cannot change' value:finite rows:rows columns:columns \
    rank:rank empty:tensors; do
    file=bad-${broken%%:*}.gguf
    expect 3 "$file.*${broken#*:}" "$run" "$base" -p a --lora "$at/$file"
done
for broken in direction:direction.0 beyond:direction.99 short:elements hint:gpt2; do
    file=bad-${broken%%:*}.gguf
    expect 3 "$file.*${broken#*:}" "$run" "$base" -p a --control-vector "$at/$file"
done
expect 3 'not an adapter' "$run" "$base" -p a --lora "$base"
for scale in 1e9 nan '' 2,5; do
    expect 2 "lora: '$scale' is not a scale of .*a.gguf': expected a number from -1000000" \
        "$run" "$base" -p a --lora "$at/a.gguf:$scale"
done
expect 2 'repeat the option' "$run" "$base" -p a --lora "$at/a.gguf,$at/b.gguf"
cp "$at/a.gguf" "$work/ad:2" # the name of a file may end as a scale does
[ "$(answer "$base" -p a --lora "$work/ad:2")" = "$(answer "$base" -p a --lora "$at/a.gguf")" ] || fail "ad:2"
[ "$(answer "$base" -p a --lora "$work/ad:2:3")" = "$(answer "$base" -p a --lora "$at/a.gguf:3")" ] || fail "ad:2:3"
many='' i=0
while [ $i -lt 17 ]; do
    i=$((i + 1))
    many="$many --lora /m$i" # short: the names of all files have a limit, too
done
# shellcheck disable=SC2086  # several options
expect 2 'more than 16 files' "$run" "$base" -p a $many

# Of a configuration file: lines add up, and ~/ is the home directory, of every option for a file.
printf '%s = ~/at-home.gguf\n' lora:0 control-vector draft-model grammar json-schema template trace-experts |
    sed 's/:0 = \(.*\)/ = \1:0.5\nlora = \1.more/' >"$work/config"
echo 'model-dir = ~/models' >>"$work/config"
sed -i '/grammar/d' "$work/config" # one of the two
HOME=/h "$QSF_BUILDDIR/qsf-chat" --config "$work/config" --print-config >"$work/out" 2>&1 || fail "--print-config"
if grep '[~]/' "$work/out"; then fail "~ is not expanded"; fi
grep -q '^lora = /h/at-home.gguf:0.5,/h/at-home.gguf.more ' "$work/out" ||
    { cat "$work/out"; fail "lines of lora do not add up"; }
expect 3 'an adapter \(LoRA\).*--lora' "$run" "$at/a.gguf" -p a

# Where not all of it fits in the budget, an adapter is read block by block, and computes the same.
"$QSF_BUILDDIR/obj/tests/tools/mktiny" "$work/deep.gguf" ctx=128 wtype=0 layers=16 || fail "mktiny"
py "$QSF_SRCDIR/tests/system/lora.py" "$work/deep.gguf" "$work/deep" || fail "lora.py deep"
wide=$work/deep/wide.gguf
least=$(least_budget "$work/deep.gguf" --kv-type f16 --lora "$wide")
[ $((least * 1048576)) -lt $(($(wc -c <"$wide") + $(least_budget "$work/deep.gguf" --kv-type f16) * 1048576)) ] ||
    fail "an adapter takes all its memory at the smallest budget, $least MB"
whole=$(answer "$work/deep.gguf" -p 'a b c' --kv-type f16 --lora "$wide" --ram-budget 1G)
[ "$(answer "$work/deep.gguf" -p 'a b c' --kv-type f16 --lora "$wide" --ram-budget "$(sure "$least")")" = "$whole" ] ||
    fail "other tokens with a smaller budget"
[ "$(answer "$work/deep.gguf" -p 'a b c' --ram-budget 1G)" != "$whole" ] || fail "wide.gguf changes nothing"

# A prompt cache is of its adapters and their scales.
answer "$base" -p 'a b c d' --prompt-cache "$work/cache" --lora "$at/a.gguf" >/dev/null
reused() {
    answer "$base" -p 'a b c d' --prompt-cache "$work/cache" "$@" >/dev/null
    number reused_tokens
}
[ "$(reused --lora "$at/a.gguf")" -gt 0 ] || fail "nothing of a prompt cache is used"
[ "$(reused --lora "$at/a.gguf:0.5")" = 0 ] || fail "a prompt cache of another scale is used"
grep -q 'made with other adapters, or other scales' "$work/err" || fail "not said why a cache is not used"
answer "$base" -p 'a b c d' --prompt-cache "$work/cache" --lora "$at/a.gguf" >/dev/null
[ "$(reused)" = 0 ] || fail "a prompt cache of an adapter is used without it"

# qsf-convert merges, into GGUF and into QSF.
convert=$QSF_BUILDDIR/qsf-convert
for kind in $kinds; do
    for to in gguf qsf; do
        "$convert" --quiet --lora "$work/$kind/a.gguf:0.5" --lora "$work/$kind/b.gguf:-0.75" "$work/$kind.gguf" \
            "$work/merged.$to" >"$work/out" 2>&1 || { cat "$work/out"; fail "qsf-convert --lora $kind $to"; }
        like "$work/$kind/mix.gguf" "$work/merged.$to"
    done
done
# The report says what was merged into how many tensors.
report=$("$convert" --lora "$at/a.gguf:0.5" --lora "$at/b.gguf" "$base" "$work/merged.gguf" 2>&1)
case $report in
*/a.gguf,' times 0.5: merged into '[1-9]*' tensors'*/b.gguf,' times 1: merged into '[1-9]*) ;;
*) fail "qsf-convert --lora reports $report" ;;
esac
"$convert" --json --dry-run --lora "$at/a.gguf" "$base" "$work/merged.qsf" >"$work/out" 2>&1
grep -q '"merged": \[{"file": ".*/a.gguf", "scale": 1, "tensors": [1-9][0-9]*}\], "merged_tensors": [1-9]' \
    "$work/out" || { cat "$work/out"; fail "--json does not say what is merged"; }
expect 2 "expected FILE\[:SCALE\], got 'off'" "$convert" --lora off "$base" "$work/merged.gguf"
expect 3 'aLoRA' "$convert" --lora "$at/alora.gguf" "$base" "$work/merged.gguf"
"$convert" --json --dry-run --lora "$at/a.gguf" --lora "$at/a.gguf" "$base" "$work/merged.qsf" >"$work/out" 2>&1
grep -q '"merged": \[{"file": ".*/a.gguf", "scale": 2, "tensors": [1-9][0-9]*}\]' "$work/out" ||
    { cat "$work/out"; fail "the scales of one file do not add up in qsf-convert"; }
# No file that is read is overwritten.
for input in a.gguf a-peft/adapter_model.safetensors a-peft/adapter_config.json; do
    lora=$at/${input%%/*}
    sha256sum <"$at/$input" >"$work/before"
    expect 2 'the output is an input file' "$convert" --lora "$at/b.gguf" --lora "$lora" "$base" "$at/$input"
    sha256sum <"$at/$input" | cmp -s - "$work/before" || fail "$input was overwritten"
done
expect 3 'bad-rank.gguf' "$convert" --lora "$at/bad-rank.gguf" "$base" "$work/merged.gguf"

# What a file is instead of an adapter or control vector, and which adapter makes numbers invalid.
echo 'some text' >"$work/text.txt"
expect 3 'text.txt: is a text file, not an adapter: expected GGUF, or a directory' \
    "$run" "$base" -p a --lora "$work/text.txt"
expect 3 'adapter_config.json: is a text file, not an adapter' \
    "$run" "$base" -p a --lora "$at/a-peft/adapter_config.json"
expect 3 'is a safetensors file: give the directory that contains it and its adapter_config.json' \
    "$run" "$base" -p a --lora "$at/a-peft/adapter_model.safetensors"
expect 3 'text.txt: is a text file, not a control vector: expected GGUF' \
    "$run" "$base" -p a --control-vector "$work/text.txt"
expect 3 'a-peft: is a directory, not a control vector' "$run" "$base" -p a --control-vector "$at/a-peft"
expect 3 'merged.qsf: is a QSF file, not an adapter' "$run" "$base" -p a --lora "$work/merged.qsf"
for option in lora control-vector draft-model; do
    expect 3 'hf:a/b: is not a file, which is needed here: download it' "$run" "$base" -p a --$option hf:a/b
    expect 3 'guide: is not a file, which is needed here' "$run" "$base" -p a --$option guide
done
expect 3 'draft-model: .*adapter_config.json: is the configuration of an adapter, not a model: use its directory with --lora' \
    "$run" "$base" -p a --draft-model "$at/a-peft/adapter_config.json"
expect 3 'draft-model: .*adapter_model.safetensors: has the weights of an adapter, not of a model' \
    "$run" "$base" -p a --draft-model "$at/a-peft/adapter_model.safetensors"
expect 3 'draft-model: .*a-peft: is a directory without .* it contains an adapter' \
    "$run" "$base" -p a --draft-model "$at/a-peft"
expect 3 'draft-model: .*a.gguf: .*adapter' "$run" "$base" -p a --draft-model "$at/a.gguf"
expect 1 'invalid numbers with .*/a.gguf at the scale 1e\+06: try a smaller one' \
    "$run" "$base" -p a -n 2 --lora "$at/a.gguf:1e6"
expect 1 'invalid numbers with .*/b.gguf, the one with the largest scale, at the scale -1e\+06' \
    "$run" "$base" -p a -n 2 --lora "$at/a.gguf" --lora "$at/b.gguf:-1e6"

# The cases of an independent engine. Its GELU is a table of halves here (README.md of the cases), which alone
# moves the logits of gemma and gpt2 that far.
cases=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}
latent=$cases/lora/deepseek2/a.gguf
if [ -f "$latent" ]; then # what qsf-run leaves out is not in the output, either
    "$convert" --dry-run --lora "$latent" "$cases/architectures/deepseek2/model.gguf" "$work/merged.gguf" \
        >"$work/out" 2>"$work/err" || { cat "$work/err"; fail "qsf-convert --lora of a latent attention"; }
    grep -q 'a.gguf: adapters of the attention and the head are left out (7 of 18)' "$work/err" ||
        { cat "$work/err"; fail "qsf-convert does not say what it leaves out"; }
    "$convert" --json --dry-run --lora "$latent" "$cases/architectures/deepseek2/model.gguf" "$work/merged.qsf" \
        >"$work/out" 2>"$work/err" || { cat "$work/err"; fail "qsf-convert --json --lora of a latent attention"; }
    grep -q '"notice": ".*/a.gguf: adapters of the attention and the head are left out (7 of 18)' "$work/out" ||
        { cat "$work/out"; fail "--json does not say what it leaves out"; }
fi
for dir in "$cases"/lora/*/; do
    dir=${dir%/} name=$(basename "$dir")
    [ -f "$dir/a.gguf" ] || continue
    case $name in gemma* | gpt2) most=1e-6 ;; *) most=1e-8 ;; esac
    for exact in "--exact --max-kl $most" '--max-kl 0.05'; do
        # shellcheck disable=SC2086  # several options
        expect 0 '' "$run" --parity "$cases/architectures/$name" --lora "$dir/a.gguf" \
            --logits "$dir/lora.f32" $exact
        # shellcheck disable=SC2086
        expect 0 '' "$run" --parity "$cases/architectures/$name" --lora "$dir/a.gguf:0.5" \
            --lora "$dir/b.gguf:-0.75" --logits "$dir/lora_half_b.f32" $exact
    done
done
finish
