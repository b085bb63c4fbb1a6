/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention over cached tiles, one query after the other, sums in double inside a span. */
#include <math.h>
#include <string.h>

#include "kernels/ref/kv.h"

typedef void (*load_fn)(float *x, const void *tiles, int which, size_t pos, size_t dim);

static const load_fn load_of[QK_KV_N] = {
    [QK_KV_F32] = qk_kv_f32_load_ref,
    [QK_KV_F16] = qk_kv_f16_load_ref,
    [QK_KV_Q8] = qk_kv_q8_load_ref,
};

/* What one query has gathered: everything relative to the largest score so far. */
typedef struct gathered {
    double m, sum, *acc;
    float *row;
} gathered;

/* Position pos for query i, which is at position `at`. */
static void add_position(gathered *g, const qk_attn *a, size_t i, size_t at, size_t pos, load_fn load) {
    const float *q = a->q + (at - a->pos) * a->q_stride + i % a->n_heads * a->head_dim;
    double s = 0;
    load(g->row, a->k, 0, qk_kv_wrap(pos, a->ring), a->head_dim);
    for (size_t d = 0; d < a->head_dim; d++) s += (double)q[d] * (double)g->row[d];
    s *= (double)a->scale;
    if (a->softcap > 0) s = (double)a->softcap * tanh(s / (double)a->softcap);
    if (a->slopes) s += (double)a->slopes[i % a->n_heads] * ((double)pos - (double)at);
    if (s > g->m) {
        const double by = exp(g->m - s);
        g->sum *= by;
        for (size_t d = 0; d < a->head_dim; d++) g->acc[d] *= by;
        g->m = s;
    }
    const double p = exp(s - g->m);
    g->sum += p;
    if (a->v != NULL) load_of[a->v_type](g->row, a->v, 1, qk_kv_wrap(pos, a->ring), a->head_dim);
    for (size_t d = 0; d < a->head_dim; d++) g->acc[d] += p * (double)g->row[d];
}

/* Query i in one span. A sum of 0 means that it sees nothing there. */
static void attend_one(const qk_attn *a, size_t i, size_t span, float *part, load_fn load) {
    const size_t c = i / a->n_heads, end = a->pos + c + 1, stop = (span + 1) * QK_KV_SPAN;
    size_t p = a->window && end > a->window ? end - a->window : 0;
    if (a->chunk && p < (end - 1) / a->chunk * a->chunk) p = (end - 1) / a->chunk * a->chunk;
    gathered g = { -INFINITY, 0, a->scratch, NULL };
    g.row = (float *)(void *)(g.acc + a->head_dim);
    memset(g.acc, 0, a->head_dim * sizeof *g.acc);
    if (p < span * QK_KV_SPAN) p = span * QK_KV_SPAN;
    for (; p < end && p < stop; p++) add_position(&g, a, i, end - 1, p, load);
    part[0] = (float)g.m;
    part[1] = (float)g.sum;
    for (size_t d = 0; d < a->head_dim; d++) part[16 + d] = (float)g.acc[d];
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
        for (size_t s = 0; s < qk_kv_spans(a->pos + a->n_cols); s++) {
            attend_one(a, i, s, part, load);
            join(sum, part, dim);
        }
        finish(a->y + i / a->n_heads * a->y_stride + i % a->n_heads * dim, sum, dim,
               a->sinks ? a->sinks + i % a->n_heads : NULL);
    }
}

static void attend_span(const qk_attn *a, size_t span, float *part, size_t part_stride, load_fn load) {
    for (size_t i = 0; i < a->n_cols * a->n_heads; i++) attend_one(a, i, span, part + i * part_stride, load);
}

#define REF_OPS(fmt)                                                                                     \
    void qk_kv_##fmt##_attend_ref(const qk_attn *a) { attend(a, qk_kv_##fmt##_load_ref); }               \
    void qk_kv_##fmt##_attend_span_ref(const qk_attn *a, size_t span, float *part, size_t part_stride) { \
        attend_span(a, span, part, part_stride, qk_kv_##fmt##_load_ref);                                 \
    }

REF_OPS(f32)
REF_OPS(f16)
REF_OPS(q8)

void qk_kv_merge_ref(float *y, float *part, size_t n, size_t part_stride, size_t dim, const float *sink) {
    for (size_t s = 1; s < n; s++) join(part, part + s * part_stride, dim);
    finish(y, part, dim, sink);
}
