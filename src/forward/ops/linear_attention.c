/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/ops/matstate.h"

typedef struct TilesJob {
    const QsfForward *f;
    const QsfStep *s;
    QsfStateTileFn fn;
    const float *old;
    float *new_state;
    uint32_t k_dim, v_dim, tiles; /* per head */
} TilesJob;

static void run_tiles(void *arg, int worker, size_t begin, size_t end) {
    const TilesJob *j = arg;
    const size_t floats = (size_t)j->k_dim * QSF_STATE_TILE;
    (void)worker;
    for (size_t i = begin; i < end && !qsf_cancelled(j->f); i++) {
        const uint32_t col = (uint32_t)(i % j->tiles) * QSF_STATE_TILE, left = j->v_dim - col;
        const QsfStateTile t = { .head = (uint32_t)(i / j->tiles),
                                 .col = col,
                                 .n = left < QSF_STATE_TILE ? left : QSF_STATE_TILE,
                                 .old = j->old + i * floats,
                                 .s = j->new_state + i * floats };
        j->fn(j->f, j->s, &t);
    }
}

void qsf_matrix_state_run(QsfForward *f, const QsfStep *s, uint32_t state, uint32_t heads, uint32_t k_dim,
                          uint32_t v_dim, QsfStateTileFn fn) {
    const QsfSpan span = qsf_span_begin(f);
    TilesJob j = { .f = f,
                   .s = s,
                   .fn = fn,
                   .old = qsf_recurrent_old(&f->recurrent, state),
                   .new_state = qsf_recurrent_new(&f->recurrent, state),
                   .k_dim = k_dim,
                   .v_dim = v_dim,
                   .tiles = (v_dim + QSF_STATE_TILE - 1) / QSF_STATE_TILE };
    qsf_pool_run(f->pool, run_tiles, &j, (size_t)heads * j.tiles, 1);
    qsf_span_end(f, &span, &f->n.attention_ns);
}
