/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The logits of one column with a sketch of the head. All rows are multiplied as the sketch has them,
 * the groups that then have the largest logits in full. How far the sketch was off there says how far
 * it may be off elsewhere: all groups that might hold a larger logit than the largest one so far are
 * then multiplied in full, too. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "src/file/rows.h"
#include "src/forward/forward_impl.h"
#include "src/forward/ops/ops.h"

#define GROUP QSF_ROW_QUANTUM
/* Bound of the error of a sketched logit, in root mean squares of the error: one of 30,000 rows exceeds it.
 * Rows near the limit are far fewer. */
#define ERRORS 4.0
/* Rows that are 12 nats below the best one hardly matter. Those above are multiplied in full, if they are at
 * most a quarter of the groups: a model that is not sure at all has too many. */
#define LIKELY        12.0
#define LIKELY_GROUPS 4u

typedef struct HeadJob {
    const QsfForward *f;
    QsfWeights *w;    /* with the head, */
    const QsfUnit *u; /* which is this unit */
    const qk_weight_ops *ops;
    qk_mm sketch, head; /* head.w: the rows in RAM, beginning with row0, or the stage */
    const float *bias;
    float shared;         /* what the mean row adds to every sketched logit */
    float shift;          /* what the sketch lacks on average */
    const uint32_t *list; /* groups, ascending; NULL: [first, ...) */
    uint32_t first;
    uint32_t row0, row1, interleaved; /* in RAM */
} HeadJob;

static float *best_of(const QsfForward *f) { return (float *)(void *)(f->sketch.mem + f->sketch.shape.best); }
static uint32_t *list_of(const QsfForward *f) {
    return (uint32_t *)(void *)(f->sketch.mem + f->sketch.shape.list);
}
static float *values_of(const QsfForward *f) {
    return (float *)(void *)(f->sketch.mem + f->sketch.shape.values);
}

/* The end of a group: the last one may be cut. */
static uint32_t end_of(const QsfForward *f, uint32_t group) {
    const uint32_t end = (group + 1) * GROUP, rows = f->sketch.shape.rows;
    return end < rows ? end : rows;
}

static void add_bias(const HeadJob *j, uint32_t from, uint32_t to) {
    if (j->bias != NULL) j->f->table->add(j->sketch.y + from, j->bias + from, to - from);
}

/* ---- the sketch ---- */

static void run_sketch(void *arg, int worker, size_t begin, size_t end) {
    const HeadJob *j = arg;
    const QsfForward *f = j->f;
    const qk_weight_ops *ops = &f->table->weight[QSF_SKETCH_TYPE];
    const uint32_t from = (uint32_t)begin * GROUP, to = end_of(f, (uint32_t)end - 1);
    (void)worker;
    if (f->sketch.grouped)
        ops->matmul16(&j->sketch, from, end * GROUP);
    else
        ops->matmul(&j->sketch, from, to);
    for (uint32_t row = from; row < to; row++) j->sketch.y[row] += j->shared;
    add_bias(j, from, to);
    for (size_t g = begin; g < end; g++) {
        float best = -FLT_MAX;
        for (uint32_t row = (uint32_t)g * GROUP; row < end_of(f, (uint32_t)g); row++)
            if (j->sketch.y[row] > best) best = j->sketch.y[row];
        best_of(f)[g] = best;
    }
}

/* Lists the best groups, by their number, and what the sketch says of their rows beside them. Returns how
 * many. They are marked as done: INFINITY. */
static uint32_t list_best(const HeadJob *j) {
    const QsfForward *f = j->f;
    const QsfSketchShape *s = &f->sketch.shape;
    float *best = best_of(f), *values = values_of(f);
    qk_pick *pick = (qk_pick *)(void *)(f->sketch.mem + s->picks);
    const size_t n = f->table->top_k(pick, best, s->groups, s->chosen);
    uint32_t done = 0;
    for (size_t i = 0; i < n; i++) best[pick[i].id] = INFINITY;
    for (uint32_t g = 0; g < s->groups && done < n; g++) {
        if (best[g] < INFINITY) continue;
        memcpy(values + (size_t)done * GROUP, j->sketch.y + (size_t)g * GROUP, GROUP * sizeof *values);
        list_of(f)[done++] = g;
    }
    return done;
}

/* Lists the groups that are not done and have a sketched logit above the limit. Returns how many. */
static uint32_t list_above(const QsfForward *f, double limit) {
    const float *best = best_of(f);
    uint32_t n = 0;
    for (uint32_t g = 0; g < f->sketch.shape.groups; g++)
        if (best[g] < INFINITY && (double)best[g] > limit) list_of(f)[n++] = g;
    return n;
}

/* ---- the head ---- */

static uint32_t group_at(const HeadJob *j, size_t i) {
    return j->list != NULL ? j->list[i] : j->first + (uint32_t)i;
}

