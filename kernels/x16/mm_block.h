/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of the formats with a float scale per block and Q8 activations, over rows interleaved by 16
 * (kernels/x16/x16.h). The including file has included lanes_<isa>.h and then fmt_<format>.h; mm_plan.h lists
 * what that defines.
 *
 * Two ways, the same result: the sum of a sub-block is exact, and acc += (d * dx) * sum runs over the
 * sub-blocks in order. Few columns: directly from the planes. Many: tiles are unpacked once and
 * multiplied with all columns. */
#ifndef QSF_KERNELS_X16_MM_BLOCK_H
#define QSF_KERNELS_X16_MM_BLOCK_H

#define MM_SUPER 0
#include "kernels/x16/mm_tile.h"

QK_INLINE void pack_block(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t b) {
    const size_t at = b * BLOCK_BYTES;
    fmt_pack(dst, row, at);
    for (int h = 0; h < FMT_HALVES; h++)
        pack_halves(dst + HALVES + h * (int)QK_HALF, row, at + fmt_half_at(h));
    for (size_t r = 0; FMT_OCTETS && r < QK_GROUP; r++)
        dst[OCTETS + (int)r] = row[r][at + fmt_half_at(FMT_HALVES)];
}

/* One unit of a few columns: where its bytes are, and the offsets from them to its scales, sums, and their
 * products. */
typedef struct columns {
    const char *q[COLS];
    size_t d, sum, ds;
} columns;

QK_INLINE columns columns_at(const qk_mm *m, size_t c, size_t u, int nc) {
    const qk_col_q8 col = qk_col_q8_at(qk_mm_col(m, c), m->k);
    const char *q = (const char *)(col.q + u * UNIT);
    columns x = { .d = (size_t)((const char *)(col.d + u * UNIT / 32) - q),
                  .sum = (size_t)((const char *)(col.sum16 + u * UNIT / 16) - q),
                  .ds = (size_t)((const char *)(col.ds + u * UNIT / 32) - q) };
    for (int i = 0; i < nc; i++) x.q[i] = q + (size_t)i * m->x_stride;
    return x;
}

/* Minus the offset's share of the sum of sub-block sb: -OFFSET times the sums of its elements,
 * which are one or both of a pair. */
QK_INLINE li start_of(const columns *x, int c, size_t sb) {
    const uint32_t low = (uint16_t)-OFFSET, high = (uint32_t)-OFFSET << 16;
    const li off = l_set((int32_t)(SUB == 32 ? low | high : sb % 2 ? high : low));
    return OFFSET ? l_dot16(l_set(0), off, l_dup(x->q[c] + x->sum + sb * SUB / 32 * 4)) : l_set(0);
}

/* acc + (d * dx) * sum, and m * ds where there are minimums. */
QK_INLINE lf add_sub(lf acc, li sum, lf d, lf m, lf dx, lf ds) {
    const lf scale = FMT_TENSOR_SCALE ? dx : l_mulf(d, dx);
    acc = l_addf(acc, l_mulf(scale, l_float(sum)));
    return FMT_MIN ? l_addf(acc, l_mulf(m, ds)) : acc;
}

/* The dword at p of a column, in all lanes. */
QK_INLINE lf float_at(const char *p) { return l_setf(qk_load_f32(p)); }

/* d of sub-block j. */
QK_INLINE lf scale_of(const uint8_t *block, int j, int v) {
    (void)block, (void)j, (void)v;
#ifdef FMT_OWN_SCALE
    return FMT_OWN_SCALE(block, j, v);
#else
    return FMT_TENSOR_SCALE ? l_zerof() : l_halves(block + HALVES + v * L * 2);
#endif
}

QK_INLINE lf min_of(const uint8_t *block, int v) {
    return FMT_MIN ? l_halves(block + HALVES + (int)QK_HALF + v * L * 2) : l_zerof();
}

/* ---- few columns ---- */

QK_INLINE void direct_block(lf (*acc)[NV], const uint8_t *p, const columns *x, int nc) {
    QK_UNROLL for (int j = 0; j < SUBS; j++) {
        li sum[COLS][NV];
        QK_UNROLL for (int c = 0; c < nc; c++) for (int v = 0; v < NV; v++)
            sum[c][v] = start_of(x, c, (size_t)j);
        direct_steps(sum, p, x->q, j * SUB, j * STEPS, STEPS, nc);
        for (int v = 0; v < NV; v++) {
            const lf d = scale_of(p, j, v), m = min_of(p, v);
            QK_UNROLL for (int c = 0; c < nc; c++)
                acc[c][v] = add_sub(acc[c][v], sum[c][v], d, m,
                                    float_at(x->q[c] + x->d + (size_t)(j * SUB / 32 * 4)),
                                    FMT_MIN ? float_at(x->q[c] + x->ds + 4 * (size_t)j) : l_zerof());
        }
    }
}

/* The unit that begins with block b. That all addresses are constants away from q leaves
 * general registers. */
QK_INLINE columns columns_from(const columns *x, size_t b, int nc) {
    const size_t q = b * FMT_ELEMS, scales = b * FMT_ELEMS / 32 * 4;
    columns at = { .d = x->d + scales - q, .sum = x->sum + scales - q, .ds = x->ds + b * SUBS * 4 - q };
    for (int c = 0; c < nc; c++) at.q[c] = x->q[c] + q;
    return at;
}

QK_INLINE void mv_unit(lf (*acc)[NV], const groups *w, const columns *x, size_t n, int nc) {
    for (size_t b = 0; b < n; b++) {
        columns col = columns_from(x, b, nc);
        for (size_t g = 0; g < w->n; g++) {
            const uint8_t *p = w->p + g * w->stride + b * GROUP_BLOCK;
            hide_columns(col.q, nc);
            prefetch_group(w, p, GROUP_BLOCK);
            direct_block(acc + g * (size_t)nc, p, &col, nc);
        }
    }
}

