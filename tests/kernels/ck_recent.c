/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention in two parts: positions in a cache, and recent ones in tiles of another type. Compared
 * with softmax in float64; what is not to be read is not a number. One query and several, with and
 * without a list, whole and in spans. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_Q, SLOT_Y, SLOT_SCRATCH, SLOT_PART, MAX_DIM = 128, MAX_TILES = 80, TAIL = 2, ROOM = 9 };

#define BITS(a, name, NAME, bits, latent, dims) [QK_KV_##NAME] = bits,
static const int bits_of[QK_KV_N] = { QK_KV_TYPES(BITS, ) };

/* A cache of tiles [0, last], of which the last one is that of the queries. */
typedef struct setup {
    int kv, precise;
    size_t dim, last, heads, cols, from; /* column 0 is position 16 * last + from */
    size_t window;
    int listed, slopes;
    char *k, *v, *rk, *rv;
    qk_kv_slot list[MAX_TILES], recent[4];
    uint32_t where[4];
    size_t n_list, n_recent;
} setup;

/* The type of recent positions: rotated if the cache is. */
static int precise_of(int kv) { return bits_of[kv] <= 8 ? QK_KV_Q8 : kv; }

static size_t first_recent(const setup *s) { return s->last > TAIL ? s->last - TAIL : 1; }
static int is_recent(const setup *s, size_t tile) { return tile == 0 || tile >= first_recent(s); }
static int is_evicted(const setup *s, size_t p) {
    return s->listed && p / 16 < s->last && (p / 16 % 3 == 1 || p * 7 % 11 < 3);
}

static char *tiles_of(const qk_table *t, int kv, size_t dim, size_t n) {
    const size_t bytes = n * t->kv[kv].tile_bytes(dim);
    char *p = malloc(bytes);
    if (!p) exit(1);
    memset(p, 0xff, bytes);
    return p;
}

/* Adds the tile to the list, if something of it is kept, and stores it where it is read. */
static void add_tile(const qk_table *t, setup *s, size_t tile) {
    const qk_kv_slot e = { (uint32_t)tile, (uint32_t)((tile * 3 + 1) % MAX_TILES), 0 };
    qk_kv_slot *to = &s->list[s->n_list];
    const uint32_t where = (uint32_t)(ROOM - 1 - 2 * s->n_recent);
    float x[MAX_DIM];
    *to = e;
    if (!s->listed) to->slot = e.tile;
    for (size_t i = 0; i < 16; i++) to->kept |= (uint16_t)(!is_evicted(s, tile * 16 + i) << i);
    if (!to->kept) return;
    const int near = is_recent(s, tile);
    for (size_t i = 0; i < 16 && tile * 16 + i < s->last * 16 + s->from + s->cols; i++) {
        const size_t at = (near ? where : to->slot) * (size_t)16 + i;
        ck_fill_floats(x, s->dim, CK_RANDOM);
        t->kv[near ? s->precise : s->kv].store(near ? s->rk : s->k, 0, at, x, s->dim);
        ck_fill_floats(x, s->dim, CK_RANDOM);
        t->kv[near ? s->precise : s->kv].store(near ? s->rv : s->v, 1, at, x, s->dim);
    }
    if (near) {
        s->recent[s->n_recent] = *to;
        s->where[s->n_recent++] = where;
    }
    s->n_list++;
}

