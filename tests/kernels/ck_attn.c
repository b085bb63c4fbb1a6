/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cached K and V: stored rows are read back; attention compared with softmax in float64, one query and
 * several, whole and in spans, causal and in a window, with garbage after the last position. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_K, SLOT_V, SLOT_Q, SLOT_Y, SLOT_SCRATCH, SLOT_PART, MAX_DIM = 256, MAX_N = 2400 };

static const size_t dims[] = { 1, 7, 8, 15, 16, 17, 32, 33, 64, 72, 80, 96, 128, 256 };

typedef struct shape {
    size_t dim, cols, heads, pos, window;
    size_t chunk;
    float softcap;
    int sinks, slopes;
} shape;

/* --- store --- */

#define BITS(a, name, NAME, bits, latent, dims) [QK_KV_##NAME] = bits,
static const int bits_of[QK_KV_N] = { QK_KV_TYPES(BITS, ) };

static int is_packed(int kv) { return bits_of[kv] <= 8; }

/* The Hadamard transform of blocks of the largest power of two up to 128, by its definition;
 * each row has length 1. */
static void transform(double *y, const float *x, size_t dim) {
    size_t n = 1;
    while (n < 128 && dim % (2 * n) == 0) n *= 2;
    for (size_t i = 0; i < dim; i++) {
        y[i] = 0;
        for (size_t j = 0; j < n; j++)
            y[i] += (__builtin_parityll((i % n) & j) ? -1 : 1) * (double)x[i / n * n + j];
        y[i] /= sqrt((double)n);
    }
}

/* In 2 bits each element, transformed, is once or three times a scale, whichever is nearer; what is lost of a
 * row is less than the row. */
static void check_odd(const double *y, const double *want, size_t dim) {
    double least = INFINITY, lost = 0, all = 0;
    for (size_t i = 0; i < dim; i++) least = fmin(least, fabs(y[i]));
    for (size_t i = 0; i < dim; i++) {
        const double x = fabs(want[i]), slack = least * 0x1p-10 + 0x1p-22;
        const int outer = fabs(y[i]) > 2 * least;
        ck_near("odd", i, fabs(y[i]), least * (outer ? 3 : 1), slack);
        if (outer ? x < 2 * least - slack : 0) ck_error("element %zu, %g, became %g", i, want[i], y[i]);
        if (y[i] * want[i] < -slack * least) ck_error("element %zu, %g, became %g", i, want[i], y[i]);
        lost += (y[i] - want[i]) * (y[i] - want[i]);
        all += want[i] * want[i];
    }
    const double noise = (double)dim * 0x1p-46;
    if (lost > all * (1 + 0x1p-10) + noise) ck_error("a row of %g lost %g", all, lost);
    if (dim >= 64 && lost > all / 4 + noise) ck_error("an even row of %g lost %g", all, lost);
}

/* What is read back is, transformed, within half a step of what was stored; where the element with the
 * largest magnitude has the other sign, within a step of that. */
static void check_packed(int kv, const float *got, const float *x, size_t dim) {
    double y[MAX_DIM], want[MAX_DIM], low = 0, high = 0;
    transform(y, got, dim);
    transform(want, x, dim);
    if (bits_of[kv] == 2) {
        check_odd(y, want, dim);
        return;
    }
    for (size_t i = 0; i < dim; i++) {
        low = fmin(low, want[i]);
        high = fmax(high, want[i]);
    }
    const double most = fmax(high, -low);
    const double step = most / (1 << (bits_of[kv] - 1)) * (1 + 0x1p-10) + 0x1p-23, slack = most * 0x1p-20;
    for (size_t i = 0; i < dim; i++) {
        const int clipped = fabs(want[i]) > most - 0.51 * step;
        ck_near("packed", i, y[i], want[i], step * (clipped ? 1 : 0.5) + slack);
    }
}

static void check_position(const qk_table *t, int kv, int which, const float *x, size_t pos, size_t dim,
                           char *tiles) {
    float got[MAX_DIM];
    t->kv[kv].store(tiles, which, pos, x, dim);
    t->kv[kv].load(got, tiles, which, pos, dim);
    if (is_packed(kv)) {
        check_packed(kv, got, x, dim);
        return;
    }
    for (size_t i = 0; i < dim; i++)
        ck_near("store", i, (double)got[i], kv == QK_KV_F16 ? ck_half(qk_f32_to_f16(x[i])) : (double)x[i], 0);
}

