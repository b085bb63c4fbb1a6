#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Logits compared with independent ones: every supported case, exact and as shipped, at every ISA level.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
cases=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}/parity
[ -d "$cases" ] || skip "$cases is absent"

value() { sed -n "s/.*\"$2\": *\([-0-9.e]*\).*/\1/p" "$1" | head -n 1; }
for c in llama llama3 llama_linear quant_f16 quant_bf16 quant_q8_0 quant_q4_0 quant_q4_1 quant_q5_0 quant_q5_1 \
    quant_q4_k_m quant_q5_k_m quant_q6_k quant_q2_k quant_q3_k_m quant_iq4_nl quant_iq4_xs quant_tq1_0 quant_tq2_0 quant_mxfp4 quant_nvfp4 \
    quant_q1_0 quant_q2_0 quant_iq2_xxs quant_iq2_xs quant_iq2_s quant_iq3_xxs quant_iq3_s quant_iq1_s quant_iq1_m; do
    dir=$cases/$c
    [ -f "$dir/model.gguf" ] || { echo "skip: $dir is absent"; continue; }
    expect 0 '' "$run" --parity "$dir" --exact --max-kl 1e-5
    echo "$c exact: $(value "$work/out" mean_kl)"
    # architecture cases hold f16 weights and have no figure of another engine: the default limit applies
    limit=$(value "$dir/about.json" kl)
    [ -z "$limit" ] || limit=$(awk "BEGIN { print $limit * 1.5 }")
    for level in ref sse42 avx2 avx512 avx512vnni avx512vbmi neon dotprod; do
        "$run" --cpu-mask $level --plan "$tiny" >/dev/null 2>&1 || continue
        expect 0 '' "$run" --parity "$dir" --cpu-mask $level --max-kl "${limit:-0.002}"
        echo "$c $level: $(value "$work/out" mean_kl) of ${limit:-0.002}"
        grep -q "\"backend\": \"$level\"" "$work/out" || echo "note: $c ran at $(sed -n 's/.*"backend": "\([a-z0-9]*\)".*/\1/p' "$work/out"), not $level"
    done
done
finish
