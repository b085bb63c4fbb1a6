/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What positions read and change in turn: matrices of recurrent layers. A matrix is stored in tiles of
 * QK_STATE_TILE columns, (rows, QK_STATE_TILE) floats each, so that a lane of a vector is a column. Of a
 * tile, `cols` columns are used; the others hold any numbers. All sums over rows have one order for a level,
 * whatever n_pos and cols are. */
#ifndef QSF_KERNELS_STATE_H
#define QSF_KERNELS_STATE_H

#include <stddef.h>

#include "kernels/blocks.h"

enum { QK_SCAN_POSITIONS = 64 };

/* stream: the new state is written with non-temporal stores. If it is not read again soon, that saves
 * reading the lines that are overwritten. It must be aligned to 64 bytes and must not be the old
 * state. The result is the same. */

/* A tile of a selective scan over n_pos <= QK_SCAN_POSITIONS positions. Those after the first one are
 * `stride` floats further. */
typedef struct qk_scan {
    float *s;         /* the new state */
    const float *old; /* may be s */
    size_t rows, cols, n_pos;
    const float *b, *c; /* (rows) */
    const float *x;     /* (cols) */
    float *y;           /* (cols); may be x */
    size_t bc_stride, x_stride, y_stride;
    int stream;
} qk_scan;

/* Mamba: one decay for each element. */
typedef struct qk_scan_each {
    const float *a; /* (rows, QK_STATE_TILE) */
    const float *d; /* (cols) */
    const float *dt;
    size_t dt_stride;
} qk_scan_each;

/* Mamba-2: one decay for all elements; (n_pos) numbers of each kind, and the factor of x. */
typedef struct qk_scan_one {
    const float *keep, *gain, *out;
    float d;
} qk_scan_one;

/* One position of a delta rule: v' = beta * (v - (decay * k)^T s); s = decay * s + k v'^T;
 * y = scale * q^T s. */
typedef struct qk_delta {
    const float *old; /* the state before; may be s */
    int stream;
    size_t rows, cols;
    const float *q, *k; /* (rows) */
    const float *decay; /* (rows) if decay_step is 1, one number if it is 0 */
    size_t decay_step;
    const float *v; /* (cols) */
    float *y;       /* (cols) */
    float beta, scale;
} qk_delta;

/* One position of linear attention: seen = a^T s;  s = w * s + k v^T - b seen^T;  y = r^T s. */
typedef struct qk_wkv {
    const float *old; /* the state before; may be s */
    int stream;
    size_t rows, cols;
    const float *r, *k; /* (rows) */
    const float *a, *b; /* (rows); a NULL: nothing is subtracted */
    const float *w;     /* (rows) if w_step is 1, one number if it is 0 */
    size_t w_step;
    int before;     /* y uses s as it was */
    int open;       /* (1 - w) * k is used in place of k */
    const float *v; /* (cols) */
    float *y;       /* (cols) */
} qk_wkv;

#endif
