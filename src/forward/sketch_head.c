/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The logits of one column with a sketch of the head. All rows are multiplied as the sketch has them, the groups that then
 * have the largest logits in full. How far the sketch was off there says how far it may be off elsewhere: unless the largest
 * logit is above what any other row may have, all rows are multiplied. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "src/format/rows.h"
#include "src/forward/state.h"

#define GROUP QSF_ROW_QUANTUM
/* A row that was not multiplied in full may be above its sketch by so many times the error's root mean square. Of some
 * thousand that are near the limit, one in ten thousand columns would have one that is further off. */
#define ERRORS 5.0

typedef struct HeadJob {
    const QsfForward *f;
    const QsfUnit *u;
    const qk_weight_ops *ops;
    qk_mm sketch, head; /* head.w: the rows in RAM from row0 on, or the stage */
    const float *bias;
    const qk_pick *pick; /* groups, ascending; NULL: [first, ...) */
    uint32_t first;
    uint32_t row0, row1, interleaved; /* in RAM */
} HeadJob;

static float *best_of(const QsfForward *f) { return (float *)(void *)(f->sketch.mem + f->sketch.shape.best); }
static qk_pick *picks_of(const QsfForward *f) {
    return (qk_pick *)(void *)(f->sketch.mem + f->sketch.shape.picks);
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
    add_bias(j, from, to);
    for (size_t g = begin; g < end; g++) {
        float best = -FLT_MAX;
        for (uint32_t row = (uint32_t)g * GROUP; row < end_of(f, (uint32_t)g); row++)
            if (j->sketch.y[row] > best) best = j->sketch.y[row];
        best_of(f)[g] = best;
    }
}

/* Puts the best groups into the list, by their number, and what the sketch says of their rows beside them. Returns how many;
 * *limit is the largest sketched logit of the others. */
static uint32_t choose(const HeadJob *j, float *limit) {
    const QsfForward *f = j->f;
    const QsfSketchShape *s = &f->sketch.shape;
    float *best = best_of(f), *values = values_of(f);
    qk_pick *pick = picks_of(f);
    const size_t n = f->table->top_k(pick, best, s->groups, s->chosen);
    uint32_t done = 0;
    for (size_t i = 0; i < n; i++) best[pick[i].id] = INFINITY;
    *limit = -FLT_MAX;
    for (uint32_t g = 0; g < s->groups; g++) {
        if (best[g] < INFINITY) {
            if (best[g] > *limit) *limit = best[g];
        } else if (done < n) {
            memcpy(values + (size_t)done * GROUP, j->sketch.y + (size_t)g * GROUP, GROUP * sizeof *values);
            pick[done++].id = (int32_t)g;
        }
    }
    return done;
}

/* ---- the head ---- */

static uint32_t group_at(const HeadJob *j, size_t i) {
    return j->pick != NULL ? (uint32_t)j->pick[i].id : j->first + (uint32_t)i;
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
    const qk_pick *pick = j->pick;
    int rc = qsf_embed_check_file(f, err);
    for (uint32_t i = 0; pick != NULL && i < n; i++)
        qsf_source_will_need(f->model->src, j->u->tensor[0], (uint64_t)pick[i].id * s->head_group,
                             s->head_group);
    for (uint32_t at = 0, some; rc == QSF_OK && at < n; at += some) {
        some = n - at < s->stage_groups ? n - at : (uint32_t)s->stage_groups;
        if (qsf_cancelled(f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        if (pick == NULL) rc = qsf_sketch_read(f, at, some, 0, err);
        for (uint32_t i = 0; pick != NULL && rc == QSF_OK && i < some; i++)
            rc = qsf_sketch_read(f, (uint32_t)pick[at + i].id, 1, i, err);
        if (rc != QSF_OK) return rc;
        j->pick = pick != NULL ? pick + at : NULL;
        j->first = at;
        qsf_pool_run(f->pool, run_staged, j, some, 1);
    }
    j->pick = pick;
    return rc;
}

/* n groups of the list, or all. */
static int walk_groups(HeadJob *j, QsfForward *f, uint32_t n, QsfErr *err) {
    float *y = j->head.y;
    QsfWeightView v;
    for (uint32_t item = 0; item < j->u->items; item = v.item1) {
        int rc = qsf_weights_acquire(f->weights, j->u->index, item, &v, err);
        if (rc != QSF_OK) return rc;
        j->row0 = v.part[0].row0;
        j->row1 = v.part[0].row1;
        j->interleaved = v.interleaved[0];
        j->head.w = v.rows[0];
        j->head.y = y + j->row0;
        qsf_pool_run(f->pool, run_resident, j, n, 1);
        qsf_weights_release(f->weights, &v);
    }
    j->head.y = y;
    return QSF_OK;
}

static int multiply(HeadJob *j, QsfForward *f, uint32_t n, QsfErr *err) {
    return qsf_sketch_walks_head(f) ? walk_groups(j, f, n, err) : read_groups(j, f, n, err);
}

/* Is the largest logit above what the rows may have that were not multiplied in full? */
static bool is_sure(const HeadJob *j, uint32_t n, float limit) {
    const float *values = values_of(j->f);
    double squares = 0, best = -DBL_MAX;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = group_at(j, i) * GROUP, to = end_of(j->f, group_at(j, i));
        for (uint32_t at = row; at < to; at++) {
            const double exact = (double)j->head.y[at], d = exact - (double)values[i * GROUP + at - row];
            squares += d * d;
            if (exact > best) best = exact;
        }
        rows += to - row;
    }
    return rows > 0 && best > (double)limit + ERRORS * sqrt(squares / (double)rows);
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

int qsf_sketch_head(QsfForward *f, const QsfStep *s, QsfErr *err) {
    HeadJob j = { .f = f, .u = qsf_weights_unit(f->weights, s->u.linear.unit), .pick = picks_of(f) };
    float limit;
    int rc = qsf_sketch_fill(f, err);
    if (rc != QSF_OK) return rc;
    j.ops = &f->table->weight[j.u->type[0]];
    j.bias = qsf_param(f, s->u.linear.bias[0]);
    qsf_linear_note_types(f, j.u);
    set_products(&j, f, s);
    const QsfSpan span = qsf_span_begin(f);
    qsf_pool_run(f->pool, run_sketch, &j, f->sketch.shape.groups, 1);
    const uint32_t n = choose(&j, &limit);
    rc = multiply(&j, f, n, err);
    if (rc != QSF_OK) return rc;
    qsf_count(&f->n.head_sketched, 1);
    if (!is_sure(&j, n, limit)) {
        qsf_count(&f->n.head_whole, 1);
        j.pick = NULL;
        j.first = 0;
        rc = multiply(&j, f, f->sketch.shape.groups, err);
    }
    qsf_span_end(f, &span, &f->n.matmul_ns[QSF_MATMUL_HEAD]);
    return rc;
}