/* Every level stores the bytes of the reference. */
static void check_bytes(int kv, int which, float (*x)[MAX_DIM], size_t dim, const char *tiles, size_t bytes) {
    qk_table ref;
    char *want = malloc(bytes);
    if (!want) exit(1);
    memset(want, 0xff, bytes);
    qk_table_init(&ref, QK_LEVEL_REF);
    for (size_t p = 0; p < 32; p++) ref.kv[kv].store(want, which, p * 13 % 32, x[p], dim);
    if (memcmp(want, tiles, bytes) != 0) ck_error("not the bytes of the reference, %zu dimensions", dim);
    free(want);
}

/* Every position of two tiles, in any order: none may affect another. */
static void check_store(const qk_table *t, int kv) {
    static float x[32][MAX_DIM];
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (int which = 0; which < 2; which++) {
            const size_t dim = dims[d], bytes = 2 * t->kv[kv].tile_bytes(dim);
            char *tiles = ck_tail(SLOT_K, bytes);
            float *row = ck_tail(SLOT_Q, dim * sizeof *row);
            memset(tiles, 0xff, bytes);
            if (bytes % 32) ck_error("a tile of %zu bytes", bytes / 2);
            for (size_t p = 0; p < 32; p++) {
                ck_fill_floats(x[p], dim, d % 3 == 1 ? CK_TINY : CK_RANDOM);
                memcpy(row, x[p], dim * sizeof *row);
                t->kv[kv].store(tiles, which, p * 13 % 32, row, dim);
            }
            if (is_packed(kv)) check_bytes(kv, which, x, dim, tiles, bytes);
            for (size_t p = 0; p < 32; p++) check_position(t, kv, which, x[p], p * 13 % 32, dim, tiles);
        }
}

/* --- attention --- */

/* Positions [0, n), the rest of the last tile filled with NaN. A few keys are large, so that the maximum
 * changes. */
static void make_cache(const qk_table *t, int kv, size_t dim, size_t n, char *k, char *v, size_t bytes) {
    float x[MAX_DIM];
    memset(k, 0xff, bytes);
    memset(v, 0xff, bytes);
    for (size_t p = 0; p < n; p++) {
        ck_fill_floats(x, dim, CK_RANDOM);
        for (size_t i = 0; ck_below(16) == 0 && i < dim; i++) x[i] *= 4;
        t->kv[kv].store(k, 0, p, x, dim);
        ck_fill_floats(x, dim, CK_RANDOM);
        t->kv[kv].store(v, 1, p, x, dim);
    }
}

/* Position range of column c. */
static size_t range(const shape *s, size_t c, size_t *end) {
    *end = s->pos + c + 1;
    const size_t window = s->window && *end > s->window ? *end - s->window : 0;
    const size_t chunk = s->chunk ? (*end - 1) / s->chunk * s->chunk : 0;
    return window > chunk ? window : chunk;
}

/* Positions that check_list evicts, besides itself and its neighbours. */
static size_t evict_every; /* 0 = nothing is evicted */
static int is_evicted(size_t p) {
    if (evict_every == 0) return 0;
    return p / 16 % evict_every == 1 || p * 7 % 11 < 2 * evict_every % 5;
}

