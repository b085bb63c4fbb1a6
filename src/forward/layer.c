/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One transformer block: norm, attention, residual; norm, feed-forward, residual (spec Phase 5.1). A residual
 * is added by the next norm, in the same pass over the columns. */
#include <string.h>

#include "src/forward/state.h"

static int attention_block(QsfForward *f, uint32_t layer, uint32_t past, uint32_t n_cols, QsfErr *err) {
    uint32_t unit = layer * QSF_UNITS_PER_LAYER;
    const QsfPrep in = { .unit = unit + QSF_GROUP_QKV,
                         .n_cols = n_cols,
                         .residual = layer > 0,
                         .norm = QSF_ROLE_ATTN_NORM,
                         .layer = layer,
                         .src = f->xn,
                         .src_stride = f->l.x_stride };
    const QsfProject qkv = {
        &in, { f->q, f->k, f->v }, { f->l.q_stride, f->l.kv_stride, f->l.kv_stride }, NULL
    };
    qsf_prep(f, &in);
    int rc = qsf_project(f, &qkv, err);
    if (rc != QSF_OK) return rc;
    QsfSpan s = qsf_span_begin(f);
    qsf_attention(f, layer, past, n_cols);
    qsf_span_end(f, &s, &f->n.attention_ns);
    const QsfPrep mixed = { .unit = unit + QSF_GROUP_O,
                            .n_cols = n_cols,
                            .norm = QSF_ROLE_N,
                            .layer = layer,
                            .src = f->q,
                            .src_stride = f->l.q_stride };
    const QsfProject o = { &mixed, { f->xn }, { f->l.x_stride }, NULL };
    qsf_prep(f, &mixed);
    return qsf_project(f, &o, err);
}

static int ffn_block(QsfForward *f, uint32_t layer, uint32_t n_cols, QsfErr *err) {
    void (*const acts[])(float *, const float *, size_t) = { [QSF_ACT_SILU] = f->table->silu_mul,
                                                             [QSF_ACT_GELU] = f->table->gelu_mul,
                                                             [QSF_ACT_RELU2] = f->table->relu2_mul };
    uint32_t unit = layer * QSF_UNITS_PER_LAYER, stride = f->l.ffn_stride;
    const QsfPrep in = { .unit = unit + QSF_GROUP_FFN_IN,
                         .n_cols = n_cols,
                         .residual = true,
                         .norm = QSF_ROLE_FFN_NORM,
                         .layer = layer,
                         .src = f->xn,
                         .src_stride = f->l.x_stride };
    const QsfProject up = { &in, { f->gate, f->up }, { stride, stride }, acts[f->model->hp.arch->act] };
    qsf_prep(f, &in);
    int rc = qsf_project(f, &up, err);
    if (rc != QSF_OK) return rc;
    const QsfPrep mid = { .unit = unit + QSF_GROUP_FFN_OUT,
                          .n_cols = n_cols,
                          .norm = QSF_ROLE_N,
                          .layer = layer,
                          .src = f->gate,
                          .src_stride = stride };
    const QsfProject down = { &mid, { f->xn }, { f->l.x_stride }, NULL };
    qsf_prep(f, &mid);
    return qsf_project(f, &down, err);
}

/* Skips a layer. The output of the layer before stays in xn, to be added by whatever comes next. Streamed
 * weights must be acquired in order even when they are not used. */
static int skip_layer(QsfForward *f, uint32_t layer, uint32_t n_cols, QsfErr *err) {
    QsfWeightView v;
    for (uint32_t c = 0; layer == 0 && c < n_cols; c++)
        memset(f->xn + (size_t)c * f->l.x_stride, 0, f->model->hp.hidden * sizeof *f->xn);
    for (uint32_t u = layer * QSF_UNITS_PER_LAYER; u < (layer + 1) * QSF_UNITS_PER_LAYER; u++) {
        const QsfUnit *unit = qsf_weights_unit(f->weights, u);
        for (uint32_t item = 0; item < unit->items; item = v.item1) {
            int rc = qsf_weights_acquire(f->weights, u, item, &v, err);
            if (rc != QSF_OK) return rc;
            qsf_weights_release(f->weights, &v);
        }
    }
    return QSF_OK;
}

int qsf_layer(QsfForward *f, uint32_t layer, uint32_t past, uint32_t n_cols, QsfErr *err) {
    atomic_store_explicit(&f->n.layer, layer, memory_order_relaxed);
    if (layer == f->left_out) return skip_layer(f, layer, n_cols, err);
    int rc = qsf_weights_wait_layer(f->weights, layer, err); /* for its norms */
    if (rc == QSF_OK) rc = attention_block(f, layer, past, n_cols, err);
    return rc == QSF_OK ? ffn_block(f, layer, n_cols, err) : rc;
}
