/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of the formats with a float scale per block and Q8 activations, over rows interleaved by 16
 * (kernels/x16/x16.h). The including file has included lanes_<isa>.h and then fmt_<format>.h, which defines
 *
 *   FMT_ELEMS                  elements of a block: a multiple of 32, each 32 of which is a sub-block
 *   FMT_PLANES, FMT_HALVES     of a block; the halves are d, then m
 *   FMT_OFF, FMT_MIN           what the bytes of a step are too large by; whether x = d*q + m
 *   FMT_SIGNED                 bytes of a step are signed, and come from l_biased
 *   FMT_TENSOR_SCALE           no d: the scale of the tensor multiplies the result
 *   fmt_step(planes, s, v)     bytes of elements 4s .. 4s+3 of lanes [v*L, v*L + L) of a block
 *   fmt_pack(planes, row, at)  the planes of a block from the block at row[r] + at of 16 rows
 *   fmt_half_at(i)             byte offset of half i in a block of a row
 *
 * Two shapes, one result: the sum of a sub-block is exact, and acc += (d * dx) * sum runs over the sub-blocks in
 * order. Few columns: straight from the planes. Many: the bytes of a tile are unpacked once and meet all columns,
 * L_COLS at a time, several groups of rows for each load of the columns' bytes into L1. */
#ifndef QSF_KERNELS_X16_MM_BLOCK_H
#define QSF_KERNELS_X16_MM_BLOCK_H

#include "kernels/x16/cells.h"

/* Keeps the compiler from turning a few bases and strides into one pointer per address, which no register file
 * holds. */
#define HIDE(value) __asm__("" : "+r"(value))

enum {
    NV = (int)QK_GROUP / L,                              /* vectors that hold a lane of every row of a group */
    SUB = 32,                                            /* elements of a sub-block */
    STEPS = SUB / 4,
    SUBS = FMT_ELEMS / SUB,                              /* of a block */
    BLOCK_BYTES = FMT_PLANES * 4 + FMT_HALVES * 2,       /* of one row */
    GROUP_BLOCK = BLOCK_BYTES * (int)QK_GROUP,
    OFFSET = FMT_OFF + (FMT_SIGNED ? L_BIAS : 0),
    TILE_SUBS = 8,                                       /* 256 elements of 16 rows: 4 KiB of bytes */
    TILE_BLOCKS = TILE_SUBS / SUBS,
    TILE_GROUPS = 4,                                     /* groups of rows that share a pass over the columns */
    TILE_FROM_COLS = 3,                                  /* from so many columns on a tile is worth its unpacking */
    AHEAD = 3072                                         /* bytes from what is used to what is prefetched */
};

/* Bytes of rows as they come to the core: groups, or rows that are packed piece by piece. */
typedef struct source {
    const uint8_t *group;              /* NULL: rows */
    const uint8_t *row[QK_GROUP];      /* a short group repeats its last row */
    unsigned n;                        /* rows that exist */
} source;

static source source_at(const qk_mm *m, size_t r, unsigned n, int packed)
{
    source s = { .n = n };
    if (packed)
        s.group = qk_mm_row(m, r);
    else
        for (unsigned i = 0; i < QK_GROUP; i++)
            s.row[i] = qk_mm_row(m, r + (i < n ? i : n - 1));
    return s;
}

/* ---- one sub-block ---- */

QK_INLINE li byte_dot(li acc, li w, li x)
{
    return FMT_SIGNED ? l_dot_signed(acc, w, x) : l_dot(acc, w, x);
}

/* Minus the offset's share of a sub-block's sum: -OFFSET * sum, as the product of its lower 16 bits. */
QK_INLINE li offset_sum(const qk_col_q8 *x, size_t sb)
{
    if (OFFSET == 0)
        return l_set(0);
    return l_dot16(l_set(0), l_set((int32_t)(uint16_t)-OFFSET), l_dup(x->sum + sb));
}

QK_INLINE lf scale_of(const uint8_t *block, int v)
{
    return FMT_TENSOR_SCALE ? l_setf(1) : l_halves(block + FMT_PLANES * QK_PLANE + v * L * 2);
}

