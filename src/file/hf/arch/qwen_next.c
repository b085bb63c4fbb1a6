/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models with the gated delta rule: Qwen3-Next, Qwen 3.5. Names: huggingface/transformers
 * models/qwen3_next/modeling_qwen3_next.py, models/qwen3_5/modeling_qwen3_5.py, models/qwen3_5_moe/; order
 * of rows: ggml-org/llama.cpp conversion/qwen.py. Defaults: transformers' configuration files. */
#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

/* --- heads of linear attention: n_v / n_k value heads for each key head --- */

typedef struct Heads {
    uint32_t n_k, n_v, k_dim, v_dim;
} Heads;

static int read_heads(const QsfHfModel *m, Heads *h) {
    int rc = qsf_hf_u32(m, "linear_num_key_heads", 16, &h->n_k);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "linear_num_value_heads", 32, &h->n_v);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "linear_key_head_dim", 128, &h->k_dim);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "linear_value_head_dim", 128, &h->v_dim);
    if (rc == QSF_OK && h->n_v % h->n_k != 0)
        rc = qsf_hf_bad(m, "linear_num_value_heads", "is not a multiple of linear_num_key_heads");
    if (rc == QSF_OK && (uint64_t)h->n_v * h->v_dim > QSF_HF_NUMBER)
        rc = qsf_hf_bad(m, "linear_num_value_heads", "is out of range");
    if (rc == QSF_OK && (uint64_t)h->n_k * h->k_dim > QSF_HF_NUMBER)
        rc = qsf_hf_bad(m, "linear_num_key_heads", "is out of range");
    return rc;
}

/* Rows of one kind in a group of q, k, v and z of a key head. */
static int group_rows(const QsfHfModel *m, unsigned kind, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    Heads h;
    int rc = read_heads(m, &h);
    if (rc != QSF_OK) return rc;
    const uint64_t k = h.k_dim, v = (uint64_t)(h.n_v / h.n_k) * h.v_dim, group = 2 * k + 2 * v;
    const uint64_t first[] = { 0, k, 2 * k, 2 * k + v }, run[] = { k, k, v, v };
    if (src_rows != group * h.n_k)
        return qsf_hf_bad_rows(m, src_rows, group * h.n_k, "the heads of linear attention (config.json)");
    map->first = first[kind];
    map->run = run[kind];
    map->stride = group;
    *n = run[kind] * h.n_k;
    return QSF_OK;
}

static int rows_q(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return group_rows(m, 0, src_rows, map, n);
}
static int rows_k(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return group_rows(m, 1, src_rows, map, n);
}
static int rows_v(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return group_rows(m, 2, src_rows, map, n);
}
static int rows_z(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return group_rows(m, 3, src_rows, map, n);
}

/* Value heads, `dim` rows each, after `before` others: GGUF has the first of each key head, then the
 * second ones. */
static int tile(const QsfHfModel *m, const Heads *h, uint64_t before, uint64_t dim, uint64_t src_rows,
                QsfRowMap *map, uint64_t *n) {
    const uint64_t each = h->n_v / h->n_k;
    if (src_rows != before + h->n_v * dim)
        return qsf_hf_bad_rows(m, src_rows, before + h->n_v * dim,
                               "the heads of linear attention (config.json)");
    map->first = before;
    map->run = dim;
    map->stride = each * dim;
    map->period = h->n_k;
    map->step = dim;
    *n = h->n_v * dim;
    return QSF_OK;
}

static int rows_values(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    Heads h;
    int rc = read_heads(m, &h);
    return rc == QSF_OK ? tile(m, &h, 0, h.v_dim, src_rows, map, n) : rc;
}

static int rows_ones(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    Heads h;
    int rc = read_heads(m, &h);
    return rc == QSF_OK ? tile(m, &h, 0, 1, src_rows, map, n) : rc;
}

/* q, k and v one after the other: the rows of q and k, then those of v. */
static int rows_qk(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    Heads h;
    int rc = read_heads(m, &h);
    if (rc != QSF_OK) return rc;
    *n = map->run = 2ull * h.n_k * h.k_dim;
    map->stride = map->run;
    return src_rows > *n ? QSF_OK
                         : qsf_hf_bad_rows(m, src_rows, *n + (uint64_t)h.n_v * h.v_dim,
                                           "the heads of linear attention (config.json)");
}

static int rows_after_qk(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    Heads h;
    int rc = read_heads(m, &h);
    return rc == QSF_OK ? tile(m, &h, 2ull * h.n_k * h.k_dim, h.v_dim, src_rows, map, n) : rc;
}

/* --- tables --- */

