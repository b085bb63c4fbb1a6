/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transformers whose blocks are attention and a feed-forward network, each with its norm and its residual. */
#include <math.h>

#include "src/model/family/families.h"
#include "src/model/rope.h"

typedef struct Dense {
    QsfBuilder *b;
    const QsfDense *d;
    const QsfHparams *hp;
    uint32_t rope; /* table */
} Dense;

static void attention(const Dense *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const uint32_t dim = m->hp->head_dim, v_dim = m->hp->v_dim;
    const QsfSlice x = qsf_build_branch(b), q = qsf_build_buffer(b, n->heads * dim),
                   k = qsf_build_buffer(b, n->kv_heads * dim), v = qsf_build_buffer(b, n->kv_heads * v_dim);
    const QsfMatrixSpec qkv[] = { { "attn_q", q, QSF_REQUIRED },
                                  { "attn_k", k, QSF_REQUIRED },
                                  { "attn_v", v, QSF_REQUIRED } };
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, x, qkv, 3, QSF_ACT_NONE);
    qsf_build_rope(b, m->rope, q, n->heads, dim, 0);
    qsf_build_rope(b, m->rope, k, n->kv_heads, dim, 0);
    const QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, 1.0f / sqrtf((float)dim)),
                                    .kv_heads = n->kv_heads,
                                    .k_dim = dim,
                                    .v_dim = v_dim,
                                    .q = q,
                                    .k = k,
                                    .v = v };
    const QsfSlice y = qsf_build_attention(b, &attn);
    const QsfMatrixSpec o = { "attn_output", x, QSF_REQUIRED };
    qsf_build_linear(b, QSF_MATMUL_ATTN_OUT, y, &o, 1, QSF_ACT_NONE);
}

static void feed_forward(const Dense *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const uint32_t ffn = m->hp->block[block].ffn;
    const QsfSlice x = qsf_build_branch(b), gate = qsf_build_buffer(b, ffn);
    const QsfSlice up = m->d->gated ? qsf_build_buffer(b, ffn) : gate;
    const QsfMatrixSpec in[] = { { "ffn_gate", gate, QSF_REQUIRED }, { "ffn_up", up, QSF_REQUIRED } };
    const QsfMatrixSpec out = { "ffn_down", x, QSF_REQUIRED };
    qsf_build_linear(b, QSF_MATMUL_FFN_IN, x, m->d->gated ? in : in + 1, m->d->gated ? 2 : 1, m->d->act);
    qsf_build_linear(b, QSF_MATMUL_FFN_OUT, gate, &out, 1, QSF_ACT_NONE);
}

void qsf_family_dense(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    Dense m = { b, hp->arch->traits, hp, QSF_NONE };
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    qsf_build_embed(b);
    m.rope = qsf_rope_table(b, &(QsfRopeSpec){ .kind = m.d->rope,
                                               .head_dim = hp->head_dim,
                                               .base_key = "rope.freq_base",
                                               .base = 10000.0f });
    for (uint32_t i = 0; i < hp->n_layers && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        qsf_build_norm(b, hp->arch->norm, "attn_norm", x, branch);
        attention(&m, i);
        qsf_build_add(b, "attn_residual", branch, x);
        qsf_build_norm(b, hp->arch->norm, "ffn_norm", x, branch);
        feed_forward(&m, i);
        qsf_build_add(b, "ffn_residual", branch, x);
    }
    qsf_build_head(b, hp->arch->norm, "output_norm");
}
