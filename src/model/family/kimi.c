/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kimi Linear, Kimi K3 and Ling 3: linear attention with a delta rule and a decay per channel, and in
 * blocks with KV heads multi-head latent attention; experts after the leading blocks. Facts:
 * ggml-org/llama.cpp src/models. */
#include <math.h>
#include <stdio.h>

#include "src/model/family/families.h"
#include "src/model/mla.h"
#include "src/model/moe.h"
#include "src/model/rope.h"

typedef struct Kimi {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfKimi *d;
    uint32_t kernel, dim; /* of linear attention */
    float bound;          /* of the logarithm of decays, negative; 0 = none */
    QsfMlaSpec mla;
    QsfActStep act;       /* of feed-forward networks, with constants; kind NONE = SiLU */
    uint32_t latent;      /* elements of the routed experts' input; 0 = as of the block */
    uint32_t bank_period; /* the input of every n-th block is kept; 0 = of none */
    QsfSlice bank;        /* inputs that are kept */
    uint32_t n_banked;
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

/* The factor of each head, one number: some converters store it without a dimension of 1. */
static uint32_t head_factors(QsfBuilder *b, uint32_t heads) {
    const QsfTensor *t = qsf_build_peek(b, "ssm_a");
    const bool flat = t != NULL && t->ne[0] == heads;
    const uint64_t ne[2] = { flat ? heads : 1, flat ? 1 : heads };
    return qsf_build_param_nd(b, QSF_REQUIRED, ne, 2, "ssm_a");
}

/* exp(a * softplus(f + dt)), or with a bound exp(bound * sigmoid(+-a * (f + dt))). */
static void decays(const Kimi *m, uint32_t heads, QsfSlice decay) {
    QsfBuilder *b = m->b;
    qsf_build_with_param(b, QSF_OP_BIAS, "ssm_dt",
                         qsf_build_param(b, QSF_REQUIRED, decay.width, "ssm_dt.bias"), decay);
    const bool bounded = m->bound < 0;
    if (!bounded) qsf_build_act(b, "decay", QSF_ACT_SOFTPLUS, qsf_slice_none(), decay);
    qsf_build_with_param(b, QSF_OP_GAIN, "ssm_a", head_factors(b, heads), decay);
    if (bounded) {
        qsf_build_scale(b, "decay", decay, m->d->negative_factor ? -1.0f : 1.0f);
        qsf_build_act(b, "decay", QSF_ACT_SIGMOID, qsf_slice_none(), decay);
        qsf_build_scale(b, "decay", decay, m->bound);
    }
    qsf_build_act(b, "decay", QSF_ACT_EXP, qsf_slice_none(), decay);
}

/* Projects the input to `out`, directly or through a narrow matrix where the file has `second`. */
static void project(const Kimi *m, const char *first, const char *second, QsfSlice out) {
    QsfBuilder *b = m->b;
    char full[32];
    (void)snprintf(full, sizeof full, "%s.weight", second);
    const bool two = qsf_build_has(b, full);
    const QsfSlice y = two ? qsf_build_buffer(b, m->dim) : out;
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, first, qsf_build_branch(b), y);
    if (two) qsf_build_project(b, QSF_MATMUL_ATTN_IN, second, y, out);
}

static void linear_attention(const Kimi *m, uint32_t heads) {
    QsfBuilder *b = m->b;
    const uint32_t width = heads * m->dim;
    const QsfSlice beta = qsf_build_buffer(b, heads), decay = qsf_build_buffer(b, width),
                   gate = qsf_build_buffer(b, width), y = qsf_build_buffer(b, width);
    const QsfSlice qkv = queries_keys_values(m, heads);
    project(m, "ssm_f_a", "ssm_f_b", decay);
    decays(m, heads, decay);
    project(m, qsf_build_has(b, "ssm_g.weight") ? "ssm_g" : "ssm_g_a", "ssm_g_b", gate);
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, qsf_build_branch(b),
                     &(QsfMatrixSpec){ "ssm_beta", beta, QSF_REQUIRED }, 1, QSF_ACT_SIGMOID);
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

