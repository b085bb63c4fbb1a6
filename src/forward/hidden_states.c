/* SPDX-License-Identifier: GPL-3.0-or-later */
/* States that a program shows to others, and those that it is given. */
#include <string.h>

#include "src/forward/forward_impl.h"
#include "src/forward/ops/ops.h"

static QsfSlice row_of(const QsfForward *f, uint32_t buf) {
    return (QsfSlice){ buf, 0, f->model->hp.hidden };
}

/* ---- shown ---- */

void qsf_forward_show_states(QsfForward *f, QsfStatesFn fn, void *arg) {
    f->states = fn;
    f->states_arg = arg;
}

void qsf_states_show(QsfForward *f, uint32_t n) {
    const QsfSlice x = row_of(f, QSF_BUF_X);
    if (f->states == NULL) return;
    qsf_steps_end_block(f); /* what is done with them is not the time of a block */
    f->states(f->states_arg, f->past, f->ids, n, qsf_col(f, x, 0), qsf_col_stride(f, x));
}

void qsf_states_gone(const QsfForward *f, uint32_t n) {
    if (f->states != NULL) f->states(f->states_arg, n, NULL, 0, NULL, 0);
}

/* ---- given ---- */

static const float *given_row(const QsfForward *f, uint32_t pos) {
    const QsfGiven *g = f->given;
    const uint32_t i = pos - f->given_pos;
    return i == 0 ? g->first : g->x + (size_t)(i - 1) * g->stride;
}

void qsf_states_take(const QsfForward *f, uint32_t n) {
    const QsfProgram *p = &f->model->prog;
    const QsfSlice to = row_of(f, p->given);
    for (uint32_t c = 0; c < n; c++) {
        const float *x = given_row(f, f->past + c);
        const bool own = f->past + c - f->given_pos >= f->given->n_shown;
        if (x == NULL)
            memset(qsf_col(f, to, c), 0, to.width * sizeof *x);
        else if (p->given_normed && !own)
            qsf_norm(f, &p->given_norm, x, qsf_col(f, to, c), to.width);
        else
            memcpy(qsf_col(f, to, c), x, to.width * sizeof *x);
    }
}

void qsf_forward_own_state(const QsfForward *f, float *dst) {
    const QsfSlice x = row_of(f, f->model->prog.given_normed ? QSF_BUF_BRANCH : QSF_BUF_X);
    memcpy(dst, qsf_col(f, x, f->col0 + f->n_cols - 1), x.width * sizeof *dst);
}

/* Streamed weights are walked up to the head. */
uint32_t qsf_fill_end(const QsfForward *f) {
    const QsfProgram *p = &f->model->prog;
    for (uint32_t i = 0; i + 1 < p->n_units; i++)
        if (!qsf_weights_unit(f->weights, i)->on_demand && !qsf_weights_pinned(f->weights, i))
            return p->head_step;
    return p->fill_step;
}

static int with_states(QsfForward *f, const int32_t *ids, size_t n, const QsfGiven *g, bool fills,
                       QsfLogitsFn all, void *arg, QsfErr *err) {
    f->given = g;
    f->given_pos = qsf_forward_n_past(f);
    f->fills = fills;
    int rc = qsf_forward_eval(f, ids, n, all, arg, err);
    f->given = NULL;
    f->fills = false;
    return rc;
}

int qsf_forward_eval_given(QsfForward *f, const int32_t *ids, size_t n, const QsfGiven *g, QsfLogitsFn all,
                           void *arg, QsfErr *err) {
    return with_states(f, ids, n, g, false, all, arg, err);
}

int qsf_forward_decode_given(QsfForward *f, const int32_t *ids, size_t n, const QsfGiven *g, QsfErr *err) {
    f->given = g;
    f->given_pos = qsf_forward_n_past(f);
    int rc = qsf_forward_decode(f, ids, n, NULL, NULL, err);
    f->given = NULL;
    return rc;
}

int qsf_forward_fill_given(QsfForward *f, const int32_t *ids, size_t n, const QsfGiven *g, QsfErr *err) {
    return with_states(f, ids, n, g, true, NULL, NULL, err);
}
