/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of rows of floats of any size with float columns, using the vectors of v_<isa>.h. The including file
 * has defined FMT_BYTES, fmt_load(p, out) for 2 V elements, and fmt_scale, which the sums are multiplied by.
 * Each output element has one accumulator of V lanes, updated by FMA in ascending order, regardless of the
 * number of rows and columns. */
#ifndef QSF_KERNELS_GENERIC_MM_FLOAT_H
#define QSF_KERNELS_GENERIC_MM_FLOAT_H

#include "kernels/act.h"
#include "kernels/generic/mm.h"
#include "kernels/unroll.h"

/* A tile of four rows shares its columns; a single column is multiplied with eight rows. */
enum { TILE_ROWS = 4, TILE_COLS = V_REGISTERS >= 32 ? 4 : 2, MANY_ROWS = 8 };

/* With QK_WAY_AHEAD, bytes of each row: together as many as of a group of quantized rows
 * (kernels/x16/mm_direct.h). */
enum { AHEAD = 8192 / MANY_ROWS, LINE = 64, STEP = 2 * V * FMT_BYTES /* bytes of a row in a step */ };

/* The last n < 2 V elements, padded with zeros. */
QK_INLINE void load_rest(const uint8_t *p, size_t n, vf out[2]) {
    uint8_t bytes[STEP] = { 0 };
    memcpy(bytes, p, n * FMT_BYTES);
    fmt_load(bytes, out);
}

/* V elements, half a step, and zeros: rows of ranks of adapters are that short. */
QK_INLINE void load_half_step(const uint8_t *p, vf out[2]) {
    uint8_t bytes[STEP] = { 0 };
    memcpy(bytes, p, STEP / 2);
    fmt_load(bytes, out);
}

/* Prefetches what a tile of a single column needs AHEAD bytes later in each of its rows; near their end, of
 * the next tile's. With short steps each line once. */
QK_INLINE void prefetch_rows(const qk_mm *m, const uint8_t *const w[MANY_ROWS], size_t at, int nr) {
    if (STEP < LINE && at % LINE) return;
    const size_t later = at + AHEAD < m->row_bytes ? at + AHEAD
                                                   : at + AHEAD + (size_t)(nr - 1) * m->row_bytes;
    for (int i = 0; i < nr; i++)
        for (int b = 0; b < STEP; b += LINE) __builtin_prefetch(w[i] + later + b);
}

QK_INLINE void tile(const qk_mm *m, size_t r, size_t c, int nr, int nc, int ahead) {
    const size_t whole = m->k / (2 * V) * (2 * V), rest = m->k - whole;
    const uint8_t *w[MANY_ROWS];
    const float *x[TILE_COLS];
    vf acc[MANY_ROWS][TILE_COLS], wi[2];
    QK_UNROLL for (int i = 0; i < nr; i++) w[i] = qk_mm_row(m, r + (size_t)i);
    QK_UNROLL for (int j = 0; j < nc; j++) x[j] = qk_mm_col(m, c + (size_t)j);
    QK_UNROLL for (int i = 0; i < nr; i++) QK_UNROLL for (int j = 0; j < nc; j++) acc[i][j] = v_set(0);
    for (size_t k = 0; k < whole; k += 2 * V) {
        if (ahead) prefetch_rows(m, w, k * FMT_BYTES, nr);
        QK_UNROLL for (int i = 0; i < nr; i++) {
            fmt_load(w[i] + k * FMT_BYTES, wi);
            QK_UNROLL for (int j = 0; j < nc; j++) acc[i][j] = v_fma(wi[0], v_load(x[j] + k), acc[i][j]);
            QK_UNROLL for (int j = 0; j < nc; j++) acc[i][j] = v_fma(wi[1], v_load(x[j] + k + V), acc[i][j]);
        }
    }
    if (rest == V) {
        QK_UNROLL for (int i = 0; i < nr; i++) {
            load_half_step(w[i] + whole * FMT_BYTES, wi);
            QK_UNROLL for (int j = 0; j < nc; j++)
                acc[i][j] = v_fma(wi[1], v_set(0), v_fma(wi[0], v_load(x[j] + whole), acc[i][j]));
        }
    }
    for (int j = 0; rest && rest != V && j < nc; j++) {
        const vf x0 = v_load_some(x[j] + whole, rest < V ? rest : V);
        const vf x1 = v_load_some(x[j] + whole + V, rest < V ? 0 : rest - V);
        QK_UNROLL for (int i = 0; i < nr; i++) {
            load_rest(w[i] + whole * FMT_BYTES, rest, wi);
            acc[i][j] = v_fma(wi[1], x1, v_fma(wi[0], x0, acc[i][j]));
        }
    }
    QK_UNROLL for (int i = 0; i < nr; i++) QK_UNROLL for (int j = 0; j < nc; j++)
        m->y[(c + (size_t)j) * m->y_stride + r + (size_t)i] = v_sum(acc[i][j]) * fmt_scale;
}

/* One function per shape: each needs the registers. */
static void tile_many(const qk_mm *m, size_t r, size_t c) {
    tile(m, r, c, TILE_ROWS, TILE_COLS, m->way == QK_WAY_AHEAD);
}

static void tile_column(const qk_mm *m, size_t r, size_t c) {
    tile(m, r, c, MANY_ROWS, 1, m->way == QK_WAY_AHEAD);
}

static void tile_two(const qk_mm *m, size_t r, size_t c) {
    tile(m, r, c, MANY_ROWS, 2, m->way == QK_WAY_AHEAD);
}

static void tile_three(const qk_mm *m, size_t r, size_t c) {
    tile(m, r, c, MANY_ROWS, TILE_COLS < 3 ? TILE_COLS : 3, m->way == QK_WAY_AHEAD);
}

static void tile_one(const qk_mm *m, size_t r, size_t c) { tile(m, r, c, 1, 1, 0); }

/* Rows [r, r + n) of column c. */
static void column(const qk_mm *m, size_t r, size_t n, size_t c) {
    for (; n >= MANY_ROWS; n -= MANY_ROWS, r += MANY_ROWS) tile_column(m, r, c);
    for (; n > 0; n--, r++) tile_one(m, r, c);
}

#include "kernels/generic/mm_float_strip.h"

/* MANY_ROWS rows times the n last columns, which begin at c: fewer than TILE_COLS. */
static void last_columns(const qk_mm *m, size_t r, size_t c, size_t n) {
    if (n == 1)
        tile_column(m, r, c);
    else if (n == 2 && TILE_COLS > 2)
        tile_two(m, r, c);
    else if (n == 3)
        tile_three(m, r, c);
}

static void mm_float(const qk_mm *m, size_t row0, size_t row1) {
    size_t r = row0;
    if (m->n_cols >= STRIP_FROM_COLS) {
        mm_strips(m, row0, row1);
        return;
    }
    for (; r + MANY_ROWS <= row1; r += MANY_ROWS) {
        size_t c = 0;
        for (; c + TILE_COLS <= m->n_cols; c += TILE_COLS)
            for (size_t i = 0; i < MANY_ROWS; i += TILE_ROWS) tile_many(m, r + i, c);
        last_columns(m, r, c, m->n_cols - c);
    }
    for (size_t c = 0; c < m->n_cols; c++) column(m, r, row1 - r, c);
}

/* A generated file ends with this: the matmul of a format at a level (f16_avx2). */
#define QK_FLOAT_MATMUL(name) \
    void qk_mm_##name(const qk_mm *m, size_t row0, size_t row1) { mm_float(m, row0, row1); }

#endif