static void run_resident(void *arg, int worker, size_t begin, size_t end) {
    const HeadJob *j = arg;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const uint32_t row = group_at(j, i) * GROUP, to = end_of(j->f, group_at(j, i));
        if (row < j->row0 || row >= j->row1) continue;
        qsf_multiply_rows(j->ops, &j->head, j->interleaved, row - j->row0, to - j->row0);
        add_bias(j, row, to);
    }
}

/* Rows of a group that lies interleaved in the file, for kernels that multiply rows. */
static void unpacked_rows(const HeadJob *j, const qk_mm *group, uint32_t n, int worker) {
    const QsfSketchShape *s = &j->f->sketch.shape;
    uint8_t *row = j->f->sketch.mem + s->scratch + (size_t)worker * s->scratch_stride;
    qk_mm mm = *group;
    mm.w = row;
    for (uint32_t r = 0; r < n; r++, mm.y++) {
        j->ops->unpack_row(row, group->w, r, j->u->k);
        j->ops->matmul(&mm, 0, 1);
    }
}

static void run_staged(void *arg, int worker, size_t begin, size_t end) {
    const HeadJob *j = arg;
    const QsfForward *f = j->f;
    const bool grouped = (f->sketch.types >> j->u->type[0] & 1) != 0;
    for (size_t i = begin; i < end; i++) {
        const uint32_t row = group_at(j, i) * GROUP, to = end_of(f, group_at(j, i));
        qk_mm mm = j->head;
        mm.w = (const uint8_t *)mm.w + i * f->sketch.shape.head_group;
        mm.y += row;
        if (!j->u->x16[0])
            j->ops->matmul(&mm, 0, to - row);
        else if (grouped)
            j->ops->matmul16(&mm, 0, GROUP);
        else
            unpacked_rows(j, &mm, to - row, worker);
        add_bias(j, row, to);
    }
}

