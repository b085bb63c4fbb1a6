/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models with latent attention: DeepSeek V2 and V3, Mistral 4, Kimi Linear. Names: huggingface/transformers
 * models/deepseek_v3/modeling_deepseek_v3.py, models/deepseek_v2/; moonshotai/Kimi-Linear-48B-A3B-Instruct
 * modeling_kimi.py; what becomes of kv_b_proj: ggml-org/llama.cpp conversion/deepseek.py. Defaults: transformers'
 * configuration files. */
#include <string.h>

#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"
#include "src/file/model_keys.h"

typedef struct Sizes {
    uint32_t kv_lora, nope, rot, v;
} Sizes;

static int read_sizes(const QsfHfModel *m, Sizes *s) {
    s->rot = m->head_dim;
    int rc = qsf_hf_u32(m, "kv_lora_rank", 512, &s->kv_lora);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "qk_nope_head_dim", 128, &s->nope);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "v_head_dim", 128, &s->v);
    return rc;
}

/* kv_b_proj has the rows of keys and values of each head. */
static int rows_k_b(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    Sizes s;
    (void)src_rows;
    (void)n;
    int rc = read_sizes(m, &s);
    if (rc != QSF_OK) return rc;
    map->cuts = m->n_heads;
    map->cut_rows = (uint64_t)s.nope + s.v;
    map->cut_used = s.nope;
    return QSF_OK;
}

static int rows_v_b(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    Sizes s;
    int rc = read_sizes(m, &s);
    if (rc != QSF_OK) return rc;
    map->first = s.nope;
    map->run = s.v;
    map->stride = (uint64_t)s.nope + s.v;
    *n = (uint64_t)m->n_heads * s.v;
    if (src_rows == map->stride * m->n_heads) return QSF_OK;
    return qsf_hf_bad_rows(m, src_rows, map->stride * m->n_heads, "its heads (config.json)");
}

/* One matrix per head. */
static int shape_heads(const QsfHfModel *m, QsfTensor *t) {
    t->ne[2] = m->n_heads;
    t->ne[1] /= m->n_heads;
    t->n_dims = 3;
    return QSF_OK;
}

static int shape_conv(const QsfHfModel *m, QsfTensor *t) {
    (void)m;
    t->ne[2] = t->ne[1];
    t->ne[1] = 1;
    t->n_dims = 3;
    return QSF_OK;
}

/* (1, 1, heads, 1) as a column. */
static int shape_a(const QsfHfModel *m, QsfTensor *t) {
    if (t->ne[0] != 1 || t->ne[2] != 1)
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: tensor '%s' is not one number per head", m->s->dir,
                           t->name);
    t->n_dims = 2;
    return QSF_OK;
}

/* --- tables --- */

