#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A Hugging Face directory runs like the GGUF file of the same weights: the same logits to the last bit that is printed,
# exact and as shipped, resident and streamed, with every I/O mode; the same answers; the same after qsf-convert.
# gguf_to_hf.py writes the directories. Damaged ones are refused with the name of the setting or the tensor.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
have python3 || skip "no python3"
convert=$QSF_BUILDDIR/qsf-convert
data=${QSF_TEST_DATA:-$QSF_SRCDIR/../shared}
cases=$data/architectures
pre=$data/oracle/tokenizers/pre_tokenizers.json
here=$QSF_SRCDIR/tests/system
export PYTHONDONTWRITEBYTECODE=1

# make GGUF NAME [OPTIONS]: $work/NAME/dir and its twin, $work/NAME/model.gguf.
make_dir() {
    gguf=$1 at=$work/$2
    shift 2
    mkdir -p "$at"
    python3 "$here/gguf_to_hf.py" "$gguf" "$at/dir" --twin "$at/model.gguf" "$@" >"$work/out" 2>"$work/err"
}
# figures MODEL OPTIONS...: what its logits are compared by.
figures() {
    "$run" --parity "$reference" --max-kl 1e9 "$@" >"$work/out" 2>"$work/err" </dev/null || { tail -n 1 "$work/err"; return 1; }
    sed 's/, "argmax_match.*//' "$work/out"
}
# answer MODEL OPTIONS...: greedy text and why it ended.
answer() {
    "$run" --json -p 'ab a' -n 12 --temp 0 --template raw "$@" >"$work/out" 2>"$work/err" </dev/null || { tail -n 1 "$work/err"; return 1; }
    sed 's/, "seed.*//' "$work/out"
}
# equal NAME WHAT COMMAND...: the same for the twin and the directory.
equal() {
    name=$1 what=$2
    shift 2
    want=$("$@" "$at/model.gguf") || { fail "$name: the twin: $want"; return 1; }
    got=$("$@" "$at/dir") || { fail "$name: $what: $got"; return 1; }
    [ "$got" = "$want" ] || { fail "$name: $what: $got instead of $want"; return 1; }
}
# check NAME LENGTH: everything about $at.
check() {
    equal "$1" "text" answer || return
    if [ -f "$reference/logits.f32" ]; then
        equal "$1" "logits with --exact" figures --exact || return
        equal "$1" "logits" figures
        equal "$1" "logits, streamed" figures --pin 0 --slots 2
        [ "$2" = short ] || for how in '--io pread' '--io mmap' '--batch 3 --threads 1 --io pread'; do
            # shellcheck disable=SC2086 # words
            equal "$1" "logits with $how" figures --pin 0 $how
        done
    else
        equal "$1" "text with --exact" answer --exact
        equal "$1" "text, streamed" answer --pin 0 --slots 2 --io pread
    fi
    if ! "$convert" -q keep --quiet "$at/model.gguf" "$at/model.gguf.qsf" >"$work/out" 2>"$work/err"; then
        # What QSF cannot express is refused too.
        expect 3 '' "$convert" -q keep --quiet "$at/dir" "$at/dir.qsf"
        unconverted="$unconverted $1" && rm -rf "$at" && return
    fi
    "$convert" -q keep --quiet "$at/dir" "$at/dir.qsf" >"$work/out" 2>"$work/err" || { fail "$1: qsf-convert: $(cat "$work/err")"; return; }
    [ "$(answer "$at/dir.qsf")" = "$(answer "$at/model.gguf.qsf")" ] || fail "$1: another answer after qsf-convert"
    if [ -f "$reference/logits.f32" ]; then
        [ "$(figures "$at/dir.qsf")" = "$(figures "$at/model.gguf.qsf")" ] || fail "$1: other logits after qsf-convert"
    fi
    rm -rf "$at"
}

# ---- the project's own models

unconverted=''
reference=none
for arch in llama qwen2 qwen3 gemma2 phi3 gpt2 qwen3moe mamba2; do
    python3 "$here/hf/tiny.py" $arch "$work/tiny.$arch.gguf" || { fail "tiny.py $arch"; continue; }
    for how in '' '--old' '--shards 3'; do
        # shellcheck disable=SC2086 # words
        make_dir "$work/tiny.$arch.gguf" own $how || { fail "$arch: $(tail -n 1 "$work/err")"; continue; }
        check "own $arch $how" short
    done
done
if make_dir "$tiny" mktiny; then check mktiny short; else fail "mktiny: $(tail -n 1 "$work/err")"; fi

# ---- what is refused

