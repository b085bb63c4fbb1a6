/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Early exit. A token of an answer is evaluated in the blocks before the exit, and the head computes
 * its logits from the residual there. If the two largest are far enough apart, that is all; its
 * residual waits. Before a token that needs the other blocks, all that wait are evaluated there
 * together with it, so these weights are read once for all of them, and the KV cache is then what an
 * evaluation with everything would have left. */
#include <float.h>
#include <string.h>

#include "src/forward/forward_impl.h"
#include "src/forward/ops/ops.h"

int qsf_exit_open(QsfForward *f, QsfErr *err) {
    QsfReduction *r = &f->reduction;
    const QsfProgram *p = &f->model->prog;
    const uint32_t hidden = f->model->hp.hidden;
    QsfBlockSet alone;
    void *mem;
    int rc = qsf_residual_alone(&r->residual, p, &alone, err);
    if (rc != QSF_OK) return rc;
    for (uint32_t i = 1; i < p->n_blocks && p->n_states == 0 && f->model->nextn == 0; i++)
        if (qsf_blocks_have(&alone, i) && r->residual.block[i].width == hidden) qsf_blocks_add(&r->exits, i);
    if (qsf_blocks_count(&r->exits) == 0) return QSF_OK;
    r->pending.bytes = qsf_pages((QSF_PENDING_POSITIONS + 1) * (uint64_t)hidden * sizeof(float));
    rc = qsf_mem_map(f->ledger, QSF_MEM_META, r->pending.bytes, "positions after an early exit", &mem, err);
    if (rc == QSF_OK) r->pending.x = mem;
    return rc;
}

void qsf_exit_close(QsfForward *f) {
    QsfPending *w = &f->reduction.pending;
    if (w->x != NULL) qsf_mem_unmap(f->ledger, QSF_MEM_META, w->x, w->bytes);
    w->x = NULL;
}

bool qsf_forward_can_exit(const QsfForward *f) {
    return f->reduction.pending.x != NULL && f->evict.kind == QSF_EVICT_NONE;
}

const QsfBlockSet *qsf_forward_exits(const QsfForward *f) { return &f->reduction.exits; }

/* Only once the head has succeeded does the position count (qsf_exit_decide). */
void qsf_exit_keep(QsfForward *f, int32_t id) {
    QsfPending *w = &f->reduction.pending;
    if (w->n == 0) w->first = f->past, w->exit = f->reduction.quality.exit;
    const QsfSlice s = qsf_reduction_residual(f, w->exit);
    w->id[w->n] = id;
    memcpy(w->x + (size_t)w->n * s.width, qsf_col(f, s, 0), s.width * sizeof(float));
}

/* ---- the blocks after the exit ---- */

/* Evaluates the first n waiting positions; head: the logits of the last one too. */
static int rest_of(QsfForward *f, uint32_t n, bool head, QsfErr *err) {
    const QsfReduction *r = &f->reduction;
    const QsfPending *w = &r->pending;
    const QsfSlice s = qsf_reduction_residual(f, w->exit);
    int rc = qsf_weights_begin_pass(f->weights, head && qsf_sketch_walks_head(f), err);
    if (rc != QSF_OK) return rc;
    f->past = w->first;
    if (f->routes != NULL) qsf_routes_begin_pass(f->routes, f->past, n);
    f->ids = w->id;
    f->col0 = 0;
    f->n_cols = n;
    qsf_kvrecent_begin(&f->kv, f->past, n, f->mem + f->l.recent, qsf_recurrent_old_recent(&f->recurrent),
                       qsf_recurrent_new_recent(&f->recurrent));
    qsf_rope_angles(f, n);
    for (uint32_t c = 0; c < n; c++)
        memcpy(qsf_col(f, s, c), w->x + (size_t)c * s.width, s.width * sizeof(float));
    rc = qsf_steps_run(f, r->residual.block[w->exit].begin, qsf_split_step(f), err);
    if (rc == QSF_OK) qsf_states_show(f, n);
    if (rc == QSF_OK && head) rc = qsf_head(f, n, NULL, err);
    qsf_steps_end_block(f);
    qsf_weights_end_pass(f->weights, rc == QSF_OK);
    qsf_count(&f->n.passes, 1);
    if (rc != QSF_OK) return rc;
    qsf_reduction_keep_states(f);
    qsf_recurrent_commit(&f->recurrent);
    return QSF_OK;
}

