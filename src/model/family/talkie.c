/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Talkie: norms without weights, also of rotated heads, and each block adds the embedding once more.
 * Facts: ggml-org/llama.cpp src/models. */
#include "src/model/family/dense.h"

/* Heads are normalized, and those of q multiplied by one number each. */
static void norm_heads(QsfBuilder *b, const QsfBlockSizes *n, const QsfQkv *x) {
    const uint64_t ne[2] = { 1, n->heads };
    qsf_build_head_norm(b, QSF_NORM_RMS, NULL, x->q, n->heads, false);
    qsf_build_head_norm(b, QSF_NORM_RMS, NULL, x->k, n->kv_heads, false);
    qsf_build_with_param(b, QSF_OP_GAIN, "attn_q_norm",
                         qsf_build_param_nd(b, QSF_REQUIRED, ne, 2, "attn_q_norm.weight"), x->q);
}

static void attention(const QsfDenseModel *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice branch = qsf_build_branch(b);
    const QsfBlockSizes *n = &m->hp->block[i];
    const QsfQkv x = qsf_build_qkv(b, n, branch);
    qsf_dense_rotate(m, i, &x);
    norm_heads(b, n, &x);
    const QsfAttentionSpec attn = qsf_dense_attention_spec(m, i, &x);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", qsf_build_attention(b, &attn), branch);
}

/* x += embedding * layer_output_scale */
static void add_embedding(QsfBuilder *b, QsfSlice embedding) {
    const QsfSlice branch = qsf_build_branch(b);
    (void)qsf_build_step(b, QSF_OP_COPY, "embedding", embedding, branch);
    qsf_build_with_param(b, QSF_OP_GAIN, "layer_output_scale",
                         qsf_build_param(b, QSF_REQUIRED, 1, "layer_output_scale.weight"), branch);
    qsf_build_add(b, "embedding", branch, qsf_build_x(b));
}

static void block(const QsfDenseModel *m, uint32_t i, QsfSlice embedding) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    qsf_build_block(b, i);
    qsf_build_norm(b, QSF_NORM_RMS, NULL, x, branch);
    attention(m, i);
    qsf_build_add(b, "residual", branch, x);
    qsf_build_norm(b, QSF_NORM_RMS, NULL, x, branch);
    qsf_dense_ffn(m, branch, branch);
    qsf_build_add(b, "residual", branch, x);
    add_embedding(b, embedding);
}

void qsf_family_talkie(QsfBuilder *b) {
    QsfDenseModel m;
    qsf_dense_init(&m, b);
    qsf_dense_read(&m);
    qsf_dense_embed(&m);
    const QsfSlice embedding = qsf_build_buffer(b, m.hp->hidden);
    (void)qsf_build_step(b, QSF_OP_COPY, "embedding", qsf_build_x(b), embedding);
    for (uint32_t i = 0; i < m.hp->n_layers && !qsf_build_failed(b); i++) block(&m, i, embedding);
    qsf_dense_head(&m);
}
