/* SPDX-License-Identifier: GPL-3.0-or-later */
/* RWKV-7: linear attention over mixes of each position with the one before it, and a channel mix or a feed-forward
 * network. Numbers without a key are those of BlinkDL/RWKV-LM. */
#include <stdio.h>

#include "src/model/family/families.h"

#define MAX_RANK        (1u << 16)
#define GROUP_NORM_EPS  64e-5f
#define KEY_NORM_EPS    1e-12f
#define MAX_LOG_DECAY   (-0.606531f) /* -exp(-0.5) */
#define LERPS_NO_GATE   5u
#define LERPS_WITH_GATE 6u

/* Order of the mixes in time_mix_lerp_fused. */
enum { MIX_R, MIX_W, MIX_K, MIX_V, MIX_A, MIX_G };

typedef struct Rwkv {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfRwkv *t;
    uint32_t dim, heads, slot;
    uint32_t decay_rank, iclr_rank, value_rank, gate_rank;
    uint32_t lerps; /* parameter of the current block */
    QsfSlice in;    /* slots of the WKV step */
    QsfSlice prev;  /* the position before */
    QsfSlice mix;   /* one mix of it and the current position */
    QsfSlice v0;    /* values of block 0 */
    QsfSlice k, v, y, gate;
} Rwkv;

static QsfSlice slot(const Rwkv *m, unsigned i) { return qsf_slice_part(m->in, i * m->slot, m->hp->hidden); }

/* ---- steps ---- */

static void lerp(const Rwkv *m, const char *label, QsfSlice in, QsfSlice in2, uint32_t param, uint32_t off,
                 QsfSlice out) {
    QsfStep *s = qsf_build_step(m->b, QSF_OP_LERP, label, in, out);
    if (s == NULL) return;
    s->in2 = in2;
    s->u.lerp = (QsfLerpStep){ param, off };
}

static void with_param(const Rwkv *m, QsfOp op, const char *name, QsfSlice out) {
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    const uint32_t param = qsf_build_param(m->b, QSF_REQUIRED, out.width, full);
    qsf_build_with_param(m->b, op, name, param, out);
}

/* out = second * act(first * mix) */
static void low_rank(const Rwkv *m, const char *first, const char *second, uint32_t rank, QsfActKind kind,
                     QsfSlice out) {
    const QsfSlice low = qsf_build_buffer(m->b, rank);
    qsf_build_linear(m->b, QSF_MATMUL_ATTN_IN, m->mix, &(QsfMatrixSpec){ first, low, QSF_REQUIRED }, 1, kind);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_IN, second, low, out);
}

static void shift(const Rwkv *m, const char *label) {
    const uint32_t state = qsf_build_state(m->b, m->hp->hidden);
    QsfStep *s = qsf_build_step(m->b, QSF_OP_SHIFT, label, qsf_build_branch(m->b), m->prev);
    if (s != NULL) s->u.state = state;
}

static void mix(const Rwkv *m, unsigned i) {
    lerp(m, "time_mix_lerp", qsf_build_branch(m->b), m->prev, m->lerps, i * m->hp->hidden, m->mix);
}

/* ---- time mix ---- */

static void values(const Rwkv *m, uint32_t block) {
    const QsfSlice v = block == 0 ? m->v0 : m->v, out = slot(m, QSF_WKV_V);
    mix(m, MIX_V);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_IN, "time_mix_value", m->mix, v);
    if (block == 0) {
        (void)qsf_build_step(m->b, QSF_OP_COPY, "values", v, out);
        return;
    }
    low_rank(m, "time_mix_v1", "time_mix_v2", m->value_rank, QSF_ACT_NONE, out);
    with_param(m, QSF_OP_BIAS, "time_mix_v0", out);
    qsf_build_act(m->b, "value_gate", QSF_ACT_SIGMOID, qsf_slice_none(), out);
    lerp(m, "values", v, m->v0, QSF_NONE, 0, out);
}

static void decays(const Rwkv *m) {
    const QsfSlice w = slot(m, QSF_WKV_W);
    mix(m, MIX_W);
    low_rank(m, "time_mix_w1", "time_mix_w2", m->decay_rank, QSF_ACT_TANH, w);
    with_param(m, QSF_OP_BIAS, "time_mix_w0", w);
    qsf_build_act(m->b, "decay", QSF_ACT_SIGMOID, qsf_slice_none(), w);
    qsf_build_scale(m->b, "decay", w, MAX_LOG_DECAY);
    qsf_build_act(m->b, "decay", QSF_ACT_EXP, qsf_slice_none(), w);
}

