/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of the super-block formats at AVX-512, as a template: the including header has defined
 *   FMT_BYTES, FMT_SUB    bytes of a super-block, elements that share a scale (32 or 16)
 *   FMT_D                 offset of the super-block's scale
 *   fmt_unpack(p, j)      elements 64j..64j+63 as unsigned bytes
 *   kscales, stage_scales, row_scales, scale_at, min_at, mins_sum
 *                         the sub-block scales and minimums of 16 rows (kscale_512.h)
 *   FMT_MIN, FMT_OFF      x = d*sc*q - dmin*m with dmin after d; or x = d*sc*(q - FMT_OFF)
 * Two shapes the sum of a super-block, sub-block scales included, is an exact
 * integer; then acc += (d * dx) * sum and acc -= (dmin * dx) * sum of minimums. */
#ifndef QSF_KERNELS_X86_MM_KQUANT_512_H
#define QSF_KERNELS_X86_MM_KQUANT_512_H

enum {
    TILE_COLS = 8,       /* columns that share one load of the weights */
    TILE_FROM_COLS = 3,  /* from this many columns on a tile is worth its transposing */
    N_SUB = QK_K / FMT_SUB
};

/* Sums of one super-block for 16 rows: sub-block scales times dots, minimums times sums of x. */
typedef struct block_sums {
    __m512i main, mins;
} block_sums;

/* One super-block of 16 rows, transposed: a lane is a row. */
typedef struct ktile {
    __m512i q[QK_K / 4];                  /* dword i: elements 4i..4i+3 */
    int32_t scale[N_SUB][QK_GROUP];
    int16_t mins[4][QK_GROUP][2];         /* pairs of sub-blocks */
    __m512 d, dmin;
} ktile;

QK_INLINE __m512 gather_half(const qk_rows16 *g, size_t offset)
{
    uint16_t h[QK_GROUP];
    for (int r = 0; r < QK_GROUP; r++)
        h[r] = qk_load_u16(g->p[r] + offset);
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)h));
}

QK_INLINE __m512 add_super(__m512 acc, block_sums sum, __m512 d, __m512 dmin, float dx)
{
    const __m512 x = _mm512_set1_ps(dx);
    acc = _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(d, x), _mm512_cvtepi32_ps(sum.main)));
    if (FMT_MIN)
        acc = _mm512_sub_ps(acc, _mm512_mul_ps(_mm512_mul_ps(dmin, x), _mm512_cvtepi32_ps(sum.mins)));
    return acc;
}

/* 16-bit elements that repeat the scales of elements 64j.. in the lanes of their four products. */
QK_INLINE __m512i spread_scales(__m512i sc, int j)
{
    const int first = 64 / FMT_SUB * j, lanes = FMT_SUB / 4;
    int16_t idx[32];
    for (int i = 0; i < 32; i++)
        idx[i] = (int16_t)(first + i / 2 / lanes);
    return _mm512_maskz_permutexvar_epi16(QK_SCALE_MASK, _mm512_loadu_si512(idx), sc);
}

/* One row's super-block against one column: 16 partial sums. */
QK_INLINE __m512i row_super(const uint8_t *p, const kscales *s, int r, const qk_col_q8k *x, size_t b)
{
    const __m512i sc = row_scales(s, p, r);
    __m512i acc = _mm512_setzero_si512();
    if (FMT_OFF) {
        const __m256i sum16 = _mm256_load_si256((const void *)(x->sum16 + b * 16));
        const __m256i over = _mm256_madd_epi16(_mm512_castsi512_si256(sc), sum16);
        acc = _mm512_sub_epi32(acc,
                               _mm512_mullo_epi32(_mm512_zextsi256_si512(over), _mm512_set1_epi32(FMT_OFF)));
    }
    for (int j = 0; j < 4; j++) {
        const __m512i q = _mm512_load_si512((const void *)(x->q + b * QK_K + 64 * (size_t)j));
        acc = qk_dot_scaled(acc, fmt_unpack(p, j), q, spread_scales(sc, j));
    }
    return acc;
}

static void mv_kquant(const qk_mm *m, const qk_rows16 *group, size_t r, size_t c)
{
    const qk_col_q8k x = qk_col_q8k_at(qk_mm_col(m, c), m->k);
    const size_t nb = m->k / QK_K;
    qk_rows16 g = *group;
    __m512 acc = _mm512_setzero_ps();
    for (size_t b = 0; b < nb; b++) {
        block_sums sum = { 0 };
        __m512i t[4], lo, hi;
        kscales s;
        stage_scales(&s, &g);
        for (int i = 0; i < 4; i++) {
            __m512i z[4];
            for (int j = 0; j < 4; j++) {
                for (size_t f = 0; f < FMT_BYTES; f += 64)
                    qk_prefetch(g.next + (size_t)(4 * i + j) * FMT_BYTES + f);
                z[j] = row_super(g.p[4 * i + j], &s, 4 * i + j, &x, b);
            }
            t[i] = qk_sum4_epi32(z[0], z[1], z[2], z[3]);
        }
        qk_sum16_halves(t, &lo, &hi);
        sum.main = _mm512_add_epi32(lo, hi);
        if (FMT_MIN)
            sum.mins = mins_sum(&s, &x, b);
        acc = add_super(acc, sum, gather_half(&g, FMT_D), FMT_MIN ? gather_half(&g, FMT_D + 2) : acc, x.d[b]);
        for (int i = 0; i < QK_GROUP; i++)
            g.p[i] += FMT_BYTES;
        g.next += QK_GROUP * FMT_BYTES;
    }
    _mm512_mask_storeu_ps(m->y + c * m->y_stride + r, g.live, acc);
}

