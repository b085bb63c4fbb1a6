/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention: its cache, its steps, and heads of different sizes. */
#include "src/model/build.h"

void qsf_build_heads(QsfBuilder *b, const char *label, QsfSlice in, QsfSlice out, uint32_t heads, uint32_t n,
                     uint32_t in_stride, uint32_t out_stride) {
    QsfStep *s = qsf_build_step(b, QSF_OP_HEADS, label, in, out);
    if (s != NULL) s->u.heads = (QsfHeadsStep){ heads, n, in_stride, out_stride, false };
}

QsfAttentionStep qsf_attention_plain(uint32_t heads, float scale) {
    return (QsfAttentionStep){
        .kv = QSF_NONE, .heads = heads, .scale = scale, .sinks = QSF_NONE, .slopes = QSF_NONE
    };
}

void qsf_build_temperature(QsfBuilder *b, QsfSlice q) {
    const uint32_t original = qsf_build_u32(b, "rope.scaling.original_context_length", 1u << 28, 1, 1u << 28);
    const QsfTemperatureStep t = { .scale = qsf_build_f32(b, "attention.temperature_scale", 0, 0, 1e6f),
                                   .length = qsf_build_u32(b, "attention.temperature_length", original, 1,
                                                           1u << 28) };
    QsfStep *s = t.scale > 0 ? qsf_build_step(b, QSF_OP_TEMPERATURE, "temperature", qsf_slice_none(), q)
                             : NULL;
    if (s != NULL) s->u.temperature = t;
}

/* Returns x with heads of dim elements instead of n. */
static QsfSlice padded(QsfBuilder *b, QsfSlice x, uint32_t heads, uint32_t n, uint32_t dim) {
    if (n == dim || qsf_build_failed(b)) return x;
    const QsfSlice y = qsf_build_buffer(b, heads * dim);
    qsf_build_heads(b, "pad_heads", x, y, heads, n, n, dim);
    return y;
}

QsfSlice qsf_build_attention(QsfBuilder *b, const QsfAttentionSpec *a) {
    const uint32_t dim = a->k_dim > a->v_dim ? a->k_dim : a->v_dim;
    QsfAttentionStep step = a->step;
    const QsfSlice q = padded(b, a->q, step.heads, a->k_dim, dim);
    if (!a->shared) {
        const QsfSlice k = padded(b, a->k, a->kv_heads, a->k_dim, dim),
                       v = padded(b, a->v, a->kv_heads, a->v_dim, dim);
        step.kv = qsf_build_kv(b, a->kv_heads, dim);
        QsfStep *store = qsf_build_step(b, QSF_OP_KV_STORE, "kv_store", k, qsf_slice_none());
        if (store == NULL) return qsf_slice_none();
        store->in2 = v;
        store->u.kv = step.kv;
    }
    QsfStep *s = qsf_build_step(b, QSF_OP_ATTENTION, "attention", q, q);
    if (s == NULL) return qsf_slice_none();
    s->u.attention = step;
    if (a->selected.width > 0) s->in2 = a->selected;
    if (a->v_dim == dim) return q;
    const QsfSlice out = qsf_build_buffer(b, step.heads * a->v_dim);
    qsf_build_heads(b, "unpad_heads", q, out, step.heads, a->v_dim, dim, a->v_dim);
    return out;
}
