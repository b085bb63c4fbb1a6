/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From Q, K, V to the mixed values: rotation, K/V into the cache, causal attention with grouped heads. */
#include <math.h>

#include "src/forward/state.h"

typedef struct AttnJob {
    QsfForward *f;
    uint32_t layer, past, n_cols;
} AttnJob;

/* In double, rounded once: large positions times small frequencies lose nothing. */
void qsf_rope_angles(QsfForward *f, uint32_t past, uint32_t n_cols) {
    uint32_t half = f->model->hp.n_rot / 2;
    if (f->model->hp.arch->rope == QSF_ROPE_NONE) return;
    for (uint32_t c = 0; c < n_cols; c++) {
        float *cs = f->cs + (size_t)c * f->model->hp.n_rot;
        for (uint32_t i = 0; i < half; i++) {
            double a = (double)(past + c) * f->params.freq[i];
            cs[2 * i] = (float)cos(a);
            cs[2 * i + 1] = (float)sin(a);
        }
    }
}

static void rotate_and_store(void *arg, int worker, size_t begin, size_t end) {
    const AttnJob *j = arg;
    QsfForward *f = j->f;
    const QsfHparams *hp = &f->model->hp;
    void (*rope)(float *, const float *, size_t) =
        hp->arch->rope == QSF_ROPE_PAIRS ? f->table->rope_pairs : f->table->rope_halves;
    (void)worker;
    for (size_t c = begin; c < end; c++) {
        float *q = f->q + c * f->l.q_stride, *k = f->k + c * f->l.kv_stride, *v = f->v + c * f->l.kv_stride;
        const float *cs = f->cs + c * hp->n_rot;
        if (hp->arch->rope != QSF_ROPE_NONE) {
            for (size_t h = 0; h < hp->n_heads; h++) rope(q + h * hp->head_dim, cs, hp->n_rot);
            for (size_t h = 0; h < hp->n_kv_heads; h++) rope(k + h * hp->head_dim, cs, hp->n_rot);
        }
        qsf_kvcache_store(&f->kv, j->layer, j->past + (uint32_t)c, k, v);
    }
}

/* Items are (head, column), columns fastest: one thread walks the same cached rows again and again. The
 * output takes the place of its query. */
static void attend(void *arg, int worker, size_t begin, size_t end) {
    const AttnJob *j = arg;
    QsfForward *f = j->f;
    const QsfHparams *hp = &f->model->hp;
    const QsfKvCache *kv = &f->kv;
    float *s = f->scores + (size_t)worker * f->l.score_stride;
    float scale = 1.0f / sqrtf((float)hp->head_dim);
    uint32_t group = hp->n_heads / hp->n_kv_heads;
    for (size_t i = begin; i < end; i++) {
        uint32_t h = (uint32_t)(i / j->n_cols), c = (uint32_t)(i % j->n_cols);
        size_t n = (size_t)j->past + c + 1;
        float *q = f->q + c * (size_t)f->l.q_stride + h * (size_t)hp->head_dim;
        kv->ops->scores(s, q, qsf_kvcache_k(kv, j->layer, h / group), kv->row, n, hp->head_dim, scale);
        f->table->softmax(s, n);
        kv->ops->mix(q, s, qsf_kvcache_v(kv, j->layer, h / group), kv->row, n, hp->head_dim);
    }
}

void qsf_attention(QsfForward *f, uint32_t layer, uint32_t past, uint32_t n_cols) {
    AttnJob j = {f, layer, past, n_cols};
    qsf_pool_run(f->pool, rotate_and_store, &j, n_cols, 1);
    qsf_pool_run(f->pool, attend, &j, (size_t)n_cols * f->model->hp.n_heads, 1);
}