static void fill_tile(ktile *t, const qk_rows16 *g)
{
    kscales s;
    stage_scales(&s, g);
    for (int j = 0; j < 4; j++) {
        for (int r = 0; r < QK_GROUP; r++)
            t->q[16 * j + r] = fmt_unpack(g->p[r], j);
        qk_transpose16(t->q + 16 * j);
    }
    for (int r = 0; r < QK_GROUP; r++)
        for (int i = 0; i < N_SUB; i++)
            t->scale[i][r] = scale_at(&s, g->p[r], r, i);
    if (FMT_MIN)
        for (int r = 0; r < QK_GROUP; r++)
            for (int i = 0; i < 8; i++)
                t->mins[i / 2][r][i % 2] = min_at(&s, r, i);
    t->d = gather_half(g, FMT_D);
    t->dmin = FMT_MIN ? gather_half(g, FMT_D + 2) : _mm512_setzero_ps();
}

/* acc[j] += the integer sums of sub-block s for nc columns. */
QK_INLINE void tile_sub(const ktile *t, int s, const qk_col_q8k *x, size_t b, int nc, __m512i *acc)
{
    const __m512i scale = _mm512_loadu_si512(t->scale[s]);
    __m512i sub[TILE_COLS];
    for (int j = 0; j < nc; j++)
        sub[j] = _mm512_set1_epi32(FMT_OFF ? -FMT_OFF * x[j].sum16[b * 16 + (size_t)s] : 0);
    for (int i = s * FMT_SUB / 4; i < (s + 1) * FMT_SUB / 4; i++) {
        const __m512i w = t->q[i];
        for (int j = 0; j < nc; j++) {
            const uint32_t q = qk_load_u32(x[j].q + b * QK_K + 4 * (size_t)i);
            sub[j] = qk_dot(sub[j], w, _mm512_set1_epi32((int)q));
        }
    }
    for (int j = 0; j < nc; j++)
        acc[j] = _mm512_add_epi32(acc[j], _mm512_mullo_epi32(sub[j], scale));
}

QK_INLINE void tile_cols(const qk_mm *m, __mmask16 live, size_t r, size_t c, const ktile *t, size_t b, int nc)
{
    __m512i acc[TILE_COLS];
    qk_col_q8k x[TILE_COLS];
    for (int j = 0; j < nc; j++) {
        x[j] = qk_col_q8k_at(qk_mm_col(m, c + (size_t)j), m->k);
        acc[j] = _mm512_setzero_si512();
    }
    for (int s = 0; s < N_SUB; s++)
        tile_sub(t, s, x, b, nc, acc);
    for (int j = 0; j < nc; j++) {
        float *y = m->y + (c + (size_t)j) * m->y_stride + r;
        block_sums sum = { acc[j], _mm512_setzero_si512() };
        for (int i = 0; FMT_MIN && i < 4; i++) {
            const uint32_t pair = qk_load_u32(x[j].sum32 + b * 8 + 2 * (size_t)i);
            sum.mins = qk_dot16(sum.mins, _mm512_loadu_si512(t->mins[i]), _mm512_set1_epi32((int)pair));
        }
        const __m512 before = b ? _mm512_maskz_loadu_ps(live, y) : _mm512_setzero_ps();
        _mm512_mask_storeu_ps(y, live, add_super(before, sum, t->d, t->dmin, x[j].d[b]));
    }
}

static void tile_cols8(const qk_mm *m, __mmask16 live, size_t r, size_t c, const ktile *t, size_t b)
{
    tile_cols(m, live, r, c, t, b, TILE_COLS);
}

static void tile_cols1(const qk_mm *m, __mmask16 live, size_t r, size_t c, const ktile *t, size_t b)
{
    tile_cols(m, live, r, c, t, b, 1);
}

static void mm_tiles(const qk_mm *m, const qk_rows16 *group, size_t r)
{
    qk_rows16 g = *group;
    ktile t;
    for (size_t b = 0; b < m->k / QK_K; b++) {
        size_t c = 0;
        fill_tile(&t, &g);
        for (; c + TILE_COLS <= m->n_cols; c += TILE_COLS)
            tile_cols8(m, g.live, r, c, &t, b);
        for (; c < m->n_cols; c++)
            tile_cols1(m, g.live, r, c, &t, b);
        for (int i = 0; i < QK_GROUP; i++)
            g.p[i] += FMT_BYTES;
    }
}

QK_INLINE void mm_kquant(const qk_mm *m, size_t row0, size_t row1)
{
    for (size_t r = row0; r < row1; r += QK_GROUP) {
        const qk_rows16 g = qk_rows16_at(m, r, row1);
        if (m->n_cols >= TILE_FROM_COLS)
            mm_tiles(m, &g, r);
        else
            for (size_t c = 0; c < m->n_cols; c++)
                mv_kquant(m, &g, r, c);
    }
}

#endif
