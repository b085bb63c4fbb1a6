/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Granite 4, Nemotron-H and LFM2: attention with Mamba layers or short convolutions. Names: huggingface/transformers models/NAME/modeling_NAME.py;
 * ggml-org/llama.cpp conversion/granite.py, nemotron.py, lfm2.py. Defaults: transformers'
 * configuration files. */
#include <string.h>

#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

/* --- other tables --- */

static const QsfHfName names_dense_linear[] = {
    QSF_HF_ROWS(QSF_HF_L("shared_mlp.input_linear.weight"), QSF_HF_B("ffn_gate.weight"), 2,
                qsf_hf_rows_first),
    QSF_HF_ROWS(QSF_HF_L("shared_mlp.input_linear.weight"), QSF_HF_B("ffn_up.weight"), 2, qsf_hf_rows_second),
    QSF_HF_MATRIX(QSF_HF_L("shared_mlp.output_linear"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfName names_nemotron_h[] = {
    QSF_HF_ROWS(QSF_HF_L("mixer.q_proj.weight"), QSF_HF_B("attn_q.weight"), 2, qsf_hf_rows_q),
    QSF_HF_ROWS(QSF_HF_L("mixer.k_proj.weight"), QSF_HF_B("attn_k.weight"), 2, qsf_hf_rows_k),
    QSF_HF_MATRIX(QSF_HF_L("mixer.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfName names_nemotron_moe[] = {
    QSF_HF_HOW(QSF_HF_L("mixer.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("mixer.gate.e_score_correction_bias"), QSF_HF_B("exp_probs_b.bias"), 1,
               QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("mixer.experts.*.up_proj"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.experts.*.down_proj"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.shared_experts.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.shared_experts.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

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

/* --- settings --- */

static const QsfHfKey keys_granite_hybrid[] = {
    { "mamba_d_state", "ssm.state_size", QSF_HF_U32, 256, 1, 1e6 },
    { "mamba_n_groups", "ssm.group_count", QSF_HF_U32, 1, 1, 1e6 },
    QSF_HF_END,
};

static const QsfHfKey keys_nemotron_moe[] = {
    { "moe_shared_expert_intermediate_size", "expert_shared_feed_forward_length", QSF_HF_U32, QSF_HF_NEEDED,
      1, QSF_HF_NUMBER },
    { "moe_latent_size", "moe_latent_size", QSF_HF_U32, QSF_HF_ABSENT, 1, QSF_HF_NUMBER },
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

static const QsfHfMust must_nemotron_h[] = {
    { "mlp_hidden_act", "relu2" }, { "mamba_hidden_act", "silu" }, { "use_bias", "false" },
    { "mlp_bias", "false" },       { "attention_bias", "false" },  { 0 },
};

static const QsfHfMust must_lfm2[] = {
    { "conv_bias", "false" },
    { "routed_scaling_factor", "1" },
    { "norm_topk_prob", "true" },
    QSF_HF_END,
};

/* --- what the tables cannot express --- */

static int put_granite_hybrid(QsfHfModel *m) {
    static const char *const kinds[] = { "mamba", "attention", NULL };
    const char *positions = qsf_json_string(qsf_hf_member(m->text, "position_embedding_type"), NULL);
    int rc = qsf_hf_put_kv_heads(m, kinds, 1);
    if (rc == QSF_OK) rc = qsf_hf_put_mamba_heads(m, "mamba_n_heads", "mamba_d_head");
    if (rc == QSF_OK && positions != NULL && strcmp(positions, "rope") != 0 && strcmp(positions, "nope") != 0)
        rc = qsf_hf_bad(m, "position_embedding_type", "is neither 'rope' nor 'nope'");
    if (rc == QSF_OK)
        rc = qsf_hf_put_bool(m, "rope.scaling.finetuned",
                             positions != NULL && strcmp(positions, "rope") == 0);
    return rc;
}

static int put_granite_dense(QsfHfModel *m) {
    uint32_t width;
    int rc = put_granite_hybrid(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "shared_intermediate_size", 0, &width);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "feed_forward_length", width) : rc;
}

static int put_granite_moe(QsfHfModel *m) {
    uint32_t width, shared;
    int rc = put_granite_hybrid(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "intermediate_size", 0, &width);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "feed_forward_length", width);
    if (rc == QSF_OK) rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "shared_intermediate_size", 0, &shared);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "expert_shared_feed_forward_length", shared) : rc;
}

/* Kinds of blocks of Nemotron-H: a letter each, or a list. */
static int nemotron_kinds(const QsfHfModel *m, uint32_t *kind) {
    static const char *const names[] = { "mamba", "attention", "mlp", "moe", NULL };
    static const char key[] = "hybrid_override_pattern", letters[] = "M*-E";
    const char *pattern = qsf_json_string(qsf_hf_member(m->text, key), NULL);
    int rc = qsf_hf_layers_check(m);
    if (rc == QSF_OK && pattern == NULL)
        return qsf_hf_layer_kinds(m, "layers_block_type|layer_types", names, kind);
    if (rc == QSF_OK && strlen(pattern) != m->n_layers)
        rc = qsf_hf_bad(m, key, "does not have a letter for each of the num_hidden_layers blocks");
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) {
        const char *letter = strchr(letters, pattern[i]);
        if (letter == NULL) return qsf_hf_bad(m, key, "has a letter other than M, *, - and E");
        kind[i] = (uint32_t)(letter - letters);
    }
    return rc;
}

/* Writes the sizes of the blocks. *moe: do some have experts? */
static int put_blocks(QsfHfModel *m, bool *moe) {
    uint32_t kind[QSF_HF_LAYERS], kv[QSF_HF_LAYERS], ffn[QSF_HF_LAYERS], width[4] = { 0 };
    bool has[4] = { false };
    int rc = nemotron_kinds(m, kind);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) has[kind[i]] = true;
    if (rc == QSF_OK && has[2]) rc = qsf_hf_u32(m, "intermediate_size", 0, &width[2]);
    if (rc == QSF_OK && has[3]) rc = qsf_hf_u32(m, "moe_intermediate_size", 0, &width[3]);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) {
        kv[i] = kind[i] == 1 ? m->n_kv_heads : 0;
        ffn[i] = width[kind[i]];
    }
    *moe = has[3];
    if (rc == QSF_OK) rc = qsf_hf_put_u32s(m, "attention.head_count_kv", kv, m->n_layers);
    return rc == QSF_OK ? qsf_hf_put_u32s(m, "feed_forward_length", ffn, m->n_layers) : rc;
}

static int put_nemotron_h(QsfHfModel *m) {
    bool moe;
    int rc = put_blocks(m, &moe);
    if (rc == QSF_OK && moe) rc = qsf_hf_bad(m, QSF_HF_EXPERTS, "is missing");
    return rc == QSF_OK ? qsf_hf_put_mamba_heads(m, "mamba_num_heads", "mamba_head_dim") : rc;
}

static int put_nemotron_moe(QsfHfModel *m) {
    bool moe;
    int rc = put_blocks(m, &moe);
    if (rc == QSF_OK) rc = qsf_hf_put_mamba_heads(m, "mamba_num_heads", "mamba_head_dim");
    if (rc != QSF_OK || !moe) return rc;
    rc = qsf_hf_experts_put(m);
    return rc == QSF_OK ? qsf_hf_deepseek_put(m, "sigmoid") : rc;
}

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

/* --- architectures --- */

static const char *const nextn[] = { "mtp.", NULL };

#define NAMES(...) ((const QsfHfName *const[]){ __VA_ARGS__, NULL })
#define KEYS(...)  ((const QsfHfKey *const[]){ __VA_ARGS__, NULL })

/* Rows for models without experts. */
static const QsfHfMust no_experts[] = { { QSF_HF_EXPERTS, "0" }, QSF_HF_END };

const QsfHfArch qsf_hf_arch_hybrid[] = {
    { .name = "GraniteMoeHybridForCausalLM",
      .gguf = "granitehybrid",
      .tensors = NAMES(qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_vo,
                       qsf_hf_names_mamba_2, names_dense_linear),
      .keys = KEYS(qsf_hf_keys_rms, qsf_hf_keys_granite, qsf_hf_keys_mamba_conv, keys_granite_hybrid),
      .when = no_experts,
      .must = qsf_hf_must_jamba,
      .put = put_granite_dense,
      .ropes = QSF_HF_ROPE_PLAIN,
      .ffn_times = QSF_HF_NO_FFN,
      .own_kv_heads = true },
    { .name = "GraniteMoeHybridForCausalLM",
      .gguf = "granitehybrid",
      .tensors = NAMES(qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_vo,
                       qsf_hf_names_mamba_2, qsf_hf_names_input_linear, qsf_hf_names_shared_linear),
      .keys = KEYS(qsf_hf_keys_rms, qsf_hf_keys_granite, qsf_hf_keys_mamba_conv, keys_granite_hybrid),
      .must = qsf_hf_must_jamba,
      .put = put_granite_moe,
      .ropes = QSF_HF_ROPE_PLAIN,
      .ffn_times = QSF_HF_NO_FFN,
      .own_kv_heads = true },
    { .name = "NemotronHForCausalLM",
      .gguf = "nemotron_h",
      .tensors = NAMES(qsf_hf_names_backbone, qsf_hf_names_mixer_2, names_nemotron_h),
      .keys = KEYS(qsf_hf_keys_mamba, qsf_hf_keys_mamba_2),
      .when = no_experts,
      .must = must_nemotron_h,
      .put = put_nemotron_h,
      .prefixes = qsf_hf_backbone,
      .left_out = nextn,
      .ffn_times = QSF_HF_NO_FFN,
      .own_kv_heads = true },
    { .name = "NemotronHForCausalLM",
      .gguf = "nemotron_h_moe",
      .tensors = NAMES(qsf_hf_names_backbone, qsf_hf_names_mixer_2, names_nemotron_h, names_nemotron_moe),
      .keys = KEYS(qsf_hf_keys_mamba, qsf_hf_keys_mamba_2, keys_nemotron_moe),
      .must = must_nemotron_h,
      .put = put_nemotron_moe,
      .prefixes = qsf_hf_backbone,
      .left_out = nextn,
      .ffn_times = QSF_HF_NO_FFN,
      .own_kv_heads = true },
    { .name = "Lfm2ForCausalLM",
      .gguf = "lfm2",
      .tensors = NAMES(qsf_hf_names_model, names_lfm2, qsf_hf_names_qk, qsf_hf_names_vo),
      .keys = KEYS(qsf_hf_keys_rms, keys_lfm2),
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
      .tensors = NAMES(qsf_hf_names_model, names_lfm2, names_lfm2_moe, qsf_hf_names_qk, qsf_hf_names_vo),
      .keys = KEYS(qsf_hf_keys_rms, keys_lfm2, keys_lfm2_moe),
      .must = must_lfm2,
      .put = put_lfm2_moe,
      .ropes = QSF_HF_ROPE_PLAIN,
      .kv_heads = 8,
      .rope_base = 1e6,
      .tied = true,
      .own_kv_heads = true },
    QSF_HF_END,
};
