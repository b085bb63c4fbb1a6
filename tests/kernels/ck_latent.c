/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention where V is K: the bits of the same rows stored as V, or softmax in float64 where storing them
 * again changes them. As many queries as a call can have, each of them alone, in spans, in a ring, from a
 * list; with garbage after the last position. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_K, SLOT_V, SLOT_Q, SLOT_Y, SLOT_SCRATCH, SLOT_PART, MAX_DIM = 576, MAX_N = 2200 };

#define LATENT(a, name, NAME, bits, latent, dims) [QK_KV_##NAME] = latent,
static const int is_latent[QK_KV_N] = { QK_KV_TYPES(LATENT, ) };

typedef struct latent {
    int kv;
    size_t dim, heads, cols, pos, window;
    size_t floats; /* of the queries */
} latent;

static int is_rounded_again(int kv) { return kv == QK_KV_Q8; }

/* Query i in float64, from the rows as they are read. */
static void check_truth(const qk_table *t, const latent *s, const qk_attn *a, size_t c, size_t h) {
    static double w[MAX_N];
    static float x[MAX_N][MAX_DIM];
    const float *q = a->q + c * a->q_stride + h * s->dim, *got = a->y + c * a->y_stride + h * s->dim;
    const size_t end = s->pos + c + 1, start = s->window && end > s->window ? end - s->window : 0;
    double m = -INFINITY, sum = 0, query = 0;
    for (size_t i = 0; i < s->dim; i++) query += (double)q[i] * (double)q[i];
    for (size_t p = start; p < end; p++) {
        t->kv[s->kv].load(x[p], a->k, 0, p, s->dim);
        w[p] = 0;
        for (size_t i = 0; i < s->dim; i++) w[p] += (double)q[i] * (double)x[p][i] * (double)a->scale;
        m = fmax(m, w[p]);
    }
    for (size_t p = start; p < end; p++) sum += w[p] = exp(w[p] - m);
    for (size_t i = 0; i < s->dim; i++) {
        double y = 0, most = 0;
        for (size_t p = start; p < end; p++) {
            y += w[p] / sum * (double)x[p][i];
            most = fmax(most, fabs((double)x[p][i]));
        }
        /* A query of 14 bits; floats otherwise. */
        ck_near("V is K", i, (double)got[i], y,
                (is_rounded_again(s->kv) ? 4e-3 : 1e-5) * most * (1 + sqrt(query)));
    }
}

/* The same rows stored as V give the same bits; in calls of as many queries as those can have. */
static void check_stored(const qk_table *t, const latent *s, const qk_attn *a) {
    const size_t n = s->pos + s->cols, most = qk_attn_queries(s->dim);
    const size_t bytes = qk_kv_tiles(n) * t->kv[s->kv].tile_bytes(s->dim);
    char *v = malloc(bytes);
    float x[MAX_DIM], y[64 * MAX_DIM];
    qk_attn one = *a;
    if (!v) exit(1);
    memset(v, 0xff, bytes);
    for (size_t p = 0; p < n; p++) {
        t->kv[s->kv].load(x, a->k, 0, p, s->dim);
        t->kv[s->kv].store(v, 1, p, x, s->dim);
    }
    one.v = v;
    one.n_cols = 1;
    one.y = y;
    for (size_t c = 0; c < s->cols; c++)
        for (size_t h = 0; h < s->heads; h += most) {
            const size_t at = h * s->dim;
            one.n_heads = s->heads - h < most ? s->heads - h : most;
            one.q = a->q + c * a->q_stride + at;
            one.pos = s->pos + c;
            t->kv[s->kv].attend(&one);
            ck_same_bits("stored as V", y, a->y + c * a->y_stride + at, one.n_heads * s->dim);
        }
    free(v);
}

/* A query alone, and from its spans: the same bits. */
static void check_alone(const qk_table *t, const latent *s, const qk_attn *a, size_t c, size_t h) {
    const size_t at = c * a->q_stride + h * s->dim, spans = qk_kv_spans(s->pos + c + 1),
                 stride = qk_attn_part(s->dim);
    float y[MAX_DIM], *part = ck_tail64(SLOT_PART, spans * stride * sizeof *part);
    qk_attn one = *a;
    one.q = a->q + at;
    one.y = y;
    one.n_cols = one.n_heads = 1;
    one.pos = s->pos + c;
    t->kv[s->kv].attend(&one);
    ck_same_bits("alone", y, a->y + at, s->dim);
    for (size_t i = 0; i < spans; i++) t->kv[s->kv].attend_span(&one, i, part + i * stride, spans * stride);
    t->kv[s->kv].merge(y, part, spans, stride, s->dim, NULL);
    ck_same_bits("spans", y, a->y + at, s->dim);
}

/* Tiles in a ring or, in another order, from a list: the same bits. The weights add up to 1
 * for each query. */
