/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Latent attention: tables, and what they cannot express. What becomes of kv_b_proj: ggml-org/llama.cpp
 * conversion/deepseek.py. */
#include "src/file/hf/latent.h"

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

const QsfHfName qsf_hf_names_latent[] = {
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_proj"), QSF_HF_B("attn_q")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_a_proj"), QSF_HF_B("attn_q_a")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.q_a_layernorm"), QSF_HF_B("attn_q_a_norm")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_b_proj"), QSF_HF_B("attn_q_b")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.kv_a_proj_with_mqa"), QSF_HF_B("attn_kv_a_mqa")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.kv_a_layernorm"), QSF_HF_B("attn_kv_a_norm")),
    { QSF_HF_L("self_attn.kv_b_proj.weight"), QSF_HF_B("attn_k_b.weight"), 2, QSF_DERIVE_TRANSPOSE, rows_k_b,
      0, shape_heads },
    { QSF_HF_L("self_attn.kv_b_proj.weight"), QSF_HF_B("attn_v_b.weight"), 2, QSF_DERIVE_COPY, rows_v_b, 0,
      shape_heads },
    QSF_HF_MATRIX(QSF_HF_L("self_attn.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_END,
};

const QsfHfKey qsf_hf_keys_latent[] = {
    { "q_lora_rank", "attention.q_lora_rank", QSF_HF_U32, QSF_HF_ABSENT, 1, QSF_HF_NUMBER },
    { "kv_lora_rank", "attention.kv_lora_rank", QSF_HF_U32, 512, 1, QSF_HF_NUMBER },
    { "kv_lora_rank", "attention.value_length", QSF_HF_U32, 512, 1, QSF_HF_NUMBER },
    { "v_head_dim", "attention.value_length_mla", QSF_HF_U32, 128, 1, QSF_HF_NUMBER },
    QSF_HF_END,
};

const QsfHfMust qsf_hf_must_deepseek[] = {
    { "hidden_act", "silu" },
    { "attention_bias", "false" },
    { "moe_layer_freq", "1" },
    { "rope_interleave", "true" },
    QSF_HF_END,
};

int qsf_hf_latent_put_sizes(QsfHfModel *m) {
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

int qsf_hf_latent_put(QsfHfModel *m) {
    int rc = qsf_hf_latent_put_sizes(m);
    if (rc == QSF_OK) rc = put_mscale(m);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.head_count_kv", 1);
    return rc == QSF_OK ? qsf_hf_experts_put(m) : rc;
}

int qsf_hf_deepseek_put_latent(QsfHfModel *m, const char *gating) {
    int rc = qsf_hf_latent_put(m);
    return rc == QSF_OK ? qsf_hf_deepseek_put(m, gating) : rc;
}
