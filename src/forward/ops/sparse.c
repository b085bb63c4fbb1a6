/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention that reads only what an indexer chose (index.c): copies it to tiles, which the kernel then reads as if
 * they were the cache. One column at a time, by all threads. */
#include "src/forward/forward_impl.h"

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

/* How many positions a head reads: all blocks are full but that of the column, which is the last one if it is there. */
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
