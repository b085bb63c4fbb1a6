/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention of a set of queries over the cached positions of one KV head, for any vector of v_<isa>.h: block after
 * block with a running maximum, span after span merged. No result depends on which queries are together. */
#ifndef QSF_KERNELS_GENERIC_KV_ATTEND_H
#define QSF_KERNELS_GENERIC_KV_ATTEND_H

/* How tiles become floats: K as tiles of (dim, 16), V as rows of pad floats. scale (n tiles of 16) is NULL for
 * formats without. */
typedef struct kv_format {
    size_t (*tile_bytes)(size_t dim);
    void (*open_k)(float *dst, const char *tiles, size_t n, size_t dim);
    void (*open_v)(float *dst, const char *tiles, size_t n, size_t dim, size_t pad);
    void (*open_scale)(float *dst, const char *tiles, size_t n, size_t dim);
} kv_format;

typedef struct kv_work {
    const qk_attn *a;
    const kv_format *f;
    size_t n, dim, pad; /* queries; dimensions, and padded */
    float *block, *scale, *q, *s, *lanes;
    float *part;        /* of query i at i * stride: maximum, sum, .., sums from 16 on */
    size_t stride;
} kv_work;

static kv_work kv_work_at(const qk_attn *a, const kv_format *f)
{
    const size_t most = qk_attn_queries(a->head_dim), pad = qk_kv_pad(a->head_dim);
    kv_work w = { .a = a, .f = f, .n = a->n_cols * a->n_heads, .dim = a->head_dim, .pad = pad, .block = a->scratch };
    w.scale = w.block + QK_KV_BLOCK * pad;
    w.s = w.scale + QK_KV_BLOCK;
    w.lanes = w.s + most * QK_KV_BLOCK;
    w.q = w.lanes + most * 16;
    w.part = w.q + most * pad;
    w.stride = qk_attn_part(a->head_dim);
    return w;
}

/* Queries of the group that starts at i. */
static int kv_group(const kv_work *w, size_t i)
{
    int n = KV_GROUP;
    while (i + (size_t)n > w->n)
        n /= 2;
    return n;
}

/* Groups stand behind one another, inside a group the queries side by side for each dimension. */
static void kv_pack(const kv_work *w)
{
    const qk_attn *a = w->a;
    for (size_t i = 0; i < w->n;) {
        const size_t nq = (size_t)kv_group(w, i);
        for (size_t r = 0; r < nq; r++) {
            const float *x = a->q + (i + r) / a->n_heads * a->q_stride + (i + r) % a->n_heads * w->dim;
            for (size_t d = 0; d < w->dim; d++)
                w->q[i * w->dim + d * nq + r] = x[d];
        }
        i += nq;
    }
}

/* What query i sees of the 64 positions from b on. */
static kv_range kv_range_of(const kv_work *w, size_t i, size_t b)
{
    const qk_attn *a = w->a;
    const size_t end = a->pos + i / a->n_heads + 1, start = a->window && end > a->window ? end - a->window : 0;
    const kv_range r = { start > b ? start - b : 0, end > b ? end - b : 0 };
    return (kv_range){ r.lo < QK_KV_BLOCK ? r.lo : QK_KV_BLOCK, r.hi < QK_KV_BLOCK ? r.hi : QK_KV_BLOCK };
}

static void kv_rescale(float *acc, size_t n, float by)
{
    for (size_t i = 0; i < n; i += V)
        v_store(acc + i, v_mul(v_load(acc + i), v_set(by)));
}

/* Scores times c, in base 2, and times the scales of K; -inf at what is not seen. Returns the maximum of them and m. */
QK_INLINE float kv_scale_scores(float *s, const float *scale, kv_range r, float c, float m)
{
    const size_t from = r.lo / V * V, to = (r.hi + V - 1) / V * V;
    vf best = v_set(m);
    for (size_t j = from; j < to; j += V) {
        const vf x = v_load(s + j);
        v_store(s + j, v_mul(scale ? v_mul(x, v_load(scale + j)) : x, v_set(c)));
    }
    for (size_t j = from; j < r.lo; j++)
        s[j] = -INFINITY;
    for (size_t j = r.hi; j < to; j++)
        s[j] = -INFINITY;
    for (size_t j = from; j < to; j += V)
        best = v_max(v_load(s + j), best); /* in this order a NaN leaves best as it is */
    return v_largest(best);
}

/* Scores of one query become weights; its maximum, sums and what it has added up so far follow the new maximum. */
static void kv_weigh(const kv_work *w, size_t i, kv_range r, float c)
{
    float *s = w->s + i * QK_KV_BLOCK, *lanes = w->lanes + i * 16, *part = w->part + i * w->stride;
    if (r.lo >= r.hi)
        return;
    const float m = kv_scale_scores(s, w->f->open_scale ? w->scale : NULL, r, c, part[0]);
    if (m != part[0]) {
        const float by = kv_exp2_one(part[0] - m);
        part[0] = m;
        kv_rescale(lanes, 16, by);
        kv_rescale(part + 16, w->pad, by);
    }
    for (size_t j = r.lo / V * V; j < r.hi; j += V) {
        const vf p = kv_exp2(v_sub(v_load(s + j), v_set(m)));
        v_store(s + j, p);
        v_store(lanes + j % 16, v_add(v_load(lanes + j % 16), p));
    }
}