/* ---- many columns ---- */

typedef struct tile {
    _Alignas(64) tile_step q[UNIT / 4 * SPLIT / SIDE];
    int32_t negative[MARKED_SUBS][TILE_ROWS]; /* with MARKS: sums of the magnitudes of negative weights */
    float d[UNIT_BLOCKS * FMT_SCALES][TILE_ROWS * SIDE], m[UNIT_BLOCKS][TILE_ROWS * SIDE];
} tile;

/* Vector v of block b, as magnitudes and marks. */
QK_INLINE void fill_marked(tile *t, const uint8_t *p, int r, size_t b, int v) {
    QK_UNROLL for (int j = 0; j < SUBS; j++) {
        li negative = l_set(0);
        QK_UNROLL for (int s = j * STEPS; s < (j + 1) * STEPS; s++) {
            const li w = unpacked(p, s, v), magnitudes = l_magnitudes(w), marks = l_marks(w);
            put_steps(&t->q[(b * BLOCK_STEPS + (size_t)s) * SPLIT], r, magnitudes, marks);
            negative = l_dot(negative, magnitudes, l_and(marks, l_bytes(1)));
        }
        put_ints(t->negative[b * SUBS + (size_t)j], r, negative);
    }
}

static void fill_tile(tile *t, const uint8_t *p, int r, size_t n) {
    for (size_t b = 0; b < n; b++, p += GROUP_BLOCK)
        for (int v = 0; v < NV; v++) {
            if (MARKS)
                fill_marked(t, p, r + v * L, b, v);
            else
                QK_UNROLL for (int s = 0; s < BLOCK_STEPS; s += 2)
                    put_steps(&t->q[(b * BLOCK_STEPS + (size_t)s) / SIDE], r + v * L, unpacked(p, s, v),
                              unpacked(p, s + 1, v));
            QK_UNROLL for (int j = 0; j < FMT_SCALES; j++)
                put_floats(t->d[b * FMT_SCALES + (size_t)j], r + v * L, scale_of(p, j, v));
            if (FMT_MIN) put_floats(t->m[b], r + v * L, min_of(p, v));
        }
}

#if L_MATRIX
#define OWN_COLUMNS 1
enum { SCALES_BYTES = UNIT / 32 * 4, OWN_BYTES = SIDE * (UNIT + 2 * SCALES_BYTES) };

/* n blocks of the pairs of columns of x, joined. Scales of all blocks of a unit are there to be read: their
 * arrays end at a multiple of 64 bytes. */
QK_INLINE columns own_columns(char (*to)[OWN_BYTES], const columns *x, size_t n) {
    columns joined = { .d = SIDE * UNIT, .ds = SIDE * (UNIT + SCALES_BYTES) };
    for (int c = 0; c < WIDTH / SIDE; c++) {
        const char *a = x->q[2 * c], *b = x->q[2 * c + 1];
        joined.q[c] = to[c];
        join_bytes(to[c], a, b, n * FMT_ELEMS);
        join_dwords(to[c] + joined.d, a + x->d, b + x->d, SCALES_BYTES);
        if (FMT_MIN) join_dwords(to[c] + joined.ds, a + x->ds, b + x->ds, SCALES_BYTES);
    }
    return joined;
}
#endif

QK_INLINE void tile_cols(float *y, const tile *t, int r, const columns *x, size_t n, int first, int nc,
                         int wide) {
    const int cv = nc / SIDE; /* vectors of columns */
    (void)wide;
    lf acc[RV][COLS];
    QK_UNROLL for (int c = 0; c < cv; c++) QK_UNROLL for (int v = 0; v < R; v++) {
        lf from[SIDE];
        if (!first) results_from(from, y + c * SIDE * TILE_ROWS + v * L, TILE_ROWS);
        QK_UNROLL for (int i = 0; i < SIDE; i++) acc[v * SIDE + i][c] = first ? l_zerof() : from[i];
    }
    for (size_t sb = 0; sb < n * SUBS; sb++) {
        li sum[RV][COLS];
        QK_UNROLL for (int c = 0; c < cv; c++) {
            const li start = TILE_OFFSET ? start_of(x, c, sb) : l_set(0);
            QK_UNROLL for (int v = 0; v < RV; v++) sum[v][c] = MARKS ? l_load(&t->negative[sb][r + v * L])
                                                                     : start;
        }
        dot_sub(sum, t->q, r, x->q, sb * STEPS, STEPS, cv);
        QK_UNROLL for (int v = 0; v < RV; v++) {
            const lf d = l_loadf(&t->d[sb * FMT_SCALES / SUBS][r * SIDE + v * L]),
                     m = FMT_MIN ? l_loadf(&t->m[sb / SUBS][r * SIDE + v * L]) : d;
            QK_UNROLL for (int c = 0; c < cv; c++) {
                const lf dx = column_scale(x->q[c] + x->d + sb * SUB / 32 * 4 * SIDE);
                const lf ds = FMT_MIN ? column_scale(x->q[c] + x->ds + 4 * sb * SIDE) : dx;
                acc[v][c] = add_sub(acc[v][c], sum[v][c], d, m, dx, ds);
            }
        }
    }
    QK_UNROLL for (int c = 0; c < cv; c++) QK_UNROLL for (int v = 0; v < R; v++) {
        lf to[SIDE];
        QK_UNROLL for (int i = 0; i < SIDE; i++) to[i] = acc[v * SIDE + i][c];
        results_to(y + c * SIDE * TILE_ROWS + v * L, TILE_ROWS, to);
    }
}

#include "kernels/x16/mm_run.h"

#endif
