/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of the formats with blocks of 32 at AVX2, as a template: the including header has
 * defined
 *   FMT_BYTES, FMT_OFF, FMT_MIN   bytes of a block, what q is too large by, whether x = d*q + m
 *   fmt_unpack(p)                 32 weights of a block as bytes, in element order
 *   fmt_dot(acc, w, x)            four products per lane
 *
 * Two shapes, one result. Few columns: 8 rows run side by side, each block gives 8 lanes
 * per row, a tree of additions turns them into one lane per row. Many columns: the rows of a tile
 * are unpacked and transposed once, then every lane is a row from the start. In both the integer
 * sum of a block is exact and acc += (dw * dx) * sum runs over the blocks in order. */
#ifndef QSF_KERNELS_X86_MM_BLOCK_AVX2_H
#define QSF_KERNELS_X86_MM_BLOCK_AVX2_H

enum {
    TILE_BLOCKS = 8,   /* blocks per tile: 256 elements of 8 rows, 2 KiB unpacked */
    TILE_COLS = 4,     /* columns that share one load of the weights */
    TILE_FROM_COLS = 3 /* from this many columns on a tile is worth its transposing */
};

/* Scales (and minimums) of up to TILE_BLOCKS blocks of 8 rows. */
typedef struct tile_scales {
    uint16_t d[TILE_BLOCKS][QK_GROUP];
    uint16_t m[TILE_BLOCKS][QK_GROUP];
} tile_scales;

QK_INLINE void stage_scales(tile_scales *s, const qk_rows8 *g, size_t b0, size_t n)
{
    for (size_t r = 0; r < QK_GROUP; r++) {
        const uint8_t *p = g->p[r] + b0 * FMT_BYTES;
        for (size_t b = 0; b < n; b++, p += FMT_BYTES) {
            s->d[b][r] = qk_load_u16(p);
            if (FMT_MIN)
                s->m[b][r] = qk_load_u16(p + 2);
        }
    }
}

QK_INLINE __m256 half8(const uint16_t h[QK_GROUP])
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)h));
}

/* acc plus block b's part for 8 rows; isum without the offset's share. */
QK_INLINE __m256 add_block(__m256 acc, __m256i isum, const tile_scales *s, size_t i, const qk_col_q8 *x,
                           size_t b)
{
    const __m256 d = _mm256_mul_ps(half8(s->d[i]), _mm256_set1_ps(x->d[b]));
    acc = _mm256_add_ps(acc, _mm256_mul_ps(d, _mm256_cvtepi32_ps(isum)));
    if (FMT_MIN)
        acc = _mm256_add_ps(acc, _mm256_mul_ps(half8(s->m[i]), _mm256_set1_ps(x->ds[b])));
    return acc;
}

QK_INLINE __m256i offset_part(const qk_col_q8 *x, size_t b)
{
    return _mm256_set1_epi32(FMT_OFF ? -FMT_OFF * x->sum[b] : 0);
}

/* Block b of 8 rows against one column: sums per row. */
QK_INLINE __m256i block_sums(const qk_rows8 *g, size_t b, const qk_col_q8 *x)
{
    const __m256i q = _mm256_load_si256((const void *)(x->q + b * QK_BLOCK));
    __m256i z[QK_GROUP];
    for (int r = 0; r < QK_GROUP; r++) {
        qk_prefetch(g->next + (b * QK_GROUP + (size_t)r) * FMT_BYTES);
        z[r] = fmt_dot(_mm256_setzero_si256(), fmt_unpack(g->p[r] + b * FMT_BYTES), q);
    }
    return _mm256_add_epi32(qk_sum8(z), offset_part(x, b));
}

static void mv_block(const qk_mm *m, const qk_rows8 *g, size_t r, size_t c)
{
    const qk_col_q8 x = qk_col_q8_at(qk_mm_col(m, c), m->k);
    const size_t nb = m->k / QK_BLOCK;
    __m256 acc = _mm256_setzero_ps();
    tile_scales s;
    for (size_t b0 = 0; b0 < nb; b0 += TILE_BLOCKS) {
        const size_t n = nb - b0 < TILE_BLOCKS ? nb - b0 : TILE_BLOCKS;
        if (n == TILE_BLOCKS)
            stage_scales(&s, g, b0, TILE_BLOCKS);
        else
            stage_scales(&s, g, b0, n);
        for (size_t i = 0; i < n; i++)
            acc = add_block(acc, block_sums(g, b0 + i, &x), &s, i, &x, b0 + i);
    }
    qk_store_some_ps(m->y + c * m->y_stride + r, g->n, acc);
}

