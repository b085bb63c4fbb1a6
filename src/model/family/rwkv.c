/* SPDX-License-Identifier: GPL-3.0-or-later */
/* RWKV: linear attention over mixes of each position with the one before it, and a channel mix or a
 * feed-forward network. Numbers without a key are those of BlinkDL/RWKV-LM. */
#include "src/model/family/rwkv.h"

#include <stdio.h>

#define GROUP_NORM_EPS 64e-5f

QsfSlice qsf_rwkv_slot(const QsfRwkvModel *m, unsigned i) {
    return qsf_slice_part(m->in, i * m->slot, m->hp->hidden);
}

/* ---- steps ---- */

void qsf_rwkv_lerp(const QsfRwkvModel *m, const char *label, QsfSlice in, QsfSlice in2, uint32_t param,
                   uint32_t off, QsfSlice out) {
    QsfStep *s = qsf_build_step(m->b, QSF_OP_LERP, label, in, out);
    if (s == NULL) return;
    s->in2 = in2;
    s->u.lerp = (QsfLerpStep){ param, off };
}

void qsf_rwkv_with_param(const QsfRwkvModel *m, QsfOp op, const char *name, QsfSlice out) {
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    const uint32_t param = qsf_build_param(m->b, QSF_REQUIRED, out.width, full);
    qsf_build_with_param(m->b, op, name, param, out);
}

void qsf_rwkv_low_rank(const QsfRwkvModel *m, const char *first, const char *second, uint32_t rank,
                       QsfActKind kind, QsfSlice in, QsfSlice out) {
    const QsfSlice low = qsf_build_buffer(m->b, rank);
    qsf_build_linear(m->b, QSF_MATMUL_ATTN_IN, in, &(QsfMatrixSpec){ first, low, QSF_REQUIRED }, 1, kind);
    qsf_build_project(m->b, QSF_MATMUL_ATTN_IN, second, low, out);
}

void qsf_rwkv_shift(const QsfRwkvModel *m, const char *label) {
    const uint32_t state = qsf_build_state(m->b, m->hp->hidden);
    QsfStep *s = qsf_build_step(m->b, QSF_OP_SHIFT, label, qsf_build_branch(m->b), m->prev);
    if (s != NULL) s->u.state = state;
}

void qsf_rwkv_group_norm(const QsfRwkvModel *m) {
    QsfBuilder *b = m->b;
    const uint32_t w = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "time_mix_ln.weight"),
                   bias = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "time_mix_ln.bias");
    QsfStep *s = qsf_build_step(b, QSF_OP_NORM, "time_mix_ln", m->y, m->y);
    if (s != NULL) s->u.norm = (QsfNormStep){ QSF_NORM_LAYER, w, bias, m->heads, true, GROUP_NORM_EPS };
}

static QsfWkvStep wkv_step(const QsfRwkvModel *m, QsfWkvKind kind, uint32_t kv_heads) {
    return (
        QsfWkvStep){ .kind = kind, .heads = m->heads, .kv_heads = kv_heads, .dim = m->dim, .slot = m->slot };
}

void qsf_rwkv_recurrence(const QsfRwkvModel *m, QsfWkvKind kind, uint32_t kv_heads) {
    QsfWkvStep wkv = wkv_step(m, kind, kv_heads);
    wkv.state = qsf_build_state(m->b, qsf_matrix_state_floats(m->heads, m->dim, m->dim));
    QsfStep *s = qsf_build_step(m->b, QSF_OP_WKV, "wkv", m->in, m->y);
    if (s != NULL) s->u.wkv = wkv;
}

void qsf_rwkv_bonus(const QsfRwkvModel *m, const char *label, uint32_t param) {
    QsfWkvStep wkv = wkv_step(m, QSF_WKV_V7, m->heads);
    wkv.param = param;
    QsfStep *s = qsf_build_step(m->b, QSF_OP_WKV_BONUS, label, m->in, m->y);
    if (s != NULL) s->u.wkv = wkv;
}

/* ---- the rest of a block ---- */