QK_INLINE lf min_of(const uint8_t *block, int v)
{
    return l_halves(block + FMT_PLANES * QK_PLANE + QK_HALF + v * L * 2);
}

QK_INLINE lf add_sub(lf acc, li sum, lf d, lf m, const qk_col_q8 *x, size_t sb)
{
    const lf scale = FMT_TENSOR_SCALE ? l_setf(x->d[sb]) : l_mulf(d, l_setf(x->d[sb]));
    acc = l_addf(acc, l_mulf(scale, l_float(sum)));
    return FMT_MIN ? l_addf(acc, l_mulf(m, l_setf(x->ds[sb]))) : acc;
}

/* ---- few columns ---- */

/* Blocks [0, n) at p, which are the blocks from b0 on of the column. */
QK_INLINE void mv_blocks(lf acc[NV], const uint8_t *p, const qk_col_q8 *x, size_t b0, size_t n)
{
    for (size_t b = b0; b < b0 + n; b++, p += GROUP_BLOCK) {
        for (int i = 0; i < GROUP_BLOCK; i += 64)
            l_prefetch(p + AHEAD + i);
        for (int v = 0; v < NV; v++)
            for (int j = 0; j < SUBS; j++) {
                const size_t sb = b * SUBS + (size_t)j;
                const int8_t *q = x->q + sb * SUB;
                li sum = offset_sum(x, sb);
                for (int s = 0; s < STEPS; s++)
                    sum = byte_dot(sum, fmt_step(p, j * STEPS + s, v), l_dup(q + 4 * s));
                acc[v] = add_sub(acc[v], sum, scale_of(p, v), FMT_MIN ? min_of(p, v) : l_zerof(), x, sb);
            }
    }
}

QK_INLINE void store_rows(float *y, const lf acc[NV], unsigned n, float scale)
{
    float all[QK_GROUP];
    for (int v = 0; v < NV; v++)
        l_storef(all + v * L, FMT_TENSOR_SCALE ? l_mulf(acc[v], l_setf(scale)) : acc[v]);
    memcpy(y, all, n * sizeof *y);
}

QK_INLINE void pack_blocks(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t b0, size_t n)
{
    for (size_t b = b0; b < b0 + n; b++, dst += GROUP_BLOCK) {
        const size_t at = b * BLOCK_BYTES;
        fmt_pack(dst, row, at);
        for (int h = 0; h < FMT_HALVES; h++)
            for (unsigned r = 0; r < QK_GROUP; r++)
                memcpy(dst + FMT_PLANES * QK_PLANE + h * (int)QK_HALF + r * 2, row[r] + at + fmt_half_at(h), 2);
    }
}

static void mv_group(const qk_mm *m, const source *s, size_t r, size_t c)
{
    const qk_col_q8 x = qk_col_q8_at(qk_mm_col(m, c), m->k);
    const size_t nb = m->k / FMT_ELEMS;
    lf acc[NV];
    for (int v = 0; v < NV; v++)
        acc[v] = l_zerof();
    if (s->group) {
        mv_blocks(acc, s->group, &x, 0, nb);
    } else {
        uint8_t piece[TILE_BLOCKS * GROUP_BLOCK];
        for (size_t b = 0; b < nb; b += TILE_BLOCKS) {
            const size_t n = nb - b < TILE_BLOCKS ? nb - b : TILE_BLOCKS;
            pack_blocks(piece, s->row, b, n);
            mv_blocks(acc, piece, &x, b, n);
        }
    }
    store_rows(m->y + c * m->y_stride + r, acc, s->n, m->scale);
}

/* ---- many columns ---- */

typedef struct tile {
    _Alignas(64) uint8_t w[TILE_SUBS * STEPS][QK_PLANE];
    float d[TILE_BLOCKS][QK_GROUP], m[TILE_BLOCKS][QK_GROUP];
} tile;

/* L_COLS columns side by side, at the bytes of a sub-block: two bases and two strides reach eight of them, and the
 * offsets of the other parts from q are the same for all. */
