/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What adapters compute. */
#include "src/forward/adapters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/forward/forward_impl.h"
#include "src/forward/ops/ops.h"

_Static_assert(QSF_ADAPTER_GROUP == QK_THIN_ROWS, "groups of rows are those of qk_thin");

#define COLS 16u /* columns of a task, in passes over many */

static const QsfAdapterPair *pair_of(const QsfAdapterSet *s, const QsfAdapterUse *u) {
    return &s->adapter[u->adapter].pair[u->pair];
}

static size_t elem_bytes(const QsfForward *f) { return f->adapters.set->exact ? 4 : 2; }

/* Where a pair is in memory. */
static const uint8_t *at(const QsfForward *f, const QsfAdapterPair *p) {
    return f->adapters.mem + (f->adapters.streams ? p->in_block : p->at);
}

/* The group of row r of a matrix whose rows have k elements. */
static const uint8_t *group_at(const QsfForward *f, const uint8_t *w, uint64_t r, size_t k) {
    return w + r / QSF_ADAPTER_GROUP * QSF_ADAPTER_GROUP * k * elem_bytes(f);
}

/* The group of row r of matrix `part` of B. */
static const uint8_t *b_group(const QsfForward *f, const QsfAdapterPair *p, uint32_t part, uint64_t r) {
    return group_at(f, at(f, p) + p->a_bytes, part * qsf_adapter_padded(p->rows) + r, p->rank);
}

static void multiply(const QsfForward *f, const qk_thin *m) {
    (f->adapters.set->exact ? f->table->thin_f32 : f->table->thin_f16)(m);
}

/* Returns how many of the first columns of a product an adapter leaves as they are. */
static uint32_t inactive(const QsfForward *f, const QsfProduct *p, unsigned adapter) {
    const uint32_t from = f->adapters.from[adapter];
    uint32_t c = 0;
    if (from == 0) return 0;
    while (c < p->n_cols && f->past + (p->chosen != NULL ? p->chosen[c] : p->act0 + c) < from) c++;
    return c;
}

/* ---- ranks ---- */

/* A x is computed in groups of ranks. The elements of a row are in parts, whose sums are added in order.
 * Passes over many columns have a task for each group and some columns; passes over few have one for each
 * group and part, and the thread that ends the last one adds the parts up: the same sums. */

static uint32_t groups(uint32_t n, uint32_t of) { return (n + of - 1) / of; }

/* Elements of a part; the last ones may be shorter, or empty. */
static uint32_t part_elems(uint32_t cols) {
    return groups(cols, QSF_ADAPTER_PARTS * QSF_ADAPTER_GROUP) * QSF_ADAPTER_GROUP;
}

/* y (n_cols, y_stride) += ranks [r, r + QSF_ADAPTER_GROUP) of n_cols columns, the first of which is c, for
 * part q of the elements. */
static void add_part(const QsfAdapted *a, const QsfAdapterUse *u, uint32_t r, uint32_t q, uint32_t c,
                     uint32_t n_cols, float *y, size_t y_stride) {
    const QsfForward *f = a->f;
    const QsfAdapterPair *pair = pair_of(f->adapters.set, u);
    const uint32_t each = part_elems(pair->cols), from = q * each < pair->cols ? q * each : pair->cols,
                   to = from + each < pair->cols ? from + each : pair->cols;
    const uint64_t row = u->part * qsf_adapter_padded(pair->rank) + r;
    const qk_thin m = { .w = group_at(f, at(f, pair), row, pair->cols) +
                             (size_t)from * QSF_ADAPTER_GROUP * elem_bytes(f),
                        .rows = QSF_ADAPTER_GROUP,
                        .k = to - from,
                        .x = a->p->x + c * a->p->x_stride + from,
                        .y = y,
                        .n_cols = n_cols,
                        .x_stride = a->p->x_stride,
                        .y_stride = y_stride };
    multiply(f, &m);
}

static float *part_of(const QsfAdapted *a, unsigned task) {
    return a->f->adapters.parts + (size_t)task * QSF_ADAPTER_FEW_COLS * QSF_ADAPTER_GROUP;
}

/* Tasks of a use. */
static unsigned tasks_of(const QsfAdapted *a, const QsfAdapterUse *u) {
    const uint32_t n = groups(pair_of(a->f->adapters.set, u)->rank, QSF_ADAPTER_GROUP);
    return n * (a->in_parts ? QSF_ADAPTER_PARTS : groups(a->p->n_cols, COLS));
}

