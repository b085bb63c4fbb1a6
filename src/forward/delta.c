/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Linear attention with a gated delta rule (QsfDeltaStep). Loops run over the columns of a tile, so that compilers
 * vectorize them, and each element has one order of additions. */
#include <string.h>

#include "src/forward/matstate.h"

enum { TILE = QSF_STATE_TILE };

typedef struct Position {
    const float *q, *k, *v, *decay;
    size_t decay_step; /* 1: per channel, 0: one for all channels */
    float beta;
} Position;

static void at_position(const Position *p, float *restrict s, size_t k_dim, uint32_t n, float scale,
                        float *restrict y) {
    float seen[TILE] = { 0 }, out[TILE] = { 0 }, v[TILE];
    qsf_tile_load(v, p->v, n);
    for (size_t i = 0; i < k_dim; i++) {
        const float *row = s + i * TILE, k = p->decay[i * p->decay_step] * p->k[i];
        for (size_t j = 0; j < TILE; j++) seen[j] += k * row[j];
    }
    for (size_t j = 0; j < TILE; j++) v[j] = p->beta * (v[j] - seen[j]);
    for (size_t i = 0; i < k_dim; i++) {
        float *row = s + i * TILE;
        const float decay = p->decay[i * p->decay_step], k = p->k[i], q = p->q[i];
        for (size_t j = 0; j < TILE; j++) {
            row[j] = decay * row[j] + k * v[j];
            out[j] += q * row[j];
        }
    }
    for (size_t j = 0; j < TILE; j++) out[j] *= scale;
    memcpy(y, out, n * sizeof *y);
}

static void through_positions(const QsfForward *f, const QsfStep *s, const QsfStateTile *t) {
    const QsfDeltaStep *p = &s->u.delta;
    const uint32_t h = t->head, k_head = p->tiled ? h % p->k_heads : h / (p->v_heads / p->k_heads);
    const size_t keys = (size_t)p->k_heads * p->k_dim, at = (size_t)h * p->v_dim + t->col;
    const size_t decays = p->per_channel ? p->k_dim : 1; /* per head */
    for (size_t c = f->col0; c < f->col0 + f->n_cols; c++) {
        const float *qkv = qsf_col(f, s->in, c);
        const Position pos = { .q = qkv + (size_t)k_head * p->k_dim,
                               .k = qkv + keys + (size_t)k_head * p->k_dim,
                               .v = qkv + 2 * keys + at,
                               .decay = qsf_col(f, s->in2, c) + h * decays,
                               .decay_step = p->per_channel,
                               .beta = qsf_col(f, s->in3, c)[h] };
        at_position(&pos, t->s, p->k_dim, t->n, p->scale, qsf_col(f, s->out[0], c) + at);
    }
}

int qsf_delta(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfDeltaStep *p = &s->u.delta;
    (void)err;
    qsf_matrix_state_run(f, s, p->state, p->v_heads, p->k_dim, p->v_dim, through_positions);
    return QSF_OK;
}
