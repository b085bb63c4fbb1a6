/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of float, half and bfloat16 rows with float columns at AVX-512, as a template: the
 * including file has defined FMT_BYTES, fmt_load(p) for 16 elements and fmt_load_some(p, n) for fewer.
 * One output element has one accumulator of 16 lanes, fed by FMA in ascending order, whatever
 * the tile it is computed in. */
#ifndef QSF_KERNELS_X86_FLOAT_AVX512_H
#define QSF_KERNELS_X86_FLOAT_AVX512_H

enum { TILE_ROWS = 4, TILE_COLS = 4 };

QK_INLINE void tile(const qk_mm *m, size_t r, size_t c, int nr, int nc)
{
    const size_t whole = m->k & ~(size_t)15;
    const __mmask16 rest = (__mmask16)((1u << (m->k & 15)) - 1u);
    const uint8_t *w[TILE_ROWS];
    const float *x[TILE_COLS];
    __m512 acc[TILE_ROWS][TILE_COLS];
    for (int i = 0; i < nr; i++)
        w[i] = qk_mm_row(m, r + (size_t)i);
    for (int j = 0; j < nc; j++)
        x[j] = qk_mm_col(m, c + (size_t)j);
    for (int i = 0; i < nr; i++)
        for (int j = 0; j < nc; j++)
            acc[i][j] = _mm512_setzero_ps();
    for (size_t k = 0; k < whole; k += 16)
        for (int i = 0; i < nr; i++) {
            const __m512 wi = fmt_load(w[i] + k * FMT_BYTES);
            for (int j = 0; j < nc; j++)
                acc[i][j] = _mm512_fmadd_ps(wi, _mm512_loadu_ps(x[j] + k), acc[i][j]);
        }
    for (int i = 0; rest && i < nr; i++) {
        const __m512 wi = fmt_load_some(w[i] + whole * FMT_BYTES, rest);
        for (int j = 0; j < nc; j++)
            acc[i][j] = _mm512_fmadd_ps(wi, _mm512_maskz_loadu_ps(rest, x[j] + whole), acc[i][j]);
    }
    for (int i = 0; i < nr; i++)
        for (int j = 0; j < nc; j++)
            m->y[(c + (size_t)j) * m->y_stride + r + (size_t)i] = _mm512_reduce_add_ps(acc[i][j]);
}

/* The four shapes as functions of their own: each needs all the registers. */
static void tile44(const qk_mm *m, size_t r, size_t c)
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
            tile44(m, r, c);
        for (; c < m->n_cols; c++)
            tile41(m, r, c);
    }
    for (; r < row1; r++)
        for (size_t c = 0; c < m->n_cols; c++)
            tile11(m, r, c);
}

#endif
