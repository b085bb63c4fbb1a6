/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mamba, Mamba-2, and families that mix their blocks or LFM2's short convolutions with attention. Facts about
 * the families: ggml-org/llama.cpp src/models. */

#include <math.h>

#include "src/model/family/families.h"
#include "src/model/family/mamba.h"
#include "src/model/moe.h"
#include "src/model/rope.h"

typedef struct Hybrid {
    QsfBuilder *b;
    const QsfHybrid *d;
    const QsfHparams *hp;
    uint32_t rope; /* table */
    QsfSsm ssm;
    uint32_t short_kernel;
    uint32_t window;
    float attn_scale, residual_scale, logit_scale;
} Hybrid;

/* ---- mixers ---- */

/* in_proj gives b, c and x; the block's output is out_proj(c * conv(b * x)). */
static void short_conv(const Hybrid *m, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const uint32_t n = m->hp->hidden;
    const QsfSlice bcx = qsf_build_buffer(b, 3 * n);
    const QsfSlice gate = qsf_slice_part(bcx, 0, n), c = qsf_slice_part(bcx, n, n),
                   x = qsf_slice_part(bcx, 2 * n, n);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "shortconv.in_proj", in, bcx);
    (void)qsf_build_step(b, QSF_OP_MUL, "shortconv.gate", gate, x);
    qsf_build_conv(b, "shortconv.conv", x, x, m->short_kernel, QSF_ACT_NONE);
    (void)qsf_build_step(b, QSF_OP_MUL, "shortconv.gate", x, c);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "shortconv.out_proj", c, out);
}

static void mixer(const Hybrid *m, QsfSlice in, QsfSlice out) {
    const QsfSsmNeeds needs = { m->d->conv_bias, m->d->mixer_norm };
    if (m->d->mixer == QSF_MIXER_MAMBA1)
        qsf_build_mamba1(m->b, &m->ssm, in, out);
    else if (m->d->mixer == QSF_MIXER_MAMBA2)
        qsf_build_mamba2(m->b, &m->ssm, &needs, in, out);
    else
        short_conv(m, in, out);
}

/* ---- attention ---- */

static void attention(const Hybrid *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const uint32_t dim = m->hp->head_dim, v_dim = m->hp->v_dim;
    const QsfQkv x = qsf_build_qkv(b, n, in);
    if (m->d->qk_norm) {
        qsf_build_head_norm(b, QSF_NORM_RMS, "attn_q_norm", x.q, n->heads, false);
        qsf_build_head_norm(b, QSF_NORM_RMS, "attn_k_norm", x.k, n->kv_heads, false);
    }
    qsf_build_rope(b, m->rope, x.q, n->heads, dim, 0);
    qsf_build_rope(b, m->rope, x.k, n->kv_heads, dim, 0);
    QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, m->attn_scale),
                              .kv_heads = n->kv_heads,
                              .k_dim = dim,
                              .v_dim = v_dim,
                              .q = x.q,
                              .k = x.k,
                              .v = x.v };
    attn.step.window = m->window;
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", qsf_build_attention(b, &attn), out);
}

/* ---- blocks ---- */

/* Returns whether the current block has one of the projections; without it, the space must be
 * the block's own. */
static bool has_projection(QsfBuilder *b, const char *name, uint32_t latent, uint32_t hidden) {
    if (latent != hidden) qsf_build_require(b, name);
    return qsf_build_maybe(b, name);
}

/* The routed experts of Nemotron-H work in a smaller space where the file has its projections. */
static void experts(const Hybrid *m, QsfSlice x) {
    QsfBuilder *b = m->b;
    QsfMoeSpec spec;
    qsf_moe_read(b, m->d->moe, &spec);
    const uint32_t hidden = m->hp->hidden, size = qsf_build_u32(b, "moe_latent_size", 0, 0, QSF_MAX_HIDDEN),
                   latent = size > 0 ? size : hidden;
    const bool down = has_projection(b, "ffn_latent_down.weight", latent, hidden),
               up = has_projection(b, "ffn_latent_up.weight", latent, hidden);
    if (!down && !up) {
        qsf_build_moe(b, &spec, x, x);
        return;
    }
    const QsfSlice in = down ? qsf_build_buffer(b, latent) : x, out = qsf_build_buffer(b, latent),
                   sum = up ? qsf_build_buffer(b, hidden) : out;
    if (down) qsf_build_project(b, QSF_MATMUL_FFN_IN, "ffn_latent_down", x, in);
    spec.router_in = x;
    qsf_build_routed(b, &spec, in, out);
    if (up) qsf_build_project(b, QSF_MATMUL_FFN_OUT, "ffn_latent_up", out, sum);
    if (spec.shared_ffn == 0) {
        (void)qsf_build_step(b, QSF_OP_COPY, "ffn_latent", sum, x);
        return;
    }
    qsf_build_shared_expert(b, &spec, x, x);
    qsf_build_add(b, "ffn_latent", sum, x);
}