/* clang-format off */
static const QsfHfName names_mla[] = {
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_proj"), QSF_HF_B("attn_q")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_a_proj"), QSF_HF_B("attn_q_a")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.q_a_layernorm"), QSF_HF_B("attn_q_a_norm")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_b_proj"), QSF_HF_B("attn_q_b")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.kv_a_proj_with_mqa"), QSF_HF_B("attn_kv_a_mqa")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.kv_a_layernorm"), QSF_HF_B("attn_kv_a_norm")),
    { QSF_HF_L("self_attn.kv_b_proj.weight"), QSF_HF_B("attn_k_b.weight"), 2, QSF_DERIVE_TRANSPOSE, rows_k_b, 0, shape_heads },
    { QSF_HF_L("self_attn.kv_b_proj.weight"), QSF_HF_B("attn_v_b.weight"), 2, QSF_DERIVE_COPY, rows_v_b, 0, shape_heads },
    QSF_HF_MATRIX(QSF_HF_L("self_attn.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_END,
};

static const QsfHfName names_kimi[] = {
    { QSF_HF_L("self_attn.q_conv1d.weight"), QSF_HF_B("ssm_conv1d_q.weight"), 2, QSF_DERIVE_F32, NULL, 0, shape_conv },
    { QSF_HF_L("self_attn.k_conv1d.weight"), QSF_HF_B("ssm_conv1d_k.weight"), 2, QSF_DERIVE_F32, NULL, 0, shape_conv },
    { QSF_HF_L("self_attn.v_conv1d.weight"), QSF_HF_B("ssm_conv1d_v.weight"), 2, QSF_DERIVE_F32, NULL, 0, shape_conv },
    QSF_HF_MATRIX(QSF_HF_L("self_attn.k_proj"), QSF_HF_B("attn_k")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.f_a_proj"), QSF_HF_B("ssm_f_a")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.f_b_proj"), QSF_HF_B("ssm_f_b")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.b_proj"), QSF_HF_B("ssm_beta")),
    { QSF_HF_L("self_attn.A_log"), QSF_HF_B("ssm_a"), 3, QSF_DERIVE_NEG_EXP, NULL, 0, shape_a },
    QSF_HF_HOW(QSF_HF_L("self_attn.dt_bias"), QSF_HF_B("ssm_dt.bias"), 1, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.g_a_proj"), QSF_HF_B("ssm_g_a")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.g_b_proj"), QSF_HF_B("ssm_g_b")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.o_norm"), QSF_HF_B("ssm_norm")),
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.gate.e_score_correction_bias"), QSF_HF_B("exp_probs_b.bias"), 1, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w1"), QSF_HF_B("ffn_gate_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w3"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w2"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.shared_experts.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.shared_experts.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.shared_experts.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

static const QsfHfKey keys_mla[] = {
    { "q_lora_rank", "attention.q_lora_rank", QSF_HF_U32, QSF_HF_ABSENT, 1, QSF_HF_NUMBER },
    { "kv_lora_rank", "attention.kv_lora_rank", QSF_HF_U32, 512, 1, QSF_HF_NUMBER },
    { "kv_lora_rank", "attention.value_length", QSF_HF_U32, 512, 1, QSF_HF_NUMBER },
    { "v_head_dim", "attention.value_length_mla", QSF_HF_U32, 128, 1, QSF_HF_NUMBER },
    QSF_HF_END,
};

static const QsfHfMust must_deepseek[] = {
    { "hidden_act", "silu" },
    { "attention_bias", "false" },
    { "moe_layer_freq", "1" },
    { "rope_interleave", "true" },
    QSF_HF_END,
};

/* Mistral 3 and 4 have the same name. */
static const QsfHfMust is_mistral4[] = { { "model_type", "mistral4" }, QSF_HF_END };

static const QsfHfMust must_kimi[] = {
    { "hidden_act", "silu" },
    { "mla_use_nope", "true" },
    { "moe_layer_freq", "1" },
    { "moe_renormalize", "true" },
    { "moe_router_activation_func", "sigmoid" },
    { "num_expert_group", "1" },
    QSF_HF_END,
};
/* clang-format on */

/* --- what the tables cannot express --- */

static int put_mla(QsfHfModel *m) {
    Sizes s;
    int rc = read_sizes(m, &s);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.key_length", s.kv_lora + s.rot);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "attention.key_length_mla", s.nope + s.rot) : rc;
}

/* YaRN scales the scores by mscale_all_dim; cos and sin by its ratio to mscale, which must be 1. */
static int put_mscale(QsfHfModel *m) {
    const QsfJson *rope = qsf_hf_member(m->text, "rope_parameters|rope_scaling");
    double all, own;
    if (m->rope != QSF_HF_ROPE_YARN || qsf_hf_member(rope, "mscale_all_dim") == NULL) return QSF_OK;
    int rc = qsf_hf_real(m, rope, "mscale_all_dim", 1, 0, 1e3, &all);
    if (rc == QSF_OK) rc = qsf_hf_real(m, rope, "mscale", all, 0, 1e3, &own);
    if (rc == QSF_OK && (own < all || own > all))
        rc = qsf_hf_bad(m, "rope_parameters|rope_scaling", "has an mscale other than mscale_all_dim");
    return rc == QSF_OK ? qsf_hf_put_f32(m, "rope.scaling.yarn_log_multiplier", 0.1 * all) : rc;
}

static int put_latent(QsfHfModel *m) {
    int rc = put_mla(m);
    if (rc == QSF_OK) rc = put_mscale(m);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.head_count_kv", 1);
    return rc == QSF_OK ? qsf_hf_experts_put(m) : rc;
}

static int put_deepseek(QsfHfModel *m, const char *gating) {
    int rc = put_latent(m);
    return rc == QSF_OK ? qsf_hf_deepseek_put(m, gating) : rc;
}

static int put_v3(QsfHfModel *m) { return put_deepseek(m, "sigmoid"); }

/* V2 chooses groups of experts by the best expert of each, or has no groups; weights are not normalized if the key
 * is missing. */
static int put_v2(QsfHfModel *m) {
    static const char key[] = "topk_method";
    const QsfJson *v = qsf_hf_member(m->text, key);
    const char *method = v != NULL ? qsf_json_string(v, NULL) : "greedy";
    const bool greedy = method != NULL && strcmp(method, "greedy") == 0;
    if (!greedy && (method == NULL || strcmp(method, "group_limited_greedy") != 0))
        return qsf_hf_bad(m, key, "is neither 'greedy' nor 'group_limited_greedy'");
    int rc = put_latent(m);
    if (rc == QSF_OK && !greedy) rc = qsf_hf_put_u32(m, QSF_KEY_GROUP_SCORES, 1);
    return rc == QSF_OK ? qsf_hf_deepseek_put_as(m, "softmax", !greedy, false) : rc;
}

/* Queries are scaled by their position. */
static int put_mistral4(QsfHfModel *m) {
    const QsfJson *rope = qsf_hf_member(m->text, "rope_parameters|rope_scaling");
    double beta;
    int rc = put_deepseek(m, "softmax");
    if (rc != QSF_OK || qsf_hf_member(rope, "llama_4_scaling_beta") == NULL) return rc;
    rc = qsf_hf_real(m, rope, "llama_4_scaling_beta", 0, 0, 1e3, &beta);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "attention.temperature_scale", beta);
    if (rc != QSF_OK || m->rope != QSF_HF_ROPE_YARN) return rc;
    return qsf_hf_put_u32(m, "attention.temperature_length", (uint32_t)m->rope_ctx);
}

/* linear_attn_config numbers layers from 1. */
static int put_kimi(QsfHfModel *m) {
    const QsfJson *c = qsf_hf_member(m->text, "linear_attn_config"),
                  *full = qsf_hf_member(c, "full_attn_layers");
    uint32_t kv[QSF_HF_LAYERS] = { 0 };
    double dim, kernel;
    int rc = qsf_hf_layers_check(m);
    if (rc == QSF_OK && full == NULL) rc = qsf_hf_bad(m, "linear_attn_config", "has no full_attn_layers");
    for (size_t i = 0; rc == QSF_OK && i < qsf_json_size(full); i++) {
        const int64_t layer = qsf_json_int(qsf_json_at(full, i), 0);
        if (layer < 1 || layer > m->n_layers)
            return qsf_hf_bad(m, "linear_attn_config", "has a layer that does not exist in full_attn_layers");
        kv[layer - 1] = 1;
    }
    if (rc == QSF_OK) rc = qsf_hf_put_u32s(m, "attention.head_count_kv", kv, m->n_layers);
    if (rc == QSF_OK) rc = qsf_hf_real(m, c, "head_dim", 128, 1, 1e5, &dim);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "kda.head_dim", (uint32_t)dim);
    if (rc == QSF_OK) rc = qsf_hf_real(m, c, "short_conv_kernel_size", 4, 1, 1e5, &kernel);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "ssm.conv_kernel", (uint32_t)kernel);
    if (rc == QSF_OK) rc = put_mla(m);
    if (rc == QSF_OK) rc = qsf_hf_experts_put(m);
    return rc == QSF_OK ? qsf_hf_deepseek_put(m, "sigmoid") : rc;
}