typedef struct columns {
    const char *q, *q4;          /* of the first and of the fifth column */
    size_t stride, stride3;      /* bytes to the next column, and three times that */
    size_t d, sum, ds;           /* of the sub-block, counted from q */
} columns;

QK_INLINE columns columns_at(const qk_mm *m, size_t c, size_t sb)
{
    const char *q = qk_mm_col(m, c);
    const qk_col_q8 x = qk_col_q8_at(q, m->k);
    columns at = { .q = q + sb * SUB, .stride = m->x_stride, .stride3 = 3 * m->x_stride };
    at.q4 = at.q + 4 * m->x_stride;
    at.d = (size_t)((const char *)(x.d + sb) - at.q);
    at.sum = (size_t)((const char *)(x.sum + sb) - at.q);
    at.ds = (size_t)((const char *)(x.ds + sb) - at.q);
    return at;
}

/* Byte `at` of column c < 8. */
QK_INLINE const char *column(const columns *x, int c, size_t at)
{
    const char *base = c < 4 ? x->q : x->q4;
    return base + at + (c % 4 == 3 ? x->stride3 : (size_t)(c % 4) * x->stride);
}

/* n blocks of a group at p. */
QK_INLINE void fill_tile(tile *t, const uint8_t *p, size_t n)
{
    for (size_t b = 0; b < n; b++, p += GROUP_BLOCK)
        for (int v = 0; v < NV; v++) {
            for (int s = 0; s < SUBS * STEPS; s++)
                l_store(t->w[(int)b * SUBS * STEPS + s] + v * L * 4, fmt_step(p, s, v));
            l_storef(t->d[b] + v * L, scale_of(p, v));
            if (FMT_MIN)
                l_storef(t->m[b] + v * L, min_of(p, v));
        }
}

/* Sums of a sub-block for nc columns; w: its steps of the tile. */
QK_INLINE void sub_sums(li sum[], const uint8_t *w, const columns *x, int nc)
{
    const li off = l_set((int32_t)(uint16_t)-OFFSET);
    for (int c = 0; c < nc; c++)
        sum[c] = OFFSET ? l_dot16(l_set(0), off, l_dup(column(x, c, x->sum))) : l_set(0);
    for (int s = 0; s < STEPS; s++) {
        const li step = l_load(w + s * (int)QK_PLANE);
        for (int c = 0; c < nc; c++)
            sum[c] = byte_dot(sum[c], step, l_dup(column(x, c, (size_t)s * 4)));
    }
}

/* Vector v of a group's rows, nc columns: y gets the share of the tile's n sub-blocks. */
QK_INLINE void tile_cols(float *y, size_t y_stride, const tile *t, int v, columns x, int nc, int first, int n)
{
    lf acc[L_COLS];
    for (int c = 0; c < nc; c++)
        acc[c] = first ? l_zerof() : l_loadf(y + (size_t)c * y_stride);
    for (int j = 0; j < n; j++) {
        li sum[L_COLS];
        HIDE(x.q);
        HIDE(x.q4);
        HIDE(x.stride);
        HIDE(x.stride3);
        sub_sums(sum, t->w[j * STEPS] + v * L * 4, &x, nc);
        const lf d = l_loadf(t->d[j / SUBS] + v * L), min = l_loadf((FMT_MIN ? t->m : t->d)[j / SUBS] + v * L);
        for (int c = 0; c < nc; c++) {
            const lf dx = l_setf(qk_load_f32(column(&x, c, x.d)));
            const lf scale = FMT_TENSOR_SCALE ? dx : l_mulf(d, dx);
            acc[c] = l_addf(acc[c], l_mulf(scale, l_float(sum[c])));
            if (FMT_MIN)
                acc[c] = l_addf(acc[c], l_mulf(min, l_setf(qk_load_f32(column(&x, c, x.ds)))));
        }
        x.q += SUB, x.q4 += SUB;
        x.d += sizeof(float) - SUB, x.sum += sizeof(float) - SUB, x.ds += sizeof(float) - SUB;
    }
    for (int c = 0; c < nc; c++)
        l_storef(y + (size_t)c * y_stride, acc[c]);
}

