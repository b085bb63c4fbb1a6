#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A Hugging Face directory runs like the GGUF file of the same weights: the same answers, exact and as
# shipped, resident and streamed, and the same after qsf-convert; damaged ones are refused with the name of
# the setting or the tensor.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/model.sh"
. "$(dirname "$0")/hf.sh"

# ---- the project's own models

for arch in llama qwen2 qwen3 gemma2 phi3 gpt2 qwen3moe deepseek2 deepseek2_v2 mamba2 lfm2; do
    py "$here/hf/tiny.py" $arch "$work/tiny.$arch.gguf" || { fail "tiny.py $arch"; continue; }
    hows='--shards=1 --old --shards=3'
    [ -z "${QSF_TEST_QUICK-}${QSF_SAN-}" ] || hows='--shards=3'
    [ $arch != lfm2 ] || hows='--old --shards=2' # layers with attention as full_attn_idxs
    for how in $hows; do
        make_dir "$work/tiny.$arch.gguf" own "$how" || { fail "$arch: $(tail -n 1 "$work/err")"; continue; }
        check "own $arch $how"
    done
done
if make_dir "$tiny" mktiny; then check mktiny; else fail "mktiny: $(tail -n 1 "$work/err")"; fi

# ---- what is refused

# bad WORDS EDIT...: refused with the words, after one edit of a good directory.
bad_dir() {
    words=$1
    shift
    rm -rf "$work/bad"
    cp -r "$work/good/dir" "$work/bad"
    py "$here/hf/edit.py" "$work/bad" "$@" || { fail "edit.py $*"; return; }
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
rm -rf "$work/good"
make_dir "$work/tiny.deepseek2_v2.gguf" good || fail "the good directory of DeepSeek V2"
bad_dir 'topk_method' set topk_method '"tomorrow"'
bad_dir 'topk_method' set topk_method 1
bad_dir 'group' set n_group 3
bad_dir 'group' set topk_group 5
rm -rf "$work/good"
make_dir "$work/tiny.mamba2.gguf" good || fail "the good directory of Mamba"
bad_dir 'time_step_limit' set time_step_limit '[0.001, 0.1]'
bad_dir 'n_groups|group_count' set n_groups 3
bad_dir 'num_heads' set num_heads 0
bad_dir 'num_heads|time_step_rank' set num_heads 5
bad_dir 'A_log|ssm_a' drop backbone.layers.1.mixer.A_log
rm -rf "$work/good"
make_dir "$work/tiny.lfm2.gguf" good --old || fail "the good directory of LFM2"
bad_dir 'full_attn_idxs' set full_attn_idxs '[2]'
bad_dir 'full_attn_idxs' set full_attn_idxs '[-1]'
bad_dir 'full_attn_idxs' set full_attn_idxs '["1"]'
bad_dir 'full_attn_idxs' set full_attn_idxs 1
bad_dir 'blk.0.attn_q' set full_attn_idxs # all layers have attention
bad_dir 'layer_types' set layer_types '["conv"]'
# Weights in another format: what to do is said.
rm -rf "$work/bad" && cp -r "$work/good/dir" "$work/bad"
mv "$work/bad/model.safetensors" "$work/bad/pytorch_model.bin"
expect 3 'safetensors' "$run" -p a -n 1 "$work/bad"
expect 3 'pytorch_model.bin' "$run" -p a -n 1 "$work/bad"
rm "$work/bad"/tokenizer*
expect 3 'in pytorch_model.bin, which is not supported: save them as safetensors' "$run" -p a -n 1 "$work/bad"
expect 3 'in pytorch_model.bin, which is not supported: save them as safetensors' "$convert" --quiet \
    "$work/bad" "$work/bad.qsf"
mv "$work/bad/pytorch_model.bin" "$work/bad/pytorch_model.bin.index.json"
expect 3 'in pytorch_model.bin, which is not supported: save them as safetensors' "$run" -p a -n 1 "$work/bad"
rm -rf "$work/bad" && cp -r "$work/good/dir" "$work/bad" &&
    rm "$work/bad"/tokenizer* # old weights beside others
: >"$work/bad/pytorch_model.bin"
expect 3 'without tokenizer.json or tokenizer.model' "$run" -p a -n 1 "$work/bad"
# Tokenizing needs no weights, and they are what is missing first.
rm -rf "$work/good"
make_dir "$work/tiny.llama.gguf" good || fail "the good directory"
want=$(echo abc | "$run" --tokenize "$work/good/dir")
cp -r "$work/good/dir" "$work/clone"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >"$work/clone/model.safetensors"
[ "$(echo abc | "$run" --tokenize "$work/clone")" = "$want" ] || fail "--tokenize reads weights"
expect 3 'model.safetensors: is a Git LFS pointer.*git lfs pull' "$run" -p a -n 1 "$work/clone"
rm "$work/clone/model.safetensors" "$work/clone"/tokenizer*
expect 3 'without weights .model.safetensors' "$run" -p a -n 1 "$work/clone"
: >"$work/clone/adapter_model.safetensors"
expect 3 'without weights .*; it contains an adapter .*: open its model, with this as --lora' "$run" -p a -n 1 "$work/clone"
# YaRN that does not round: kept in QSF, and GGUF cannot say it.
py "$here/hf/edit.py" "$work/good/dir" set rope_parameters \
    '{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "truncate": false}' ||
    fail "edit.py"
expect 0 'warning: .*GGUF cannot record' "$convert" --quiet "$work/good/dir" "$work/rounded.gguf"
expect 0 '' "$convert" -q keep --quiet "$work/good/dir" "$work/exact.qsf"
[ ! -s "$work/err" ] || fail "a warning about QSF"
expect 2 'the output is an input file' "$convert" -q keep --quiet "$work/good/dir" "$work/good/dir/config.json"
equal truncate "$(answer "$work/good/dir")" answer "$work/exact.qsf"
"$run" --inspect "$work/exact.qsf" | grep -q 'qsf.rope.yarn_truncate *bool *false' || fail "no key in QSF"
if "$run" --inspect "$work/rounded.gguf" | grep -q 'yarn_truncate *bool'; then fail "the key in GGUF"; fi
finish
