/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One weight format in one layout: matrix-vector products over weights larger than any cache, each next to a
 * read of the same memory, and products with 256 columns between two measurements of the dot product. */
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/ck_bench.h"

enum { K = 2048, COLS = 256, GRAIN = 16, PATTERN_ROWS = 64, MIN_ROUNDS = 1, MAX_ROUNDS = 7, MM_ROWS = 4096 };
static const double max_seconds = 0.9; /* of a case, for each of the two measurements */

typedef struct work {
    const qk_weight_ops *ops;
    int groups;
    qk_mm m;
    const uint8_t *w;   /* all weights */
    size_t rows, piece; /* of this job, of a piece */
} work;

static void multiply_piece(void *arg, size_t i) {
    const work *w = arg;
    const size_t lo = i * w->piece, hi = lo + w->piece < w->rows ? lo + w->piece : w->rows;
    (w->groups ? w->ops->matmul16 : w->ops->matmul)(&w->m, lo, hi);
}

/* Seconds of rows [row0, row0 + rows). */
static double multiply(work *w, int threads, size_t row0, size_t rows) {
    w->m.w = w->w + row0 * w->m.row_bytes;
    w->rows = rows;
    return ck_pool_run(threads, multiply_piece, w, (rows + w->piece - 1) / w->piece);
}

/* The same 64 rows repeated: their values do not matter, their addresses do. */
static void fill(const ck_case *c, const qk_weight_ops *ops, size_t row_bytes, size_t rows) {
    const size_t pattern = PATTERN_ROWS * row_bytes, all = rows * row_bytes;
    uint8_t *as_rows = malloc(pattern);
    if (!as_rows) abort();
    ck_fill_weights(c->type, as_rows, PATTERN_ROWS * K, CK_RANDOM);
    for (size_t r = 0; r < PATTERN_ROWS && c->groups; r += GRAIN)
        ops->pack(c->w + r * row_bytes, as_rows + r * row_bytes, row_bytes, K);
    if (!c->groups) memcpy(c->w, as_rows, pattern);
    for (size_t at = pattern; at < all; at += pattern)
        memcpy(c->w + at, c->w, all - at < pattern ? all - at : pattern);
    free(as_rows);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The number of rows, of n and at least `least`, that take one thread at most `seconds`. */
static size_t affordable(work *w, size_t least, size_t n, double seconds) {
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        const double took = multiply(w, 1, 0, 2 * w->piece);
        best = took < best ? took : best;
    }
    const size_t rows = (size_t)(seconds / best * 2) * w->piece;
    return rows < least ? least / 64 * 64 : rows < n ? rows : n / 64 * 64;
}

/* Alternating rounds of a limit and the product, with one thread and all. dst[0..1]: speeds, part[0..1]:
 * shares of the limit. */
static void rounds(const ck_case *c, work *w, size_t n, size_t rows, double unit, int decode, double dst[2],
                   double part[2]) {
    double speed[2][MAX_ROUNDS], ratio[2][MAX_ROUNDS];
    const double begin = ck_now();
    size_t row0 = 0;
    int done = 0;
    for (; done < MAX_ROUNDS && (done < MIN_ROUNDS || ck_now() - begin < max_seconds); done++)
        for (int all = 0; all < 2; all++) {
            double (*limit)(const ck_reader *, int) = decode ? ck_read_speed : ck_dot_speed;
            const double before = limit(c->reader, all);
            const double s = unit * (double)rows / multiply(w, all ? c->reader->threads : 1, row0, rows);
            const double after = limit(c->reader, all);
            speed[all][done] = s;
            ratio[all][done] = before > 0 ? 2 * s / (before + after) : 0;
            row0 = row0 + 2 * rows <= n ? row0 + rows : 0; /* other memory than the last time */
        }
    for (int all = 0; all < 2; all++) {
        dst[all] = median(speed[all], done) * 1e-9;
        part[all] = median(ratio[all], done);
    }
}

ck_speeds ck_bench_case(const ck_case *c) {
    const qk_weight_ops *ops = &c->table->weight[c->type];
    const size_t row_bytes = K / qk_type_elems(c->type) * qk_type_bytes(c->type);
    const size_t rows = c->weight_bytes / row_bytes / PATTERN_ROWS * PATTERN_ROWS,
                 x_bytes = qk_act_bytes(ops->act, K);
    char *x = ck_memory(COLS * x_bytes);
    float *f = ck_memory(K * sizeof *f),
          *y = ck_memory((rows > MM_ROWS * COLS ? rows : MM_ROWS * COLS) * sizeof *y);
    work vec = { .ops = ops,
                 .groups = c->groups,
                 .w = c->w,
                 .piece = 512,
                 .m = { c->w, row_bytes, x, x_bytes, y, rows, K, 1, 1.0f, ops->way, ops->wide } };
    ck_speeds s;
    fill(c, ops, row_bytes, rows);
    for (size_t i = 0; i < COLS; i++) {
        ck_fill_floats(f, K, CK_RANDOM);
        c->table->quantize[ops->act](x + i * x_bytes, f, K);
    }
    rounds(c, &vec, rows, affordable(&vec, rows / 8, rows, 0.1), (double)row_bytes, 1, s.gbs, s.read_part);

    /* Few rows at a time, so that the results stay in a cache; the next time the next rows. */
    work mat = vec;
    mat.m.n_cols = COLS;
    mat.m.y_stride = MM_ROWS;
    mat.piece = QK_TILE_ROWS;
    const size_t some = affordable(&mat, MM_ROWS / 8, MM_ROWS, 0.1);
    rounds(c, &mat, rows, some, (double)K * COLS, 0, s.gmacs, s.dot_part);
    free(x);
    free(f);
    free(y);
    return s;
}
