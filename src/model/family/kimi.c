/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kimi Linear: linear attention with a delta rule and a decay per channel, and in blocks with KV heads multi-head
 * latent attention without rotation; experts after the leading blocks. */
#include <math.h>

#include "src/model/family/families.h"
#include "src/model/mla.h"
#include "src/model/moe.h"

typedef struct Kimi {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfMoeRow *moe;
    uint32_t kernel, dim; /* of linear attention */
    QsfMlaSpec mla;
} Kimi;

/* ---- linear attention ---- */

/* Returns q, k and v, convolved and q and k normalized. */
static QsfSlice queries_keys_values(const Kimi *m, uint32_t heads) {
    QsfBuilder *b = m->b;
    const uint32_t width = heads * m->dim;
    const QsfSlice qkv = qsf_build_buffer(b, 3 * width);
    const QsfMatrixSpec mats[] = { { "attn_q", qsf_build_buffer(b, width), QSF_REQUIRED },
                                   { "attn_k", qsf_build_buffer(b, width), QSF_REQUIRED },
                                   { "attn_v", qsf_build_buffer(b, width), QSF_REQUIRED } };
    static const char *const convs[] = { "ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v" };
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, qsf_build_branch(b), mats, 3, QSF_ACT_NONE);
    for (uint32_t i = 0; i < 3; i++)
        qsf_build_conv(b, convs[i], mats[i].out, qsf_slice_part(qkv, i * width, width), m->kernel,
                       QSF_ACT_SILU);
    qsf_build_head_norm(b, QSF_NORM_L2, NULL, qsf_slice_part(qkv, 0, 2 * width), 2 * heads, false);
    return qkv;
}

static void decays(const Kimi *m, uint32_t heads, QsfSlice low, QsfSlice decay) {
    QsfBuilder *b = m->b;
    const uint64_t ne[2] = { 1, heads };
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_f_b", low, decay);
    qsf_build_with_param(b, QSF_OP_BIAS, "ssm_dt",
                         qsf_build_param(b, QSF_REQUIRED, decay.width, "ssm_dt.bias"), decay);
    qsf_build_act(b, "decay", QSF_ACT_SOFTPLUS, qsf_slice_none(), decay);
    qsf_build_with_param(b, QSF_OP_GAIN, "ssm_a", qsf_build_param_nd(b, QSF_REQUIRED, ne, 2, "ssm_a"), decay);
    qsf_build_act(b, "decay", QSF_ACT_EXP, qsf_slice_none(), decay);
}

static void linear_attention(const Kimi *m, uint32_t heads) {
    QsfBuilder *b = m->b;
    const uint32_t width = heads * m->dim;
    const QsfSlice f = qsf_build_buffer(b, m->dim), g = qsf_build_buffer(b, m->dim),
                   beta = qsf_build_buffer(b, heads), decay = qsf_build_buffer(b, width),
                   gate = qsf_build_buffer(b, width), y = qsf_build_buffer(b, width);
    const QsfMatrixSpec mats[] = { { "ssm_f_a", f, QSF_REQUIRED },
                                   { "ssm_g_a", g, QSF_REQUIRED },
                                   { "ssm_beta", beta, QSF_REQUIRED } };
    const QsfSlice qkv = queries_keys_values(m, heads);
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, qsf_build_branch(b), mats, 3, QSF_ACT_NONE);
    decays(m, heads, f, decay);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_g_b", g, gate);
    qsf_build_act(b, "beta", QSF_ACT_SIGMOID, qsf_slice_none(), beta);
    const uint32_t state = qsf_build_state(b, qsf_matrix_state_floats(heads, m->dim, m->dim));
    QsfStep *s = qsf_build_step(b, QSF_OP_DELTA, "delta", qkv, y);
    if (s == NULL) return;
    s->in2 = decay;
    s->in3 = beta;
    s->u.delta = (QsfDeltaStep){ .state = state,
                                 .k_heads = heads,
                                 .v_heads = heads,
                                 .k_dim = m->dim,
                                 .v_dim = m->dim,
                                 .per_channel = true,
                                 .scale = 1.0f / sqrtf((float)m->dim) };
    qsf_build_head_norm(b, QSF_NORM_RMS, "ssm_norm", y, heads, false);
    qsf_build_act(b, "gate", QSF_ACT_SIGMOID, y, gate);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", gate, qsf_build_branch(b));
}

/* ---- the model ---- */

static void feed_forward(const Kimi *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const uint32_t ffn = m->hp->block[block].ffn;
    const QsfSlice x = qsf_build_branch(b);
    if (qsf_moe_has(b, m->moe)) {
        QsfMoeSpec moe;
        qsf_moe_read(b, m->moe, &moe);
        qsf_build_moe(b, &moe, x, x);
        return;
    }
    if (ffn == 0) {
        qsf_build_fail(b, "metadata key '%s' is missing or 0",
                       qsf_keys_name(&b->keys, "feed_forward_length"));
        return;
    }
    const QsfFfnSpec f = { .n = ffn, .act = QSF_ACT_SILU, .gated = true };
    qsf_build_ffn(b, &f, x, x);
}

static void attention(const Kimi *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    if (n->heads == 0) {
        qsf_build_fail(b, "metadata key '%s' is 0 in layer %u",
                       qsf_keys_name(&b->keys, "attention.head_count"), block);
    } else if (n->kv_heads == 0) {
        linear_attention(m, n->heads);
    } else {
        QsfMlaSpec mla = m->mla;
        mla.heads = n->heads;
        const QsfSlice y = qsf_build_mla(b, &mla, qsf_build_branch(b));
        qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", y, qsf_build_branch(b));
    }
}

static void read_sizes(Kimi *m) {
    QsfBuilder *b = m->b;
    m->kernel = qsf_build_need_u32(b, "ssm.conv_kernel", 2, QSF_CONV_MAX);
    m->dim = qsf_build_need_u32(b, "kda.head_dim", 1, QSF_MAX_HEAD_DIM);
    if ((uint64_t)m->dim * m->hp->n_heads > QSF_MAX_HIDDEN)
        qsf_build_fail(b, "metadata key '%s' is %u, too large for %u heads",
                       qsf_keys_name(&b->keys, "kda.head_dim"), m->dim, m->hp->n_heads);
    for (uint32_t i = 0; i < m->hp->n_layers; i++)
        if (m->hp->block[i].kv_heads > 0) {
            qsf_mla_read(b, &m->mla);
            return;
        }
}

void qsf_family_kimi(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    Kimi m = { .b = b, .hp = hp, .moe = hp->arch->traits };
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    read_sizes(&m);
    qsf_build_embed(b);
    for (uint32_t i = 0; i < hp->n_layers && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", x, branch);
        attention(&m, i);
        qsf_build_add(b, "attn_residual", branch, x);
        qsf_build_norm(b, QSF_NORM_RMS, "ffn_norm", x, branch);
        feed_forward(&m, i);
        qsf_build_add(b, "ffn_residual", branch, x);
    }
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
}
