/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Grok-1: scales with keys of their own, and another name of the norm after attention. The numbers are for
 * files without the keys. Facts: ggml-org/llama.cpp src/models. */
#include "src/model/family/dense.h"

static void read_scales(QsfDenseModel *m) {
    QsfBuilder *b = m->b;
    m->embed_scale = qsf_build_f32(b, "embedding_scale", 78.38367176906169f, 1e-6f, 1e6f);
    m->logit_scale = qsf_build_f32(b, "logit_scale", 0.5773502691896257f, -1e6f, 1e6f);
    m->score_scale = qsf_build_f32(b, "attention.output_scale", 0.08838834764831845f, 1e-6f, 1e6f);
    m->score_cap = qsf_build_f32(b, "attn_logit_softcapping", 30, 0, 1e6f);
    m->logit_cap = qsf_build_f32(b, "final_logit_softcapping", 0, 0, 1e6f);
}

static void block(const QsfDenseModel *m, uint32_t i) {
    const QsfSlice x = qsf_build_x(m->b), branch = qsf_build_branch(m->b);
    qsf_build_block(m->b, i);
    qsf_dense_norm(m, "attn_norm", x, branch);
    qsf_dense_attention(m, i, branch, branch);
    qsf_dense_add(m, "attn_output_norm", branch);
    qsf_dense_norm(m, "ffn_norm", x, branch);
    qsf_dense_ffn(m, branch, branch);
    qsf_dense_add(m, "post_ffw_norm", branch);
}

void qsf_family_grok(QsfBuilder *b) {
    QsfDenseModel m;
    qsf_dense_init(&m, b);
    read_scales(&m);
    qsf_dense_read(&m);
    qsf_dense_embed(&m);
    for (uint32_t i = 0; i < m.hp->n_layers && !qsf_build_failed(b); i++) block(&m, i);
    qsf_dense_head(&m);
}
