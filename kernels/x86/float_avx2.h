/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of float, half and bfloat16 rows with float columns at AVX2, as a template: the
 * including file has defined FMT_BYTES and fmt_load(p) for 8 elements. One output element has one
 * accumulator of 8 lanes, fed by FMA in ascending order, whatever the tile it is computed in. */
#ifndef QSF_KERNELS_X86_FLOAT_AVX2_H
#define QSF_KERNELS_X86_FLOAT_AVX2_H

enum { TILE_ROWS = 4, TILE_COLS = 2, LANES = 8 };

/* The last few elements, followed by zeros: nothing behind the row is read. */
QK_INLINE __m256 load_rest(const uint8_t *w, size_t n)
{
    _Alignas(32) uint8_t buf[LANES * FMT_BYTES] = { 0 };
    memcpy(buf, w, n * FMT_BYTES);
    return fmt_load(buf);
}

QK_INLINE void tile(const qk_mm *m, size_t r, size_t c, int nr, int nc)
{
    const size_t whole = m->k & ~(size_t)(LANES - 1), rest = m->k - whole;
    const uint8_t *w[TILE_ROWS];
    const float *x[TILE_COLS];
    __m256 acc[TILE_ROWS][TILE_COLS];
    for (int i = 0; i < nr; i++)
        w[i] = qk_mm_row(m, r + (size_t)i);
    for (int j = 0; j < nc; j++)
        x[j] = qk_mm_col(m, c + (size_t)j);
    for (int i = 0; i < nr; i++)
        for (int j = 0; j < nc; j++)
            acc[i][j] = _mm256_setzero_ps();
    for (size_t k = 0; k < whole; k += LANES)
        for (int i = 0; i < nr; i++) {
            const __m256 wi = fmt_load(w[i] + k * FMT_BYTES);
            for (int j = 0; j < nc; j++)
                acc[i][j] = _mm256_fmadd_ps(wi, _mm256_loadu_ps(x[j] + k), acc[i][j]);
        }
    for (int j = 0; rest && j < nc; j++) {
        const __m256 xj = qk_load_some_ps(x[j] + whole, rest);
        for (int i = 0; i < nr; i++)
            acc[i][j] = _mm256_fmadd_ps(load_rest(w[i] + whole * FMT_BYTES, rest), xj, acc[i][j]);
    }
    for (int i = 0; i < nr; i++)
        for (int j = 0; j < nc; j++)
            m->y[(c + (size_t)j) * m->y_stride + r + (size_t)i] = qk_sum_ps(acc[i][j]);
}

/* The shapes as functions of their own: each needs all the registers. */
static void tile42(const qk_mm *m, size_t r, size_t c)
{
    tile(m, r, c, TILE_ROWS, TILE_COLS);
}

static void tile41(const qk_mm *m, size_t r, size_t c)
{
    tile(m, r, c, TILE_ROWS, 1);
}

static void tile11(const qk_mm *m, size_t r, size_t c)
{
    tile(m, r, c, 1, 1);
}

QK_INLINE void mm_float(const qk_mm *m, size_t row0, size_t row1)
{
    size_t r = row0;
    for (; r + TILE_ROWS <= row1; r += TILE_ROWS) {
        size_t c = 0;
        for (; c + TILE_COLS <= m->n_cols; c += TILE_COLS)
            tile42(m, r, c);
        for (; c < m->n_cols; c++)
            tile41(m, r, c);
    }
    for (; r < row1; r++)
        for (size_t c = 0; c < m->n_cols; c++)
            tile11(m, r, c);
}

#endif