/* Norms are stored minus 1, except that of linear attention. */
static const QsfHfName names_norms[] = {
    QSF_HF_ADD_ONE("norm", "output_norm"),
    QSF_HF_ADD_ONE(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_ADD_ONE(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_ADD_ONE(QSF_HF_L("self_attn.q_norm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_ADD_ONE(QSF_HF_L("self_attn.k_norm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_MATRIX(QSF_HF_L("eh_proj"), QSF_HF_B("nextn.eh_proj")),
    QSF_HF_ADD_ONE(QSF_HF_L("enorm"), QSF_HF_B("nextn.enorm")),
    QSF_HF_ADD_ONE(QSF_HF_L("hnorm"), QSF_HF_B("nextn.hnorm")),
    QSF_HF_ADD_ONE(QSF_HF_L("shared_head.norm"), QSF_HF_B("nextn.shared_head_norm")),
    QSF_HF_HOW(QSF_HF_L("linear_attn.norm.weight"), QSF_HF_B("ssm_norm.weight"), 1, QSF_DERIVE_F32),
    QSF_HF_END,
};

static const QsfHfName names_next[] = {
    QSF_HF_PART(QSF_HF_L("linear_attn.in_proj_qkvz.weight"), QSF_HF_B("attn_qkv.weight"), 2, rows_q, 0),
    QSF_HF_PART(QSF_HF_L("linear_attn.in_proj_qkvz.weight"), QSF_HF_B("attn_qkv.weight"), 2, rows_k, 1),
    QSF_HF_PART(QSF_HF_L("linear_attn.in_proj_qkvz.weight"), QSF_HF_B("attn_qkv.weight"), 2, rows_v, 2),
    QSF_HF_ROWS(QSF_HF_L("linear_attn.in_proj_qkvz.weight"), QSF_HF_B("attn_gate.weight"), 2, rows_z),
    QSF_HF_MATRIX(QSF_HF_L("linear_attn.in_proj_ba"), QSF_HF_B("ssm_ba")),
    QSF_HF_HOW(QSF_HF_L("linear_attn.conv1d.weight"), QSF_HF_B("ssm_conv1d.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("linear_attn.dt_bias"), QSF_HF_B("ssm_dt.bias"), 1, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("linear_attn.A_log"), QSF_HF_B("ssm_a"), 1, QSF_DERIVE_NEG_EXP),
    QSF_HF_MATRIX(QSF_HF_L("linear_attn.out_proj"), QSF_HF_B("ssm_out")),
    QSF_HF_END,
};

static const QsfHfName names_35[] = {
    QSF_HF_PART(QSF_HF_L("linear_attn.in_proj_qkv.weight"), QSF_HF_B("attn_qkv.weight"), 2, rows_qk, 0),
    QSF_HF_PART(QSF_HF_L("linear_attn.in_proj_qkv.weight"), QSF_HF_B("attn_qkv.weight"), 2, rows_after_qk, 1),
    QSF_HF_ROWS(QSF_HF_L("linear_attn.in_proj_z.weight"), QSF_HF_B("attn_gate.weight"), 2, rows_values),
    QSF_HF_ROWS(QSF_HF_L("linear_attn.in_proj_b.weight"), QSF_HF_B("ssm_beta.weight"), 2, rows_ones),
    QSF_HF_ROWS(QSF_HF_L("linear_attn.in_proj_a.weight"), QSF_HF_B("ssm_alpha.weight"), 2, rows_ones),
    { QSF_HF_L("linear_attn.conv1d.weight"), QSF_HF_B("ssm_conv1d.weight"), 2, QSF_DERIVE_F32, rows_qk, 0,
      NULL },
    { QSF_HF_L("linear_attn.conv1d.weight"), QSF_HF_B("ssm_conv1d.weight"), 2, QSF_DERIVE_F32, rows_after_qk,
      1, NULL },
    { QSF_HF_L("linear_attn.dt_bias"), QSF_HF_B("ssm_dt.bias"), 1, QSF_DERIVE_F32, rows_ones, 0, NULL },
    { QSF_HF_L("linear_attn.A_log"), QSF_HF_B("ssm_a"), 1, QSF_DERIVE_NEG_EXP, rows_ones, 0, NULL },
    { QSF_HF_L("linear_attn.out_proj.weight"), QSF_HF_B("ssm_out.weight"), 2, QSF_DERIVE_COLUMNS, rows_values,
      0, NULL },
    QSF_HF_END,
};

static const QsfHfKey keys_delta[] = {
    { "linear_conv_kernel_dim", "ssm.conv_kernel", QSF_HF_U32, 4, 1, 1e5 },
    { "linear_key_head_dim", "ssm.state_size", QSF_HF_U32, 128, 1, 1e6 },
    { "linear_num_key_heads", "ssm.group_count", QSF_HF_U32, 16, 1, 1e6 },
    { "linear_num_value_heads", "ssm.time_step_rank", QSF_HF_U32, 32, 1, 1e6 },
    { "shared_expert_intermediate_size", "expert_shared_feed_forward_length", QSF_HF_U32, QSF_HF_ABSENT, 1,
      QSF_HF_NUMBER },
    QSF_HF_END,
};
static const QsfHfMust must[] = {
    { "hidden_act", "silu" },
    { "attn_output_gate", "true" },
    QSF_HF_END,
};

/* --- what the tables cannot express --- */

/* Every n-th layer has full attention. */
static int put_interval(QsfHfModel *m) {
    static const char *const kinds[] = { "linear_attention", "full_attention", NULL };
    static const char key[] = "layer_types";
    uint32_t kind[QSF_HF_LAYERS], every = 0;
    int rc = qsf_hf_u32(m, "full_attention_interval", 4, &every);
    if (rc != QSF_OK || qsf_hf_member(m->text, key) == NULL)
        return rc == QSF_OK ? qsf_hf_put_u32(m, "full_attention_interval", every) : rc;
    rc = qsf_hf_layer_kinds(m, key, kinds, kind);
    for (every = 0; rc == QSF_OK && every < m->n_layers && kind[every] == 0;) every++;
    every++;
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++)
        if (kind[i] != ((i + 1) % every == 0))
            rc = qsf_hf_bad(m, key,
                            "does not have full attention in every n-th layer, which is not supported");
    return rc == QSF_OK ? qsf_hf_put_u32(m, "full_attention_interval", every) : rc;
}

static int put_delta(QsfHfModel *m) {
    Heads h;
    int rc = read_heads(m, &h);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "ssm.inner_size", h.n_v * h.v_dim);
    return rc == QSF_OK ? put_interval(m) : rc;
}

/* All blocks have experts, whose weights are divided by their sum. */
static int put_delta_moe(QsfHfModel *m) {
    int rc = put_delta(m);
    if (rc == QSF_OK) rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_need_bool(m, "norm_topk_prob", true, true);
    return rc == QSF_OK ? qsf_hf_experts_everywhere(m) : rc;
}

/* --- architectures --- */

#define NAMES(...) QSF_HF_NAMES(qsf_hf_names_ends, names_norms, __VA_ARGS__)
#define KEYS       QSF_HF_KEYS(qsf_hf_keys_rms, keys_delta)

static const char *const prefixes[] = { "model.language_model.", "language_model.model.", "model.", NULL };
static const char *const left_out[] = { "mtp.", "model.visual.", "visual.", NULL };

/* Qwen 3.5, with and without its vision tower. */
#define QWEN35_COMMON                                                                                  \
    .keys = KEYS, .must = must, .prefixes = prefixes, .left_out = left_out, .nextn = QSF_HF_NEXTN_MTP, \
    .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_YARN, .head_dim = 256, .rotary = 0.25
#define QWEN35                          \
    .gguf = "qwen35", .put = put_delta, \
    .tensors = NAMES(qsf_hf_names_qk, qsf_hf_names_vo, names_35, qsf_hf_names_mlp), QWEN35_COMMON
#define QWEN35_MOE                                                                                           \
    .gguf = "qwen35moe", .put = put_delta_moe, .ffn_times = QSF_HF_NO_FFN,                                   \
    .tensors = NAMES(qsf_hf_names_qk, qsf_hf_names_vo, names_35, qsf_hf_names_experts, qsf_hf_names_stacked, \
                     qsf_hf_names_shared_expert),                                                            \
    QWEN35_COMMON

const QsfHfArch qsf_hf_arch_qwen_next[] = {
    { .name = "Qwen3NextForCausalLM",
      .gguf = "qwen3next",
      .tensors = NAMES(qsf_hf_names_qk, qsf_hf_names_vo, names_next, qsf_hf_names_experts,
                       qsf_hf_names_stacked, qsf_hf_names_shared_expert),
      .keys = KEYS,
      .must = must,
      .put = put_delta_moe,
      .left_out = left_out,
      .nextn = QSF_HF_NEXTN_MTP,
      .ropes = QSF_HF_ROPES_YARN,
      .head_dim = 256,
      .rotary = 0.25 },
    { .name = "Qwen3_5ForConditionalGeneration", QWEN35 },
    { .name = "Qwen3_5ForCausalLM", QWEN35 },
    { .name = "Qwen3_5MoeForConditionalGeneration", QWEN35_MOE },
    { .name = "Qwen3_5MoeForCausalLM", QWEN35_MOE },
    QSF_HF_END,
};