/* Positions from b on; tiles: how many of the block hold positions of the set. */
static void kv_block(const kv_work *w, size_t b, size_t tiles)
{
    const size_t bytes = w->f->tile_bytes(w->dim), at = b / QK_KV_TILE * bytes, n = tiles * QK_KV_TILE;
    const float c = w->a->scale * KV_LOG2E;
    kv_range r[KV_GROUP];
    w->f->open_k(w->block, (const char *)w->a->k + at, tiles, w->dim);
    if (w->f->open_scale)
        w->f->open_scale(w->scale, (const char *)w->a->k + at, tiles, w->dim);
    for (size_t i = 0; i < w->n; i += (size_t)kv_group(w, i))
        kv_score_n(w->s + i * QK_KV_BLOCK, w->q + i * w->dim, w->block, w->dim, n, kv_group(w, i));
    for (size_t i = 0; i < w->n; i++)
        kv_weigh(w, i, kv_range_of(w, i, b), c);
    w->f->open_v(w->block, (const char *)w->a->v + at, tiles, w->dim, w->pad);
    if (w->f->open_scale) {
        w->f->open_scale(w->scale, (const char *)w->a->v + at, tiles, w->dim);
        for (size_t i = 0; i < w->n * QK_KV_BLOCK; i += V)
            v_store(w->s + i, v_mul(v_load(w->s + i), v_load(w->scale + i % QK_KV_BLOCK)));
    }
    for (size_t i = 0; i < w->n;) {
        const int nq = kv_group(w, i);
        for (int q = 0; q < nq; q++)
            r[q] = kv_range_of(w, i + (size_t)q, b);
        kv_mix_ranges(w->part + i * w->stride + 16, w->stride, w->s + i * QK_KV_BLOCK, w->block, w->pad, r, nq);
        i += (size_t)nq;
    }
}

/* Sixteen lane sums, halves added to halves. */
static float kv_fold(const float *lanes)
{
    float t[8];
    for (size_t i = 0; i < 8; i++)
        t[i] = lanes[i] + lanes[i + 8];
    for (size_t n = 4; n > 0; n /= 2)
        for (size_t i = 0; i < n; i++)
            t[i] += t[i + n];
    return t[0];
}

/* The parts of all queries in one span; a sum of 0 means that a query sees nothing of it. */
static void kv_span(const kv_work *w, size_t span)
{
    const qk_attn *a = w->a;
    const size_t last = a->pos + a->n_cols, first = a->window && a->pos + 1 > a->window ? a->pos + 1 - a->window : 0;
    size_t b = span * QK_KV_SPAN, end = b + QK_KV_SPAN < last ? b + QK_KV_SPAN : last;
    if (b < first)
        b = first / QK_KV_BLOCK * QK_KV_BLOCK;
    for (size_t i = 0; i < w->n; i++) {
        float *part = w->part + i * w->stride;
        memset(part, 0, w->stride * sizeof *part);
        memset(w->lanes + i * 16, 0, 16 * sizeof *w->lanes);
        part[0] = -INFINITY;
    }
    for (; b < end; b += QK_KV_BLOCK)
        kv_block(w, b, qk_kv_tiles(end - b < QK_KV_BLOCK ? end - b : QK_KV_BLOCK));
    for (size_t i = 0; i < w->n; i++)
        w->part[i * w->stride + 1] = kv_fold(w->lanes + i * 16);
}

/* Adds a later part to an earlier one. */
static void kv_join(float *into, const float *part, size_t pad)
{
    if (part[1] == 0.0f)
        return;
    if (into[1] == 0.0f) {
        memcpy(into, part, (16 + pad) * sizeof *into);
        return;
    }
    const float m = part[0] > into[0] ? part[0] : into[0];
    const float x = kv_exp2_one(into[0] - m), y = kv_exp2_one(part[0] - m);
    into[0] = m;
    into[1] = into[1] * x + part[1] * y;
    for (size_t i = 16; i < 16 + pad; i += V)
        v_store(into + i, v_add(v_mul(v_load(into + i), v_set(x)), v_mul(v_load(part + i), v_set(y))));
}

static void kv_finish(float *y, const float *part, size_t dim)
{
    const vf by = v_set(1.0f / part[1]);
    size_t i = 0;
    for (; i + V <= dim; i += V)
        v_store(y + i, v_mul(v_load(part + 16 + i), by));
    if (i < dim)
        v_store_some(y + i, dim - i, v_mul(v_load(part + 16 + i), by));
}

static void kv_attend_span(const qk_attn *a, const kv_format *f, size_t span, float *part, size_t part_stride)
{
    kv_work w = kv_work_at(a, f);
    kv_pack(&w);
    w.part = part;
    w.stride = part_stride;
    kv_span(&w, span);
}

static void kv_attend(const qk_attn *a, const kv_format *f)
{
    kv_work w = kv_work_at(a, f);
    float *sum = w.part, *part = w.part + w.n * w.stride;
    const size_t spans = qk_kv_spans(a->pos + a->n_cols);
    const size_t first = a->window && a->pos + 1 > a->window ? (a->pos + 1 - a->window) / QK_KV_SPAN : 0;
    kv_pack(&w);
    kv_span(&w, first);
    for (size_t s = first + 1; s < spans; s++) {
        w.part = part;
        kv_span(&w, s);
        for (size_t i = 0; i < w.n; i++)
            kv_join(sum + i * w.stride, part + i * w.stride, w.pad);
    }
    for (size_t i = 0; i < w.n; i++)
        kv_finish(a->y + i / a->n_heads * a->y_stride + i % a->n_heads * w.dim, sum + i * w.stride, w.dim);
}

static void kv_merge(float *y, float *part, size_t n, size_t part_stride, size_t dim)
{
    for (size_t s = 1; s < n; s++)
        kv_join(part, part + s * part_stride, qk_kv_pad(dim));
    kv_finish(y, part, dim);
}

#endif
