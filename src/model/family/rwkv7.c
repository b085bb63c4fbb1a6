/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time mix of RWKV-7: linear attention over mixes of each position with the one before it. Numbers
 * without a key are those of BlinkDL/RWKV-LM. */
#include "src/model/family/rwkv.h"

#define KEY_NORM_EPS    1e-12f
#define MAX_LOG_DECAY   (-0.606531f) /* -exp(-0.5) */
#define LERPS_NO_GATE   5u
#define LERPS_WITH_GATE 6u

/* Order of the mixes in time_mix_lerp_fused. */
enum { MIX_R, MIX_W, MIX_K, MIX_V, MIX_A, MIX_G };

void qsf_rwkv7_read(QsfRwkvModel *m) {
    QsfBuilder *b = m->b;
    const uint32_t max = QSF_RWKV_MAX_RANK;
    m->decay_rank = qsf_build_need_u32(b, "attention.decay_lora_rank", 1, max);
    m->iclr_rank = qsf_build_need_u32(b, "attention.iclr_lora_rank", 1, max);
    m->value_rank = qsf_build_need_u32(b, "attention.value_residual_mix_lora_rank", 1, max);
    m->gate_rank = qsf_build_u32(b, "attention.gate_lora_rank", 1, m->t->optional_gate ? 0 : 1, max);
}

static void mix(const QsfRwkvModel *m, unsigned i) {
    qsf_rwkv_lerp(m, "time_mix_lerp", qsf_build_branch(m->b), m->prev, m->lerps, i * m->hp->hidden, m->mix);
}

static void values(const QsfRwkvModel *m, uint32_t block) {
    const QsfSlice v = block == 0 ? m->v0 : m->v, out = qsf_rwkv_slot(m, QSF_WKV_V);
    mix(m, MIX_V);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_IN, "time_mix_value", m->mix, v);
    if (block == 0) {
        (void)qsf_build_step(m->b, QSF_OP_COPY, "values", v, out);
        return;
    }
    qsf_rwkv_low_rank(m, "time_mix_v1", "time_mix_v2", m->value_rank, QSF_ACT_NONE, m->mix, out);
    qsf_rwkv_with_param(m, QSF_OP_BIAS, "time_mix_v0", out);
    qsf_build_act(m->b, "value_gate", QSF_ACT_SIGMOID, qsf_slice_none(), out);
    qsf_rwkv_lerp(m, "values", v, m->v0, QSF_NONE, 0, out);
}

static void decays(const QsfRwkvModel *m) {
    const QsfSlice w = qsf_rwkv_slot(m, QSF_WKV_W);
    mix(m, MIX_W);
    qsf_rwkv_low_rank(m, "time_mix_w1", "time_mix_w2", m->decay_rank, QSF_ACT_TANH, m->mix, w);
    qsf_rwkv_with_param(m, QSF_OP_BIAS, "time_mix_w0", w);
    qsf_build_act(m->b, "decay", QSF_ACT_SIGMOID, qsf_slice_none(), w);
    qsf_build_scale(m->b, "decay", w, MAX_LOG_DECAY);
    qsf_build_act(m->b, "decay", QSF_ACT_EXP, qsf_slice_none(), w);
}

/* A = keys * k_k, normalized; B = A * rate; K = keys * (1 + (rate - 1) * k_a). */
static void keys(const QsfRwkvModel *m) {
    QsfBuilder *b = m->b;
    const QsfSlice a = qsf_rwkv_slot(m, QSF_WKV_A), rate = qsf_rwkv_slot(m, QSF_WKV_B),
                   k = qsf_rwkv_slot(m, QSF_WKV_K);
    mix(m, MIX_K);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_IN, "time_mix_key", m->mix, m->k);
    mix(m, MIX_A);
    qsf_rwkv_low_rank(m, "time_mix_a1", "time_mix_a2", m->iclr_rank, QSF_ACT_NONE, m->mix, rate);
    qsf_rwkv_with_param(m, QSF_OP_BIAS, "time_mix_a0", rate);
    qsf_build_act(m->b, "rate", QSF_ACT_SIGMOID, qsf_slice_none(), rate);
    (void)qsf_build_step(b, QSF_OP_COPY, "keys", m->k, a);
    qsf_rwkv_with_param(m, QSF_OP_GAIN, "time_mix_k_k", a);
    QsfStep *s = qsf_build_step(b, QSF_OP_NORM, "key_norm", a, a);
    if (s == NULL) return;
    s->u.norm = (QsfNormStep){ QSF_NORM_L2, QSF_NONE, QSF_NONE, m->heads, false, KEY_NORM_EPS };
    if (m->dim > b->p.ones) b->p.ones = (m->dim + 15u) & ~15u;
    (void)qsf_build_step(b, QSF_OP_COPY, "keys", m->k, k);
    (void)qsf_build_step(b, QSF_OP_MUL, "keys", rate, k);
    const uint32_t k_a = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "time_mix_k_a.weight");
    qsf_rwkv_lerp(m, "keys", m->k, k, k_a, 0, k);
    (void)qsf_build_step(b, QSF_OP_MUL, "rate", a, rate);
}

/* Files without a gate may still have its mix. */
static void read_lerps(QsfRwkvModel *m, bool gated) {
    QsfBuilder *b = m->b;
    const QsfTensor *t = qsf_build_peek(b, "time_mix_lerp_fused.weight");
    const bool five = t != NULL && !gated && t->ne[3] == LERPS_NO_GATE;
    const uint64_t ne[4] = { m->hp->hidden, 1, 1, five ? LERPS_NO_GATE : LERPS_WITH_GATE };
    m->lerps = qsf_build_param_nd(b, QSF_REQUIRED, ne, 4, "time_mix_lerp_fused.weight");
}

/* Files without a norm may have one of its tensors, which has no effect then. */
static bool has_norm(const QsfRwkvModel *m) {
    QsfBuilder *b = m->b;
    const bool weight = qsf_build_has(b, "time_mix_ln.weight"), bias = qsf_build_has(b, "time_mix_ln.bias");
    if (!m->t->optional_norm || (weight && bias)) return true;
    (void)qsf_build_maybe(b, "time_mix_ln.weight");
    (void)qsf_build_maybe(b, "time_mix_ln.bias");
    qsf_build_unused(b, "time_mix_ln.weight");
    qsf_build_unused(b, "time_mix_ln.bias");
    return false;
}

void qsf_rwkv7_time_mix(QsfRwkvModel *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const bool gated = !m->t->optional_gate || qsf_build_has(b, "time_mix_g1.weight");
    read_lerps(m, gated);
    qsf_rwkv_shift(m, "token_shift");
    mix(m, MIX_R);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_IN, "time_mix_receptance", m->mix, qsf_rwkv_slot(m, QSF_WKV_R));
    decays(m);
    values(m, block);
    keys(m);
    if (gated) {
        mix(m, MIX_G);
        qsf_rwkv_low_rank(m, "time_mix_g1", "time_mix_g2", m->gate_rank, QSF_ACT_SIGMOID, m->mix, m->gate);
    }
    qsf_rwkv_recurrence(m, QSF_WKV_V7, m->heads);
    if (has_norm(m)) qsf_rwkv_group_norm(m);
    qsf_rwkv_bonus(m, "time_mix_r_k", qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "time_mix_r_k.weight"));
    if (gated) (void)qsf_build_step(b, QSF_OP_MUL, "gate", m->gate, m->y);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_OUT, "time_mix_output", m->y, qsf_build_branch(b));
}
