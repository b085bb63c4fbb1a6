/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sparse attention. */
#include <math.h>

#include "src/forward/ops/ops.h"

/* ---- the indexer ---- */

/* The indexer of sparse attention: scores all cached positions, or blocks of them, and keeps the best ones.
 * Threads divide the positions, so that a long context keeps them all busy. */

/* ---- scores ---- */

enum {
    KEYS = 48,    /* whose products with all heads are computed at a time */
    FLOATS = 8192 /* maximum of the elements of keys, and of products */
};

/* Some columns. Items are positions, or blocks of them. */
typedef struct IndexJob {
    const QsfForward *f;
    const QsfStep *s;
    const QsfIndexStep *p;
    size_t dim, block;
    size_t col, last;                  /* columns */
    size_t key_stride, product_stride; /* floats */
    size_t blocks;                     /* that the last column sees */
} IndexJob;

typedef struct Products {
    _Alignas(64) float key[FLOATS]; /* (positions, key_stride) */
    _Alignas(64) float of[FLOATS];  /* (positions, product_stride): of each head's query with them */
} Products;

static size_t seen(const IndexJob *j, size_t c) { return (size_t)j->f->past + c + 1; }

/* The scores of column c: of each position, or (heads, blocks). */
static float *scores(const IndexJob *j, size_t c) {
    return (float *)(void *)(j->f->mem + j->f->l.scores) + (c - j->col) * j->f->l.score_stride;
}

static size_t keys_at_once(const IndexJob *j) {
    const size_t stride = j->key_stride > j->product_stride ? j->key_stride : j->product_stride;
    return FLOATS / stride < KEYS ? FLOATS / stride : KEYS;
}

static void load_keys(const IndexJob *j, Products *p, size_t t, size_t n) {
    const uint8_t *keys = qsf_kvcache_k(&j->f->kv, j->p->kv, 0);
    const qk_kv_ops *ops = qsf_kvcache_ops(&j->f->kv, j->p->kv, 0);
    for (size_t i = 0; i < n; i++) ops->load(p->key + i * j->key_stride, keys, 0, t + i, j->dim);
}

/* y[i * y_stride + r] = row r of w times column i of x, all of `width` elements. */
static void multiply(const IndexJob *j, float *y, size_t y_stride, const float *w, size_t rows,
                     const float *x, size_t x_stride, size_t n, size_t width) {
    const qk_weight_ops *ops = &j->f->table->weight[QK_F32];
    const qk_mm m = { .w = w,
                      .row_bytes = width * sizeof *w,
                      .x = x,
                      .x_stride = x_stride * sizeof *x,
                      .y = y,
                      .y_stride = y_stride,
                      .k = width,
                      .n_cols = n,
                      .scale = 1,
                      .way = ops->way };
    ops->matmul(&m, 0, rows);
}

/* The score of a position: the sum over the heads of its products above 0, each times the
 * weight of its head. */
static void score_positions(const IndexJob *j, Products *p, size_t c, size_t t, size_t n) {
    j->f->table->gate[QK_GATE_RELU](p->of, NULL, n * j->product_stride);
    multiply(j, scores(j, c) + t, 1, qsf_col(j->f, j->s->in2, c), 1, p->of, j->product_stride, n,
             j->p->heads);
}

/* The score of a block for each head is that of its best key. */
static void score_blocks(const IndexJob *j, const Products *p, size_t c, size_t t, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (uint32_t h = 0; h < j->p->heads; h++) {
            float *best = scores(j, c) + h * j->blocks + (t + i) / j->block;
            *best = fmaxf(*best, p->of[i * j->product_stride + h]);
        }
}

static void clear_blocks(const IndexJob *j, size_t begin, size_t end) {
    for (size_t c = j->col; c <= j->last; c++)
        for (uint32_t h = 0; h < j->p->heads; h++)
            for (size_t i = begin; i < end; i++) scores(j, c)[h * j->blocks + i] = -INFINITY;
}

static void score(void *arg, int worker, size_t begin, size_t end) {
    const IndexJob *j = arg;
    const size_t most = keys_at_once(j), stop = end * j->block;
    Products p;
    (void)worker;
    if (j->p->block > 0) clear_blocks(j, begin, end);
    for (size_t t = begin * j->block, n; t < stop && t < seen(j, j->last); t += n) {
        n = stop - t < most ? stop - t : most;
        if (t + n > seen(j, j->last)) n = seen(j, j->last) - t;
        load_keys(j, &p, t, n);
        for (size_t c = j->col; c <= j->last; c++) {
            const size_t here = seen(j, c) <= t ? 0 : seen(j, c) - t < n ? seen(j, c) - t : n;
            if (here == 0) continue;
            multiply(j, p.of, j->product_stride, qsf_col(j->f, j->s->in, c), j->p->heads, p.key,
                     j->key_stride, here, j->dim);
            if (j->p->block > 0)
                score_blocks(j, &p, c, t, here);
            else
                score_positions(j, &p, c, t, here);
        }
    }
}

