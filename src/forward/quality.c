/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Passes that skip blocks. Prompts are evaluated in full, and the importance of blocks is measured on the
 * way. What a block adds is compared with its input at the block's borders, in a copy that lies where the
 * logits come at the end of the pass. */
#include <math.h>
#include <string.h>

#include "src/forward/forward_impl.h"

int qsf_reduction_open(QsfForward *f, QsfErr *err) {
    QsfReduction *r = &f->reduction;
    const uint32_t n_blocks = f->model->prog.n_blocks, room = f->model->hp.n_vocab / f->model->hp.hidden;
    void *mem;
    int rc = qsf_optional_blocks(f->model, &r->optional, err);
    if (rc != QSF_OK || qsf_blocks_count(&r->optional) == 0) return rc;
    rc = qsf_residual_make(&r->residual, f->model, err);
    if (rc != QSF_OK) return rc;
    r->score_bytes = qsf_pages((uint64_t)n_blocks * QSF_MEASURE_POSITIONS * sizeof *r->score);
    rc = qsf_mem_map(f->ledger, QSF_MEM_META, r->score_bytes, "importance of layers", &mem, err);
    if (rc != QSF_OK) return rc;
    r->score = mem;
    r->window = room < QSF_MEASURE_POSITIONS ? room : QSF_MEASURE_POSITIONS;
    return qsf_exit_open(f, err);
}

void qsf_reduction_close(QsfForward *f) {
    QsfReduction *r = &f->reduction;
    qsf_residual_free(&r->residual);
    if (r->score != NULL) qsf_mem_unmap(f->ledger, QSF_MEM_META, r->score, r->score_bytes);
    r->score = NULL;
    qsf_exit_close(f);
}

/* ---- evals and passes ---- */

void qsf_forward_set_quality(QsfForward *f, const QsfQuality *q) {
    f->reduction.quality = *q;
    qsf_counters_pins(f);
}

static void add_blocks(QsfBlockSet *to, const QsfBlockSet *from) {
    for (size_t i = 0; i < sizeof to->bit / sizeof *to->bit; i++) to->bit[i] |= from->bit[i];
}

/* Besides those that positions in the cache were not evaluated in. */
void qsf_reduction_set_skip(QsfForward *f, const QsfBlockSet *blocks) {
    static const QsfBlockSet none;
    QsfReduction *r = &f->reduction;
    r->skip = r->holes;
    add_blocks(&r->skip, blocks);
    r->skips = !qsf_blocks_equal(&r->skip, &none);
    qsf_weights_skip(f->weights, r->skips ? &r->skip : NULL);
}

/* Does the quality leave out more than rows of the head, on which no later position depends? */
static bool thins(const QsfForward *f) {
    static const QsfBlockSet none;
    const QsfQuality *q = &f->reduction.quality;
    return qsf_quality_reduces(q) && (f->shape.on_demand || !qsf_blocks_equal(&q->skip, &none));
}

void qsf_reduction_begin(QsfForward *f, bool reduced) {
    static const QsfBlockSet none;
    QsfReduction *r = &f->reduction;
    if (r->exact >= f->kv.n_past) r->holes = none;
    r->exiting = reduced && qsf_quality_exits(&r->quality) && qsf_forward_can_exit(f);
    r->reduced = r->exiting ||
                 (reduced && thins(f) && !qsf_quality_exits(&r->quality) && f->evict.kind == QSF_EVICT_NONE);
    f->sketch.on = reduced && qsf_quality_below(&r->quality) && r->quality.head.groups > 0 &&
                   !qsf_adapters_have(&f->adapters, f->model->prog.n_units - 1) &&
                   f->evict.kind == QSF_EVICT_NONE;
    qsf_reduction_set_skip(f, r->reduced ? &r->quality.skip : &none);
}

static bool is_exact(const QsfReduction *r) { return !r->reduced && !r->skips; }

/* A single position is measured only if the quality may need it. */
void qsf_reduction_begin_pass(QsfForward *f, uint32_t n) {
    QsfReduction *r = &f->reduction;
    r->measures = is_exact(r) && f->tap == NULL && r->measured < r->window && f->past <= r->measured + 1 &&
                  f->past + n > r->measured + 1 && (n > 1 || qsf_quality_below(&r->quality));
}

void qsf_reduction_keep_states(QsfForward *f) {
    const QsfProgram *p = &f->model->prog;
    if (!f->reduction.skips) return;
    for (uint32_t i = 0; i < p->n_states; i++)
        if (qsf_blocks_have(&f->reduction.skip, p->state[i].block))
            memcpy(qsf_recurrent_new(&f->recurrent, i), qsf_recurrent_old(&f->recurrent, i),
                   p->state[i].floats * sizeof(float));
    for (uint32_t i = 0; i < p->n_kv; i++)
        if (f->kv.recent.on[i] && qsf_blocks_have(&f->reduction.skip, p->kv[i].block))
            qsf_kvrecent_close(&f->kv, i, true);
}