/* How much of what was added up an element of a rotated row can hold: its length. */
static double length(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* K and V of all positions and their lengths, as they are read: each is compared with many queries. */
static struct {
    float x[2][MAX_N][MAX_DIM];
    double length[2][MAX_N];
} rows;

static void load_rows(const qk_table *t, int kv, const char *tiles, int which, size_t n, size_t dim) {
    for (size_t p = 0; p < n; p++) {
        float *x = rows.x[which][p];
        t->kv[kv].load(x, tiles, which, p, dim);
        rows.length[which][p] = length(x, dim);
    }
}

/* q times x, and the sum of the magnitudes. In four parts, of which none waits for another. */
static double score(const float *q, const float *x, size_t n, double *mags) {
    double sum[4] = { 0 }, mag[4] = { 0 };
    for (size_t i = 0; i < n; i += 4)
        for (size_t j = 0; j < 4 && i + j < n; j++) {
            const double v = (double)q[i + j] * (double)x[i + j];
            sum[j] += v;
            mag[j] += fabs(v);
        }
    *mags = mag[0] + mag[1] + (mag[2] + mag[3]);
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

static void check_query(int kv, const qk_attn *a, const shape *sh, size_t c, size_t h) {
    static double s[MAX_N], y[MAX_DIM], mag[MAX_DIM];
    const float *q = a->q + c * a->q_stride + h * sh->dim, *got = a->y + c * a->y_stride + h * sh->dim;
    size_t end;
    const size_t start = range(sh, c, &end);
    const int v_packed = is_packed((int)a->v_type);
    const double reach = length(q, sh->dim) * (double)a->scale;
    double m = -INFINITY, worst = 0, sum = 0;
    for (size_t p = start; p < end; p++) {
        double near = 0;
        s[p] = -INFINITY;
        if (is_evicted(p)) continue;
        s[p] = score(q, rows.x[0][p], sh->dim, &near) * (double)a->scale;
        near *= fabs((double)a->scale);
        if (is_packed(kv)) { /* the query has 14 or 8 bits, the weights below have 14 */
            near = reach * rows.length[0][p];
            worst = fmax(worst, near * sqrt((double)sh->dim) / (bits_of[kv] == 8 ? 16254 : 254) / CK_EPS);
        }
        if (a->softcap > 0) s[p] = (double)a->softcap * tanh(s[p] / (double)a->softcap);
        const double bias = a->slopes ? (double)a->slopes[h] * ((double)p - (double)(end - 1)) : 0;
        s[p] += bias;
        near += (double)a->softcap / 4 + fabs(bias) / 4;
        worst = fmax(worst, near * (double)(sh->dim + 8) + 2 * fabs(s[p]));
        m = fmax(m, s[p]);
    }
    memset(y, 0, sizeof y);
    memset(mag, 0, sizeof mag);
    double mags = 0; /* of every element of packed rows */
    for (size_t p = start; p < end; p++) {
        const double w = exp(s[p] - m);
        if (is_evicted(p)) continue;
        sum += w;
        mags += w * rows.length[1][p];
        const float *x = rows.x[1][p];
        for (size_t i = 0; i < sh->dim; i++) y[i] += w * (double)x[i];
        for (size_t i = 0; !v_packed && i < sh->dim; i++) mag[i] += w * fabs((double)x[i]);
    }
    for (size_t i = 0; v_packed && i < sh->dim; i++) mag[i] = mags;
    if (a->sinks) sum += exp((double)a->sinks[h] - m);
    for (size_t i = 0; i < sh->dim; i++)
        ck_near("attention", i, (double)got[i], y[i] / sum,
                (CK_EPS * (2 * worst + (double)(end - start) + 32) + (v_packed ? 64.0 / 16254 : 0)) * mag[i] /
                    sum);
}

/* Compared with the rows that were loaded. */
static void check_truth(int kv, const qk_attn *a, const shape *sh) {
    for (size_t c = 0; c < sh->cols; c++)
        for (size_t h = 0; h < sh->heads; h++) check_query(kv, a, sh, c, h);
}

/* One query alone. */
static void check_alone(const qk_table *t, int kv, const qk_attn *a, size_t c, size_t h) {
    float y[MAX_DIM];
    qk_attn one = *a;
    one.q = a->q + c * a->q_stride + h * a->head_dim;
    one.y = y;
    one.n_cols = one.n_heads = 1;
    one.pos = a->pos + c;
    if (a->sinks) one.sinks = a->sinks + h;
    if (a->slopes) one.slopes = a->slopes + h;
    t->kv[kv].attend(&one);
    ck_same_bits("alone", y, a->y + c * a->y_stride + h * a->head_dim, a->head_dim);
}

/* One column from its spans, whose parts are stored head by head, computed in any order. */
static void check_spans(const qk_table *t, int kv, const qk_attn *a, size_t c) {
    const size_t dim = a->head_dim, spans = qk_kv_spans(qk_kv_index(a, a->pos + c) + 1),
                 stride = qk_attn_part(dim);
    float y[MAX_DIM], *part = ck_tail64(SLOT_PART, a->n_heads * spans * stride * sizeof *part);
    qk_attn one = *a;
    one.q = a->q + c * a->q_stride;
    one.y = NULL;
    one.n_cols = 1;
    one.pos = a->pos + c;
    for (size_t i = 0; i < spans; i++) {
        const size_t s = (i + c) % spans;
        t->kv[kv].attend_span(&one, s, part + s * stride, spans * stride);
    }
    for (size_t h = 0; h < a->n_heads; h++) {
        t->kv[kv].merge(y, part + h * spans * stride, spans, stride, dim, a->sinks ? a->sinks + h : NULL);
        ck_same_bits("spans", y, a->y + c * a->y_stride + h * dim, dim);
    }
}

/* K of one type and V of another, whose rows are then those that are loaded. */
static void check_mixed(const qk_table *t, int kv, const qk_attn *a, const shape *sh, size_t n,
                        size_t floats) {
    const int other = (kv + 1 + (int)ck_below(QK_KV_N - 1)) % QK_KV_N;
    char *v = malloc(qk_kv_tiles(n) * t->kv[other].tile_bytes(a->head_dim));
    float *y = malloc(floats * sizeof *y);
    qk_attn b = *a;
    if (!v || !y) exit(1);
    memset(v, 0xff, qk_kv_tiles(n) * t->kv[other].tile_bytes(a->head_dim));
    for (size_t p = 0; p < n; p++) t->kv[other].store(v, 1, p, rows.x[1][p], a->head_dim);
    memcpy(y, a->y, floats * sizeof *y);
    b.v = v;
    b.v_type = (qk_kv)other;
    b.y = y;
    t->kv[kv].attend(&b);
    load_rows(t, other, v, 1, n, a->head_dim);
    check_truth(kv, &b, sh);
    ck_avx2_bits(t, kv, &b, floats);
    free(v);
    free(y);
}

/* Puts the tiles of `first` and later positions at their places in a ring; the rest is not a number. */
static char *ring_of(const char *tiles, size_t first, size_t n, size_t ring, size_t bytes) {
    char *to = malloc(ring / QK_KV_TILE * bytes);
    if (!to) exit(1);
    memset(to, 0xff, ring / QK_KV_TILE * bytes);
    for (size_t p = first; p < n; p += QK_KV_TILE)
        memcpy(to + p % ring / QK_KV_TILE * bytes, tiles + p / QK_KV_TILE * bytes, bytes);
    return to;
}

/* Only the positions that are seen, in the smallest ring and in a larger one: the same bits. */
static void check_ring(const qk_table *t, int kv, const qk_attn *a, size_t n, size_t floats) {
    const size_t bytes = t->kv[kv].tile_bytes(a->head_dim), end = a->pos + 1;
    size_t first = a->window && end > a->window ? end - a->window : 0;
    if (a->chunk && first < a->pos / a->chunk * a->chunk) first = a->pos / a->chunk * a->chunk;
    first = first / QK_KV_TILE * QK_KV_TILE;
    float *y = malloc(floats * sizeof *y);
    if (!y) exit(1);
    for (size_t more = 1; more <= 3; more += 2) {
        const size_t ring = ((n - first + 15) / 16 * 16 + 64 * more - 1) / 64 * 64;
        char *k = ring_of(a->k, first, n, ring, bytes), *v = ring_of(a->v, first, n, ring, bytes);
        qk_attn b = *a;
        b.k = k;
        b.v = v;
        b.y = y;
        b.ring = ring;
        memcpy(y, a->y, floats * sizeof *y);
        t->kv[kv].attend(&b);
        ck_same_bits("ring", y, a->y, floats);
        free(k);
        free(v);
    }
    free(y);
}

/* The tiles of n positions in any order, without those of which nothing is left. Returns their number. */
static size_t make_list(qk_kv_slot *list, size_t n, size_t slots) {
    static const size_t primes[] = { 1, 2, 3, 5, 7 };
    size_t n_list = 0, first = ck_below(slots), step = primes[ck_below(5)];
    if (slots % step == 0) step = 1;
    for (size_t t = 0; t < qk_kv_tiles(n); t++) {
        uint16_t kept = 0;
        for (size_t i = 0; i < 16; i++) kept |= (uint16_t)(!is_evicted(t * 16 + i) << i);
        const size_t slot = (first + t * step) % slots;
        if (kept) list[n_list++] = (qk_kv_slot){ (uint32_t)t, (uint32_t)slot, kept };
    }
    return n_list;
}

/* Puts the tiles of a list where it says; the rest is not a number. */
static char *listed(const char *tiles, const qk_kv_slot *list, size_t n_list, size_t slots, size_t bytes) {
    char *to = malloc(slots * bytes);
    if (!to) exit(1);
    memset(to, 0xff, slots * bytes);
    for (size_t i = 0; i < n_list; i++)
        memcpy(to + list[i].slot * bytes, tiles + list[i].tile * bytes, bytes);
    return to;
}

/* Weights add up to 1 for each query, and are nowhere else. They change no bit of y. */
static void check_mass(const qk_table *t, int kv, const qk_attn *a, size_t slots, size_t floats) {
    uint64_t *mass = calloc(slots * 16, sizeof *mass), sum = 0;
    float *y = malloc(floats * sizeof *y);
    qk_attn b = *a;
    if (!mass || !y) exit(1);
    memcpy(y, a->y, floats * sizeof *y);
    b.y = y;
    b.mass = mass;
    b.mass_from = a->n_cols / 2;
    t->kv[kv].attend(&b);
    ck_same_bits("mass", y, a->y, floats);
    for (size_t i = 0; i < slots * 16; i++) sum += mass[i];
    for (size_t i = 0; a->list && i < a->n_list * 16; i++)
        if (is_evicted(a->list[i / 16].tile * 16 + i % 16) && mass[a->list[i / 16].slot * 16 + i % 16] > 0)
            ck_error("mass of evicted position %zu", i);
    const double queries = (double)((a->n_cols - b.mass_from) * a->n_heads);
    ck_near("mass", 0, (double)sum / QK_KV_MASS, queries,
            queries * (1e-4 + (double)(slots * 16) / QK_KV_MASS));
    free(mass);
    free(y);
}

/* The same positions from a list: all of them give the same bits; without some, the truth. */
static void check_list(const qk_table *t, int kv, const qk_attn *a, const shape *sh, size_t n,
                       size_t floats) {
    const size_t bytes = t->kv[kv].tile_bytes(a->head_dim), slots = qk_kv_tiles(n) + ck_below(9);
    qk_kv_slot *list = malloc(qk_kv_tiles(n) * sizeof *list);
    float *y = malloc(floats * sizeof *y);
    if (!list || !y) exit(1);
    check_mass(t, kv, a, slots, floats);
    for (evict_every = 0; evict_every < 4; evict_every += 1 + evict_every % 2) {
        qk_attn b = *a;
        b.n_list = make_list(list, n, slots);
        b.list = list;
        b.y = y;
        memcpy(y, a->y, floats * sizeof *y);
        char *k = listed(a->k, list, b.n_list, slots, bytes), *v = listed(a->v, list, b.n_list, slots, bytes);
        b.k = k;
        b.v = v;
        int alone = 1;
        for (size_t p = a->pos; p < n; p++) /* its own position is there for every query */
            alone &= !is_evicted(p);
        if (alone) {
            t->kv[kv].attend(&b);
            if (evict_every == 0) ck_same_bits("list", y, a->y, floats);
            check_truth(kv, &b, sh);
            for (size_t c = 0; c < sh->cols; c++) check_alone(t, kv, &b, c, c % sh->heads);
            for (size_t c = 0; c < sh->cols; c++) check_spans(t, kv, &b, c);
            ck_avx2_bits(t, kv, &b, floats);
            check_mass(t, kv, &b, slots, floats);
        }
        free(k);
        free(v);
    }
    evict_every = 0;
    free(list);
    free(y);
}

static void attend_case(const qk_table *t, int kv, shape sh) {
    const size_t n = sh.pos + sh.cols, bytes = qk_kv_tiles(n) * t->kv[kv].tile_bytes(sh.dim);
    const size_t row = sh.heads * sh.dim, floats = (sh.cols - 1) * (row + 3) + row;
    float *q = ck_tail(SLOT_Q, floats * sizeof *q), *y = ck_dst(SLOT_Y, floats);
    char *k = ck_tail(SLOT_K, bytes), *v = ck_tail(SLOT_V, bytes);
    float sinks[64], slopes[64];
    for (size_t h = 0; h < sh.heads; h++) {
        sinks[h] = (float)ck_below(9) - 4;
        slopes[h] = 1.0f / (float)(2u << ck_below(8));
    }
    const qk_attn a = { .k = k,
                        .v = v,
                        .v_type = (qk_kv)kv,
                        .q = q,
                        .y = y,
                        .chunk = sh.chunk,
                        .softcap = sh.softcap,
                        .sinks = sh.sinks ? sinks : NULL,
                        .slopes = sh.slopes ? slopes : NULL,
                        .q_stride = row + 3,
                        .y_stride = row + 3,
                        .head_dim = sh.dim,
                        .n_cols = sh.cols,
                        .n_heads = sh.heads,
                        .pos = sh.pos,
                        .window = sh.window,
                        .scale = 1.0f / sqrtf((float)sh.dim),
                        .scratch = ck_tail64(SLOT_SCRATCH, qk_attn_scratch(sh.dim)) };
    make_cache(t, kv, sh.dim, n, k, v, bytes);
    ck_fill_floats(q, floats, CK_RANDOM);
    memset(a.scratch, 0xff, qk_attn_scratch(sh.dim));
    t->kv[kv].attend(&a);
    ck_dst_ok(SLOT_Y, floats);
    load_rows(t, kv, k, 0, n, sh.dim);
    load_rows(t, kv, v, 1, n, sh.dim);
    check_truth(kv, &a, &sh);
    for (size_t c = 0; c < sh.cols; c++) {
        for (size_t h = 0; h < sh.heads; h++)
            if ((c + h) % 3 == 0) check_alone(t, kv, &a, c, h);
        check_spans(t, kv, &a, c);
    }
    ck_avx2_bits(t, kv, &a, floats);
    check_ring(t, kv, &a, n, floats);
    check_list(t, kv, &a, &sh, n, floats);
    check_mixed(t, kv, &a, &sh, n, floats);
    if (ck_failed())
        ck_error(
            "dim %zu, %zu columns, %zu heads, position %zu, window %zu, chunk %zu, softcap %g, sinks %d, "
            "slopes %d",
            sh.dim, sh.cols, sh.heads, sh.pos, sh.window, sh.chunk, (double)sh.softcap, sh.sinks, sh.slopes);
}

static void check_attend(const qk_table *t, int kv) {
    static const shape far[] = { { 8, 3, 2, 1022, 0, 0, 0, 0, 0 },     { 64, 1, 8, 2200, 0, 0, 0, 0, 0 },
                                 { 64, 5, 1, 2046, 1025, 0, 0, 0, 0 }, { 64, 2, 4, 2100, 0, 0, 0, 0, 0 },
                                 { 17, 8, 8, 1100, 100, 0, 0, 0, 0 },  { 32, 9, 7, 2040, 1016, 0, 0, 0, 0 },
                                 { 80, 2, 1, 1500, 1, 0, 0, 0, 0 },    { 48, 3, 4, 2040, 0, 512, 0, 1, 0 },
                                 { 64, 4, 2, 1500, 700, 0, 30, 1, 1 } };
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t rep = 0; rep < 12 && !ck_failed(); rep += 12 / ck_some(12)) {
            shape s = { .dim = dims[d] };
            const size_t most = qk_attn_queries(s.dim) < 24 ? qk_attn_queries(s.dim) : 24;
            s.heads = 1 + ck_below(rep % 3 == 0 ? 2 : most);
            s.cols = 1 + ck_below(most / s.heads);
            s.pos = rep < 4 ? ck_below(20) : ck_below(rep < 10 ? 130 : 300);
            s.window = rep % 4 == 3 ? 1 + ck_below(100) : 0;
            s.chunk = rep % 5 == 4 ? 1 + ck_below(90) : 0;
            s.softcap = rep % 3 == 1 ? 5 : 0;
            s.sinks = rep % 4 == 2;
            s.slopes = rep % 4 == 1;
            attend_case(t, kv, s);
        }
    const size_t n_far = sizeof far / sizeof *far,
                 step = n_far / ck_some(n_far); /* other cases for each type */
    for (size_t i = (size_t)kv % step; i < n_far && !ck_failed(); i += step) attend_case(t, kv, far[i]);
}

/* A NaN in a query, a key or a value appears in the results that depend on it, and in no others. */
static void check_nan(const qk_table *t, int kv) {
    enum { DIM = 24, COLS = 20, BAD = 11 };
    const size_t bytes = qk_kv_tiles(COLS) * t->kv[kv].tile_bytes(DIM);
    float q[COLS * DIM], y[COLS * DIM], x[DIM];
    char *k = ck_tail(SLOT_K, bytes), *v = ck_tail(SLOT_V, bytes);
    for (int which = 0; which < 3; which++) {
        const qk_attn a = { .k = k,
                            .v = v,
                            .v_type = (qk_kv)kv,
                            .q = q,
                            .y = y,
                            .q_stride = DIM,
                            .y_stride = DIM,
                            .head_dim = DIM,
                            .n_cols = COLS,
                            .n_heads = 1,
                            .scale = 1,
                            .scratch = ck_tail64(SLOT_SCRATCH, qk_attn_scratch(DIM)) };
        make_cache(t, kv, DIM, COLS, k, v, bytes);
        ck_fill_floats(q, COLS * DIM, CK_RANDOM);
        for (size_t i = 0; i < DIM; i++) x[i] = i == 3 ? NAN : 1;
        if (which < 2)
            t->kv[kv].store(which == 0 ? k : v, which, BAD, x, DIM);
        else
            memcpy(q + BAD * DIM, x, sizeof x);
        t->kv[kv].attend(&a);
        for (size_t c = 0; c < COLS; c++)
            if ((isnan(y[c * DIM + 3]) != 0) != (which < 2 ? c >= BAD : c == BAD))
                ck_error("NaN in %d: column %zu is %g", which, c, (double)y[c * DIM + 3]);
    }
}

static void *room(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) exit(1);
    memset(p, 0, bytes);
    return p;
}

