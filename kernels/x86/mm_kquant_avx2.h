/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of the super-block formats at AVX2, as a template: the including header has defined
 *   FMT_BYTES, FMT_SUB    bytes of a super-block, elements that share a scale (32 or 16)
 *   FMT_D                 offset of the super-block's scale
 *   fmt_unpack(p, j)      elements 32j..32j+31 as unsigned bytes
 *   kscales, stage_scales, row_scales, scale_at, min_at, mins_sum
 *                         the sub-block scales and minimums of 8 rows (kscale_avx2.h)
 *   FMT_MIN, FMT_OFF      x = d*sc*q - dmin*m with dmin after d; or x = d*sc*(q - FMT_OFF)
 * Two shapes the sum of a super-block, sub-block scales included, is an exact
 * integer; then acc += (d * dx) * sum and acc -= (dmin * dx) * sum of minimums. */
#ifndef QSF_KERNELS_X86_MM_KQUANT_AVX2_H
#define QSF_KERNELS_X86_MM_KQUANT_AVX2_H

enum {
    TILE_COLS = 4,       /* columns that share one load of the weights */
    TILE_FROM_COLS = 3,  /* from this many columns on a tile is worth its transposing */
    N_SUB = QK_K / FMT_SUB
};

/* Sums of one super-block for 8 rows: sub-block scales times dots, minimums times sums of x. */
typedef struct block_sums {
    __m256i main, mins;
} block_sums;

/* One super-block of 8 rows, transposed: a lane is a row. */
typedef struct ktile {
    __m256i q[QK_K / 4];                  /* dword i: elements 4i..4i+3 */
    int32_t scale[N_SUB][QK_GROUP];
    int16_t mins[4][QK_GROUP][2];         /* pairs of sub-blocks */
    __m256 d, dmin;
} ktile;

QK_INLINE __m256 gather_half(const qk_rows8 *g, size_t offset)
{
    uint16_t h[QK_GROUP];
    for (int r = 0; r < QK_GROUP; r++)
        h[r] = qk_load_u16(g->p[r] + offset);
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)h));
}

QK_INLINE __m256 add_super(__m256 acc, block_sums sum, __m256 d, __m256 dmin, float dx)
{
    const __m256 x = _mm256_set1_ps(dx);
    acc = _mm256_add_ps(acc, _mm256_mul_ps(_mm256_mul_ps(d, x), _mm256_cvtepi32_ps(sum.main)));
    if (FMT_MIN)
        acc = _mm256_sub_ps(acc, _mm256_mul_ps(_mm256_mul_ps(dmin, x), _mm256_cvtepi32_ps(sum.mins)));
    return acc;
}

/* One row's super-block against one column: 8 partial sums. */
QK_INLINE __m256i row_super(const uint8_t *p, const kscales *s, int r, const qk_col_q8k *x, size_t b)
{
    const __m256i sc = row_scales(s, p, r);
    __m256i acc = _mm256_setzero_si256();
    if (FMT_OFF) {
        const __m256i sum16 = _mm256_load_si256((const void *)(x->sum16 + b * 16));
        acc = _mm256_mullo_epi32(_mm256_madd_epi16(sc, sum16), _mm256_set1_epi32(-FMT_OFF));
    }
    for (int j = 0; j < 8; j++) {
        const __m256i q = _mm256_load_si256((const void *)(x->q + b * QK_K + 32 * (size_t)j));
        acc = qk_dot_scaled(acc, fmt_unpack(p, j), q, spread_scales(sc, j));
    }
    return acc;
}

static void mv_kquant(const qk_mm *m, const qk_rows8 *group, size_t r, size_t c)
{
    const qk_col_q8k x = qk_col_q8k_at(qk_mm_col(m, c), m->k);
    const size_t nb = m->k / QK_K;
    qk_rows8 g = *group;
    __m256 acc = _mm256_setzero_ps();
    for (size_t b = 0; b < nb; b++) {
        block_sums sum;
        __m256i z[QK_GROUP];
        kscales s;
        stage_scales(&s, &g);
        for (int i = 0; i < QK_GROUP; i++) {
            for (size_t f = 0; f < FMT_BYTES; f += 64)
                qk_prefetch(g.next + (size_t)i * FMT_BYTES + f);
            z[i] = row_super(g.p[i], &s, i, &x, b);
        }
        sum.main = sum.mins = qk_sum8(z);
        if (FMT_MIN)
            sum.mins = mins_sum(&s, &x, b);
        acc = add_super(acc, sum, gather_half(&g, FMT_D), FMT_MIN ? gather_half(&g, FMT_D + 2) : acc, x.d[b]);
        for (int i = 0; i < QK_GROUP; i++)
            g.p[i] += FMT_BYTES;
        g.next += QK_GROUP * FMT_BYTES;
    }
    qk_store_some_ps(m->y + c * m->y_stride + r, g.n, acc);
}

