/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Llama 4: blocks with rotation see chunks of 8192 positions and normalize rotated heads, except with 128
 * experts; the others scale queries by their position. Only models with sliding_window 0 do neither, and
 * they are refused. Facts: ggml-org/llama.cpp src/models. */
#include "src/model/family/dense.h"

#define CHUNK 8192u /* positions */

static void check_chunks(QsfBuilder *b) {
    if (qsf_build_u32(b, "attention.sliding_window", CHUNK, 0, UINT32_MAX) == 0)
        qsf_build_fail(b, "models with the metadata key '%s' of 0 are not supported", b->keys.key);
}

/* Heads of blocks with rotation: normalized without weights. */
static void norm_heads(QsfBuilder *b, const QsfBlockSizes *n, const QsfQkv *x) {
    if (qsf_build_u32(b, "expert_count", 0, 0, UINT32_MAX) == 128) return;
    qsf_build_head_norm(b, QSF_NORM_RMS, NULL, x->q, n->heads, false);
    qsf_build_head_norm(b, QSF_NORM_RMS, NULL, x->k, n->kv_heads, false);
}

static void scale_queries(QsfBuilder *b, QsfSlice q) {
    QsfStep *s = qsf_build_step(b, QSF_OP_TEMPERATURE, "temperature", qsf_slice_none(), q);
    if (s != NULL) s->u.temperature = (QsfTemperatureStep){ .scale = 0.1f, .length = CHUNK, .offset = 1 };
}

static void attention(const QsfDenseModel *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice branch = qsf_build_branch(b);
    const QsfBlockSizes *n = &m->hp->block[i];
    const bool rotated = !m->no_rope[i] && m->rope != QSF_NONE;
    const QsfQkv x = qsf_build_qkv(b, n, branch);
    qsf_dense_rotate(m, i, &x);
    QsfAttentionSpec attn = qsf_dense_attention_spec(m, i, &x);
    check_chunks(b);
    if (rotated)
        norm_heads(b, n, &x);
    else
        scale_queries(b, x.q);
    attn.step.chunk = rotated ? CHUNK : 0;
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", qsf_build_attention(b, &attn), branch);
}

static void block(const QsfDenseModel *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    qsf_build_block(b, i);
    qsf_dense_norm(m, "attn_norm", x, branch);
    attention(m, i);
    qsf_build_add(b, "residual", branch, x);
    qsf_dense_norm(m, "ffn_norm", x, branch);
    qsf_dense_ffn(m, branch, branch);
    qsf_build_add(b, "residual", branch, x);
}

void qsf_family_llama4(QsfBuilder *b) {
    QsfDenseModel m;
    qsf_dense_init(&m, b);
    qsf_dense_read(&m);
    qsf_dense_embed(&m);
    for (uint32_t i = 0; i < m.hp->n_layers && !qsf_build_failed(b); i++) block(&m, i);
    qsf_dense_head(&m);
}