static void check_places(const qk_table *t, const latent *s, const qk_attn *a) {
    static uint64_t mass[MAX_N + 64 * QK_KV_TILE];
    static qk_kv_slot list[MAX_N / QK_KV_TILE + 1];
    const size_t tiles = qk_kv_tiles(s->pos + s->cols), bytes = t->kv[s->kv].tile_bytes(s->dim);
    const size_t blocks = (tiles + 3) / 4, slots = tiles + ck_below(60), step = slots % 7 ? 7 : 1;
    char *k = malloc((slots > 4 * blocks ? slots : 4 * blocks) * bytes);
    float *y = ck_dst(SLOT_V, s->floats);
    qk_attn b = *a;
    uint64_t sum = 0;
    if (!k) exit(1);
    b.k = k;
    b.y = y;
    memcpy(y, a->y, s->floats * sizeof *y);
    if (s->window &&
        s->window + s->cols + QK_KV_BLOCK <= s->pos) { /* the first block is where the last one was */
        b.ring = (blocks - 1) * QK_KV_BLOCK;
        for (size_t i = 0; i < tiles; i++)
            memcpy(k + i % (4 * (blocks - 1)) * bytes, (const char *)a->k + i * bytes, bytes);
        t->kv[s->kv].attend(&b);
        ck_same_bits("ring", y, a->y, s->floats);
        b.ring = 0;
    }
    memset(k, 0xff, slots * bytes);
    for (size_t i = 0; i < tiles; i++) {
        list[i] = (qk_kv_slot){ (uint32_t)i, (uint32_t)(i * step % slots), 0xffff };
        memcpy(k + list[i].slot * bytes, (const char *)a->k + i * bytes, bytes);
    }
    b.list = list;
    b.n_list = tiles;
    b.mass = mass;
    memset(mass, 0, sizeof mass);
    t->kv[s->kv].attend(&b);
    ck_same_bits("list", y, a->y, s->floats);
    for (size_t i = 0; i < slots * QK_KV_TILE; i++) sum += mass[i];
    ck_near("mass", 0, (double)sum / QK_KV_MASS / (double)(s->cols * s->heads), 1, 1e-3);
    free(k);
}

static void latent_case(const qk_table *t, latent s) {
    const size_t row = s.heads * s.dim, n = s.pos + s.cols;
    const size_t bytes = qk_kv_tiles(n) * t->kv[s.kv].tile_bytes(s.dim);
    s.floats = (s.cols - 1) * (row + 3) + row;
    float x[MAX_DIM], *q = ck_tail(SLOT_Q, s.floats * sizeof *q), *y = ck_dst(SLOT_Y, s.floats);
    char *k = ck_tail(SLOT_K, bytes);
    const qk_attn a = { .k = k,
                        .v_type = (qk_kv)s.kv,
                        .q = q,
                        .y = y,
                        .q_stride = row + 3,
                        .y_stride = row + 3,
                        .head_dim = s.dim,
                        .n_cols = s.cols,
                        .n_heads = s.heads,
                        .pos = s.pos,
                        .window = s.window,
                        .scale = 1.0f / sqrtf((float)s.dim),
                        .scratch = ck_tail64(SLOT_SCRATCH, qk_attn_scratch_v_is_k(s.dim)) };
    memset(k, 0xff, bytes);
    for (size_t p = 0; p < n; p++) {
        ck_fill_floats(x, s.dim, CK_RANDOM);
        t->kv[s.kv].store(k, 0, p, x, s.dim);
    }
    ck_fill_floats(q, s.floats, CK_RANDOM);
    memset(a.scratch, 0xff, qk_attn_scratch_v_is_k(s.dim));
    t->kv[s.kv].attend(&a);
    ck_dst_ok(SLOT_Y, s.floats);
    check_truth(t, &s, &a, ck_below(s.cols), ck_below(s.heads));
    check_truth(t, &s, &a, s.cols - 1, s.heads - 1);
    if (!is_rounded_again(s.kv)) check_stored(t, &s, &a);
    for (size_t i = 0; i < s.cols * s.heads; i += 5) check_alone(t, &s, &a, i / s.heads, i % s.heads);
    check_places(t, &s, &a);
    ck_avx2_bits(t, s.kv, &a, s.floats);
    if (ck_failed())
        ck_error("dim %zu, %zu columns, %zu heads, position %zu, window %zu", s.dim, s.cols, s.heads, s.pos,
                 s.window);
}

static void check_latent(const qk_table *t, int kv) {
    static const size_t dims[] = { 4, 16, 20, 64, 72, 80, 128, 136, 192, 576 };
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t rep = 0; rep < 6 && !ck_failed(); rep += 6 / ck_some(6)) {
            latent s = { .kv = kv, .dim = dims[d] };
            const size_t most = qk_attn_queries_v_is_k(s.dim);
            s.heads = rep % 3 == 0 ? most : 1 + ck_below(rep % 3 == 1 ? 3 : most);
            s.cols = 1 + ck_below(most / s.heads);
            s.pos = rep == 5 && s.dim < 200 ? 1000 + ck_below(1100) : ck_below(rep < 2 ? 70 : 300);
            s.window = rep % 2 ? 1 + ck_below(100) : 0;
            latent_case(t, s);
        }
}

void ck_test_latent(const qk_table *t) {
    for (int kv = 0; kv < QK_KV_N; kv++) {
        char name[32];
        snprintf(name, sizeof name, "kv_%s_latent", t->kv[kv].name);
        if (is_latent[kv]) ck_check(name, (ck_fn)t->kv[kv].attend, check_latent, t, kv);
    }
}