static void feed_forward(const Hybrid *m, uint32_t block, QsfSlice x) {
    QsfBuilder *b = m->b;
    if (qsf_moe_has(b, m->d->moe)) {
        experts(m, x);
        return;
    }
    const QsfFfnSpec f = { .n = m->hp->block[block].ffn, .act = m->d->act, .gated = m->d->gated };
    qsf_build_ffn(b, &f, x, x);
}

static void add_branch(const Hybrid *m, const char *label) {
    const QsfSlice branch = qsf_build_branch(m->b);
    qsf_build_scale(m->b, "residual_scale", branch, m->residual_scale);
    qsf_build_add(m->b, label, branch, qsf_build_x(m->b));
}

/* Attention, the mixer, or the sum of both; from the branch buffer to itself. */
static void mix(const Hybrid *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_branch(b);
    if (m->d->parallel) {
        const QsfSlice y = qsf_build_buffer(b, m->hp->hidden);
        attention(m, block, x, y);
        mixer(m, x, x);
        qsf_build_add(b, "mixer_sum", y, x);
    } else if (m->hp->block[block].kv_heads > 0) {
        attention(m, block, x, x);
    } else {
        mixer(m, x, x);
    }
}

static void block(const Hybrid *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const bool has_ffn = m->hp->block[i].ffn > 0;
    qsf_build_block(b, i);
    qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", qsf_build_x(b), qsf_build_branch(b));
    if (!m->d->alone || !has_ffn) {
        mix(m, i);
        add_branch(m, "mixer_residual");
    }
    if (!has_ffn) return;
    if (!m->d->alone) qsf_build_norm(b, QSF_NORM_RMS, "ffn_norm", qsf_build_x(b), qsf_build_branch(b));
    feed_forward(m, i, qsf_build_branch(b));
    add_branch(m, "ffn_residual");
}

/* ---- the model ---- */

/* A key whose value 0 means that it is absent. */
static float scale_key(QsfBuilder *b, const char *name, float absent) {
    const float v = qsf_build_f32(b, name, 0.0f, 0.0f, 1e6f);
    return fpclassify(v) == FP_ZERO ? absent : v;
}

static void read_keys(Hybrid *m) {
    QsfBuilder *b = m->b;
    const QsfHybrid *d = m->d;
    bool rope = d->rope != QSF_ROPE_NONE;
    if (d->mixer == QSF_MIXER_MAMBA1) qsf_ssm_read1(b, &m->ssm);
    if (d->mixer == QSF_MIXER_MAMBA2) qsf_ssm_read2(b, &m->ssm);
    if (d->mixer == QSF_MIXER_SHORT_CONV) {
        m->short_kernel = qsf_build_need_u32(b, "shortconv.l_cache", 2, QSF_CONV_MAX);
        m->window = qsf_build_u32(b, "attention.sliding_window", 0, 0, UINT32_MAX - 1);
    }
    m->attn_scale = m->hp->head_dim > 0 ? 1.0f / sqrtf((float)m->hp->head_dim) : 1.0f;
    m->residual_scale = m->logit_scale = 1.0f;
    if (d->scales) {
        const float embedding = scale_key(b, "embedding_scale", 1.0f);
        m->attn_scale = scale_key(b, "attention.scale", m->attn_scale);
        m->residual_scale = scale_key(b, "residual_scale", 1.0f);
        m->logit_scale = scale_key(b, "logit_scale", 1.0f);
        rope = rope && qsf_build_bool(b, "rope.scaling.finetuned", true);
        qsf_build_scale(b, "embedding_scale", qsf_build_x(b), embedding);
    }
    if (!rope || m->hp->n_heads == 0) return;
    m->rope = qsf_rope_table(b, &(QsfRopeSpec){ .kind = d->rope,
                                                .head_dim = m->hp->head_dim,
                                                .base_key = "rope.freq_base",
                                                .base = 10000.0f });
}

void qsf_family_hybrid(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    Hybrid m = { .b = b, .d = hp->arch->traits, .hp = hp, .rope = QSF_NONE };
    qsf_build_embed(b);
    read_keys(&m);
    for (uint32_t i = 0; i < hp->n_layers && !qsf_build_failed(b); i++) block(&m, i);
    qsf_build_head(b, QSF_NORM_RMS, m.d->out_norm != NULL ? m.d->out_norm : "output_norm");
    qsf_build_scale(b, "logit_scale", qsf_build_logits(b), 1.0f / m.logit_scale);
}
