/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of float, half and bfloat16 rows with float columns at NEON, as a template: the including file has defined
 * FMT_BYTES and fmt_load(p) for 4 elements. One output element has one accumulator of 4 lanes, fed by FMA in
 * ascending order, whatever the tile it is computed in. */
#ifndef QSF_KERNELS_ARM_FLOAT_NEON_H
#define QSF_KERNELS_ARM_FLOAT_NEON_H

enum { TILE_ROWS = 4, TILE_COLS = 4, MANY_ROWS = 8 };

/* The last few elements, followed by zeros: nothing behind the row is read. */
QK_INLINE vf load_rest(const uint8_t *w, size_t n)
{
    uint8_t buf[V * FMT_BYTES] = { 0 };
    memcpy(buf, w, n * FMT_BYTES);
    return fmt_load(buf);
}

QK_INLINE void tile(const qk_mm *m, size_t r, size_t c, int nr, int nc)
{
    const size_t whole = m->k & ~(size_t)(V - 1), rest = m->k - whole;
    const uint8_t *w[MANY_ROWS];
    const float *x[TILE_COLS];
    vf acc[MANY_ROWS][TILE_COLS];
    for (int i = 0; i < nr; i++)
        w[i] = qk_mm_row(m, r + (size_t)i);
    for (int j = 0; j < nc; j++)
        x[j] = qk_mm_col(m, c + (size_t)j);
    for (int i = 0; i < nr; i++)
        for (int j = 0; j < nc; j++)
            acc[i][j] = v_set(0);
    for (size_t k = 0; k < whole; k += V)
        for (int i = 0; i < nr; i++) {
            const vf wi = fmt_load(w[i] + k * FMT_BYTES);
            for (int j = 0; j < nc; j++)
                acc[i][j] = v_fma(wi, v_load(x[j] + k), acc[i][j]);
        }
    for (int j = 0; rest && j < nc; j++) {
        const vf xj = v_load_some(x[j] + whole, rest);
        for (int i = 0; i < nr; i++)
            acc[i][j] = v_fma(load_rest(w[i] + whole * FMT_BYTES, rest), xj, acc[i][j]);
    }
    for (int i = 0; i < nr; i++)
        for (int j = 0; j < nc; j++)
            m->y[(c + (size_t)j) * m->y_stride + r + (size_t)i] = v_sum(acc[i][j]);
}

/* The shapes as functions of their own: each needs the registers. */
static void tile44(const qk_mm *m, size_t r, size_t c)
{
    tile(m, r, c, TILE_ROWS, TILE_COLS);
}

static void tile81(const qk_mm *m, size_t r, size_t c)
{
    tile(m, r, c, MANY_ROWS, 1);
}

static void tile11(const qk_mm *m, size_t r, size_t c)
{
    tile(m, r, c, 1, 1);
}

/* Rows [r, r + n) of column c. */
QK_INLINE void column(const qk_mm *m, size_t r, size_t n, size_t c)
{
    for (; n >= MANY_ROWS; n -= MANY_ROWS, r += MANY_ROWS)
        tile81(m, r, c);
    for (; n > 0; n--, r++)
        tile11(m, r, c);
}

QK_INLINE void mm_float(const qk_mm *m, size_t row0, size_t row1)
{
    size_t r = row0;
    for (; r + MANY_ROWS <= row1; r += MANY_ROWS) {
        size_t c = 0;
        for (; c + TILE_COLS <= m->n_cols; c += TILE_COLS) {
            tile44(m, r, c);
            tile44(m, r + TILE_ROWS, c);
        }
        for (; c < m->n_cols; c++)
            tile81(m, r, c);
    }
    for (size_t c = 0; c < m->n_cols; c++)
        column(m, r, row1 - r, c);
}

#endif