/* ---- the best of them ---- */

/* The positions chosen so far, as a heap with the lowest score on top. Which of several equal scores stay
 * follows from the order in which the heap moves them: as in std::partial_sort of libstdc++, which
 * ggml-org/llama.cpp uses. */
typedef struct Heap {
    const float *score;
    uint32_t *at;
    size_t n;
} Heap;

/* Puts a position into the hole of the subtree at `top`: the hole sinks to a leaf, then the
 * position rises. */
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

/* Puts them in ascending order, as they lie in the cache. They are marked with NaN among the scores; a score
 * that was NaN may then take the place of one that was chosen. */
static void sort(float *score, size_t n, uint32_t k, uint32_t *out) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < k; i++) score[out[i]] = NAN;
    for (size_t t = 0; t < n && m < k; t++)
        if (isnan(score[t])) out[m++] = (uint32_t)t;
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

static void choose_blocks(const IndexJob *j, size_t c, size_t blocks, uint32_t *out) {
    const QsfIndexStep *p = j->p;
    for (uint32_t h = 0; h < p->heads; h++, out += p->n) {
        float *of_head = scores(j, c) + h * j->blocks;
        for (size_t i = 0; i < p->local && i < blocks; i++) of_head[blocks - 1 - i] = INFINITY;
        choose(of_head, blocks, p->n, out);
        move_to_end(out, p->n, (uint32_t)blocks - 1);
    }
}

/* Items are columns. */
static void choose_columns(void *arg, int worker, size_t begin, size_t end) {
    const IndexJob *j = arg;
    (void)worker;
    for (size_t c = j->col + begin; c < j->col + end; c++) {
        uint32_t *out = (uint32_t *)(void *)qsf_col(j->f, j->s->out[0], c);
        const size_t blocks = (seen(j, c) + j->block - 1) / j->block;
        if (blocks <= j->p->n) continue; /* attention reads all */
        if (j->p->block > 0) {
            choose_blocks(j, c, blocks, out);
        } else {
            choose(scores(j, c), blocks, j->p->n, out);
            sort(scores(j, c), blocks, j->p->n, out);
        }
    }
}

int qsf_index(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfIndexStep *p = &s->u.index;
    const QsfSpan span = qsf_span_begin(f);
    const uint32_t dim = f->model->prog.kv[p->kv].dim;
    IndexJob j = { .f = f,
                   .s = s,
                   .p = p,
                   .dim = dim,
                   .block = p->block > 0 ? p->block : 1,
                   .key_stride = qsf_pad16(dim),
                   .product_stride = qsf_pad16(p->heads) };
    const size_t end = (size_t)f->col0 + f->n_cols, grain = j.block > 1 ? 4 : KEYS;
    (void)err;
    for (j.col = f->col0; j.col < end && !qsf_cancelled(f); j.col += QSF_INDEX_COLS) {
        j.last = (end - j.col < QSF_INDEX_COLS ? end : j.col + QSF_INDEX_COLS) - 1;
        j.blocks = (seen(&j, j.last) + j.block - 1) / j.block;
        if (j.blocks <= p->n) continue;
        qsf_pool_run(f->pool, score, &j, j.blocks, grain);
        qsf_pool_run(f->pool, choose_columns, &j, j.last + 1 - j.col, 1);
    }
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}

/* ---- attention to what it chose ---- */

/* Attention that reads only what an indexer chose: copies it to tiles, which the kernel then reads as if
 * they were the cache. One column at a time, by all threads. */

typedef struct SparseJob {
    QsfForward *f;
    const QsfStep *s;
    const QsfKvSpec *kv;
    size_t col, n;          /* positions that each head reads */
    uint32_t chosen, block; /* numbers chosen for each KV head; positions of each */
    bool all;               /* all positions are read, from the cache */
    uint32_t group, most;   /* query heads of a KV head; in one call */
    uint32_t pieces;        /* calls for a KV head */
} SparseJob;

/* Tiles of a head; which: 0 = K, 1 = V. */
static uint8_t *tiles(const SparseJob *j, unsigned which, size_t head) {
    const uint32_t kv = j->s->u.attention.kv, n = (uint32_t)qk_kv_tiles((size_t)j->chosen * j->block);
    const size_t k = n * qsf_kvcache_tile_bytes(&j->f->kv, kv, 0);
    const size_t v = j->kv->v_is_k ? 0 : n * qsf_kvcache_tile_bytes(&j->f->kv, kv, 1);
    return j->f->mem + j->f->l.gathered + head * (k + v) + which * k;
}