/* n groups of the list, or all. */
static int read_groups(HeadJob *j, QsfForward *f, uint32_t n, QsfErr *err) {
    const QsfSketchShape *s = &f->sketch.shape;
    const uint32_t *list = j->list;
    int rc = qsf_embed_check_file(f, err);
    for (uint32_t i = 0; list != NULL && i < n; i++)
        qsf_source_will_need(f->model->src, j->u->tensor[0], list[i] * s->head_group, s->head_group);
    for (uint32_t at = 0, some; rc == QSF_OK && at < n; at += some) {
        some = n - at < s->stage_groups ? n - at : (uint32_t)s->stage_groups;
        if (qsf_cancelled(f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        if (list == NULL) rc = qsf_sketch_read(f, at, some, 0, err);
        for (uint32_t i = 0; list != NULL && rc == QSF_OK && i < some; i++)
            rc = qsf_sketch_read(f, list[at + i], 1, i, err);
        if (rc != QSF_OK) return rc;
        j->list = list != NULL ? list + at : NULL;
        j->first = at;
        qsf_pool_run(f->pool, run_staged, j, some, 1);
    }
    return rc;
}

/* n groups of the list, or all. */
static int walk_groups(HeadJob *j, QsfForward *f, uint32_t n, QsfErr *err) {
    float *y = j->head.y;
    QsfWeightView v;
    for (uint32_t item = 0; item < j->u->items; item = v.item1) {
        int rc = qsf_weights_acquire(j->w, j->u->index, item, &v, err);
        if (rc != QSF_OK) return rc;
        j->row0 = v.part[0].row0;
        j->row1 = v.part[0].row1;
        j->interleaved = v.interleaved[0];
        j->head.w = v.rows[0];
        j->head.y = y + j->row0;
        qsf_pool_run(f->pool, run_resident, j, n, 1);
        qsf_weights_release(j->w, &v);
    }
    j->head.y = y;
    return QSF_OK;
}

/* The n groups of the list. Most of the head is read in one go. */
static int multiply(HeadJob *j, QsfForward *f, uint32_t n, QsfErr *err) {
    const uint32_t groups = f->sketch.shape.groups;
    const bool walks = qsf_sketch_walks_head(f), whole = !walks && n > groups / 2;
    if (n == 0) return QSF_OK;
    j->list = whole ? NULL : list_of(f);
    qsf_count(&f->n.head_rows, (uint64_t)n * GROUP);
    return walks ? walk_groups(j, f, n, err) : read_groups(j, f, whole ? groups : n, err);
}

/* How far the sketch was off in the n groups of the list, which were multiplied in full: on
 * average, and around that. */
typedef struct Errors {
    double best; /* the largest logit */
    double mean, rms;
} Errors;

static Errors measure(const HeadJob *j, uint32_t n) {
    const float *values = values_of(j->f);
    const uint32_t *list = list_of(j->f);
    double sum = 0, squares = 0, rows = 0;
    Errors e = { .best = -DBL_MAX };
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = list[i] * GROUP, to = end_of(j->f, list[i]);
        for (uint32_t at = row; at < to; at++) {
            const double exact = (double)j->head.y[at], d = exact - (double)values[i * GROUP + at - row];
            sum += d;
            squares += d * d;
            if (exact > e.best) e.best = exact;
        }
        rows += to - row;
    }
    e.mean = sum / fmax(rows, 1);
    e.rms = sqrt(fmax(squares / fmax(rows, 1) - e.mean * e.mean, 0));
    return e;
}

/* Lists the groups that are needed, too: all that might hold a larger logit, and as many of the likely ones
 * as may be. Returns how many. */
static uint32_t list_needed(const QsfForward *f, const Errors *e) {
    const double margin = ERRORS * e->rms, best = e->best - e->mean;
    for (double nats = LIKELY; nats > margin; nats--) {
        const uint32_t likely = list_above(f, best - nats);
        if (likely <= f->sketch.shape.groups / LIKELY_GROUPS) return likely;
    }
    return list_above(f, best - margin);
}

/* The groups that are not done. */
static void shift_rows(void *arg, int worker, size_t begin, size_t end) {
    const HeadJob *j = arg;
    (void)worker;
    for (size_t g = begin; g < end; g++)
        for (uint32_t row = (uint32_t)g * GROUP;
             best_of(j->f)[g] < INFINITY && row < end_of(j->f, (uint32_t)g); row++)
            j->sketch.y[row] += j->shift;
}

static void set_products(HeadJob *j, QsfForward *f, const QsfStep *s) {
    const qk_weight_ops *sketch = &f->table->weight[QSF_SKETCH_TYPE];
    const QsfSketchShape *k = &f->sketch.shape;
    const bool floats = j->ops->act == QK_ACT_F32;
    j->sketch = (qk_mm){ .w = f->sketch.mem,
                         .row_bytes = (size_t)k->row_bytes,
                         .x = f->act[sketch->act] + f->col0 * f->l.act_stride[sketch->act],
                         .x_stride = (size_t)f->l.act_stride[sketch->act],
                         .y = qsf_col(f, s->out[0], f->col0),
                         .y_stride = qsf_col_stride(f, s->out[0]),
                         .k = k->k,
                         .n_cols = 1,
                         .scale = 1,
                         .way = sketch->way };
    j->head = j->sketch;
    j->head.w = f->sketch.mem + k->stage;
    j->head.row_bytes = (size_t)j->u->row_bytes[0];
    j->head.x = floats ? (const void *)qsf_col(f, s->in, f->col0)
                       : (const void *)(f->act[j->ops->act] + f->col0 * f->l.act_stride[j->ops->act]);
    j->head.x_stride = floats ? qsf_col_stride(f, s->in) * sizeof(float)
                              : (size_t)f->l.act_stride[j->ops->act];
    j->head.scale = j->u->tensor[0]->scale;
    j->head.way = j->ops->way;
}

/* Sums side by side, for the compiler's vectors; the order is the same everywhere. */
static float dot(const float *a, const float *b, uint32_t n) {
    enum { LANES = 16 };
    double lane[LANES] = { 0 }, sum = 0;
    for (uint32_t i = 0; i + LANES <= n; i += LANES)
        for (uint32_t l = 0; l < LANES; l++) lane[l] += (double)a[i + l] * (double)b[i + l];
    for (uint32_t l = 0; l < LANES; l++) sum += lane[l];
    return (float)sum;
}

int qsf_sketch_head(QsfForward *f, const QsfStep *s, QsfErr *err) {
    uint32_t unit;
    HeadJob j = { .f = f };
    int rc = qsf_sketch_fill(f, err);
    if (rc != QSF_OK) return rc;
    j.w = qsf_sketch_weights(f, &unit);
    j.u = qsf_weights_unit(j.w, unit);
    j.ops = &f->table->weight[j.u->type[0]];
    j.bias = qsf_param(f, s->u.linear.bias[0]);
    qsf_linear_note_types(f, j.u);
    set_products(&j, f, s);
    j.shared = dot(qsf_sketch_mean(f), qsf_col(f, s->in, f->col0), f->sketch.shape.k);
    const QsfSpan span = qsf_span_begin(f);
    qsf_pool_run(f->pool, run_sketch, &j, f->sketch.shape.groups, 1);
    if (f->sketch.alone) {
        qsf_span_end(f, &span, &f->n.matmul_ns[QSF_MATMUL_HEAD]);
        return QSF_OK;
    }
    const uint32_t n = list_best(&j);
    rc = multiply(&j, f, n, err);
    if (rc != QSF_OK) return rc;
    const Errors e = measure(&j, n);
    j.shift = (float)e.mean;
    qsf_pool_run(f->pool, shift_rows, &j, f->sketch.shape.groups, 1);
    rc = multiply(&j, f, list_needed(f, &e), err);
    if (rc != QSF_OK) return rc;
    qsf_count(&f->n.head_sketched, 1);
    qsf_span_end(f, &span, &f->n.matmul_ns[QSF_MATMUL_HEAD]);
    return QSF_OK;
}