/* Task i of a use whose ranks begin at `slot` in a column of them; y: of its part. */
static void do_task(const QsfAdapted *a, const QsfAdapterUse *u, size_t slot, unsigned i, float *y) {
    const QsfForward *f = a->f;
    const size_t stride = f->adapters.set->rank_floats;
    if (a->in_parts) {
        memset(y, 0, a->p->n_cols * QSF_ADAPTER_GROUP * sizeof *y);
        add_part(a, u, i / QSF_ADAPTER_PARTS * QSF_ADAPTER_GROUP, i % QSF_ADAPTER_PARTS, 0, a->p->n_cols, y,
                 QSF_ADAPTER_GROUP);
        return;
    }
    const uint32_t each = groups(a->p->n_cols, COLS), r = i / each * QSF_ADAPTER_GROUP, c0 = i % each * COLS,
                   c1 = c0 + COLS < a->p->n_cols ? c0 + COLS : a->p->n_cols;
    float *ranks = f->adapters.ranks + slot + r;
    for (uint32_t c = c0; c < c1; c++) memset(ranks + c * stride, 0, QSF_ADAPTER_GROUP * sizeof *ranks);
    for (uint32_t q = 0; q < QSF_ADAPTER_PARTS; q++)
        add_part(a, u, r, q, c0, c1 - c0, ranks + c0 * stride, stride);
    for (uint32_t c = c0; c < c1; c++)
        f->table->scale(ranks + c * stride, f->adapters.factor[pair_of(f->adapters.set, u)->index],
                        QSF_ADAPTER_GROUP);
}

/* The ranks of a group and a column from its parts, the first of which is `part`. */
static void join_parts(const float *part, float factor, float *ranks) {
    for (uint32_t i = 0; i < QSF_ADAPTER_GROUP; i++) {
        float sum = 0;
        for (uint32_t q = 0; q < QSF_ADAPTER_PARTS; q++)
            sum += part[(size_t)q * QSF_ADAPTER_FEW_COLS * QSF_ADAPTER_GROUP + i];
        ranks[i] = sum * factor;
    }
}

static void join_all(const QsfAdapted *a) {
    const QsfAdapters *all = &a->f->adapters;
    size_t slot = 0;
    unsigned task = 0;
    for (const QsfAdapterUse *u = a->use; u < a->end; u++) {
        const QsfAdapterPair *pair = pair_of(all->set, u);
        for (uint32_t r = 0; r < pair->rank;
             r += QSF_ADAPTER_GROUP, slot += QSF_ADAPTER_GROUP, task += QSF_ADAPTER_PARTS)
            for (uint32_t c = 0; c < a->p->n_cols; c++)
                join_parts(part_of(a, task) + c * QSF_ADAPTER_GROUP, all->factor[pair->index],
                           all->ranks + c * all->set->rank_floats + slot);
    }
}

static void find_and_do(const QsfAdapted *a, unsigned task) {
    size_t slot = 0;
    unsigned i = task;
    for (const QsfAdapterUse *u = a->use; u < a->end; u++) {
        const unsigned n = tasks_of(a, u);
        if (i < n) {
            do_task(a, u, slot, i, part_of(a, task));
            return;
        }
        i -= n;
        slot += qsf_adapter_padded(pair_of(a->f->adapters.set, u)->rank);
    }
}

void qsf_adapters_ranks(QsfAdapted *a) {
    unsigned task;
    while (qsf_gate_take(&a->gate, &task)) {
        if (!qsf_cancelled(a->f)) find_and_do(a, task);
        if (!qsf_gate_done(&a->gate)) continue;
        if (a->in_parts) join_all(a);
        qsf_gate_open(&a->gate);
    }
}

int qsf_adapters_begin(QsfAdapted *a, QsfForward *f, uint32_t unit, const QsfProduct *p, QsfErr *err) {
    const QsfAdapterSet *s = f->adapters.set;
    unsigned n = 0;
    a->f = f;
    a->p = p;
    a->use = s->use + s->first[unit];
    a->end = s->use + s->first[unit + 1];
    a->in_parts = p->n_cols <= QSF_ADAPTER_FEW_COLS;
    for (const QsfAdapterUse *u = a->use; u < a->end; u++) n += tasks_of(a, u);
    qsf_gate_init(&a->gate, n);
    return qsf_adapters_hold(f, pair_of(s, a->use)->block, err);
}

/* ---- messages ---- */