static void fill_tile(ktile *t, const qk_rows8 *g)
{
    kscales s;
    stage_scales(&s, g);
    for (int j = 0; j < 8; j++) {
        for (int r = 0; r < QK_GROUP; r++)
            t->q[8 * j + r] = fmt_unpack(g->p[r], j);
        qk_transpose8(t->q + 8 * j);
    }
    for (int r = 0; r < QK_GROUP; r++)
        for (int i = 0; i < N_SUB; i++)
            t->scale[i][r] = scale_at(&s, g->p[r], r, i);
    if (FMT_MIN)
        for (int r = 0; r < QK_GROUP; r++)
            for (int i = 0; i < 8; i++)
                t->mins[i / 2][r][i % 2] = min_at(&s, r, i);
    t->d = gather_half(g, FMT_D);
    t->dmin = FMT_MIN ? gather_half(g, FMT_D + 2) : _mm256_setzero_ps();
}

/* acc[j] += the integer sums of sub-block s for nc columns. */
QK_INLINE void tile_sub(const ktile *t, int s, const qk_col_q8k *x, size_t b, int nc, __m256i *acc)
{
    const __m256i scale = _mm256_loadu_si256((const void *)t->scale[s]);
    __m256i sub[TILE_COLS];
    for (int j = 0; j < nc; j++)
        sub[j] = _mm256_set1_epi32(FMT_OFF ? -FMT_OFF * x[j].sum16[b * 16 + (size_t)s] : 0);
    for (int i = s * FMT_SUB / 4; i < (s + 1) * FMT_SUB / 4; i++) {
        const __m256i w = t->q[i];
        for (int j = 0; j < nc; j++) {
            const uint32_t q = qk_load_u32(x[j].q + b * QK_K + 4 * (size_t)i);
            sub[j] = qk_dot(sub[j], w, _mm256_set1_epi32((int)q));
        }
    }
    for (int j = 0; j < nc; j++)
        acc[j] = _mm256_add_epi32(acc[j], _mm256_mullo_epi32(sub[j], scale));
}

QK_INLINE void tile_cols(const qk_mm *m, size_t rows, size_t r, size_t c, const ktile *t, size_t b, int nc)
{
    __m256i acc[TILE_COLS];
    qk_col_q8k x[TILE_COLS];
    for (int j = 0; j < nc; j++) {
        x[j] = qk_col_q8k_at(qk_mm_col(m, c + (size_t)j), m->k);
        acc[j] = _mm256_setzero_si256();
    }
    for (int s = 0; s < N_SUB; s++)
        tile_sub(t, s, x, b, nc, acc);
    for (int j = 0; j < nc; j++) {
        float *y = m->y + (c + (size_t)j) * m->y_stride + r;
        block_sums sum = { acc[j], _mm256_setzero_si256() };
        for (int i = 0; FMT_MIN && i < 4; i++) {
            const uint32_t pair = qk_load_u32(x[j].sum32 + b * 8 + 2 * (size_t)i);
            sum.mins = qk_dot16(sum.mins, _mm256_loadu_si256((const void *)t->mins[i]),
                                _mm256_set1_epi32((int)pair));
        }
        const __m256 before = b ? qk_load_some_ps(y, rows) : _mm256_setzero_ps();
        qk_store_some_ps(y, rows, add_super(before, sum, t->d, t->dmin, x[j].d[b]));
    }
}

static void tile_cols4(const qk_mm *m, size_t rows, size_t r, size_t c, const ktile *t, size_t b)
{
    tile_cols(m, rows, r, c, t, b, TILE_COLS);
}

static void tile_cols1(const qk_mm *m, size_t rows, size_t r, size_t c, const ktile *t, size_t b)
{
    tile_cols(m, rows, r, c, t, b, 1);
}

static void mm_tiles(const qk_mm *m, const qk_rows8 *group, size_t r)
{
    qk_rows8 g = *group;
    ktile t;
    for (size_t b = 0; b < m->k / QK_K; b++) {
        size_t c = 0;
        fill_tile(&t, &g);
        for (; c + TILE_COLS <= m->n_cols; c += TILE_COLS)
            tile_cols4(m, g.n, r, c, &t, b);
        for (; c < m->n_cols; c++)
            tile_cols1(m, g.n, r, c, &t, b);
        for (int i = 0; i < QK_GROUP; i++)
            g.p[i] += FMT_BYTES;
    }
}

QK_INLINE void mm_kquant(const qk_mm *m, size_t row0, size_t row1)
{
    for (size_t r = row0; r < row1; r += QK_GROUP) {
        const qk_rows8 g = qk_rows8_at(m, r, row1);
        if (m->n_cols >= TILE_FROM_COLS)
            mm_tiles(m, &g, r);
        else
            for (size_t c = 0; c < m->n_cols; c++)
                mv_kquant(m, &g, r, c);
    }
}

#endif