static void tile_cols_many(float *y, size_t y_stride, const tile *t, const columns *x, int first, int n)
{
    for (int v = 0; v < NV; v++)
        tile_cols(y + v * L, y_stride, t, v, *x, L_COLS, first, n);
}

static void tile_cols_one(float *y, const tile *t, const columns *x, int first, int n)
{
    for (int v = 0; v < NV; v++)
        tile_cols(y + v * L, 0, t, v, *x, 1, first, n);
}

/* All columns against g tiles, whose rows begin at r. */
static void tiles_cols(const qk_mm *m, const tile t[], size_t g, size_t r, size_t sb0, int n)
{
    size_t c = 0;
    for (; c + L_COLS <= m->n_cols; c += L_COLS) {
        const columns x = columns_at(m, c, sb0);
        for (size_t i = 0; i < g; i++)
            tile_cols_many(m->y + c * m->y_stride + r + i * QK_GROUP, m->y_stride, &t[i], &x, sb0 == 0, n);
    }
    for (; c < m->n_cols; c++) {
        const columns x = columns_at(m, c, sb0);
        for (size_t i = 0; i < g; i++)
            tile_cols_one(m->y + c * m->y_stride + r + i * QK_GROUP, &t[i], &x, sb0 == 0, n);
    }
}

static void scale_rows(const qk_mm *m, size_t r, size_t n)
{
    for (size_t c = 0; c < m->n_cols; c++)
        for (size_t i = 0; i < n; i++)
            m->y[c * m->y_stride + r + i] *= m->scale;
}

/* g whole groups from row r on. */
static void mm_tiles(const qk_mm *m, size_t r, size_t g, int packed)
{
    const size_t nb = m->k / FMT_ELEMS;
    uint8_t piece[TILE_BLOCKS * GROUP_BLOCK];
    tile t[TILE_GROUPS];
    for (size_t b = 0; b < nb; b += TILE_BLOCKS) {
        const size_t n = nb - b < TILE_BLOCKS ? nb - b : TILE_BLOCKS;
        for (size_t i = 0; i < g; i++) {
            const source s = source_at(m, r + i * QK_GROUP, QK_GROUP, packed);
            if (!packed)
                pack_blocks(piece, s.row, b, n);
            fill_tile(&t[i], packed ? s.group + b * GROUP_BLOCK : piece, n);
        }
        tiles_cols(m, t, g, r, b * SUBS, (int)n * SUBS);
    }
    if (FMT_TENSOR_SCALE)
        scale_rows(m, r, g * QK_GROUP);
}

/* ---- rows of either kind ---- */

QK_INLINE void mm_run(const qk_mm *m, size_t row0, size_t row1, int packed)
{
    for (size_t r = row0, n; r < row1; r += n) {
        size_t g = (row1 - r) / QK_GROUP;
        if (g > 0 && m->n_cols >= TILE_FROM_COLS) {
            g = g < TILE_GROUPS ? g : TILE_GROUPS;
            n = g * QK_GROUP;
            mm_tiles(m, r, g, packed);
            continue;
        }
        n = g > 0 ? QK_GROUP : row1 - r;
        const source s = source_at(m, r, (unsigned)n, packed);
        for (size_t c = 0; c < m->n_cols; c++)
            mv_group(m, &s, r, c);
    }
}

/* The three functions of a cell. */
#define QK_BLOCK_CELL(cell)                                                        \
    QK_CELL(cell)                                                                  \
    void qk_mm_##cell(const qk_mm *m, size_t row0, size_t row1)                    \
    {                                                                              \
        mm_run(m, row0, row1, 0);                                                  \
    }                                                                              \
    void qk_mm16_##cell(const qk_mm *m, size_t row0, size_t row1)                  \
    {                                                                              \
        mm_run(m, row0, row1, 1);                                                  \
    }                                                                              \
    void qk_pack_##cell(void *dst, const void *src, size_t row_bytes, size_t k)    \
    {                                                                              \
        const qk_mm rows = { .w = src, .row_bytes = row_bytes };                   \
        const source s = source_at(&rows, 0, QK_GROUP, 0);                         \
        pack_blocks(dst, s.row, 0, k / FMT_ELEMS);                                 \
    }

#endif