/* A = keys * k_k, normalized; B = A * rate; K = keys * (1 + (rate - 1) * k_a). */
static void keys(const Rwkv *m) {
    QsfBuilder *b = m->b;
    const QsfSlice a = slot(m, QSF_WKV_A), rate = slot(m, QSF_WKV_B), k = slot(m, QSF_WKV_K);
    mix(m, MIX_K);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_IN, "time_mix_key", m->mix, m->k);
    mix(m, MIX_A);
    low_rank(m, "time_mix_a1", "time_mix_a2", m->iclr_rank, QSF_ACT_NONE, rate);
    with_param(m, QSF_OP_BIAS, "time_mix_a0", rate);
    qsf_build_act(m->b, "rate", QSF_ACT_SIGMOID, qsf_slice_none(), rate);
    (void)qsf_build_step(b, QSF_OP_COPY, "keys", m->k, a);
    with_param(m, QSF_OP_GAIN, "time_mix_k_k", a);
    QsfStep *s = qsf_build_step(b, QSF_OP_NORM, "key_norm", a, a);
    if (s == NULL) return;
    s->u.norm = (QsfNormStep){ QSF_NORM_L2, QSF_NONE, QSF_NONE, m->heads, false, KEY_NORM_EPS };
    if (m->dim > b->p.ones) b->p.ones = (m->dim + 15u) & ~15u;
    (void)qsf_build_step(b, QSF_OP_COPY, "keys", m->k, k);
    (void)qsf_build_step(b, QSF_OP_MUL, "keys", rate, k);
    const uint32_t k_a = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "time_mix_k_a.weight");
    lerp(m, "keys", m->k, k, k_a, 0, k);
    (void)qsf_build_step(b, QSF_OP_MUL, "rate", a, rate);
}

static void group_norm(const Rwkv *m) {
    QsfBuilder *b = m->b;
    if (m->t->optional_norm && !qsf_build_has(b, "time_mix_ln.weight")) return;
    const uint32_t w = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "time_mix_ln.weight"),
                   bias = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "time_mix_ln.bias");
    QsfStep *s = qsf_build_step(b, QSF_OP_NORM, "time_mix_ln", m->y, m->y);
    if (s != NULL) s->u.norm = (QsfNormStep){ QSF_NORM_LAYER, w, bias, m->heads, true, GROUP_NORM_EPS };
}

static void recurrence(const Rwkv *m) {
    QsfBuilder *b = m->b;
    QsfWkvStep wkv = { .kind = QSF_WKV_V7,
                       .heads = m->heads,
                       .kv_heads = m->heads,
                       .dim = m->dim,
                       .slot = m->slot,
                       .state = qsf_build_state(b, qsf_matrix_state_floats(m->heads, m->dim, m->dim)) };
    QsfStep *s = qsf_build_step(b, QSF_OP_WKV, "wkv", m->in, m->y);
    if (s == NULL) return;
    s->u.wkv = wkv;
    group_norm(m);
    wkv.param = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "time_mix_r_k.weight");
    s = qsf_build_step(b, QSF_OP_WKV_BONUS, "time_mix_r_k", m->in, m->y);
    if (s != NULL) s->u.wkv = wkv;
}

/* Files without a gate may still have its mix. */
static void read_lerps(Rwkv *m, bool gated) {
    QsfBuilder *b = m->b;
    const QsfTensor *t = qsf_build_peek(b, "time_mix_lerp_fused.weight");
    const bool five = t != NULL && !gated && t->ne[3] == LERPS_NO_GATE;
    const uint64_t ne[4] = { m->hp->hidden, 1, 1, five ? LERPS_NO_GATE : LERPS_WITH_GATE };
    m->lerps = qsf_build_param_nd(b, QSF_REQUIRED, ne, 4, "time_mix_lerp_fused.weight");
}