/* The first n positions no longer wait. */
static void remove_first(QsfForward *f, uint32_t n) {
    static const QsfBlockSet none;
    QsfReduction *r = &f->reduction;
    QsfPending *w = &r->pending;
    const size_t width = qsf_reduction_residual(f, w->exit).width;
    if (qsf_blocks_equal(&r->holes, &none) && r->exact == w->first) r->exact = w->first + n;
    w->first += n;
    w->n -= n;
    memmove(w->id, w->id + n, w->n * sizeof *w->id);
    memmove(w->x, w->x + n * width, w->n * width * sizeof *w->x);
}

/* Evaluates everything that waits. */
static int rest(QsfForward *f, bool head, QsfErr *err) {
    static const QsfBlockSet none;
    QsfReduction *r = &f->reduction;
    QsfPending *w = &r->pending;
    QsfBlockSet before = none;
    const uint32_t most = f->l.n_cols < QSF_KV_SLACK ? f->l.n_cols : QSF_KV_SLACK;
    int rc = QSF_OK;
    for (uint32_t i = 0; i < w->exit; i++) qsf_blocks_add(&before, i);
    qsf_reduction_set_skip(f, &before);
    while (rc == QSF_OK && w->n > 0) {
        const uint32_t n = w->n < most ? w->n : most;
        rc = rest_of(f, n, head && n == w->n, err);
        if (rc == QSF_OK) remove_first(f, n);
    }
    return rc;
}

int qsf_exit_settle(QsfForward *f, bool reduced, QsfErr *err) {
    const QsfReduction *r = &f->reduction;
    const bool same = reduced && qsf_forward_can_exit(f) && qsf_quality_exits(&r->quality) &&
                      r->quality.exit == r->pending.exit;
    return r->pending.n == 0 || same ? QSF_OK : rest(f, false, err);
}

int qsf_forward_catch_up(QsfForward *f, QsfErr *err) {
    int rc = f->reduction.pending.n > 0 ? qsf_forward_usable(f, err) : QSF_OK;
    return rc == QSF_OK ? qsf_exit_settle(f, false, err) : rc;
}

/* ---- the decision ---- */

float qsf_forward_margin(const float *y, uint32_t n) {
    float first = -FLT_MAX, second = -FLT_MAX;
    for (uint32_t i = 0; i < n; i++) {
        if (y[i] <= second) continue;
        second = y[i] > first ? first : y[i];
        if (y[i] > first) first = y[i];
    }
    return first - second;
}

int32_t qsf_forward_likeliest(const float *y, uint32_t n, float *margin) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (y[i] > y[best]) best = i;
    *margin = qsf_forward_margin(y, n);
    return (int32_t)best;
}

int qsf_exit_decide(QsfForward *f, QsfErr *err) {
    QsfReduction *r = &f->reduction;
    QsfPending *w = &r->pending;
    const bool ends = qsf_forward_margin(f->logits, f->model->hp.n_vocab) >= r->quality.margin;
    int rc = QSF_OK;
    w->n++;
    if (ends && w->n <= QSF_PENDING_POSITIONS) {
        qsf_count(&f->n.exited_tokens, 1);
        return QSF_OK;
    }
    rc = rest(f, !ends, err);
    if (rc == QSF_OK)
        qsf_count(&f->n.exited_tokens, ends);
    else
        qsf_forward_truncate(f, f->kv.n_past - 1);
    if (rc == QSF_OK) qsf_reduction_set_skip(f, &r->quality.skip);
    return rc;
}
