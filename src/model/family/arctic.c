/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Snowflake Arctic: after attention and a small feed-forward network, each block adds experts that read its
 * input. Facts: ggml-org/llama.cpp src/models. */
#include "src/model/family/dense.h"

static void block(const QsfDenseModel *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    const QsfSlice in = qsf_build_buffer(b, m->hp->hidden); /* of the experts */
    qsf_build_block(b, i);
    qsf_dense_norm(m, "ffn_norm_exps", x, in);
    qsf_dense_norm(m, "attn_norm", x, branch);
    qsf_dense_attention(m, i, branch, branch);
    qsf_build_add(b, "residual", branch, x);
    qsf_dense_norm(m, "ffn_norm", x, branch);
    qsf_dense_mlp(m, m->hp->hidden, branch, branch);
    qsf_build_add(b, "residual", branch, x);
    qsf_dense_experts(m, in, branch);
    qsf_build_add(b, "residual", branch, x);
}

void qsf_family_arctic(QsfBuilder *b) {
    QsfDenseModel m;
    qsf_dense_init(&m, b);
    qsf_dense_read(&m);
    qsf_dense_embed(&m);
    for (uint32_t i = 0; i < m.hp->n_layers && !qsf_build_failed(b); i++) block(&m, i);
    qsf_dense_head(&m);
}
