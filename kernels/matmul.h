/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of weights with activation columns: part of the kernel table (kernels/kernels.h), whose rules
 * apply. The kernels of a format include this file and not the table. */
#ifndef QSF_KERNELS_MATMUL_H
#define QSF_KERNELS_MATMUL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/blocks.h"

/* How a weight type wants its activation columns. */
typedef enum qk_act {
    QK_ACT_F32, /* k floats */
    QK_ACT_Q8,  /* int8 in blocks of 32 with a float scale and sums each */
    QK_ACT_Q8K, /* int8 in blocks of 256 with a float scale, and sums of 16 */
    QK_ACT_N
} qk_act;

/* How the product of a few columns reads groups of sixteen rows: eight in turn and prefetched, one
 * after the other, eight in turn and prefetched to a larger cache, or one after the other and
 * prefetched from far ahead. The result is the same; which way is the fastest depends on the CPU and
 * on the format (docs/KERNELS.md). Float types, which stay rows, read eight of them together, and
 * prefetch in the last way only. */
typedef enum qk_way { QK_WAY_TURNS, QK_WAY_ALONE, QK_WAY_FAR, QK_WAY_AHEAD, QK_WAY_N } qk_way;
const char *qk_way_name(qk_way way); /* "turns" "alone" "far" "ahead" */
/* Whether the ways in the table (qk_weight_ops.way) are known to be the fastest on this CPU, so that
 * measuring them would only add noise. Any thread. */
int qk_ways_are_known(void);

/* With at least QK_TILE_COLS columns, matmul and matmul16 unpack QK_TILE_ROWS rows at a time and compute all
 * of them even if the range ends earlier: ranges that begin at multiples of it waste no work. */
enum { QK_TILE_ROWS = 64, QK_TILE_COLS = 9 };

/* y[c * y_stride + r] = sum_i w[r][i] * x[c][i]   for rows r, columns c. */
typedef struct qk_mm {
    const void *w; /* row r at w + r * row_bytes */
    size_t row_bytes;
    const void *x;   /* column c at x + c * x_stride bytes, in the form ops->act; 64-byte aligned */
    size_t x_stride; /* multiple of 64 */
    float *y;
    size_t y_stride; /* floats */
    size_t k;        /* elements per row: a multiple of the weight type's block */
    size_t n_cols;
    float scale; /* of the whole tensor: I2_S; other types ignore it */
    qk_way way;  /* of matmul16, and of matmul for a float type */
    /* Of many columns: 1 = sums of sub-blocks times their scales are products of 32-bit integers, 0 = of
     * pairs of int16, where a format can choose. The result is the same. */
    int wide;
} qk_mm;

typedef struct qk_weight_ops {
    const char *name; /* of matmul, as in "q4_0_avx512vnni"; receipts show it */
    qk_act act;
    int scaled; /* qk_mm.scale counts: I2_S */
    qk_way way; /* for qk_mm.way: the fastest on this CPU, as far as known */
    int wide;   /* for qk_mm.wide: the same */
    /* Rows [row0, row1) of m, all columns. */
    void (*matmul)(const qk_mm *m, size_t row0, size_t row1);
    /* One row to k floats; I2_S without the scale of the tensor. */
    void (*dequant)(const void *w, float *dst, size_t k);

    /* Sixteen rows interleaved (kernels/x16/x16.h): as many bytes as the rows, another order. NULL for the
     * float types, which stay rows. */
    /* Rows at src, row_bytes apart, to the group at dst; they do not overlap. */
    void (*pack)(void *dst, const void *src, size_t row_bytes, size_t k);
    /* Row r < 16 of a group, as it was before pack. */
    void (*unpack_row)(void *dst, const void *group, unsigned r, size_t k);
    /* For types whose planes pack puts in the order of their use (qk_type_by_use): a group with the planes in
     * the order of the block to one of pack, or back, in place. NULL for the others, which have one order. */
    void (*by_use)(void *group, size_t k);
    void (*by_block)(void *group, size_t k);
    /* The same bits as matmul; w holds groups, group g at w + g * 16 * row_bytes; row0 and
     * row1 are multiples of 16. */
    void (*matmul16)(const qk_mm *m, size_t row0, size_t row1);
} qk_weight_ops;

/* Bytes of one activation column of k elements, a multiple of 64. */
size_t qk_act_bytes(qk_act act, size_t k);

#endif
