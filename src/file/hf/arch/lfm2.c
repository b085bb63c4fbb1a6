/* SPDX-License-Identifier: GPL-3.0-or-later */
/* LFM2 (Liquid AI): attention and short convolutions, also with experts. Names: huggingface/transformers
 * models/lfm2/, models/lfm2_moe/; ggml-org/llama.cpp conversion/lfm2.py. Defaults: transformers'
 * configuration files. */
#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

static const QsfHfName names_lfm2[] = {
    { "embedding_norm.weight", "token_embd_norm.weight", 1, 0, NULL, 0, NULL },
    QSF_HF_VECTOR(QSF_HF_L("operator_norm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("ffn_norm"), QSF_HF_B("ffn_norm")),
    QSF_HF_HOW(QSF_HF_L("conv.conv.weight"), QSF_HF_B("shortconv.conv.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("conv.in_proj"), QSF_HF_B("shortconv.in_proj")),
    QSF_HF_MATRIX(QSF_HF_L("conv.out_proj"), QSF_HF_B("shortconv.out_proj")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.q_layernorm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.k_layernorm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.out_proj"), QSF_HF_B("attn_output")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w1"), QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w3"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w2"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfName names_lfm2_moe[] = {
    QSF_HF_HOW(QSF_HF_L("feed_forward.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("feed_forward.expert_bias"), QSF_HF_B("exp_probs_b.bias"), 1, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.experts.*.w1"), QSF_HF_B("ffn_gate_exps")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.experts.*.w3"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.experts.*.w2"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_END,
};

static const QsfHfKey keys_lfm2[] = {
    { "conv_L_cache", "shortconv.l_cache", QSF_HF_U32, 3, 1, 1e5 },
    QSF_HF_END,
};

static const QsfHfKey keys_lfm2_moe[] = {
    { "num_dense_layers", "leading_dense_block_count", QSF_HF_U32, 2, 0, 1e5 },
    QSF_HF_END,
};

static const QsfHfMust must_lfm2[] = {
    { "conv_bias", "false" },
    { "routed_scaling_factor", "1" },
    { "norm_topk_prob", "true" },
    QSF_HF_END,
};

/* Width of the feed-forward network: two thirds, rounded up, unless config.json says not to adjust it. */
static int put_lfm2_ffn(QsfHfModel *m) {
    static const char key[] = "block_ff_dim|intermediate_size", round_key[] = "block_multiple_of";
    uint32_t width, multiple;
    double times;
    bool adjust;
    int rc = qsf_hf_u32(m, key, 0, &width);
    if (rc == QSF_OK) rc = qsf_hf_bool(m, "block_auto_adjust_ff_dim", true, &adjust);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, round_key, 256, &multiple);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "block_ffn_dim_multiplier", 1, 1e-3, 1e3, &times);
    if (rc != QSF_OK || !adjust) return rc == QSF_OK ? qsf_hf_put_u32(m, "feed_forward_length", width) : rc;
    const uint64_t scaled = (uint64_t)(times * (double)(2 * (uint64_t)width / 3));
    const uint64_t rounded = (scaled + multiple - 1) / multiple * multiple;
    if (rounded > QSF_HF_NUMBER) return qsf_hf_bad(m, key, "is out of range");
    return qsf_hf_put_u32(m, "feed_forward_length", (uint32_t)rounded);
}

static const char *const lfm2_kinds[] = { "conv", "full_attention", NULL };

/* Older settings list the layers with attention; without a list, all of them have it. */
static int put_lfm2_attention(QsfHfModel *m) {
    static const char key[] = "full_attn_idxs";
    if (qsf_hf_member(m->text, "layer_types") != NULL) return qsf_hf_put_kv_heads(m, lfm2_kinds, 1);
    const QsfJson *list = qsf_hf_member(m->text, key);
    const bool all = list == NULL;
    uint32_t heads[QSF_HF_LAYERS];
    int rc = qsf_hf_layers_check(m);
    if (rc != QSF_OK) return rc;
    if (!all && qsf_json_type(list) != QSF_JSON_ARRAY) return qsf_hf_bad(m, key, "is not a list of layers");
    for (uint32_t i = 0; i < m->n_layers; i++) heads[i] = all ? m->n_kv_heads : 0;
    for (size_t i = 0; !all && i < qsf_json_size(list); i++) {
        const int64_t layer = qsf_json_int(qsf_json_at(list, i), -1);
        if (layer < 0 || layer >= (int64_t)m->n_layers)
            return qsf_hf_bad(m, key, "lists what is not a layer");
        heads[layer] = m->n_kv_heads;
    }
    return qsf_hf_put_u32s(m, "attention.head_count_kv", heads, m->n_layers);
}

static int put_lfm2(QsfHfModel *m) {
    int rc = put_lfm2_attention(m);
    return rc == QSF_OK ? put_lfm2_ffn(m) : rc;
}

static int put_lfm2_moe(QsfHfModel *m) {
    int rc = put_lfm2_attention(m);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "expert_gating_func", 2);
    return rc == QSF_OK ? qsf_hf_experts_put(m) : rc;
}

const QsfHfArch qsf_hf_arch_lfm2[] = {
    { .name = "Lfm2ForCausalLM",
      .gguf = "lfm2",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, names_lfm2, qsf_hf_names_qk, qsf_hf_names_vo),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_lfm2),
      .must = must_lfm2,
      .put = put_lfm2,
      .ropes = QSF_HF_ROPE_PLAIN,
      .ffn_times = QSF_HF_NO_FFN,
      .kv_heads = 8,
      .rope_base = 1e6,
      .tied = true,
      .own_kv_heads = true },
    { .name = "Lfm2MoeForCausalLM",
      .gguf = "lfm2moe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, names_lfm2, names_lfm2_moe, qsf_hf_names_qk,
                              qsf_hf_names_vo),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_lfm2, keys_lfm2_moe),
      .must = must_lfm2,
      .put = put_lfm2_moe,
      .ropes = QSF_HF_ROPE_PLAIN,
      .kv_heads = 8,
      .rope_base = 1e6,
      .tied = true,
      .own_kv_heads = true },
    QSF_HF_END,
};
