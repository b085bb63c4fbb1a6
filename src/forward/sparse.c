/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sparse attention: an indexer scores all cached positions and keeps the best ones; attention reads only those.
 * Columns are computed one by one, each by all threads, so that a long context keeps them all busy. */
#include "src/forward/state.h"

/* ---- scores ---- */

typedef struct IndexJob {
    const QsfForward *f;
    const QsfIndexStep *p;
    const float *q, *w; /* of one column */
    float *score;       /* (positions) */
} IndexJob;

static double dot(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void score(void *arg, int worker, size_t begin, size_t end) {
    const IndexJob *j = arg;
    const size_t dim = j->f->model->prog.kv[j->p->kv].dim;
    const uint8_t *keys = qsf_kvcache_k(&j->f->kv, j->p->kv, 0);
    float key[QSF_MAX_HEAD_DIM];
    (void)worker;
    for (size_t t = begin; t < end; t++) {
        double sum = 0;
        j->f->kv.ops->load(key, keys, 0, t, dim);
        for (uint32_t h = 0; h < j->p->heads; h++) {
            const double x = dot(j->q + h * dim, key, dim);
            if (x > 0) sum += x * (double)j->w[h];
        }
        j->score[t] = (float)sum;
    }
}

/* ---- the best of them ---- */

/* The positions chosen so far, as a heap with the lowest score on top. Which of several equal scores stay follows from
 * the order in which the heap moves them: as in std::partial_sort of libstdc++, which ggml-org/llama.cpp uses. */
typedef struct Heap {
    const float *score;
    uint32_t *at;
    size_t n;
} Heap;

/* Puts a position into the hole of the subtree at `top`: the hole sinks to a leaf, then the position rises. */
static void put(const Heap *h, size_t top, uint32_t position) {
    size_t hole = top;
    for (size_t child; (child = 2 * hole + 1) < h->n; hole = child) {
        const bool two = child + 1 < h->n;
        if (two && !(h->score[h->at[child + 1]] > h->score[h->at[child]])) child++;
        h->at[hole] = h->at[child];
    }
    while (hole > top && h->score[h->at[(hole - 1) / 2]] > h->score[position]) {
        h->at[hole] = h->at[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    h->at[hole] = position;
}

static void choose(const float *score, size_t n, uint32_t k, uint32_t *out) {
    const Heap h = { score, out, k };
    for (uint32_t i = 0; i < k; i++) out[i] = i;
    for (size_t top = k / 2; top-- > 0;) put(&h, top, out[top]);
    for (size_t t = k; t < n; t++)
        if (score[t] > score[out[0]]) put(&h, 0, (uint32_t)t);
}

int qsf_index(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfIndexStep *p = &s->u.index;
    const QsfSpan span = qsf_span_begin(f);
    (void)err;
    for (size_t c = f->col0; c < (size_t)f->col0 + f->n_cols; c++) {
        const size_t n = f->past + c + 1;
        if (n <= p->n) continue; /* attention reads all */
        IndexJob j = { f, p, qsf_col(f, s->in, c), qsf_col(f, s->in2, c), (float *)(f->mem + f->l.scores) };
        qsf_pool_run(f->pool, score, &j, n, 64);
        choose(j.score, n, p->n, (uint32_t *)(void *)qsf_col(f, s->out[0], c));
    }
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}

/* ---- attention ---- */

typedef struct SparseJob {
    QsfForward *f;
    const QsfStep *s;
    const qk_kv_ops *ops; /* of the tiles at k */
    const uint8_t *k;
    size_t col, n, dim; /* positions that are read */
    uint32_t most;      /* heads in one call */
} SparseJob;

/* Copies chosen positions to float tiles; items are tiles. */
static void gather(void *arg, int worker, size_t begin, size_t end) {
    const SparseJob *j = arg;
    const QsfForward *f = j->f;
    const uint32_t kv = j->s->u.attention.kv;
    const uint32_t *chosen = (const uint32_t *)(const void *)qsf_col(f, j->s->in2, j->col);
    float row[QSF_MAX_HEAD_DIM];
    (void)worker;
    for (size_t i = begin * QK_KV_TILE; i < end * QK_KV_TILE && i < j->n; i++) {
        const size_t t = chosen[i] <= f->past + j->col ? chosen[i]
                                                       : 0; /* beyond: a pass that skips the indexer */
        f->kv.ops->load(row, qsf_kvcache_k(&f->kv, kv, 0), 0, t, j->dim);
        f->table->kv[QK_KV_F32].store(f->mem + f->l.gathered, 0, i, row, j->dim);
    }
}

/* Items are groups of heads. */
static void attend(void *arg, int worker, size_t begin, size_t end) {
    const SparseJob *j = arg;
    const QsfForward *f = j->f;
    const QsfAttentionStep *a = &j->s->u.attention;
    for (size_t i = begin; i < end; i++) {
        const size_t head = i * j->most;
        const qk_attn q = { .k = j->k,
                            .q = qsf_col(f, j->s->in, j->col) + head * j->dim,
                            .y = qsf_col(f, j->s->out[0], j->col) + head * j->dim,
                            .head_dim = j->dim,
                            .n_cols = 1,
                            .n_heads = a->heads - head < j->most ? a->heads - head : j->most,
                            .pos = j->n - 1,
                            .scale = a->scale,
                            .scratch = f->mem + f->l.attn + (size_t)worker * f->l.attn_stride };
        j->ops->attend(&q);
    }
}

int qsf_sparse_attention(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfAttentionStep *a = &s->u.attention;
    const QsfSpan span = qsf_span_begin(f);
    SparseJob j = { .f = f, .s = s, .dim = f->model->prog.kv[a->kv].dim };
    (void)err;
    j.most = (uint32_t)qk_attn_queries(j.dim);
    for (j.col = f->col0; j.col < (size_t)f->col0 + f->n_cols; j.col++) {
        j.n = f->past + j.col + 1;
        j.ops = f->kv.ops;
        j.k = qsf_kvcache_k(&f->kv, a->kv, 0);
        if (j.n > s->in2.width) {
            j.n = s->in2.width;
            j.ops = &f->table->kv[QK_KV_F32];
            j.k = f->mem + f->l.gathered;
            qsf_pool_run(f->pool, gather, &j, qk_kv_tiles(j.n), 1);
        }
        qsf_pool_run(f->pool, attend, &j, (a->heads + j.most - 1) / j.most, 1);
    }
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}
