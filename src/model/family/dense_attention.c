/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention of a dense transformer. */
#include "src/model/family/dense.h"

static void clamp(const QsfDenseModel *m, QsfSlice x) {
    QsfStep *s = m->clamp > 0 ? qsf_build_step(m->b, QSF_OP_CLAMP, "clamp", qsf_slice_none(), x) : NULL;
    if (s == NULL) return;
    s->u.clamp.low = -m->clamp;
    s->u.clamp.high = m->clamp;
}

static void qk_norm(const QsfDenseModel *m, const QsfBlockSizes *n, const QsfQkv *x) {
    QsfBuilder *b = m->b;
    const QsfNormKind kind = m->hp->norm;
    const bool own = m->d->qk_norm == QSF_QK_NORM_OPTIONAL, row = m->d->qk_norm == QSF_QK_NORM_ROW;
    const bool optional = own || m->d->qk_norm == QSF_QK_NORM_HEAD_OPTIONAL;
    if (!optional || qsf_build_maybe(b, "attn_q_norm.weight"))
        qsf_build_head_norm(b, kind, "attn_q_norm", x->q, row ? 1 : n->heads, own);
    if (!optional || qsf_build_maybe(b, "attn_k_norm.weight"))
        qsf_build_head_norm(b, kind, "attn_k_norm", x->k, row ? 1 : n->kv_heads, own);
}

/* The factors of attention's output: one for each element, or for each head. */
static QsfSlice output_gate(const QsfDenseModel *m, const QsfBlockSizes *n, QsfSlice in) {
    QsfBuilder *b = m->b;
    if (m->d->gate == QSF_ACT_NONE || (m->d->maybe_gate && !qsf_build_maybe(b, "attn_gate.weight")))
        return qsf_slice_none();
    const bool by_head = qsf_build_rows_of(b, "attn_gate.weight") == n->heads;
    const QsfSlice gate = qsf_build_buffer(b, n->heads * (by_head ? 1 : m->hp->v_dim));
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, &(QsfMatrixSpec){ "attn_gate", gate, QSF_REQUIRED }, 1,
                     m->d->gate);
    return gate;
}

void qsf_dense_rotate(const QsfDenseModel *m, uint32_t block, const QsfQkv *x) {
    const uint32_t table = m->no_rope[block] ? QSF_NONE : m->has_window[block] ? m->window_rope : m->rope;
    const QsfBlockSizes *n = &m->hp->block[block];
    qsf_build_rope(m->b, table, x->q, n->heads, m->hp->head_dim, 0);
    qsf_build_rope(m->b, table, x->k, n->kv_heads, m->hp->head_dim, 0);
}

void qsf_dense_heads(const QsfDenseModel *m, uint32_t block, const QsfQkv *x) {
    const QsfBlockSizes *n = &m->hp->block[block];
    const bool after = m->d->qk_norm == QSF_QK_NORM_HEAD_AFTER;
    clamp(m, x->q);
    clamp(m, x->k);
    clamp(m, x->v);
    if (m->d->qk_norm != QSF_QK_NORM_NONE && !after) qk_norm(m, n, x);
    qsf_dense_rotate(m, block, x);
    if (after) qk_norm(m, n, x);
    if (m->d->temperature) qsf_build_temperature(m->b, x->q);
}

QsfAttentionSpec qsf_dense_attention_spec(const QsfDenseModel *m, uint32_t block, const QsfQkv *x) {
    const QsfBlockSizes *n = &m->hp->block[block];
    QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, m->score_scale),
                              .kv_heads = n->kv_heads,
                              .k_dim = m->hp->head_dim,
                              .v_dim = m->hp->v_dim,
                              .q = x->q,
                              .k = x->k,
                              .v = x->v };
    attn.step.window = m->has_window[block] ? m->window : 0;
    attn.step.softcap = m->score_cap;
    attn.step.slopes = m->slopes;
    attn.step.sinks = qsf_build_param(m->b, QSF_OPTIONAL, n->heads, "attn_sinks.weight");
    return attn;
}

void qsf_dense_attention(const QsfDenseModel *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const QsfQkv x = qsf_build_qkv(b, n, in);
    const QsfSlice gate = output_gate(m, n, in);
    qsf_dense_heads(m, block, &x);
    const QsfAttentionSpec attn = qsf_dense_attention_spec(m, block, &x);
    const QsfSlice y = qsf_build_attention(b, &attn);
    if (gate.buf != QSF_NONE) (void)qsf_build_step(b, QSF_OP_MUL, "attn_gate", gate, y);
    qsf_build_scale(b, "value_scale", y, m->value_scale);
    if (m->d->sub_norms) qsf_build_norm(b, QSF_NORM_RMS, "attn_sub_norm", y, y);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", y, out);
}