# bad WORDS EDIT...: refused with the words, after one edit of a good directory.
bad_dir() {
    words=$1
    shift
    rm -rf "$work/bad"
    cp -r "$work/good/dir" "$work/bad"
    python3 "$here/hf/edit.py" "$work/bad" "$@" || { fail "edit.py $*"; return; }
    expect 3 "$words" "$run" -p a -n 1 --temp 0 "$work/bad"
    expect 3 "$words" "$convert" --quiet "$work/bad" "$work/bad.qsf"
    [ ! -e "$work/bad.qsf" ] || fail "$*: converted"
}
make_dir "$work/tiny.llama.gguf" good || fail "the good directory"
L=model.layers.1
bad_dir 'hidden_size' set hidden_size
bad_dir 'hidden_size' set hidden_size '"x"'
bad_dir 'num_attention_heads|head' set num_attention_heads 5
bad_dir 'num_key_value_heads' set num_key_value_heads 3
bad_dir 'num_attention_heads' set num_attention_heads 0
bad_dir 'num_hidden_layers' set num_hidden_layers 1
bad_dir 'layer|blk\.2' set num_hidden_layers 3
bad_dir 'num_hidden_layers' set num_hidden_layers 4294967296
bad_dir 'intermediate_size|ffn|mlp' set intermediate_size 96
bad_dir 'vocab_size' set vocab_size 300
bad_dir 'hidden_act' set hidden_act '"swish_of_tomorrow"'
bad_dir 'architectures|TomorrowForCausalLM' set architectures '["TomorrowForCausalLM"]'
bad_dir 'architectures' set architectures
bad_dir 'rope' set rope_parameters '{"rope_type": "tomorrow", "factor": 2.0}'
bad_dir 'rope' set rope_parameters '"x"'
bad_dir 'factor' set rope_parameters '{"rope_type": "linear"}'
bad_dir 'rms_norm_eps' set rms_norm_eps -1
bad_dir 'quantization_config' set quantization_config '{"quant_method": "tomorrow"}'
bad_dir 'k_proj|attn_k' drop $L.self_attn.k_proj.weight
bad_dir 'norm' drop model.norm.weight
bad_dir 'lm_head|head' drop lm_head.weight
bad_dir 'embed' drop model.embed_tokens.weight
bad_dir 'k_proj_2' rename $L.self_attn.k_proj.weight $L.self_attn.k_proj_2.weight
bad_dir 'layers.9.mlp' rename $L.mlp.up_proj.weight model.layers.9.mlp.up_proj.weight
bad_dir 'q_proj|attn_q' shape $L.self_attn.q_proj.weight '[16, 64]'
bad_dir 'up_proj|ffn_up' shape $L.mlp.up_proj.weight '[32, 64]'
bad_dir 'input_layernorm|attn_norm' shape $L.input_layernorm.weight '[2, 16]'
rm -rf "$work/good"
make_dir "$work/tiny.qwen3moe.gguf" good || fail "the good directory of experts"
bad_dir 'num_experts|expert' set num_experts 5
bad_dir 'num_experts|expert' set num_experts 3
bad_dir 'num_experts' set num_experts 0
bad_dir 'num_experts_per_tok|expert_used' set num_experts_per_tok 9
bad_dir 'moe_intermediate_size|exps|expert' set moe_intermediate_size 48
bad_dir 'expert 2 beside' drop $L.mlp.experts.2.up_proj.weight
bad_dir '4 experts' drop $L.mlp.experts.3.up_proj.weight
bad_dir 'expert 2 beside' rename $L.mlp.experts.2.up_proj.weight $L.mlp.experts.7.up_proj.weight
bad_dir 'experts.2|ffn_up_exps' shape $L.mlp.experts.2.up_proj.weight '[16, 64]'
rm -rf "$work/good"
make_dir "$work/tiny.gemma2.gguf" good || fail "the good directory of Gemma"
bad_dir 'sliding_window' set sliding_window '"x"'
bad_dir 'layer_types' set layer_types '["sliding_attention", "tomorrow"]'
# Weights in another format: what to do is said.
rm -rf "$work/bad" && cp -r "$work/good/dir" "$work/bad"
mv "$work/bad/model.safetensors" "$work/bad/pytorch_model.bin"
expect 3 'safetensors' "$run" -p a -n 1 "$work/bad"
expect 3 'pytorch_model.bin' "$run" -p a -n 1 "$work/bad"

# ---- every architecture that an independent engine computed logits for

[ -d "$cases" ] || { echo "skip: $cases is absent"; finish; }
done=0 nameless=''
for case in "$cases"/*/; do
    name=$(basename "$case")
    [ -f "$case/model.gguf" ] || continue
    reference=${case%/}
    make_dir "$case/model.gguf" "$name" --pre "$pre"
    case $? in
    0) ;;
    3) nameless="$nameless $name" && rm -rf "$at" && continue ;;
    *) cat "$work/err" && fail "$name: the directory cannot be written" && continue ;;
    esac
    done=$((done + 1))
    # With sanitizers and in a quick run, all is tried with every fourth case.
    if [ -z "${QSF_TEST_QUICK-}${QSF_SAN-}" ] || [ $((done % 4)) = 0 ]; then check "$name" long; else check "$name" short; fi
done
echo "$done cases as directories; not in QSF:${unconverted:- none}; not written:$nameless"
[ $done -ge 60 ] || fail "only $done cases"
finish
