/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Linear attention: implements linear_attention.h. */
#include "src/forward/ops/linear_attention.h"

/* ---- tiles of the states ---- */

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

/* Calls fn for each tile of a state of `heads` matrices (k_dim, v_dim), by several threads. */
static void run_states(QsfForward *f, const QsfStep *s, uint32_t state, uint32_t heads, uint32_t k_dim,
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

/* ---- the gated delta rule ---- */

/* Linear attention with a gated delta rule (QsfDeltaStep). */

static void delta_positions(const QsfForward *f, const QsfStep *s, const QsfStateTile *t) {
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
    run_states(f, s, p->state, p->v_heads, p->k_dim, p->v_dim, delta_positions);
    return QSF_OK;
}

/* ---- RWKV ---- */

/* Linear attention of RWKV (QsfWkvStep). */

/* Returns input i of a head. */
static const float *input(const float *in, const QsfWkvStep *p, unsigned i, uint32_t head) {
    const uint32_t h = i == QSF_WKV_K || i == QSF_WKV_V ? head / (p->heads / p->kv_heads) : head;
    return in + (size_t)i * p->slot + (size_t)h * p->dim;
}

static void wkv_positions(const QsfForward *f, const QsfStep *s, const QsfStateTile *t) {
    const QsfWkvStep *p = &s->u.wkv;
    const bool fixed = p->kind == QSF_WKV_FIXED, v7 = p->kind == QSF_WKV_V7;
    const unsigned inputs = v7 ? QSF_WKV_SLOTS : QSF_WKV_A;
    for (size_t c = f->col0; c < f->col0 + f->n_cols; c++) {
        const float *in = qsf_col(f, s->in, c);
        const qk_wkv pos = { .old = c == f->col0 ? t->old : t->s,
                             .stream = qsf_streams_states(f),
                             .rows = p->dim,
                             .cols = t->n,
                             .r = input(in, p, QSF_WKV_R, t->head),
                             .k = input(in, p, QSF_WKV_K, t->head),
                             .a = v7 ? input(in, p, QSF_WKV_A, t->head) : NULL,
                             .b = v7 ? input(in, p, QSF_WKV_B, t->head) : NULL,
                             .w = fixed ? f->model->prog.slopes[p->decays] + t->head
                                        : input(in, p, QSF_WKV_W, t->head),
                             .w_step = !fixed,
                             .before = p->kind == QSF_WKV_V6,
                             .open = p->kind == QSF_WKV_GLA,
                             .v = input(in, p, QSF_WKV_V, t->head) + t->col,
                             .y = qsf_col(f, s->out[0], c) + (size_t)t->head * p->dim + t->col };
        for (unsigned i = 0; i < inputs && c + 1 < (size_t)f->col0 + f->n_cols; i++)
            qsf_state_ahead(input(qsf_col(f, s->in, c + 1), p, i, t->head), p->dim);
        f->table->wkv(t->s, &pos);
    }
}

int qsf_wkv(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfWkvStep *p = &s->u.wkv;
    (void)err;
    run_states(f, s, p->state, p->heads, p->dim, p->dim, wkv_positions);
    return QSF_OK;
}

void qsf_wkv_bonus(const QsfForward *f, const QsfStep *s, size_t c) {
    const QsfWkvStep *p = &s->u.wkv;
    const float *in = qsf_col(f, s->in, c), *u = qsf_param(f, p->param);
    float *y = qsf_col(f, s->out[0], c);
    for (uint32_t h = 0; h < p->heads; h++, y += p->dim, u += p->dim) {
        const float *r = input(in, p, QSF_WKV_R, h), *k = input(in, p, QSF_WKV_K, h),
                    *v = input(in, p, QSF_WKV_V, h);
        double sum = 0;
        for (uint32_t i = 0; i < p->dim; i++) sum += (double)(r[i] * u[i]) * (double)k[i];
        for (uint32_t i = 0; i < p->dim; i++) y[i] += (float)sum * v[i];
    }
}
