/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Linear attention of RWKV (QsfWkvStep). */
#include "src/forward/ops/matstate.h"

/* Returns input i of a head. */
static const float *input(const float *in, const QsfWkvStep *p, unsigned i, uint32_t head) {
    const uint32_t h = i == QSF_WKV_K || i == QSF_WKV_V ? head / (p->heads / p->kv_heads) : head;
    return in + (size_t)i * p->slot + (size_t)h * p->dim;
}

static void through_positions(const QsfForward *f, const QsfStep *s, const QsfStateTile *t) {
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
    qsf_matrix_state_run(f, s, p->state, p->heads, p->dim, p->dim, through_positions);
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
