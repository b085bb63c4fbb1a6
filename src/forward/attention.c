/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From Q, K, V to the mixed values: rotation, K/V into the cache, causal attention with grouped heads. */
#include <math.h>

#include "src/forward/state.h"

/* A kernel call processes `heads` query heads of one KV head and `cols` columns. */
typedef struct AttnJob {
    QsfForward *f;
    uint32_t layer, past, n_cols;
    uint32_t group, heads, pieces; /* query heads per KV head; per piece; number of pieces */
    uint32_t cols, blocks;         /* blocks of columns */
    uint32_t spans;
} AttnJob;

/* Computes in double and rounds once, so that large positions times small frequencies stay precise. */
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

/* Columns [c, c + n). */
static void rotate(const AttnJob *j, uint32_t c, uint32_t n) {
    QsfForward *f = j->f;
    const QsfHparams *hp = &f->model->hp;
    if (hp->arch->rope == QSF_ROPE_NONE) return;
    void (*rope)(const qk_rope *) = hp->arch->rope == QSF_ROPE_PAIRS ? f->table->rope_pairs_batch
                                                                     : f->table->rope_halves_batch;
    qk_rope r = { .x = f->q + (size_t)c * f->l.q_stride,
                  .cs = f->cs + (size_t)c * hp->n_rot,
                  .n_rot = hp->n_rot,
                  .n_heads = hp->n_heads,
                  .head_stride = hp->head_dim,
                  .n_pos = n,
                  .pos_stride = f->l.q_stride };
    rope(&r);
    r.x = f->k + (size_t)c * f->l.kv_stride;
    r.n_heads = hp->n_kv_heads;
    r.pos_stride = f->l.kv_stride;
    rope(&r);
}

/* Items are tiles of the cache: positions of one share cache lines. */
static void rotate_and_store(void *arg, int worker, size_t begin, size_t end) {
    const AttnJob *j = arg;
    QsfForward *f = j->f;
    size_t first = j->past / QK_KV_TILE * QK_KV_TILE, from = first + begin * QK_KV_TILE,
           to = first + end * QK_KV_TILE;
    uint32_t c0 = from > j->past ? (uint32_t)(from - j->past) : 0,
             c1 = to - j->past < j->n_cols ? (uint32_t)(to - j->past) : j->n_cols;
    (void)worker;
    rotate(j, c0, c1 - c0);
    for (uint32_t c = c0; c < c1; c++)
        qsf_kvcache_store(&f->kv, j->layer, j->past + c, f->k + (size_t)c * f->l.kv_stride,
                          f->v + (size_t)c * f->l.kv_stride);
}

/* Describes the columns starting at col, piece `piece` of all heads. The output overwrites the query. */
static qk_attn queries(const AttnJob *j, int worker, uint32_t col, uint32_t piece) {
    QsfForward *f = j->f;
    uint32_t kv_head = piece / j->pieces, from = piece % j->pieces * j->heads, dim = f->model->hp.head_dim;
    float *q = f->q + (size_t)col * f->l.q_stride + ((size_t)kv_head * j->group + from) * dim;
    return (qk_attn){ .k = qsf_kvcache_k(&f->kv, j->layer, kv_head),
                      .v = qsf_kvcache_v(&f->kv, j->layer, kv_head),
                      .q = q,
                      .y = q,
                      .q_stride = f->l.q_stride,
                      .y_stride = f->l.q_stride,
                      .head_dim = dim,
                      .n_cols = j->n_cols - col < j->cols ? j->n_cols - col : j->cols,
                      .n_heads = j->group - from < j->heads ? j->group - from : j->heads,
                      .pos = j->past + col,
                      .scale = 1.0f / sqrtf((float)dim),
                      .scratch = f->mem + f->l.attn + (size_t)worker * f->l.attn_stride };
}

/* Items are (piece of heads, block of columns). */
static void attend(void *arg, int worker, size_t begin, size_t end) {
    const AttnJob *j = arg;
    for (size_t i = begin; i < end; i++) {
        qk_attn a = queries(j, worker, (uint32_t)(i % j->blocks) * j->cols, (uint32_t)(i / j->blocks));
        j->f->kv.ops->attend(&a);
    }
}

/* One column with many positions: items are (piece of heads, span). */
static void attend_span(void *arg, int worker, size_t begin, size_t end) {
    const AttnJob *j = arg;
    size_t part = qk_attn_part(j->f->model->hp.head_dim);
    for (size_t i = begin; i < end; i++) {
        uint32_t piece = (uint32_t)(i / j->spans), span = (uint32_t)(i % j->spans);
        size_t head = (size_t)(piece / j->pieces) * j->group + piece % j->pieces * j->heads;
        qk_attn a = queries(j, worker, 0, piece);
        j->f->kv.ops->attend_span(&a, span, j->f->parts + (head * j->spans + span) * part, j->spans * part);
    }
}

static void attend_one_column(AttnJob *j, uint32_t items) {
    QsfForward *f = j->f;
    size_t dim = f->model->hp.head_dim, part = qk_attn_part(dim);
    qsf_pool_run(f->pool, attend_span, j, (size_t)items * j->spans, 1);
    for (size_t h = 0; h < f->model->hp.n_heads; h++)
        f->kv.ops->merge(f->q + h * dim, f->parts + h * j->spans * part, j->spans, part, dim);
}

void qsf_attention(QsfForward *f, uint32_t layer, uint32_t past, uint32_t n_cols) {
    const QsfHparams *hp = &f->model->hp;
    AttnJob j = {
        .f = f, .layer = layer, .past = past, .n_cols = n_cols, .group = hp->n_heads / hp->n_kv_heads
    };
    uint32_t most = (uint32_t)qk_attn_queries(hp->head_dim);
    j.heads = j.group < most ? j.group : most;
    j.pieces = (j.group + j.heads - 1) / j.heads;
    j.cols = most / j.heads;
    j.blocks = (n_cols + j.cols - 1) / j.cols;
    j.spans = (uint32_t)qk_kv_spans((size_t)past + n_cols);
    uint32_t items = hp->n_kv_heads * j.pieces;
    qsf_pool_run(f->pool, rotate_and_store, &j,
                 (past % QK_KV_TILE + (size_t)n_cols + QK_KV_TILE - 1) / QK_KV_TILE, 1);
    if (n_cols == 1 && j.spans > 1) {
        attend_one_column(&j, items);
    } else {
        qsf_pool_run(f->pool, attend, &j, (size_t)items * j.blocks, 1);
    }
}
