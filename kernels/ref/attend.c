/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention over cached tiles, one query after the other, sums in double inside a span. */
#include <math.h>
#include <string.h>

#include "kernels/ref/kv.h"

typedef void (*load_fn)(float *x, const void *tiles, int which, size_t pos, size_t dim);

#define LOAD_OF(a, fmt, NAME, bits, latent, dims) [QK_KV_##NAME] = qk_kv_##fmt##_load_ref,
static const load_fn load_of[QK_KV_N] = { QK_KV_TYPES(LOAD_OF, ) };

/* What one query has gathered: everything relative to the largest score so far. */
typedef struct gathered {
    double m, sum, *acc;
    float *row;
} gathered;

/* Where the position that counts as number x is in the memory. */
static size_t place(const qk_attn *a, size_t x) {
    if (a->where) return (size_t)a->where[x / QK_KV_TILE] * QK_KV_TILE + x % QK_KV_TILE;
    if (a->list) return (size_t)a->list[x / QK_KV_TILE].slot * QK_KV_TILE + x % QK_KV_TILE;
    return qk_kv_wrap(x, a->ring);
}

/* The same of its mass. */
static size_t slot_place(const qk_attn *a, size_t x) {
    return a->list ? (size_t)a->list[x / QK_KV_TILE].slot * QK_KV_TILE + x % QK_KV_TILE : place(a, x);
}

static int is_kept(const qk_attn *a, size_t x) {
    return !a->list || (a->list[x / QK_KV_TILE].kept >> x % QK_KV_TILE & 1);
}

/* The score that query i, which is at position `at`, gives to number x. */
static double score(float *row, const qk_attn *a, size_t i, size_t at, size_t x, load_fn load) {
    const float *q = a->q + (at - a->pos) * a->q_stride + i % a->n_heads * a->head_dim;
    double s = 0;
    load(row, a->k, 0, place(a, x), a->head_dim);
    for (size_t d = 0; d < a->head_dim; d++) s += (double)q[d] * (double)row[d];
    s *= (double)a->scale;
    if (a->softcap > 0) s = (double)a->softcap * tanh(s / (double)a->softcap);
    if (a->slopes) s += (double)a->slopes[i % a->n_heads] * ((double)qk_kv_position(a, x) - (double)at);
    return s;
}

static void add_position(gathered *g, const qk_attn *a, size_t i, size_t at, size_t x, load_fn load) {
    const double s = score(g->row, a, i, at, x, load);
    if (s > g->m) {
        const double by = exp(g->m - s);
        g->sum *= by;
        for (size_t d = 0; d < a->head_dim; d++) g->acc[d] *= by;
        g->m = s;
    }
    const double p = exp(s - g->m);
    g->sum += p;
    if (a->v != NULL) load_of[a->v_type](g->row, a->v, 1, place(a, x), a->head_dim);
    for (size_t d = 0; d < a->head_dim; d++) g->acc[d] += p * (double)g->row[d];
}

/* Query i in one span. A sum of 0 means that it sees nothing there. */
static void attend_one(const qk_attn *a, size_t i, size_t span, float *part, load_fn load) {
    const size_t at = a->pos + i / a->n_heads, end = qk_kv_end(a, at), stop = (span + 1) * QK_KV_SPAN;
    size_t x = qk_kv_first(a, at);
    gathered g = { -INFINITY, 0, a->scratch, NULL };
    g.row = (float *)(void *)(g.acc + a->head_dim);
    memset(g.acc, 0, a->head_dim * sizeof *g.acc);
    if (x < span * QK_KV_SPAN) x = span * QK_KV_SPAN;
    for (; x < end && x < stop; x++)
        if (is_kept(a, x)) add_position(&g, a, i, at, x, load);
    part[0] = (float)g.m;
    part[1] = (float)g.sum;
    for (size_t d = 0; d < a->head_dim; d++) part[16 + d] = (float)g.acc[d];
}

/* Adds the weights of query i, of which `sum` is the joined part. */
static void add_mass(const qk_attn *a, size_t i, const float *sum, load_fn load) {
    const size_t at = a->pos + i / a->n_heads, end = qk_kv_end(a, at);
    float *row = a->scratch;
    for (size_t x = qk_kv_first(a, at); x < end; x++) {
        if (!is_kept(a, x)) continue;
        const double w = exp(score(row, a, i, at, x, load) - (double)sum[0]) / (double)sum[1];
        if (w > 0) a->mass[slot_place(a, x)] += (uint64_t)(w * QK_KV_MASS + 0.5);
    }
}

static void join(float *into, const float *part, size_t dim) {
    if (part[1] == 0.0f) return;
    if (into[1] == 0.0f) {
        memcpy(into, part, (16 + dim) * sizeof *into);
        return;
    }
    const float m = part[0] > into[0] ? part[0] : into[0];
    const float x = expf(into[0] - m), y = expf(part[0] - m);
    into[0] = m;
    into[1] = into[1] * x + part[1] * y;
    for (size_t i = 16; i < 16 + dim; i++) into[i] = into[i] * x + part[i] * y;
}

static void finish(float *y, const float *part, size_t dim, const float *sink) {
    const double sum = (double)part[1] + (sink ? exp((double)*sink - (double)part[0]) : 0);
    for (size_t i = 0; i < dim; i++) y[i] = (float)((double)part[16 + i] / sum);
}

static void attend(const qk_attn *a, load_fn load) {
    const size_t dim = a->head_dim;
    float *sum = (float *)(void *)((double *)a->scratch + 2 * dim), *part = sum + 16 + dim;
    for (size_t i = 0; i < a->n_cols * a->n_heads; i++) {
        sum[1] = 0;
        const size_t end = qk_kv_end(a, a->pos + a->n_cols - 1);
        for (size_t s = 0; s < qk_kv_spans(end); s++) {
            attend_one(a, i, s, part, load);
            join(sum, part, dim);
        }
        if (a->recent) {
            attend_one(a->recent, i, 0, part, load_of[a->recent_type]);
            join(sum, part, dim);
        }
        if (a->mass && i / a->n_heads >= a->mass_from) {
            add_mass(a, i, sum, load);
            if (a->recent) add_mass(a->recent, i, sum, load_of[a->recent_type]);
        }
        finish(a->y + i / a->n_heads * a->y_stride + i % a->n_heads * dim, sum, dim,
               a->sinks ? a->sinks + i % a->n_heads : NULL);
    }
}

static void attend_span(const qk_attn *a, size_t span, float *part, size_t part_stride, load_fn load) {
    for (size_t i = 0; i < a->n_cols * a->n_heads; i++) attend_one(a, i, span, part + i * part_stride, load);
}

#define REF_OPS(a, fmt, NAME, bits, latent, dims)                                                        \
    void qk_kv_##fmt##_attend_ref(const qk_attn *q) { attend(q, qk_kv_##fmt##_load_ref); }               \
    void qk_kv_##fmt##_attend_span_ref(const qk_attn *q, size_t span, float *part, size_t part_stride) { \
        attend_span(q, span, part, part_stride, qk_kv_##fmt##_load_ref);                                 \
    }

QK_KV_TYPES(REF_OPS, )

void qk_kv_merge_ref(float *y, float *part, size_t n, size_t part_stride, size_t dim, const float *sink) {
    for (size_t s = 1; s < n; s++) join(part, part + s * part_stride, dim);
    finish(y, part, dim, sink);
}