/* The largest sums of integers: a wide head whose elements are all the same once they are rotated. */
static void check_wide(const qk_table *t, int kv, size_t dim) {
    enum { HEADS = 8 };
    const size_t bytes = t->kv[kv].tile_bytes(dim);
    float *x = room(dim * sizeof *x), *q = room(HEADS * dim * sizeof *q), *y = room(HEADS * dim * sizeof *y);
    double *turned = room(dim * sizeof *turned);
    char *k = room(bytes), *v = room(bytes), *scratch = room(qk_attn_scratch(dim));
    const qk_attn a = { .k = k,
                        .v = v,
                        .v_type = (qk_kv)kv,
                        .q = q,
                        .y = y,
                        .q_stride = HEADS * dim,
                        .y_stride = HEADS * dim,
                        .head_dim = dim,
                        .n_cols = 1,
                        .n_heads = HEADS,
                        .pos = 1,
                        .scale = 1 / (float)dim,
                        .scratch = (void *)scratch };
    const double weight = 1 / (1 + exp(-2)); /* of scores 1 and -1 */
    t->kv[kv].store(v, 1, 1, x, dim);
    for (size_t i = 0; i < dim; i++) x[i] = 1;
    transform(turned, x, dim);
    for (size_t i = 0; i < dim; i++) x[i] = (float)-turned[i];
    t->kv[kv].store(k, 0, 1, x, dim);
    for (size_t i = 0; i < dim; i++) x[i] = (float)turned[i];
    t->kv[kv].store(k, 0, 0, x, dim);
    t->kv[kv].store(v, 1, 0, x, dim);
    for (size_t h = 0; h < HEADS; h++) memcpy(q + h * dim, x, dim * sizeof *x);
    t->kv[kv].attend(&a);
    for (size_t i = 0; i < HEADS * dim; i++)
        ck_near("wide head", i, (double)y[i], weight * (double)x[i % dim],
                0.02 * fabs((double)x[i % dim]) + 1e-3);
    free(x), free(q), free(y), free(turned), free(k), free(v), free(scratch);
}

static void check_attend_all(const qk_table *t, int kv) {
    check_attend(t, kv);
    for (size_t dim = 1024; is_packed(kv) && dim <= QK_KV_MAX_DIM; dim *= 2) check_wide(t, kv, dim);
    check_nan(t, kv);
}

void ck_test_kv(const qk_table *t) {
    for (int kv = 0; kv < QK_KV_N; kv++) {
        const qk_kv_ops *ops = &t->kv[kv];
        char name[32];
        snprintf(name, sizeof name, "kv_%s_store", ops->name);
        ck_check(name, (ck_fn)ops->store, check_store, t, kv);
        snprintf(name, sizeof name, "kv_%s_attend", ops->name);
        ck_check(name, (ck_fn)ops->attend, check_attend_all, t, kv);
    }
}
