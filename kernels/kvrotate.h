/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotation of head rows before they are rounded to few bits: a Hadamard transform spreads an element that is
 * much larger than the others over all of them. Sums and differences in a fixed order, and powers of two: the
 * same bits at every level. */
#ifndef QSF_KERNELS_KVROTATE_H
#define QSF_KERNELS_KVROTATE_H

#include <string.h>

#include "kernels/kv.h"

enum { QK_KV_ROTATED = 128 }; /* most elements that are transformed together */

/* Returns how many elements are transformed together: the largest power of two that divides
 * dim, at most QK_KV_ROTATED. */
static inline size_t qk_kv_rotated(size_t dim) {
    size_t n = 1;
    while (n < QK_KV_ROTATED && dim % (2 * n) == 0) n *= 2;
    return n;
}

/* y = the transform of x, dim <= QK_KV_MAX_DIM elements each; they may be the same. back: of rows that were
 * transformed before, and of queries: the products with transformed rows stay what they were. */
static inline void qk_kv_rotate(float *y, const float *x, size_t dim, int back) {
    const size_t n = qk_kv_rotated(dim);
    size_t log = 0;
    while ((size_t)1 << log < n) log++;
    /* transforming twice multiplies by n */
    const float by = 1.0f / (float)((size_t)1 << (back ? log - log / 2 : log / 2));
    for (size_t at = 0; at < dim; at += n) {
        float buf[2][QK_KV_ROTATED];
        memcpy(buf[0], x + at, n * sizeof *x);
        for (size_t s = 0; s < log; s++) {
            /* Neighbours in, halves out: after log rounds every element is at its place again. */
            const float *from = buf[s % 2];
            float *sum = buf[1 - s % 2], *difference = sum + n / 2;
            for (size_t i = 0; i < n / 2; i++) {
                sum[i] = from[2 * i] + from[2 * i + 1];
                difference[i] = from[2 * i] - from[2 * i + 1];
            }
        }
        for (size_t i = 0; i < n; i++) y[at + i] = buf[log % 2][i] * by;
    }
}

#endif