void qsf_adapters_suspect(const QsfAdapterSet *set, char *dst, size_t cap) {
    const char *path = NULL;
    float scale = 0;
    *dst = '\0';
    if (set == NULL) return;
    for (uint32_t i = 0; i < set->n; i++)
        if (path == NULL || fabsf(set->adapter[i].scale) > fabsf(scale)) {
            path = set->adapter[i].path;
            scale = set->adapter[i].scale;
        }
    for (uint32_t i = 0; i < set->n_controls; i++)
        if (path == NULL || fabsf(set->control[i].scale) > fabsf(scale)) {
            path = set->control[i].path;
            scale = set->control[i].scale;
        }
    if (path != NULL)
        snprintf(dst, cap, " with %s%s at the scale %g%s", path,
                 set->n + set->n_controls > 1 ? ", the one with the largest scale," : "", (double)scale,
                 fabsf(scale) > 1 ? ": try a smaller one" : "");
}

/* ---- rows ---- */

/* Adds B times the ranks of columns [c0, n_cols) to rows [lo, hi) of a use; y: its row lo of column 0. */
static void add_rows(const QsfAdapted *a, const QsfAdapterUse *u, size_t slot, float *y, size_t lo,
                     size_t hi) {
    const QsfForward *f = a->f;
    const QsfAdapterPair *pair = pair_of(f->adapters.set, u);
    const size_t stride = f->adapters.set->rank_floats, row = u->row0 + lo;
    const uint32_t c0 = inactive(f, a->p, u->adapter);
    const qk_thin m = { .w = b_group(f, pair, u->part, row),
                        .group_bytes = (size_t)QSF_ADAPTER_GROUP * pair->rank * elem_bytes(f),
                        .first = row % QSF_ADAPTER_GROUP,
                        .rows = hi - lo,
                        .k = pair->rank,
                        .x = f->adapters.ranks + c0 * stride + slot,
                        .y = y + c0 * a->p->y_stride[u->tensor],
                        .n_cols = a->p->n_cols - c0,
                        .x_stride = stride,
                        .y_stride = a->p->y_stride[u->tensor] };
    multiply(f, &m);
}

void qsf_adapters_rows(QsfAdapted *a, unsigned tensor, float *y, size_t row0, size_t lo, size_t hi) {
    size_t slot = 0;
    qsf_gate_wait(&a->gate);
    for (const QsfAdapterUse *u = a->use; u < a->end; u++) {
        if (u->tensor == tensor) add_rows(a, u, slot, y + lo, row0 + lo, row0 + hi);
        slot += qsf_adapter_padded(pair_of(a->f->adapters.set, u)->rank);
    }
}

/* ---- the embedding table ---- */

void qsf_adapters_embed(const QsfForward *f, uint32_t id, uint32_t pos, float *x) {
    const QsfAdapterSet *s = f->adapters.set;
    for (uint32_t k = 0; k < s->n; k++) {
        for (uint32_t i = 0; i < s->adapter[k].n_pairs; i++) {
            const QsfAdapterPair *p = &s->adapter[k].pair[i];
            _Alignas(64) float ranks[QSF_ADAPTER_RANK_MAX];
            if (!p->table || pos < f->adapters.from[k]) continue;
            f->table->weight[s->exact ? QK_F32 : QK_F16].dequant(
                at(f, p) + (size_t)id * p->rank * elem_bytes(f), ranks, p->rank);
            f->table->scale(ranks, f->adapters.factor[p->index], p->rank);
            multiply(f, &(qk_thin){ .w = b_group(f, p, 0, 0),
                                    .group_bytes = (size_t)QSF_ADAPTER_GROUP * p->rank * elem_bytes(f),
                                    .rows = p->cols,
                                    .k = p->rank,
                                    .x = ranks,
                                    .y = x,
                                    .n_cols = 1 });
        }
    }
}

/* ---- control vectors ---- */

/* The block that ended before a step; QSF_NONE: none did. */
static uint32_t ended(const QsfForward *f, uint32_t step) {
    const QsfStep *s = f->model->prog.step;
    const bool border = step > 0 && s[step].block != s[step - 1].block &&
                        s[step - 1].block < f->model->prog.n_blocks;
    return border ? s[step - 1].block : QSF_NONE;
}

bool qsf_adapters_control_at(const QsfForward *f, uint32_t step) {
    if (f->adapters.control == NULL) return false;
    const uint32_t block = ended(f, step);
    return block != QSF_NONE && qsf_blocks_have(&f->adapters.controlled, block);
}

void qsf_adapters_add_control(QsfForward *f, uint32_t step) {
    const uint32_t hidden = f->model->hp.hidden;
    const float *v = f->adapters.control + (size_t)ended(f, step) * hidden;
    for (uint32_t c = f->col0; c < f->col0 + f->n_cols; c++)
        f->table->add(qsf_col(f, (QsfSlice){ QSF_BUF_X, 0, hidden }, c), v, hidden);
    if (f->act_of.buf == QSF_BUF_X) f->act_of.buf = QSF_NONE;
}