/* The i-th position that a head reads. */
static size_t position(const SparseJob *j, size_t head, size_t i) {
    const uint32_t *chosen = (const uint32_t *)(const void *)qsf_col(j->f, j->s->in2, j->col);
    const size_t t = (size_t)chosen[head * j->chosen + i / j->block] * j->block + i % j->block;
    return t <= j->f->past + j->col ? t : 0; /* beyond: a pass that skips the indexer */
}

/* Items are tiles of heads. */
static void gather(void *arg, int worker, size_t begin, size_t end) {
    const SparseJob *j = arg;
    const QsfForward *f = j->f;
    const QsfKvCache *c = &f->kv;
    const uint32_t kv = j->s->u.attention.kv;
    const size_t n_tiles = qk_kv_tiles(j->n), dim = j->kv->dim;
    const qk_kv_ops *k_ops = qsf_kvcache_ops(c, kv, 0), *v_ops = qsf_kvcache_ops(c, kv, 1);
    (void)worker;
    for (size_t item = begin; item < end; item++) {
        const size_t head = item / n_tiles, first = item % n_tiles * QK_KV_TILE;
        const uint8_t *k = qsf_kvcache_k(c, kv, (uint32_t)head);
        const uint8_t *v = j->kv->v_is_k ? NULL : qsf_kvcache_v(c, kv, (uint32_t)head);
        uint8_t *to_k = tiles(j, 0, head), *to_v = tiles(j, 1, head);
        for (size_t i = first; i < first + QK_KV_TILE && i < j->n; i++) {
            const size_t t = position(j, head, i);
            k_ops->copy(to_k, i, k, t, 0, dim);
            if (v != NULL) v_ops->copy(to_v, i, v, t, 1, dim);
        }
    }
}

/* Items are pieces of the query heads. */
static void attend(void *arg, int worker, size_t begin, size_t end) {
    const SparseJob *j = arg;
    const QsfForward *f = j->f;
    const QsfAttentionStep *a = &j->s->u.attention;
    const qk_kv_ops *ops = qsf_kvcache_ops(&f->kv, a->kv, 0);
    for (size_t i = begin; i < end; i++) {
        const uint32_t kv_head = (uint32_t)(i / j->pieces), from = (uint32_t)(i % j->pieces) * j->most;
        const size_t at = ((size_t)kv_head * j->group + from) * j->kv->dim;
        const uint8_t *v = j->kv->v_is_k ? NULL
                           : j->all      ? qsf_kvcache_v(&f->kv, a->kv, kv_head)
                                         : tiles(j, 1, kv_head);
        const qk_attn q = { .k = j->all ? qsf_kvcache_k(&f->kv, a->kv, kv_head) : tiles(j, 0, kv_head),
                            .v = v,
                            .v_type = qsf_kvcache_type(&f->kv, a->kv, 1),
                            .q = qsf_col(f, j->s->in, j->col) + at,
                            .y = qsf_col(f, j->s->out[0], j->col) + at,
                            .head_dim = j->kv->dim,
                            .n_cols = 1,
                            .n_heads = j->group - from < j->most ? j->group - from : j->most,
                            .pos = j->n - 1,
                            .scale = a->scale,
                            .scratch = f->mem + f->l.attn + (size_t)worker * f->l.attn_stride };
        ops->attend(&q);
    }
}

/* How many positions a head reads: all blocks are full but that of the column, which is the
 * last one if it is there. */
static void count(SparseJob *j) {
    const uint32_t *chosen = (const uint32_t *)(const void *)qsf_col(j->f, j->s->in2, j->col);
    const size_t pos = j->f->past + j->col;
    j->all = pos / j->block + 1 <= j->chosen;
    j->n = j->all ? pos + 1 : (size_t)j->chosen * j->block;
    if (!j->all && chosen[j->chosen - 1] == pos / j->block) j->n -= j->block - 1 - pos % j->block;
}

int qsf_sparse_attention(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfAttentionStep *a = &s->u.attention;
    const QsfKvSpec *kv = &f->model->prog.kv[a->kv];
    const QsfSpan span = qsf_span_begin(f);
    SparseJob j = { .f = f,
                    .s = s,
                    .kv = kv,
                    .chosen = s->in2.width / kv->heads,
                    .block = a->block > 0 ? a->block : 1,
                    .group = a->heads / kv->heads };
    const uint32_t most = qsf_attention_queries(f, kv, j.group, 1, 1);
    (void)err;
    j.most = most < j.group ? most : j.group;
    j.pieces = (j.group + j.most - 1) / j.most;
    for (j.col = f->col0; j.col < (size_t)f->col0 + f->n_cols && !qsf_cancelled(f); j.col++) {
        count(&j);
        if (!j.all) qsf_pool_run(f->pool, gather, &j, kv->heads * qk_kv_tiles(j.n), 1);
        qsf_pool_run(f->pool, attend, &j, (size_t)kv->heads * j.pieces, 1);
    }
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}
