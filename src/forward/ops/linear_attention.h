/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrices that linear attention carries from one position to the next, one per head. They are stored in
 * tiles of QSF_STATE_TILE columns, the last one padded, so that a tile of a head stays in the L1 cache while
 * all positions of a pass go through it: the state is read and written once per pass. */
#ifndef QSF_FORWARD_OPS_LINEAR_ATTENTION_H
#define QSF_FORWARD_OPS_LINEAR_ATTENTION_H

#include "src/forward/ops/ops.h"

/* Columns [col, col + n) of the matrix of a head. */
typedef struct QsfStateTile {
    uint32_t head, col, n;
    const float *old; /* (k_dim, QSF_STATE_TILE) */
    float *s;         /* as large, for the new state */
} QsfStateTile;

#define QSF_STREAM_STATES (32u << 20) /* bytes of weights per token, more than a cache keeps */

/* Whether a pass writes states with non-temporal stores: a single position reads and writes each once, and in
 * a large model the weights evict them before the next one. */
static inline bool qsf_streams_states(const QsfForward *f) {
    return f->n_cols == 1 && f->shape.active_bytes >= QSF_STREAM_STATES;
}

/* Takes a tile through all positions of the pass, in their order. */
typedef void (*QsfStateTileFn)(const QsfForward *f, const QsfStep *s, const QsfStateTile *t);

/* Prefetches n floats of the next position, which is far away in memory. */
static inline void qsf_state_ahead(const float *x, size_t n) {
    for (size_t i = 0; i < n; i += 16) __builtin_prefetch(x + i);
}

#endif