/* Dwords of n blocks of 8 rows, transposed: tile[block * 8 + i] = elements 4i..4i+3 of every row. */
static void fill_tile(__m256i *tile, const qk_rows8 *g, size_t b0, size_t n)
{
    for (size_t b = 0; b < n; b++) {
        __m256i *z = tile + b * 8;
        for (int r = 0; r < QK_GROUP; r++)
            z[r] = fmt_unpack(g->p[r] + (b0 + b) * FMT_BYTES);
        qk_transpose8(z);
    }
}

/* nc columns from c on against one tile; y holds the sums of the tiles before it. */
QK_INLINE void tile_cols(const qk_mm *m, const qk_rows8 *g, size_t r, size_t c, const __m256i *tile,
                         const tile_scales *s, size_t b0, size_t n, int nc)
{
    __m256 acc[TILE_COLS];
    qk_col_q8 x[TILE_COLS];
    for (int j = 0; j < nc; j++) {
        x[j] = qk_col_q8_at(qk_mm_col(m, c + (size_t)j), m->k);
        acc[j] = b0 ? qk_load_some_ps(m->y + (c + (size_t)j) * m->y_stride + r, g->n) : _mm256_setzero_ps();
    }
    for (size_t b = 0; b < n; b++) {
        __m256i isum[TILE_COLS];
        for (int j = 0; j < nc; j++)
            isum[j] = offset_part(&x[j], b0 + b);
        for (size_t i = 0; i < 8; i++) {
            const __m256i w = tile[b * 8 + i];
            for (int j = 0; j < nc; j++) {
                const uint32_t q = qk_load_u32(x[j].q + (b0 + b) * QK_BLOCK + i * 4);
                isum[j] = fmt_dot(isum[j], w, _mm256_set1_epi32((int)q));
            }
        }
        for (int j = 0; j < nc; j++)
            acc[j] = add_block(acc[j], isum[j], s, b, &x[j], b0 + b);
    }
    for (int j = 0; j < nc; j++)
        qk_store_some_ps(m->y + (c + (size_t)j) * m->y_stride + r, g->n, acc[j]);
}

static void tile_cols4(const qk_mm *m, const qk_rows8 *g, size_t r, size_t c, const __m256i *tile,
                       const tile_scales *s, size_t b0, size_t n)
{
    tile_cols(m, g, r, c, tile, s, b0, n, TILE_COLS);
}

static void tile_cols1(const qk_mm *m, const qk_rows8 *g, size_t r, size_t c, const __m256i *tile,
                       const tile_scales *s, size_t b0, size_t n)
{
    tile_cols(m, g, r, c, tile, s, b0, n, 1);
}

static void mm_tiles(const qk_mm *m, const qk_rows8 *g, size_t r)
{
    const size_t nb = m->k / QK_BLOCK;
    __m256i tile[TILE_BLOCKS * 8];
    tile_scales s;
    for (size_t b0 = 0; b0 < nb; b0 += TILE_BLOCKS) {
        const size_t n = nb - b0 < TILE_BLOCKS ? nb - b0 : TILE_BLOCKS;
        size_t c = 0;
        stage_scales(&s, g, b0, n);
        fill_tile(tile, g, b0, n);
        for (; c + TILE_COLS <= m->n_cols; c += TILE_COLS)
            tile_cols4(m, g, r, c, tile, &s, b0, n);
        for (; c < m->n_cols; c++)
            tile_cols1(m, g, r, c, tile, &s, b0, n);
    }
}

QK_INLINE void mm_block(const qk_mm *m, size_t row0, size_t row1)
{
    for (size_t r = row0; r < row1; r += QK_GROUP) {
        const qk_rows8 g = qk_rows8_at(m, r, row1);
        if (m->n_cols >= TILE_FROM_COLS)
            mm_tiles(m, &g, r);
        else
            for (size_t c = 0; c < m->n_cols; c++)
                mv_block(m, &g, r, c);
    }
}

#endif
