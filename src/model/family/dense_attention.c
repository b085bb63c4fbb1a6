/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention of a dense transformer. */
#include "src/model/family/dense.h"

static void clamp(const QsfDenseModel *m, QsfSlice x) {
    QsfStep *s = m->clamp > 0 ? qsf_build_step(m->b, QSF_OP_CLAMP, "clamp", qsf_slice_none(), x) : NULL;
    if (s == NULL) return;
    s->u.clamp.low = -m->clamp;
    s->u.clamp.high = m->clamp;
}

/* Talkie: heads are normalized, and those of q multiplied by one number each. */
static void plain_norm(const QsfDenseModel *m, const QsfBlockSizes *n, const QsfQkv *x) {
    QsfBuilder *b = m->b;
    const uint64_t ne[2] = { 1, n->heads };
    qsf_build_head_norm(b, QSF_NORM_RMS, NULL, x->q, n->heads, false);
    qsf_build_head_norm(b, QSF_NORM_RMS, NULL, x->k, n->kv_heads, false);
    qsf_build_with_param(b, QSF_OP_GAIN, "attn_q_norm",
                         qsf_build_param_nd(b, QSF_REQUIRED, ne, 2, "attn_q_norm.weight"), x->q);
}

static void qk_norm(const QsfDenseModel *m, const QsfBlockSizes *n, const QsfQkv *x) {
    QsfBuilder *b = m->b;
    const QsfNormKind kind = m->hp->norm;
    const bool own = m->d->qk_norm == QSF_QK_NORM_OPTIONAL, row = m->d->qk_norm == QSF_QK_NORM_ROW;
    const bool optional = own || m->d->qk_norm == QSF_QK_NORM_HEAD_OPTIONAL;
    if (m->d->qk_norm == QSF_QK_NORM_PLAIN_AFTER) {
        plain_norm(m, n, x);
        return;
    }
    if (!optional || qsf_build_maybe(b, "attn_q_norm.weight"))
        qsf_build_head_norm(b, kind, "attn_q_norm", x->q, row ? 1 : n->heads, own);
    if (!optional || qsf_build_maybe(b, "attn_k_norm.weight"))
        qsf_build_head_norm(b, kind, "attn_k_norm", x->k, row ? 1 : n->kv_heads, own);
}

/* Llama 4: blocks with rotation see chunks of 8192 positions and normalize rotated heads, unless the model has 128
 * experts; the others scale queries by their position. Only models with sliding_window 0 do neither
 * (ggml-org/llama.cpp). */
static void llama4(const QsfDenseModel *m, const QsfBlockSizes *n, bool rotated, QsfAttentionSpec *attn) {
    QsfBuilder *b = m->b;
    const uint32_t length = 8192;
    const bool chunks = qsf_build_u32(b, "attention.sliding_window", length, 0, UINT32_MAX) > 0;
    if (!chunks) {
        qsf_build_fail(b, "models with the metadata key '%s' of 0 are not supported", b->keys.key);
        return;
    }
    attn->step.chunk = rotated ? length : 0;
    if (!rotated) {
        QsfStep *s = qsf_build_step(b, QSF_OP_TEMPERATURE, "temperature", qsf_slice_none(), attn->q);
        if (s != NULL)
            s->u.temperature = (QsfTemperatureStep){ .scale = 0.1f, .length = length, .offset = 1 };
    } else if (qsf_build_u32(b, "expert_count", 0, 0, UINT32_MAX) != 128) {
        qsf_build_head_norm(b, QSF_NORM_RMS, NULL, attn->q, n->heads, false);
        qsf_build_head_norm(b, QSF_NORM_RMS, NULL, attn->k, n->kv_heads, false);
    }
}

/* The factors of attention's output: one for each element, or for each head. */
static QsfSlice output_gate(const QsfDenseModel *m, const QsfBlockSizes *n, QsfSlice in) {
    QsfBuilder *b = m->b;
    const bool optional = qsf_dense_has(m, QSF_DENSE_GATE_OPTIONAL);
    if (m->d->gate == QSF_ACT_NONE || (optional && !qsf_build_maybe(b, "attn_gate.weight")))
        return qsf_slice_none();
    const bool by_head = qsf_build_rows_of(b, "attn_gate.weight") == n->heads;
    const QsfSlice gate = qsf_build_buffer(b, n->heads * (by_head ? 1 : m->hp->v_dim));
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, &(QsfMatrixSpec){ "attn_gate", gate, QSF_REQUIRED }, 1,
                     m->d->gate);
    return gate;
}

void qsf_dense_attention(const QsfDenseModel *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const uint32_t dim = m->hp->head_dim;
    const uint32_t rope = m->no_rope[block] ? QSF_NONE : m->has_window[block] ? m->window_rope : m->rope;
    const QsfQkNorm norm = m->d->qk_norm;
    const bool after = norm == QSF_QK_NORM_HEAD_AFTER || norm == QSF_QK_NORM_PLAIN_AFTER;
    const QsfQkv x = qsf_build_qkv(b, n, in);
    const QsfSlice gate = output_gate(m, n, in);
    clamp(m, x.q);
    clamp(m, x.k);
    clamp(m, x.v);
    if (norm != QSF_QK_NORM_NONE && !after) qk_norm(m, n, &x);
    qsf_build_rope(b, rope, x.q, n->heads, dim, 0);
    qsf_build_rope(b, rope, x.k, n->kv_heads, dim, 0);
    if (after) qk_norm(m, n, &x);
    if (qsf_dense_has(m, QSF_DENSE_TEMPERATURE)) qsf_build_temperature(b, x.q);
    QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, m->score_scale),
                              .kv_heads = n->kv_heads,
                              .k_dim = dim,
                              .v_dim = m->hp->v_dim,
                              .q = x.q,
                              .k = x.k,
                              .v = x.v };
    attn.step.window = m->has_window[block] ? m->window : 0;
    attn.step.softcap = m->score_cap;
    attn.step.slopes = m->slopes;
    attn.step.sinks = qsf_build_param(b, QSF_OPTIONAL, n->heads, "attn_sinks.weight");
    if (qsf_dense_has(m, QSF_DENSE_LLAMA4)) llama4(m, n, rope != QSF_NONE, &attn);
    if (block >= m->first_indexed) {
        attn.selected = qsf_build_block_indexer(b, &m->indexer, in);
        attn.step.block = m->indexer.block;
    }
    const QsfSlice y = qsf_build_attention(b, &attn);
    if (gate.buf != QSF_NONE) (void)qsf_build_step(b, QSF_OP_MUL, "attn_gate", gate, y);
    qsf_build_scale(b, "value_scale", y, m->value_scale);
    if (qsf_dense_has(m, QSF_DENSE_SUB_NORMS)) qsf_build_norm(b, QSF_NORM_RMS, "attn_sub_norm", y, y);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", y, out);
}