/* ---- residual attention ---- */

/* out = a mix of x and the inputs that are kept; nothing if there are none. */
static void blend(const Kimi *m, const char *name, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b);
    if (m->n_banked == 0) {
        if (m->bank_period > 0) qsf_build_unused(b, name); /* the mix of one */
        return;
    }
    const uint32_t param = qsf_build_param(b, QSF_REQUIRED, x.width, name);
    QsfStep *s = qsf_build_step(b, QSF_OP_BLEND, name, qsf_slice_part(m->bank, 0, m->n_banked * x.width),
                                out);
    if (s == NULL) return;
    s->in2 = x;
    s->u.blend = (QsfBlendStep){ param, m->hp->norm_eps };
}

/* The norm before a branch, of the mix that the branch reads. */
static void branch_norm(const Kimi *m, const char *mix, const char *norm) {
    QsfBuilder *b = m->b;
    const QsfSlice branch = qsf_build_branch(b);
    blend(m, mix, branch);
    qsf_build_norm(b, QSF_NORM_RMS, norm, m->n_banked > 0 ? branch : qsf_build_x(b), branch);
}

/* ---- the model ---- */

/* The routed experts of Kimi K3 work in a smaller space; their sum is normalized. */
static void latent_experts(const Kimi *m, QsfMoeSpec *moe, QsfSlice x) {
    QsfBuilder *b = m->b;
    const QsfSlice in = qsf_build_buffer(b, m->latent), out = qsf_build_buffer(b, m->latent),
                   sum = qsf_build_buffer(b, x.width);
    qsf_build_project(b, QSF_MATMUL_FFN_IN, "ffn_routed_down", x, in);
    moe->router_in = x;
    qsf_build_routed(b, moe, in, out);
    if (qsf_build_maybe(b, "ffn_routed_norm.weight"))
        qsf_build_norm(b, QSF_NORM_RMS, "ffn_routed_norm", out, out);
    qsf_build_project(b, QSF_MATMUL_FFN_OUT, "ffn_routed_up", out, sum);
    if (moe->shared_ffn == 0) {
        (void)qsf_build_step(b, QSF_OP_COPY, "experts_out", sum, x);
        return;
    }
    qsf_build_shared_expert(b, moe, x, x);
    qsf_build_add(b, "shared", sum, x);
}

static void experts(const Kimi *m, QsfSlice x) {
    QsfMoeSpec moe;
    qsf_moe_read(m->b, m->d->moe, &moe);
    if (m->act.kind != QSF_ACT_NONE) moe.routed_act = moe.shared_act = m->act;
    if (m->latent > 0)
        latent_experts(m, &moe, x);
    else
        qsf_build_moe(m->b, &moe, x, x);
}

