#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# --parity with --receipt: the printed line stays as it is, and the file has the kernels, calls and times of
# all kinds of steps. The reference logits here are zeros.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
case=$work/case receipt=$work/receipt.json
mkdir "$case"
echo '1 5 9 13 17 21' >"$case/tokens.txt"
vocab=$("$run" --inspect --json "$tiny" |
    grep -oE '"tokenizer.ggml.tokens": \{"type": "str", "count": [0-9]+' | grep -oE '[0-9]+$')
dd if=/dev/zero of="$case/logits.f32" bs=$((vocab * 4)) count=6 2>/dev/null

parity() { "$run" --parity "$case" "$tiny" --max-kl 1e9 "$@" 2>"$work/err" ||
    { cat "$work/err"; fail "exit $? with $*"; }; }
figures() { sed 's/, "budget_mb.*"mean_cosine"/, "mean_cosine"/'; }

for how in '' '--exact' '--pin 0 --batch 2' '-t 1 --cpu-mask ref'; do
    rm -f "$receipt"
    # shellcheck disable=SC2086 # words
    plain=$(parity $how | figures)
    # shellcheck disable=SC2086
    [ "$(parity $how --receipt "$receipt" | figures)" = "$plain" ] || fail "another line with --receipt $how"
    line=$(echo "$plain" | sed 's/^{//; s/, "mean_cosine.*//')
    grep -qF "$line" "$receipt" || { cat "$receipt"; fail "the file lacks: $line"; }
    for kind in embed norm linear rope kv_store attention add; do
        grep -qE "^\{\"kind\": \"$kind\", \"kernels\": \[\{\"name\": \"[a-z0-9_]+\", \"level\": \"[a-z0-9]+\"\}.*\"calls\": [1-9][0-9]*, \"positions\": [1-9][0-9]*, \"us\": [0-9.e-]+\}" "$receipt" ||
            { cat "$receipt"; fail "no complete line for $kind $how"; }
    done
    for key in version model architecture name blocks types exact batch kl_limit passed min_cosine \
        mean_cosine mean_kl \
        max_kl argmax_match first_divergence backend threads kernels budget_mb peak_rss_mb; do
        grep -q "\"$key\": " "$receipt" || fail "no $key in the file"
    done
    ! have python3 || python3 -m json.tool "$receipt" >/dev/null || fail "the file is not JSON: $how"
done
grep -q '"level": "ref"' "$receipt" || fail "--cpu-mask ref used other kernels"
! grep -qE '"level": "(sse|avx|neon|dot)' "$receipt" || fail "--cpu-mask ref used other kernels"
parity --batch 3 --receipt "$receipt" >/dev/null
grep -q '"kind": "attention".*"steps": 2, "calls": 4, "positions": 12' "$receipt" ||
    { cat "$receipt"; fail "two passes over two blocks were not counted"; }

# The file is written although the distance is too large, and not for a comparison that failed.
rm -f "$receipt"
expect 1 '' "$run" --parity "$case" "$tiny" --max-kl 0 --receipt "$receipt"
grep -q '"passed": false' "$receipt" || fail "no receipt of logits that are too far"
expect 0 '' "$run" --parity "$case" "$tiny" --max-kl 1e9 --receipt "$receipt"
grep -q '"passed": true' "$receipt" || fail "a receipt is not replaced"
rm -f "$receipt"
mkdir "$work/short"
cp "$case/tokens.txt" "$work/short/"
: >"$work/short/logits.f32"
expect 3 'logits.f32' "$run" --parity "$work/short" "$tiny" --receipt "$receipt"
[ ! -e "$receipt" ] || fail "a failed comparison left a receipt"

expect 2 '--receipt requires --parity' "$run" --receipt "$receipt" "$tiny" -p a
expect 2 '--receipt requires --parity' "$run" --bench --receipt "$receipt" "$tiny"
expect 1 'absent/r.json' "$run" --parity "$case" "$tiny" --receipt "$work/absent/r.json"
cp "$tiny" "$work/copy.gguf"
expect 2 'copy.gguf: exists and is not a receipt' "$run" --parity "$case" "$tiny" --receipt "$work/copy.gguf"
cmp -s "$tiny" "$work/copy.gguf" || fail "a model was overwritten"
expect 2 'not a receipt' "$run" --parity "$case" "$tiny" --receipt "$case"
expect 2 'null: exists and is not a receipt' "$run" --parity "$case" "$tiny" --receipt /dev/null
: >"$work/blank"
expect 0 '' "$run" --parity "$case" "$tiny" --max-kl 1e9 --receipt "$work/blank"
[ "$(find "$work" -name '*qsf-part*')" = '' ] || fail "temporary files remain"
finish
