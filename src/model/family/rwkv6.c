/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time mix of RWKV-6 (Peng et al. 2024), whose mixes depend on the position, and its form in models made
 * from Qwen 2, which have no bonus and no norm but grouped keys and values. Names: ggml-org/llama.cpp. */
#include <math.h>

#include "src/model/family/rwkv.h"

/* Order of the mixes. */
enum { MIX_W, MIX_K, MIX_V, MIX_R, MIX_G };

void qsf_rwkv6_read(QsfRwkvModel *m) {
    m->mix_rank = qsf_build_need_u32(m->b, "time_mix_extra_dim", 1, QSF_RWKV_MAX_RANK / QSF_RWKV6_MIXES);
    m->decay_rank = qsf_build_need_u32(m->b, "time_decay_extra_dim", 1, QSF_RWKV_MAX_RANK);
}

static QsfSlice part(const QsfRwkvModel *m, unsigned i) {
    return qsf_slice_part(m->mix, i * m->hp->hidden, m->hp->hidden);
}

/* Adds the constant parts of the mixes: one tensor, or five in older files. */
static void add_constants(const QsfRwkvModel *m) {
    static const char *const names[] = { "time_mix_lerp_w", "time_mix_lerp_k", "time_mix_lerp_v",
                                         "time_mix_lerp_r", "time_mix_lerp_g" };
    const uint64_t ne[4] = { m->hp->hidden, 1, 1, QSF_RWKV6_MIXES };
    if (qsf_build_has(m->b, names[0]) || qsf_build_has(m->b, "time_mix_lerp_w.weight")) {
        for (unsigned i = 0; i < QSF_RWKV6_MIXES; i++)
            qsf_rwkv_with_param(m, QSF_OP_BIAS, names[i], part(m, i));
        return;
    }
    const uint32_t all = qsf_build_param_nd(m->b, QSF_REQUIRED, ne, 4, "time_mix_lerp_fused.weight");
    qsf_build_with_param(m->b, QSF_OP_BIAS, "time_mix_lerp", all, m->mix);
}

/* The five mixes of a position x and the one before it: x + (prev - x) * (constant + low rank
 * of a first mix). */
static void make_mixes(const QsfRwkvModel *m) {
    QsfBuilder *b = m->b;
    const uint32_t n = m->hp->hidden, rank = m->mix_rank;
    const QsfSlice x = qsf_build_branch(b), low = qsf_build_buffer(b, QSF_RWKV6_MIXES * rank);
    const uint32_t first = qsf_build_param(b, QSF_REQUIRED, n, "time_mix_lerp_x.weight");
    qsf_rwkv_lerp(m, "time_mix_lerp_x", x, m->prev, first, 0, m->y);
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, m->y, &(QsfMatrixSpec){ "time_mix_w1", low, QSF_REQUIRED }, 1,
                     QSF_ACT_TANH);
    qsf_build_head_linear(b, QSF_MATMUL_ATTN_IN, "time_mix_w2", QSF_RWKV6_MIXES, rank, n, low, rank, m->mix,
                          n);
    add_constants(m);
    for (unsigned i = 0; i < QSF_RWKV6_MIXES; i++)
        qsf_rwkv_lerp(m, "time_mix_lerp", x, m->prev, QSF_NONE, 0, part(m, i));
}

/* exp(-exp(decay + low rank)) */
static void decays(const QsfRwkvModel *m) {
    const QsfSlice w = qsf_rwkv_slot(m, QSF_WKV_W);
    qsf_rwkv_low_rank(m, "time_mix_decay_w1", "time_mix_decay_w2", m->decay_rank, QSF_ACT_TANH,
                      part(m, MIX_W), w);
    qsf_rwkv_with_param(m, QSF_OP_BIAS, "time_mix_decay", w);
    qsf_build_act(m->b, "decay", QSF_ACT_EXP, qsf_slice_none(), w);
    qsf_build_scale(m->b, "decay", w, -1);
    qsf_build_act(m->b, "decay", QSF_ACT_EXP, qsf_slice_none(), w);
}

/* Returns the number of K and V heads; one per head where the file names none. */
static uint32_t kv_heads(const QsfRwkvModel *m, uint32_t block) {
    const uint32_t n = m->hp->block[block].kv_heads;
    if (n == 0) return m->heads;
    if (m->heads % n == 0) return n;
    (void)qsf_keys_name(&m->b->keys, "attention.head_count_kv");
    qsf_build_fail(m->b, "metadata key '%s' is %u, which does not divide the %u heads of wkv.head_size",
                   m->b->keys.key, n, m->heads);
    return m->heads;
}

static void project(const QsfRwkvModel *m, uint32_t kv) {
    QsfBuilder *b = m->b;
    const uint32_t width = kv * m->dim;
    const QsfSlice k = qsf_slice_part(qsf_rwkv_slot(m, QSF_WKV_K), 0, width),
                   v = qsf_slice_part(qsf_rwkv_slot(m, QSF_WKV_V), 0, width);
    decays(m);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "time_mix_key", part(m, MIX_K), k);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "time_mix_value", part(m, MIX_V), v);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "time_mix_receptance", part(m, MIX_R),
                      qsf_rwkv_slot(m, QSF_WKV_R));
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, part(m, MIX_G),
                     &(QsfMatrixSpec){ "time_mix_gate", m->gate, QSF_REQUIRED }, 1,
                     m->t->channel_mix ? QSF_ACT_SILU : QSF_ACT_SIGMOID);
}

void qsf_rwkv6_time_mix(QsfRwkvModel *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const uint64_t ne[2] = { m->dim, m->heads };
    const uint32_t kv = kv_heads(m, block);
    if (qsf_build_failed(b)) return;
    qsf_rwkv_shift(m, "token_shift");
    make_mixes(m);
    project(m, kv);
    if (m->t->channel_mix) {
        qsf_rwkv_recurrence(m, QSF_WKV_V6, kv);
        qsf_rwkv_bonus(m, "time_mix_first",
                       qsf_build_param_nd(b, QSF_REQUIRED, ne, 2, "time_mix_first.weight"));
        qsf_rwkv_group_norm(m);
    } else {
        qsf_rwkv_recurrence(m, QSF_WKV_GLA, kv);
        qsf_build_scale(b, "wkv_scale", m->y, 1.0f / sqrtf((float)m->dim));
    }
    (void)qsf_build_step(b, QSF_OP_MUL, "gate", m->gate, m->y);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "time_mix_output", m->y, qsf_build_branch(b));
}