static void feed_forward(const Kimi *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const uint32_t ffn = m->hp->block[block].ffn;
    const QsfSlice x = qsf_build_branch(b);
    if (qsf_moe_has(b, m->d->moe)) {
        experts(m, x);
        return;
    }
    if (ffn == 0) {
        qsf_build_fail(b, "metadata key '%s' is missing or 0",
                       qsf_keys_name(&b->keys, "feed_forward_length"));
        return;
    }
    QsfFfnSpec f = { .n = ffn, .act = QSF_ACT_SILU, .gated = true, .with = m->act };
    if (m->act.kind == QSF_ACT_NONE) f.with = qsf_moe_dense_act(b, m->d->moe);
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

static void read_mla(Kimi *m) {
    qsf_mla_read(m->b, &m->mla);
    m->mla.gate = m->d->mla_gate;
    m->mla.maybe_gate = m->d->maybe_mla_gate;
    m->mla.table = qsf_rope_table(m->b, &(QsfRopeSpec){ .kind = m->d->rope,
                                                        .head_dim = m->mla.rope,
                                                        .n_rot = m->mla.rope,
                                                        .base_key = "rope.freq_base",
                                                        .base = 10000.0f });
}

static void read_sizes(Kimi *m) {
    QsfBuilder *b = m->b;
    m->kernel = qsf_build_need_u32(b, "ssm.conv_kernel", 2, QSF_CONV_MAX);
    m->dim = qsf_build_need_u32(b, "kda.head_dim", 1, QSF_MAX_HEAD_DIM);
    if ((uint64_t)m->dim * m->hp->n_heads > QSF_MAX_HIDDEN)
        qsf_build_fail(b, "metadata key '%s' is %u, too large for %u heads",
                       qsf_keys_name(&b->keys, "kda.head_dim"), m->dim, m->hp->n_heads);
    for (uint32_t i = b->first; i < b->p.n_blocks; i++)
        if (m->hp->block[i].kv_heads > 0) {
            read_mla(m);
            return;
        }
}

static void read_bound(Kimi *m) {
    QsfBuilder *b = m->b;
    if (m->d->bound == QSF_KIMI_NO_BOUND || qsf_build_failed(b)) return;
    if (qsf_keys_has(&b->keys, "kda.gate_lower_bound"))
        m->bound = qsf_build_f32(b, "kda.gate_lower_bound", 0, -1e6f, -1e-6f);
    else if (m->d->bound == QSF_KIMI_BOUND)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "is missing"));
    if (!qsf_build_bool(b, "kda.safe_gate", true))
        qsf_build_check(b, qsf_keys_bad(&b->keys, "is false, which is not supported"));
}

/* Kimi K3: the activation, the space of the experts and the residual attention. */
static void read_k3(Kimi *m) {
    QsfBuilder *b = m->b;
    if (!m->d->k3) return;
    m->act = (QsfActStep){ .kind = QSF_ACT_SITU,
                           .a = qsf_build_need_f32(b, "activation.situ_beta", 1e-6f, 1e6f),
                           .b = qsf_build_need_f32(b, "activation.situ_linear_beta", 0, 1e6f) };
    m->latent = qsf_build_u32(b, "expert_latent_length", 0, 0, QSF_MAX_HIDDEN);
    m->bank_period = qsf_build_u32(b, "attn_res.block_size", 0, 0, QSF_MAX_LAYERS);
    if (m->bank_period == 0 || qsf_build_failed(b)) return;
    const uint32_t n = (m->hp->n_layers + m->bank_period - 1) / m->bank_period;
    if (n > QSF_MAX_BLEND)
        qsf_build_fail(b, "metadata key '%s' is %u, too small for %u layers", b->keys.key, m->bank_period,
                       m->hp->n_layers);
    else
        m->bank = qsf_build_buffer(b, n * m->hp->hidden);
}

static void block(Kimi *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    const bool keep = m->bank_period > 0 && i % m->bank_period == 0;
    qsf_build_block(b, i);
    branch_norm(m, "attn_res_score.weight", "attn_norm");
    if (keep) {
        (void)qsf_build_step(b, QSF_OP_COPY, "bank", x,
                             qsf_slice_part(m->bank, m->n_banked * x.width, x.width));
        m->n_banked++;
    }
    attention(m, i);
    if (keep) /* the sum starts again */
        (void)qsf_build_step(b, QSF_OP_COPY, "attn_residual", branch, x);
    else
        qsf_build_add(b, "attn_residual", branch, x);
    branch_norm(m, "ffn_res_score.weight", "ffn_norm");
    feed_forward(m, i);
    qsf_build_add(b, "ffn_residual", branch, x);
}

void qsf_family_kimi(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    Kimi m = { .b = b, .hp = hp, .d = hp->arch->traits };
    read_sizes(&m);
    read_bound(&m);
    read_k3(&m);
    qsf_build_embed(b);
    for (uint32_t i = qsf_build_blocks(b); i < b->p.n_blocks && !qsf_build_failed(b); i++) block(&m, i);
    qsf_build_no_block(b);
    blend(&m, "output_res_score.weight", qsf_build_x(b));
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
}