static void channel_mix(const QsfRwkvModel *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_branch(b), k = qsf_build_buffer(b, m->hp->block[block].ffn);
    qsf_build_norm(b, m->hp->norm, "attn_norm_2", qsf_build_x(b), x);
    qsf_rwkv_shift(m, "channel_shift");
    const uint32_t w = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "channel_mix_lerp_k.weight");
    const QsfSlice mix = qsf_slice_part(m->mix, 0, m->hp->hidden);
    if (m->t->receptance) {
        const uint32_t wr = qsf_build_param(b, QSF_REQUIRED, m->hp->hidden, "channel_mix_lerp_r.weight");
        qsf_rwkv_lerp(m, "channel_mix_lerp_r", x, m->prev, wr, 0, mix);
        qsf_build_linear(b, QSF_MATMUL_FFN_IN, mix,
                         &(QsfMatrixSpec){ "channel_mix_receptance", m->gate, QSF_REQUIRED }, 1,
                         QSF_ACT_SIGMOID);
    }
    qsf_rwkv_lerp(m, "channel_mix_lerp_k", x, m->prev, w, 0, mix);
    qsf_build_linear(b, QSF_MATMUL_FFN_IN, mix, &(QsfMatrixSpec){ "channel_mix_key", k, QSF_REQUIRED }, 1,
                     QSF_ACT_RELU2);
    qsf_build_project(m->b, QSF_MATMUL_FFN_OUT, "channel_mix_value", k, x);
    if (m->t->receptance) (void)qsf_build_step(b, QSF_OP_MUL, "receptance", m->gate, x);
}

static void feed_forward(const QsfRwkvModel *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_branch(b);
    const QsfFfnSpec f = { .n = m->hp->block[block].ffn, .act = QSF_ACT_SILU, .gated = true };
    qsf_build_norm(b, m->hp->norm, "ffn_norm", qsf_build_x(b), x);
    qsf_build_ffn(b, &f, x, x);
}

/* ---- the model ---- */

static void read_sizes(QsfRwkvModel *m) {
    QsfBuilder *b = m->b;
    const uint32_t hidden = m->hp->hidden;
    b->keys.bound = "embedding_length";
    m->dim = qsf_build_need_u32(b, "wkv.head_size", 1, hidden);
    if (hidden % m->dim != 0)
        qsf_build_fail(b, "metadata key '%s' is %u, which does not divide embedding_length, %u",
                       qsf_keys_name(&b->keys, "wkv.head_size"), m->dim, hidden);
    m->heads = hidden / m->dim;
    m->slot = (hidden + 15u) & ~15u;
    if (m->t->version == 6)
        qsf_rwkv6_read(m);
    else
        qsf_rwkv7_read(m);
    const uint32_t shifts = m->t->channel_mix ? 2 : 1;
    (void)qsf_build_u32(b, "token_shift_count", shifts, shifts, shifts);
}

static void make_buffers(QsfRwkvModel *m) {
    const uint32_t n = m->hp->hidden;
    m->in = qsf_build_buffer(m->b, QSF_WKV_SLOTS * m->slot);
    m->mix = qsf_build_buffer(m->b, m->t->version == 6 ? QSF_RWKV6_MIXES * n : n);
    QsfSlice *const all[] = { &m->prev, &m->v0, &m->k, &m->v, &m->y, &m->gate };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = qsf_build_buffer(m->b, n);
}

void qsf_family_rwkv(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    QsfRwkvModel m = { .b = b, .hp = hp, .t = hp->arch->traits };
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    read_sizes(&m);
    if (qsf_build_failed(b)) return;
    const uint32_t rescale = m.t->version == 6
                                 ? qsf_build_u32(b, "rescale_every_n_layers", 0, 0, QSF_MAX_LAYERS)
                                 : 0;
    qsf_build_embed(b);
    make_buffers(&m);
    if (m.t->channel_mix) qsf_build_norm(b, hp->norm, "token_embd_norm", x, x);
    /* Defines the values of block 0 for passes that skip it. */
    if (m.t->version == 7) (void)qsf_build_step(b, QSF_OP_COPY, "values", x, m.v0);
    for (uint32_t i = 0; i < hp->n_layers && !qsf_build_failed(b); i++) {
        qsf_build_block(b, i);
        qsf_build_norm(b, hp->norm, "attn_norm", x, branch);
        if (m.t->version == 6)
            qsf_rwkv6_time_mix(&m, i);
        else
            qsf_rwkv7_time_mix(&m, i);
        qsf_build_add(b, "attn_residual", branch, x);
        if (m.t->channel_mix)
            channel_mix(&m, i);
        else
            feed_forward(&m, i);
        qsf_build_add(b, "ffn_residual", branch, x);
        if (rescale > 0 && (i + 1) % rescale == 0) qsf_build_scale(b, "rescale", x, 0.5f);
    }
    qsf_build_head(b, hp->norm, "output_norm");
}
