/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The indexer of sparse attention: scores all cached positions, or blocks of them, and keeps the best ones. Columns are
 * computed one by one, each by all threads, so that a long context keeps them all busy. */
#include <math.h>

#include "src/forward/state.h"

/* ---- scores ---- */

typedef struct IndexJob {
    const QsfForward *f;
    const QsfIndexStep *p;
    const float *q, *w; /* of one column */
    float *score;
    size_t n, blocks; /* positions that it sees */
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
    const qk_kv_ops *ops = qsf_kvcache_ops(&j->f->kv, j->p->kv, 0);
    float key[QSF_MAX_HEAD_DIM];
    (void)worker;
    for (size_t t = begin; t < end; t++) {
        double sum = 0;
        ops->load(key, keys, 0, t, dim);
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

/* ---- blocks ---- */

/* The score of a block for each head is that of its best key; items are blocks, and score is (heads, blocks). */
static void score_blocks(void *arg, int worker, size_t begin, size_t end) {
    const IndexJob *j = arg;
    const QsfIndexStep *p = j->p;
    const size_t dim = j->f->model->prog.kv[p->kv].dim;
    const uint8_t *keys = qsf_kvcache_k(&j->f->kv, p->kv, 0);
    const qk_kv_ops *ops = qsf_kvcache_ops(&j->f->kv, p->kv, 0);
    float key[QSF_MAX_HEAD_DIM];
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        for (uint32_t h = 0; h < p->heads; h++) j->score[h * j->blocks + i] = -INFINITY;
        for (size_t t = i * p->block; t < (i + 1) * p->block && t < j->n; t++) {
            ops->load(key, keys, 0, t, dim);
            for (uint32_t h = 0; h < p->heads; h++) {
                float *best = &j->score[h * j->blocks + i];
                *best = fmaxf(*best, (float)dot(j->q + h * dim, key, dim));
            }
        }
    }
}

/* Puts a number that is among n at the end. */
static void move_to_end(uint32_t *x, uint32_t n, uint32_t last) {
    for (uint32_t i = 0; i < n; i++) {
        if (x[i] != last) continue;
        x[i] = x[n - 1];
        x[n - 1] = last;
        return;
    }
}

static void choose_blocks(IndexJob *j, uint32_t *out) {
    const QsfIndexStep *p = j->p;
    qsf_pool_run(j->f->pool, score_blocks, j, j->blocks, 4);
    for (uint32_t h = 0; h < p->heads; h++, out += p->n) {
        float *score = j->score + h * j->blocks;
        for (size_t i = 0; i < p->local && i < j->blocks; i++) score[j->blocks - 1 - i] = INFINITY;
        choose(score, j->blocks, p->n, out);
        move_to_end(out, p->n, (uint32_t)j->blocks - 1);
    }
}

int qsf_index(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfIndexStep *p = &s->u.index;
    const QsfSpan span = qsf_span_begin(f);
    const size_t block = p->block > 0 ? p->block : 1;
    (void)err;
    for (size_t c = f->col0; c < (size_t)f->col0 + f->n_cols; c++) {
        uint32_t *out = (uint32_t *)(void *)qsf_col(f, s->out[0], c);
        IndexJob j = { .f = f,
                       .p = p,
                       .q = qsf_col(f, s->in, c),
                       .w = p->block > 0 ? NULL : qsf_col(f, s->in2, c),
                       .score = (float *)(void *)(f->mem + f->l.scores),
                       .n = f->past + c + 1 };
        j.blocks = (j.n + block - 1) / block;
        if (j.blocks <= p->n) continue; /* attention reads all */
        if (p->block > 0) {
            choose_blocks(&j, out);
        } else {
            qsf_pool_run(f->pool, score, &j, j.n, 64);
            choose(j.score, j.n, p->n, out);
        }
    }
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}
