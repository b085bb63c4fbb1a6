/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Linear attention with a gated delta rule (QsfDeltaStep). */
#include "src/forward/ops/matstate.h"

static void through_positions(const QsfForward *f, const QsfStep *s, const QsfStateTile *t) {
    const QsfDeltaStep *p = &s->u.delta;
    const uint32_t h = t->head, k_head = p->tiled ? h % p->k_heads : h / (p->v_heads / p->k_heads);
    const size_t keys = (size_t)p->k_heads * p->k_dim, at = (size_t)h * p->v_dim + t->col;
    const size_t decays = p->per_channel ? p->k_dim : 1; /* per head */
    const size_t stride = qsf_col_stride(f, s->in);
    for (size_t c = f->col0; c < f->col0 + f->n_cols; c++) {
        const float *qkv = qsf_col(f, s->in, c);
        const qk_delta pos = { .old = c == f->col0 ? t->old : t->s,
                               .stream = qsf_streams_states(f),
                               .rows = p->k_dim,
                               .cols = t->n,
                               .q = qkv + (size_t)k_head * p->k_dim,
                               .k = qkv + keys + (size_t)k_head * p->k_dim,
                               .decay = qsf_col(f, s->in2, c) + h * decays,
                               .decay_step = p->per_channel,
                               .v = qkv + 2 * keys + at,
                               .y = qsf_col(f, s->out[0], c) + at,
                               .beta = qsf_col(f, s->in3, c)[h],
                               .scale = p->scale };
        if (c + 1 < (size_t)f->col0 + f->n_cols) {
            qsf_state_ahead(pos.q + stride, p->k_dim);
            qsf_state_ahead(pos.k + stride, p->k_dim);
            qsf_state_ahead(pos.v + stride, t->n);
            if (p->per_channel) qsf_state_ahead(pos.decay + qsf_col_stride(f, s->in2), p->k_dim);
        }
        f->table->delta(t->s, &pos);
    }
}

int qsf_delta(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfDeltaStep *p = &s->u.delta;
    (void)err;
    qsf_matrix_state_run(f, s, p->state, p->v_heads, p->k_dim, p->v_dim, through_positions);
    return QSF_OK;
}