static void time_mix(Rwkv *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const bool gated = !m->t->optional_gate || qsf_build_has(b, "time_mix_g1.weight");
    read_lerps(m, gated);
    shift(m, "token_shift");
    mix(m, MIX_R);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_IN, "time_mix_receptance", m->mix, slot(m, QSF_WKV_R));
    decays(m);
    values(m, block);
    keys(m);
    if (gated) {
        mix(m, MIX_G);
        low_rank(m, "time_mix_g1", "time_mix_g2", m->gate_rank, QSF_ACT_SIGMOID, m->gate);
    }
    recurrence(m);
    if (gated) (void)qsf_build_step(b, QSF_OP_MUL, "gate", m->gate, m->y);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_OUT, "time_mix_output", m->y, qsf_build_branch(b));
}

/* ---- the rest of a block ---- */

static void channel_mix(const Rwkv *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_branch(b), k = qsf_build_buffer(b, m->hp->block[block].ffn);
    qsf_build_norm(b, m->hp->arch->norm, "attn_norm_2", qsf_build_x(b), x);
    shift(m, "channel_shift");
    const uint32_t w = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "channel_mix_lerp_k.weight");
    lerp(m, "channel_mix_lerp_k", x, m->prev, w, 0, m->mix);
    qsf_build_linear(b, QSF_MATMUL_FFN_IN, m->mix, &(QsfMatrixSpec){ "channel_mix_key", k, QSF_REQUIRED }, 1,
                     QSF_ACT_RELU2);
    qsf_build_project(m->b, QSF_MATMUL_FFN_OUT, "channel_mix_value", k, x);
}

static void feed_forward(const Rwkv *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_branch(b);
    const QsfFfnSpec f = { .n = m->hp->block[block].ffn, .act = QSF_ACT_SILU, .gated = true };
    qsf_build_norm(b, m->hp->arch->norm, "ffn_norm", qsf_build_x(b), x);
    qsf_build_ffn(b, &f, x, x);
}

/* ---- the model ---- */

static void read_sizes(Rwkv *m) {
    QsfBuilder *b = m->b;
    const uint32_t hidden = m->hp->hidden;
    b->keys.bound = "embedding_length";
    m->dim = qsf_build_need_u32(b, "wkv.head_size", 1, hidden);
    if (hidden % m->dim != 0)
        qsf_build_fail(b, "metadata key '%s' is %u, which does not divide embedding_length, %u",
                       qsf_keys_name(&b->keys, "wkv.head_size"), m->dim, hidden);
    m->heads = hidden / m->dim;
    m->slot = (hidden + 15u) & ~15u;
    m->decay_rank = qsf_build_need_u32(b, "attention.decay_lora_rank", 1, MAX_RANK);
    m->iclr_rank = qsf_build_need_u32(b, "attention.iclr_lora_rank", 1, MAX_RANK);
    m->value_rank = qsf_build_need_u32(b, "attention.value_residual_mix_lora_rank", 1, MAX_RANK);
    m->gate_rank = qsf_build_u32(b, "attention.gate_lora_rank", 1, m->t->optional_gate ? 0 : 1, MAX_RANK);
    const uint32_t shifts = m->t->channel_mix ? 2 : 1;
    (void)qsf_build_u32(b, "token_shift_count", shifts, shifts, shifts);
}

static void make_buffers(Rwkv *m) {
    const uint32_t n = m->hp->hidden;
    m->in = qsf_build_buffer(m->b, QSF_WKV_SLOTS * m->slot);
    QsfSlice *const all[] = { &m->prev, &m->mix, &m->v0, &m->k, &m->v, &m->y, &m->gate };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = qsf_build_buffer(m->b, n);
}

void qsf_family_rwkv(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    Rwkv m = { .b = b, .hp = hp, .t = hp->arch->traits };
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    read_sizes(&m);
    if (qsf_build_failed(b)) return;
    qsf_build_embed(b);
    make_buffers(&m);
    if (m.t->channel_mix) qsf_build_norm(b, hp->arch->norm, "token_embd_norm", x, x);
    /* Defines the values of block 0 for passes that skip it. */
    (void)qsf_build_step(b, QSF_OP_COPY, "values", x, m.v0);
    for (uint32_t i = 0; i < hp->n_layers && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        qsf_build_norm(b, hp->arch->norm, "attn_norm", x, branch);
        time_mix(&m, i);
        qsf_build_add(b, "attn_residual", branch, x);
        if (m.t->channel_mix)
            channel_mix(&m, i);
        else
            feed_forward(&m, i);
        qsf_build_add(b, "ffn_residual", branch, x);
    }
    qsf_build_head(b, hp->arch->norm, "output_norm");
}
