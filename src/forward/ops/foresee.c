/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Predicts which experts the next block will choose for one position: its router gets the residual stream as
 * it is now. What this block's experts and the attention of the next block add changes it little. Only what
 * is read ahead depends on it. */
#include <string.h>

#include "src/forward/ops/ops.h"

#define CHAIN_MOST 6u /* steps between the residual stream and a router */

/* How a block chooses its experts: source, steps of the chain, matrix of the router, choice. */
typedef struct Router {
    QsfSlice source;
    const QsfStep *chain[CHAIN_MOST]; /* the last one first */
    unsigned n;
    const QsfStep *linear, *route;
} Router;

/* ---- the steps of a router ---- */

static bool is_same(QsfSlice a, QsfSlice b) { return a.buf == b.buf && a.off == b.off && a.width == b.width; }

/* Returns the last step of the block before s that writes the slice; NULL: there is none. */
static const QsfStep *writer(const QsfForward *f, const QsfStep *s, QsfSlice to) {
    const uint32_t block = s->block;
    while (s-- > f->model->prog.step && s->block == block)
        if (qsf_step_writes(s, to)) return s;
    return NULL;
}

static bool is_in_place(const QsfStep *s) {
    return s->op == QSF_OP_SCALE || s->op == QSF_OP_GAIN || s->op == QSF_OP_BIAS;
}

/* Follows the input of a router back to a slice that a norm, or the router itself, reads. */
static bool find_chain(const QsfForward *f, Router *r) {
    const QsfStep *s = r->linear;
    r->source = r->linear->in;
    for (r->n = 0; r->n < CHAIN_MOST;) {
        s = writer(f, s, r->source);
        if (s == NULL || !(is_in_place(s) || s->op == QSF_OP_NORM)) return true;
        if (!is_same(s->out[0], r->source)) return false;
        r->chain[r->n++] = s;
        if (s->op != QSF_OP_NORM) continue;
        r->source = s->in;
        return true;
    }
    return false;
}

static bool find_router(const QsfForward *f, const QsfStep *experts, Router *r) {
    r->route = writer(f, experts, experts->in2);
    if (r->route == NULL || r->route->op != QSF_OP_ROUTE) return false;
    r->linear = writer(f, r->route, r->route->in);
    if (r->linear == NULL || r->linear->op != QSF_OP_LINEAR || r->linear->u.linear.act != QSF_ACT_NONE ||
        !is_same(r->linear->out[0], r->route->in))
        return false;
    return find_chain(f, r);
}

/* Returns the next step of this kind that is computed; NULL: there is none. */
static const QsfStep *next_experts(const QsfForward *f, const QsfStep *s) {
    const QsfProgram *p = &f->model->prog;
    for (uint32_t i = (uint32_t)(s - p->step) + 1; i < p->n_steps; i++)
        if (p->step[i].op == QSF_OP_EXPERTS) return qsf_reduction_skips(f, i) ? NULL : &p->step[i];
    return NULL;
}

/* ---- what it would choose ---- */

/* Can the router's rows be multiplied now, and is there room for its input and its output? */
static bool can_multiply(const QsfForward *f, const QsfStep *s, const Router *r) {
    const uint32_t unit = r->linear->u.linear.unit;
    const QsfUnit *u = qsf_weights_unit(f->weights, unit);
    return u->n == 1 && qsf_weights_has_row(f->weights, unit, 0, u->rows[0] - 1) &&
           s->out[2].width >= r->source.width && r->source.width == u->k &&
           s->out[1].width >= qsf_pad16(u->rows[0]);
}

static void transform(const QsfForward *f, const QsfStep *s, const float *from, float *x, size_t n) {
    if (s->op == QSF_OP_NORM)
        qsf_norm(f, &s->u.norm, from, x, n);
    else if (s->op == QSF_OP_SCALE)
        f->table->scale(x, s->u.scale, n);
    else if (s->op == QSF_OP_GAIN)
        qsf_gain(f, s->u.param, x, n);
    else
        f->table->add(x, qsf_param(f, s->u.param), n);
}

/* Logits of the next router, in the scratch of the step. */
static int multiply(QsfForward *f, const QsfStep *s, const Router *r, const float **logits, QsfErr *err) {
    float *x = qsf_col(f, s->out[2], f->col0), *y = qsf_col(f, s->out[1], f->col0);
    const float *from = qsf_col(f, r->source, f->col0);
    const QsfLinearStep *l = &r->linear->u.linear;
    const QsfUnit *u = qsf_weights_unit(f->weights, l->unit);
    if (r->n == 0 || r->chain[r->n - 1]->op != QSF_OP_NORM) memcpy(x, from, u->k * sizeof *x);
    for (unsigned i = r->n; i-- > 0;) transform(f, r->chain[i], from, x, u->k);
    for (unsigned a = 0; a < QK_ACT_N; a++)
        if (qsf_unit_acts(f, u) >> a & 1) f->table->quantize[a](f->act[a], x, u->k);
    const QsfProduct p = { .x = x,
                           .x_stride = qsf_col_stride(f, s->out[2]),
                           .y = { y },
                           .y_stride = { qsf_col_stride(f, s->out[1]) },
                           .bias = { qsf_param(f, l->bias[0]) },
                           .n_cols = 1 };
    *logits = y;
    return qsf_multiply(f, l->unit, &p, err);
}

/* Reads ahead what the next router would choose, the highest weight first. */
static void guess(QsfForward *f, const Router *r, const QsfExpertsStep *e, const float *logits) {
    float choice[2 * QSF_MAX_EXPERTS];
    uint32_t unit[QSF_MAX_EXPERTS], at[QSF_MAX_EXPERTS];
    qsf_route_logits(f, &r->route->u.route, logits, choice);
    const uint32_t n = qsf_route_order(choice, r->route->u.route.n_used, at);
    for (uint32_t i = 0; i < n; i++) unit[i] = e->unit + 2 * (uint32_t)choice[at[i]];
    qsf_weights_guess(f->weights, unit, n);
}

int qsf_foresee(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfStep *next = f->n_cols == 1 && qsf_weights_guesses(f->weights) ? next_experts(f, s) : NULL;
    const float *logits;
    Router r;
    if (next == NULL) return QSF_OK;
    if (!find_router(f, next, &r) || r.source.buf != QSF_BUF_X || !can_multiply(f, s, &r)) {
        qsf_weights_guess_last(f->weights, next->u.experts.unit, next->u.experts.n_expert);
        return QSF_OK;
    }
    int rc = multiply(f, s, &r, &logits, err);
    if (rc == QSF_OK) guess(f, &r, &next->u.experts, logits);
    return rc;
}
