/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Llama and models that GGUF stores like it, with rotated halves as pairs; and the tables that others share. Names:
 * huggingface/transformers models/NAME/modeling_NAME.py; ggml-org/llama.cpp gguf-py/gguf/tensor_mapping.py. What is
 * written and permuted: its conversion/llama.py, granite.py, olmo.py, mistral3.py, minicpm.py. Defaults:
 * transformers' configuration files. */
#include <math.h>
#include <string.h>

#include "src/file/hf/tables.h"

/* clang-format off */
const QsfHfName qsf_hf_names_ends[] = {
    QSF_HF_MATRIX("embed_tokens", "token_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_IGNORED("rotary_emb.inv_freq"), /* computed from the config by every reader */
    QSF_HF_IGNORED(QSF_HF_L("self_attn.rotary_emb.inv_freq")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_model[] = {
    QSF_HF_MATRIX("embed_tokens", "token_embd"),
    QSF_HF_VECTOR("norm", "output_norm"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_IGNORED("rotary_emb.inv_freq"),
    QSF_HF_IGNORED(QSF_HF_L("self_attn.rotary_emb.inv_freq")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_norms[] = {
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_qk_pairs[] = {
    QSF_HF_ROWS(QSF_HF_L("self_attn.q_proj.weight"), QSF_HF_B("attn_q.weight"), 2, qsf_hf_rows_q),
    QSF_HF_ROWS(QSF_HF_L("self_attn.k_proj.weight"), QSF_HF_B("attn_k.weight"), 2, qsf_hf_rows_k),
    QSF_HF_ROWS(QSF_HF_L("self_attn.q_proj.bias"), QSF_HF_B("attn_q.bias"), 1, qsf_hf_rows_q),
    QSF_HF_ROWS(QSF_HF_L("self_attn.k_proj.bias"), QSF_HF_B("attn_k.bias"), 1, qsf_hf_rows_k),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_qk[] = {
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_proj"), QSF_HF_B("attn_q")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.k_proj"), QSF_HF_B("attn_k")),
    QSF_HF_BIAS(QSF_HF_L("self_attn.q_proj"), QSF_HF_B("attn_q")),
    QSF_HF_BIAS(QSF_HF_L("self_attn.k_proj"), QSF_HF_B("attn_k")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_vo[] = {
    QSF_HF_MATRIX(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_BIAS(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_BIAS(QSF_HF_L("self_attn.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_mlp[] = {
    QSF_HF_MATRIX(QSF_HF_L("mlp.gate_proj"), QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_BIAS(QSF_HF_L("mlp.gate_proj"), QSF_HF_B("ffn_gate")),
    QSF_HF_BIAS(QSF_HF_L("mlp.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_BIAS(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_qk_norms[] = {
    QSF_HF_VECTOR(QSF_HF_L("self_attn.q_norm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.k_norm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};

const QsfHfKey qsf_hf_keys_rms[] = {
    { "rms_norm_eps|norm_eps", "attention.layer_norm_rms_epsilon", QSF_HF_F32, 1e-6, 0, 1 },
    QSF_HF_END,
};

const QsfHfKey qsf_hf_keys_layer_norm[] = {
    { "layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps", "attention.layer_norm_epsilon", QSF_HF_F32, 1e-5, 0, 1 },
    QSF_HF_END,
};

const QsfHfMust qsf_hf_must_silu[] = {
    { "hidden_act|hidden_activation", "silu|swish" },
    QSF_HF_END,
};
/* clang-format on */

const char *const qsf_hf_vision_prefixes[] = { "language_model.model.", "model.language_model.",
                                               "language_model.", "model.", NULL };
const char *const qsf_hf_vision_left_out[] = { "vision_tower.",
                                               "model.vision_tower.",
                                               "multi_modal_projector.",
                                               "model.multi_modal_projector.",
                                               "vision_encoder.",
                                               "vision_language_adapter.",
                                               "visual.",
                                               "model.visual.",
                                               NULL };

/* --- architectures --- */

static const QsfHfName *const names[] = {
    qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};
static const QsfHfName *const names_without_norms[] = {
    qsf_hf_names_ends, qsf_hf_names_qk_pairs, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};
static const QsfHfKey *const keys[] = { qsf_hf_keys_rms, NULL };

/* Granite: factors of embedding, branches, scores and logits; 1 where config.json does not have them, also of scores
 * (huggingface/transformers, GraniteConfig). */
const QsfHfKey qsf_hf_keys_granite[] = {
    { "attention_multiplier", "attention.scale", QSF_HF_F32, 1, 1e-6, 1e6 },
    { "embedding_multiplier", "embedding_scale", QSF_HF_F32, 1, 1e-6, 1e6 },
    { "residual_multiplier", "residual_scale", QSF_HF_F32, 1, 1e-6, 1e6 },
    { "logits_scaling", "logit_scale", QSF_HF_F32, 1, 1e-6, 1e6 },
    QSF_HF_END,
};
static const QsfHfKey *const granite_keys[] = { qsf_hf_keys_rms, qsf_hf_keys_granite, NULL };

/* OLMo: norms without weights; its epsilon is fixed. */
static const QsfHfKey olmo_numbers[] = {
    { "clip_qkv", "attention.clamp_kqv", QSF_HF_F32, QSF_HF_ABSENT, 0, 1e6 },
    { "layer_norm_eps", "attention.layer_norm_epsilon", QSF_HF_F32, 1e-5, 0, 1 },
    QSF_HF_END,
};
static const QsfHfKey *const olmo_keys[] = { olmo_numbers, NULL };

static const QsfHfMust arcee_must[] = { { "hidden_act", "relu2" }, QSF_HF_END };

/* SmolLM 3: no rotation in every fourth layer, which the engine does not read from metadata. */
static int smollm3(QsfHfModel *m) {
    const QsfJson *list = qsf_hf_member(m->text, "no_rope_layers");
    if (list == NULL) return QSF_OK;
    bool usual = qsf_json_size(list) == m->n_layers;
    for (uint32_t i = 0; usual && i < m->n_layers; i++)
        usual = qsf_json_int(qsf_json_at(list, i), -1) == (i % 4 != 3);
    return usual ? QSF_OK
                 : qsf_hf_bad(m, "no_rope_layers", "is not 1, 1, 1, 0 and so on, which is not supported");
}

static const QsfHfMust smollm3_must[] = {
    { "hidden_act", "silu|swish" },
    { "no_rope_layer_interval", "4" },
    QSF_HF_END,
};

/* Ministral 3: queries are scaled by their position. */
static const QsfHfMust mistral3_must[] = {
    { "hidden_act", "silu|swish" },
    { "model_type", "mistral|ministral3" },
    QSF_HF_END,
};

static int mistral3(QsfHfModel *m) {
    const QsfJson *rope = qsf_hf_member(m->text, "rope_parameters|rope_scaling");
    double mscale, beta;
    if (qsf_hf_is(m, &(const QsfHfMust){ "model_type", "mistral" })) return QSF_OK;
    int rc = qsf_hf_real(m, rope, "mscale_all_dim", (double)NAN, 0, 1e6, &mscale);
    if (rc == QSF_OK) rc = qsf_hf_real(m, rope, "llama_4_scaling_beta", (double)NAN, 0, 1e6, &beta);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "rope.scaling.yarn_log_multiplier", mscale);
    return rc == QSF_OK ? qsf_hf_put_f32(m, "attention.temperature_scale", beta) : rc;
}

/* MiniCPM: factors from other numbers. */
static const QsfHfMust minicpm_must[] = {
    { "hidden_act", "silu|swish" },
    { "sparse_config", "" },
    QSF_HF_END,
};

static int minicpm(QsfHfModel *m) {
    double scale = 0, depth = 0, base = 0;
    int rc = qsf_hf_real(m, m->text, "scale_emb", (double)NAN, 1e-6, 1e6, &scale);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "scale_depth", (double)NAN, 1e-6, 1e6, &depth);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "dim_model_base", (double)NAN, 1, 1e6, &base);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "embedding_scale", scale);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "residual_scale", depth / sqrt(m->n_layers));
    return rc == QSF_OK ? qsf_hf_put_f32(m, "logit_scale", m->hidden / base) : rc;
}

/* InternLM 2: queries, keys and values in one tensor, by groups. */
static const QsfHfName internlm2_names[] = {
    QSF_HF_MATRIX("tok_embeddings", "token_embd"),
    QSF_HF_VECTOR("norm", "output_norm"),
    QSF_HF_MATRIX("output", "output"),
    QSF_HF_VECTOR(QSF_HF_L("attention_norm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("ffn_norm"), QSF_HF_B("ffn_norm")),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.weight"), QSF_HF_B("attn_q.weight"), 2, qsf_hf_rows_group_q_pairs),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.weight"), QSF_HF_B("attn_k.weight"), 2, qsf_hf_rows_group_k_pairs),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.weight"), QSF_HF_B("attn_v.weight"), 2, qsf_hf_rows_group_v),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.bias"), QSF_HF_B("attn_q.bias"), 1, qsf_hf_rows_group_q_pairs),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.bias"), QSF_HF_B("attn_k.bias"), 1, qsf_hf_rows_group_k_pairs),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.bias"), QSF_HF_B("attn_v.bias"), 1, qsf_hf_rows_group_v),
    QSF_HF_MATRIX(QSF_HF_L("attention.wo"), QSF_HF_B("attn_output")),
    QSF_HF_BIAS(QSF_HF_L("attention.wo"), QSF_HF_B("attn_output")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w1"), QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w3"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w2"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};
static const QsfHfName *const internlm2_tables[] = { internlm2_names, NULL };

/* Baichuan: queries, keys and values in one tensor. Baichuan 2, with 125696 tokens, normalizes its head. */
static const QsfHfName baichuan_qkv[] = {
    QSF_HF_ROWS(QSF_HF_L("self_attn.W_pack.weight"), QSF_HF_B("attn_q.weight"), 2, qsf_hf_rows_fused_q_pairs),
    QSF_HF_ROWS(QSF_HF_L("self_attn.W_pack.weight"), QSF_HF_B("attn_k.weight"), 2, qsf_hf_rows_fused_k_pairs),
    QSF_HF_ROWS(QSF_HF_L("self_attn.W_pack.weight"), QSF_HF_B("attn_v.weight"), 2, qsf_hf_rows_fused_v),
    QSF_HF_END,
};
static const QsfHfName *const baichuan_tables[] = {
    qsf_hf_names_model, qsf_hf_names_norms, baichuan_qkv, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};

static int baichuan(QsfHfModel *m) {
    const bool second = m->n_vocab == 125696;
    return second ? qsf_hf_bad(m, "vocab_size", "is that of Baichuan 2, which is not supported") : QSF_OK;
}

const QsfHfArch qsf_hf_arch_llama[] = {
    { .name = "LlamaForCausalLM",
      .gguf = "llama",
      .tensors = names,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_LIMITS },
    { .name = "MistralForCausalLM",
      .gguf = "llama",
      .tensors = names,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_LIMITS,
      .kv_heads = 8 },
    { .name = "InternLM3ForCausalLM",
      .gguf = "llama",
      .tensors = names,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL | QSF_HF_ROPE_DYNAMIC },
    { .name = "Mistral3ForConditionalGeneration",
      .gguf = "mistral3",
      .tensors = names,
      .keys = keys,
      .must = mistral3_must,
      .put = mistral3,
      .prefixes = qsf_hf_vision_prefixes,
      .left_out = qsf_hf_vision_left_out,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_LIMITS,
      .kv_heads = 8 },
    { .name = "Ministral3ForCausalLM",
      .gguf = "mistral3",
      .tensors = names,
      .keys = keys,
      .must = mistral3_must,
      .put = mistral3,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_LIMITS,
      .kv_heads = 8 },
    { .name = "GraniteForCausalLM",
      .gguf = "granite",
      .tensors = names,
      .keys = granite_keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "SmolLM3ForCausalLM",
      .gguf = "smollm3",
      .tensors = names,
      .keys = keys,
      .must = smollm3_must,
      .put = smollm3,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_SWITCH,
      .tied = true,
      .kv_heads = 4,
      .rope_base = 2e6 },
    { .name = "ArceeForCausalLM",
      .gguf = "arcee",
      .tensors = names,
      .keys = keys,
      .must = arcee_must,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "OlmoForCausalLM",
      .gguf = "olmo",
      .tensors = names_without_norms,
      .keys = olmo_keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "MiniCPMForCausalLM",
      .gguf = "minicpm",
      .tensors = names,
      .keys = keys,
      .must = minicpm_must,
      .put = minicpm,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LONG,
      .tied = true },
    { .name = "InternLM2ForCausalLM",
      .gguf = "internlm2",
      .tensors = internlm2_tables,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR | QSF_HF_ROPE_DYNAMIC },
    { .name = "BaichuanForCausalLM",
      .gguf = "baichuan",
      .tensors = baichuan_tables,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .put = baichuan,
      .ropes = QSF_HF_ROPE_PLAIN,
      .ctx = "model_max_length|max_position_embeddings" },
    { 0 },
};