static double length(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* K and V of all positions and their lengths, as they are read: each is compared with many queries. */
static struct {
    float x[2][MAX_TILES * 16][MAX_DIM];
    double length[2][MAX_TILES * 16];
} rows;

/* K or V of a position, from where it is read. */
static void load(const qk_table *t, const setup *s, float *x, int which, size_t p) {
    const size_t tile = p / 16;
    for (size_t e = 0; e < s->n_recent; e++)
        if (s->recent[e].tile == tile) {
            t->kv[s->precise].load(x, which ? s->rv : s->rk, which, s->where[e] * (size_t)16 + p % 16,
                                   s->dim);
            return;
        }
    for (size_t e = 0; e < s->n_list; e++)
        if (s->list[e].tile == tile)
            t->kv[s->kv].load(x, which ? s->v : s->k, which, s->list[e].slot * (size_t)16 + p % 16, s->dim);
}

static void load_rows(const qk_table *t, const setup *s, size_t n) {
    for (size_t p = 0; p < n; p++)
        for (int which = 0; which < 2 && !is_evicted(s, p); which++) {
            load(t, s, rows.x[which][p], which, p);
            rows.length[which][p] = length(rows.x[which][p], s->dim);
        }
}

static void check_truth(const setup *s, const qk_attn *a, size_t c, size_t h) {
    static double score[MAX_TILES * 16];
    double y[MAX_DIM] = { 0 }, mag[MAX_DIM] = { 0 }, m = -INFINITY, sum = 0, worst = 0;
    const float *q = a->q + c * a->q_stride + h * s->dim, *got = a->y + c * a->y_stride + h * s->dim;
    const size_t end = a->pos + c + 1, start = s->window && end > s->window ? end - s->window : 0;
    const int packed = bits_of[s->kv] <= 8;
    const double reach = length(q, s->dim) * (double)a->scale;
    for (size_t p = start; p < end; p++) {
        if (is_evicted(s, p)) continue;
        const float *x = rows.x[0][p];
        score[p] = a->slopes ? (double)a->slopes[h] * ((double)p - (double)(end - 1)) : 0;
        for (size_t i = 0; i < s->dim; i++) score[p] += (double)q[i] * (double)x[i] * (double)a->scale;
        const double mags = reach * rows.length[0][p];
        worst = fmax(worst, mags * (double)(s->dim + 8) + 2 * fabs(score[p]));
        if (packed) worst = fmax(worst, mags * sqrt((double)s->dim) / 254 / CK_EPS);
        m = fmax(m, score[p]);
    }
    for (size_t p = start; p < end; p++) {
        if (is_evicted(s, p)) continue;
        const float *x = rows.x[1][p];
        const double w = exp(score[p] - m);
        sum += w;
        for (size_t i = 0; i < s->dim; i++) {
            y[i] += w * (double)x[i];
            mag[i] += w * (packed ? rows.length[1][p] : fabs((double)x[i]));
        }
    }
    for (size_t i = 0; i < s->dim; i++)
        ck_near("recent", i, (double)got[i], y[i] / sum,
                (CK_EPS * (2 * worst + (double)(end - start) + 32) + (packed ? 64.0 / 16254 : 0)) * mag[i] /
                    sum);
}

/* One query alone, and from its spans: the same bits. */
static void check_alone(const qk_table *t, const setup *s, const qk_attn *a, size_t c, size_t h) {
    const size_t spans = qk_kv_spans(a->pos + s->cols), stride = qk_attn_part(s->dim);
    const float *want = a->y + c * a->y_stride + h * s->dim;
    float y[MAX_DIM], *part = ck_tail64(SLOT_PART, (spans + 1) * stride * sizeof *part);
    qk_attn one = *a, rest = *a->recent;
    one.q = rest.q = a->q + c * a->q_stride + h * s->dim;
    one.y = y;
    one.n_cols = one.n_heads = rest.n_cols = rest.n_heads = 1;
    one.pos = rest.pos = a->pos + c;
    if (a->slopes) one.slopes = rest.slopes = a->slopes + h;
    one.recent = &rest;
    t->kv[s->kv].attend(&one);
    ck_same_bits("alone", y, want, s->dim);
    for (size_t i = 0; i < spans; i++) t->kv[s->kv].attend_span(&one, i, part + i * stride, spans * stride);
    t->kv[s->precise].attend_span(&rest, 0, part + spans * stride, stride);
    t->kv[s->kv].merge(y, part, spans + 1, stride, s->dim, NULL);
    ck_same_bits("spans", y, want, s->dim);
}

/* Weights add up to 1 for each query, at the slots of what is seen; they change no bit. */
static void check_mass(const qk_table *t, const setup *s, const qk_attn *a, size_t floats) {
    static uint64_t mass[MAX_TILES * 16];
    uint64_t sum = 0, seen = 0;
    float *y = malloc(floats * sizeof *y);
    qk_attn b = *a, rest = *a->recent;
    if (!y) exit(1);
    memset(mass, 0, sizeof mass);
    memcpy(y, a->y, floats * sizeof *y);
    b.y = y;
    b.mass = rest.mass = mass;
    b.recent = &rest;
    t->kv[s->kv].attend(&b);
    ck_same_bits("mass", y, a->y, floats);
    for (size_t i = 0; i < MAX_TILES * 16; i++) sum += mass[i];
    for (size_t e = 0; e < s->n_list; e++)
        for (size_t i = 0; i < 16; i++)
            if (s->list[e].kept >> i & 1) seen += mass[s->list[e].slot * 16 + i];
    if (seen != sum) ck_error("mass in other places");
    const double queries = (double)(s->cols * s->heads);
    ck_near("mass", 0, (double)sum / QK_KV_MASS, queries, queries * (1e-4 + MAX_TILES * 16.0 / QK_KV_MASS));
    free(y);
}

static void recent_case(const qk_table *t, setup s) {
    const size_t row = s.heads * s.dim, floats = (s.cols - 1) * (row + 3) + row;
    float *q = ck_tail(SLOT_Q, floats * sizeof *q), *y = ck_dst(SLOT_Y, floats);
    const float slopes[16] = { 0.5f, 0.25f, 0.125f, 0.0625f };
    s.precise = precise_of(s.kv);
    s.k = tiles_of(t, s.kv, s.dim, MAX_TILES);
    s.v = tiles_of(t, s.kv, s.dim, MAX_TILES);
    s.rk = tiles_of(t, s.precise, s.dim, ROOM);
    s.rv = tiles_of(t, s.precise, s.dim, ROOM);
    for (size_t i = 0; i <= s.last; i++) add_tile(t, &s, i);
    qk_attn rest = { .k = s.rk,
                     .v = s.rv,
                     .v_type = (qk_kv)s.precise,
                     .q = q,
                     .y = y,
                     .q_stride = row + 3,
                     .y_stride = row + 3,
                     .head_dim = s.dim,
                     .n_cols = s.cols,
                     .n_heads = s.heads,
                     .pos = s.last * 16 + s.from,
                     .window = s.window,
                     .scale = 1.0f / sqrtf((float)s.dim),
                     .slopes = s.slopes ? slopes : NULL,
                     .scratch = ck_tail64(SLOT_SCRATCH, qk_attn_scratch(s.dim)) };
    qk_attn a = rest;
    rest.list = s.recent;
    rest.n_list = s.n_recent;
    rest.where = s.where;
    a.k = s.k;
    a.v = s.v;
    a.v_type = (qk_kv)s.kv;
    a.list = s.listed ? s.list : NULL;
    a.n_list = s.listed ? s.n_list : 0;
    a.from = 16;
    a.to = 16 * first_recent(&s);
    a.recent = &rest;
    a.recent_type = (qk_kv)s.precise;
    ck_fill_floats(q, floats, CK_RANDOM);
    t->kv[s.kv].attend(&a);
    ck_dst_ok(SLOT_Y, floats);
    load_rows(t, &s, rest.pos + s.cols);
    for (size_t c = 0; c < s.cols; c++)
        for (size_t h = 0; h < s.heads; h++) {
            check_truth(&s, &a, c, h);
            if ((c + h) % 3 == 0) check_alone(t, &s, &a, c, h);
        }
    ck_avx2_bits(t, s.kv, &a, floats);
    check_mass(t, &s, &a, floats);
    if (ck_failed())
        ck_error("dim %zu, tile %zu, %zu columns from %zu, %zu heads, window %zu, listed %d", s.dim, s.last,
                 s.cols, s.from, s.heads, s.window, s.listed);
    free(s.k);
    free(s.v);
    free(s.rk);
    free(s.rv);
}

static void check_recent(const qk_table *t, int kv) {
    static const size_t dims[] = { 16, 64, 80, 128 }, lasts[] = { 0, 1, 2, 3, 4, 5, 9, 30, 66, 72 };
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t i = 0; i < sizeof lasts / sizeof *lasts && !ck_failed(); i += 10 / ck_some(10)) {
            setup s = { .kv = kv, .dim = dims[d], .last = lasts[(i + d) % 10] };
            const size_t most = qk_attn_queries(s.dim);
            s.from = ck_below(16);
            s.cols = 1 + ck_below(16 - s.from);
            s.heads = 1 + ck_below(4);
            if (s.cols * s.heads > most) s.cols = most / s.heads;
            s.window = i % 3 == 2 ? 1 + ck_below(s.last * 16 + 20) : 0;
            s.listed = i % 2 == 1;
            s.slopes = i % 4 == 3;
            recent_case(t, s);
        }
}

void ck_test_recent(const qk_table *t) {
    for (int kv = 0; kv < QK_KV_N; kv++) {
        char name[32];
        snprintf(name, sizeof name, "kv_%s_recent", t->kv[kv].name);
        ck_check(name, (ck_fn)t->kv[kv].attend, check_recent, t, kv);
    }
}