/* --- architectures --- */

#define NAMES(...)                                                                                    \
    ((const QsfHfName *const[]){ qsf_hf_names_model, qsf_hf_names_norms, names_mla, qsf_hf_names_mlp, \
                                 __VA_ARGS__, NULL })
#define KEYS ((const QsfHfKey *const[]){ qsf_hf_keys_rms, keys_mla, NULL })

#define MISTRAL_4                                                                                            \
    .gguf = "mistral4",                                                                                      \
    .tensors = NAMES(qsf_hf_names_experts, qsf_hf_names_stacked, qsf_hf_names_shared_experts), .keys = KEYS, \
    .must = must_deepseek, .put = put_mistral4, .prefixes = qsf_hf_vision_prefixes,                          \
    .left_out = qsf_hf_vision_left_out, .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_YARN,                       \
    .rotated = "qk_rope_head_dim", .own_kv_heads = true

const QsfHfArch qsf_hf_arch_mla[] = {
    { .name = "DeepseekV2ForCausalLM",
      .gguf = "deepseek2",
      .tensors = NAMES(qsf_hf_names_experts, qsf_hf_names_stacked, qsf_hf_names_shared_experts),
      .keys = KEYS,
      .must = must_deepseek,
      .put = put_v2,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_YARN,
      .rotated = "qk_rope_head_dim",
      .own_kv_heads = true },
    { .name = "DeepseekV3ForCausalLM",
      .gguf = "deepseek2",
      .tensors = NAMES(qsf_hf_names_experts, qsf_hf_names_stacked, qsf_hf_names_shared_experts),
      .keys = KEYS,
      .must = must_deepseek,
      .put = put_v3,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_YARN,
      .rotated = "qk_rope_head_dim",
      .own_kv_heads = true },
    { .name = "Mistral3ForConditionalGeneration", .when = is_mistral4, MISTRAL_4 },
    { .name = "Mistral4ForCausalLM", MISTRAL_4 },
    { .name = "KimiLinearForCausalLM",
      .gguf = "kimi-linear",
      .tensors = NAMES(names_kimi),
      .keys = KEYS,
      .must = must_kimi,
      .put = put_kimi,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rotated = "qk_rope_head_dim",
      .n_ctx = 4096,
      .own_kv_heads = true },
    QSF_HF_END,
};