void qsf_reduction_end_pass(QsfForward *f) {
    QsfReduction *r = &f->reduction;
    const uint32_t n_past = f->kv.n_past;
    qsf_reduction_keep_states(f);
    if (!r->exiting) add_blocks(&r->holes, &r->skip);
    if (is_exact(r) && r->exact == f->past) r->exact = n_past;
    if (r->measures) r->measured = n_past - 1 < r->window ? n_past - 1 : r->window;
    r->measures = false;
}

void qsf_reduction_truncate(QsfForward *f, uint32_t n) {
    QsfReduction *r = &f->reduction;
    QsfPending *p = &r->pending;
    if (r->exact > n) r->exact = n;
    if (p->n > 0 && p->first + p->n > n) p->n = n > p->first ? n - p->first : 0;
    if (r->measured + 1 > n) r->measured = n > 0 ? n - 1 : 0;
}

void qsf_reduction_restored(QsfForward *f, uint32_t n) {
    f->reduction.exact = n;
    f->reduction.measured = 0;
    f->reduction.pending.n = 0;
}

uint32_t qsf_forward_exact(const QsfForward *f) { return f->reduction.exact; }

const QsfBlockSet *qsf_forward_optional(const QsfForward *f) { return &f->reduction.optional; }

bool qsf_reduction_skips(const QsfForward *f, uint32_t i) {
    return f->reduction.skips && qsf_blocks_have(&f->reduction.skip, f->model->prog.step[i].block);
}

uint32_t qsf_reduction_experts(const QsfForward *f, uint32_t n_used) {
    return f->reduction.reduced ? qsf_quality_experts(&f->reduction.quality, n_used) : n_used;
}

float qsf_reduction_drop(const QsfForward *f) {
    return f->reduction.reduced ? f->reduction.quality.experts.drop : 0;
}

/* ---- importance ---- */

/* Sets [*from, *to) to the positions of the pass that are measured. */
static void measured_positions(const QsfForward *f, uint32_t *from, uint32_t *to) {
    const QsfReduction *r = &f->reduction;
    *from = r->measured + 1;
    *to = f->past + f->n_cols < r->window + 1 ? f->past + f->n_cols : r->window + 1;
}

QsfSlice qsf_reduction_residual(const QsfForward *f, uint32_t block) {
    const QsfResidual *r = &f->reduction.residual;
    return r->slice[r->block[block].first];
}

static void copy_inputs(QsfForward *f, uint32_t block) {
    const QsfSlice s = qsf_reduction_residual(f, block);
    uint32_t from, to;
    measured_positions(f, &from, &to);
    for (uint32_t pos = from; pos < to; pos++)
        memcpy(f->logits + (size_t)(pos - from) * s.width, qsf_col(f, s, pos - f->past),
               s.width * sizeof(float));
}

static double difference(const float *x, const float *y, uint32_t n) {
    double xy = 0, xx = 0, yy = 0;
    for (uint32_t i = 0; i < n; i++) {
        xy += (double)x[i] * (double)y[i];
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
    }
    return xx > 0 && yy > 0 ? 1 - xy / sqrt(xx * yy) : 0;
}

static void compare_outputs(QsfForward *f, uint32_t block) {
    const QsfSlice s = qsf_reduction_residual(f, block);
    QsfReduction *r = &f->reduction;
    uint32_t from, to;
    measured_positions(f, &from, &to);
    for (uint32_t pos = from; pos < to; pos++)
        r->score[(size_t)(pos - 1) * f->model->prog.n_blocks + block] = (float)difference(
            f->logits + (size_t)(pos - from) * s.width, qsf_col(f, s, pos - f->past), s.width);
}

void qsf_reduction_border(QsfForward *f, uint32_t i) {
    const QsfProgram *p = &f->model->prog;
    const QsfBlockSet *optional = &f->reduction.optional;
    if (i > 0 && qsf_blocks_have(optional, p->step[i - 1].block)) compare_outputs(f, p->step[i - 1].block);
    if (qsf_blocks_have(optional, p->step[i].block)) copy_inputs(f, p->step[i].block);
}

/* In the order of positions, whatever the chunks were. */
uint32_t qsf_forward_importance(const QsfForward *f, double *score) {
    const QsfReduction *r = &f->reduction;
    const uint32_t n_blocks = f->model->prog.n_blocks;
    for (uint32_t b = 0; b < n_blocks && r->measured > 0; b++) {
        double sum = 0;
        for (uint32_t i = 0; i < r->measured; i++) sum += (double)r->score[(size_t)i * n_blocks + b];
        score[b] = sum / r->measured;
    }
    return r->measured;
}
