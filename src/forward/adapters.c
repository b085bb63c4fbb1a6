/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What adapters compute. */
#include "src/forward/adapters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/forward/forward_impl.h"
#include "src/forward/ops/ops.h"

#define RANK_ROWS 8u     /* ranks that a thread computes at a time, */
#define COLS      16u    /* and columns */
#define ROWS      64u    /* of B */
#define PREFETCH  16384u /* bytes of B; what follows, the processor requests in time */
#define LINE      64u
#define ALONE     (1u << 16) /* multiply-adds that are not worth waking other threads */

static const QsfAdapterPair *pair_of(const QsfAdapterSet *s, const QsfAdapterUse *u) {
    return &s->adapter[u->adapter].pair[u->pair];
}

static const qk_weight_ops *ops_of(const QsfForward *f) {
    return &f->table->weight[f->adapters.set->exact ? QK_F32 : QK_F16];
}
static size_t elem_bytes(const QsfForward *f) { return f->adapters.set->exact ? 4 : 2; }

static uint32_t padded(const QsfAdapters *a, uint32_t rank) {
    return (rank + a->step - 1) / a->step * a->step;
}

/* Where a pair is in memory. */
static const uint8_t *at(const QsfForward *f, const QsfAdapterPair *p) {
    return f->adapters.mem + (f->adapters.streams ? p->in_block : p->at);
}

/* Row r of B, over all its matrices. */
static const uint8_t *b_row(const QsfForward *f, const QsfAdapterPair *p, uint64_t r) {
    return at(f, p) + p->a_bytes + r * padded(&f->adapters, p->rank) * elem_bytes(f);
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

typedef struct RanksJob {
    const QsfForward *f;
    const QsfProduct *p;
    const QsfAdapterUse *use, *end;
} RanksJob;

static uint32_t groups(uint32_t n, uint32_t of) { return (n + of - 1) / of; }

static size_t items_of(const RanksJob *j, const QsfAdapterUse *u) {
    return (size_t)groups(pair_of(j->f->adapters.set, u)->rank, RANK_ROWS) * groups(j->p->n_cols, COLS);
}

/* Ranks [r, r + RANK_ROWS) of columns [c, c + COLS), into slot `slot` of the ranks of a column. */
static void some_ranks(const RanksJob *j, const QsfAdapterUse *u, size_t slot, uint32_t r, uint32_t c) {
    const QsfForward *f = j->f;
    const QsfAdapterPair *pair = pair_of(f->adapters.set, u);
    const size_t stride = f->adapters.set->rank_floats, row = (size_t)pair->cols * elem_bytes(f);
    const uint32_t r1 = r + RANK_ROWS < pair->rank ? r + RANK_ROWS : pair->rank,
                   c1 = c + COLS < j->p->n_cols ? c + COLS : j->p->n_cols,
                   pad = r1 == pair->rank ? padded(&f->adapters, pair->rank) : r1;
    const qk_weight_ops *ops = ops_of(f);
    float *y = f->adapters.ranks + c * stride + slot;
    const qk_mm mm = { .w = at(f, pair) + (uint64_t)u->part * pair->rank * row,
                       .row_bytes = row,
                       .x = j->p->x + c * j->p->x_stride,
                       .x_stride = j->p->x_stride * sizeof(float),
                       .y = y,
                       .y_stride = stride,
                       .k = pair->cols,
                       .n_cols = c1 - c,
                       .way = ops->way,
                       .wide = ops->wide };
    ops->matmul(&mm, r, r1);
    for (uint32_t i = 0; i < c1 - c; i++) {
        f->table->scale(y + i * stride + r, f->adapters.factor[pair->index], r1 - r);
        memset(y + i * stride + r1, 0, (pad - r1) * sizeof *y);
    }
}

static void run_ranks(void *arg, int worker, size_t begin, size_t end) {
    const RanksJob *j = arg;
    size_t base = 0, slot = 0;
    (void)worker;
    for (const QsfAdapterUse *u = j->use; u < j->end; u++) {
        const size_t n = items_of(j, u), cols = groups(j->p->n_cols, COLS);
        const size_t lo = begin > base ? begin - base : 0, hi = end > base ? end - base : 0;
        for (size_t i = lo; i < (hi < n ? hi : n); i++)
            some_ranks(j, u, slot, (uint32_t)(i / cols) * RANK_ROWS, (uint32_t)(i % cols) * COLS);
        base += n;
        slot += padded(&j->f->adapters, pair_of(j->f->adapters.set, u)->rank);
    }
}

int qsf_adapters_ranks(QsfForward *f, uint32_t unit, const QsfProduct *p, QsfErr *err) {
    const QsfAdapterSet *s = f->adapters.set;
    RanksJob j = { .f = f, .p = p, .use = s->use + s->first[unit], .end = s->use + s->first[unit + 1] };
    size_t n = 0;
    uint64_t macs = 0;
    int rc = qsf_adapters_hold(f, pair_of(s, j.use)->block, err);
    if (rc != QSF_OK) return rc;
    for (const QsfAdapterUse *u = j.use; u < j.end; u++) {
        n += items_of(&j, u);
        macs += (uint64_t)pair_of(s, u)->rank * pair_of(s, u)->cols * p->n_cols;
    }
    const QsfSpan span = qsf_span_begin(f);
    if (macs < ALONE)
        run_ranks(&j, 0, 0, n);
    else
        qsf_pool_run(f->pool, run_ranks, &j, n, 1);
    qsf_span_end(f, &span, &f->n.prep_ns);
    return QSF_OK;
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

/* Adds B times the ranks of columns [c0, n_cols) to n rows; y: the first row of column 0. */
static void add_product(const QsfForward *f, const QsfAdapterPair *pair, const float *ranks,
                        size_t ranks_stride, uint64_t b0, float *y, size_t y_stride, uint32_t c0,
                        uint32_t n_cols, size_t n) {
    const qk_weight_ops *ops = ops_of(f);
    const size_t k = padded(&f->adapters, pair->rank);
    _Alignas(64) float sum[COLS * ROWS];
    for (size_t r = 0; r < n; r += ROWS) {
        const size_t rows = n - r < ROWS ? n - r : ROWS;
        for (uint32_t c = c0; c < n_cols; c += COLS) {
            const uint32_t cols = n_cols - c < COLS ? n_cols - c : COLS;
            const qk_mm mm = { .w = b_row(f, pair, b0 + r),
                               .row_bytes = k * elem_bytes(f),
                               .x = ranks + c * ranks_stride,
                               .x_stride = ranks_stride * sizeof(float),
                               .y = sum,
                               .y_stride = ROWS,
                               .k = k,
                               .n_cols = cols,
                               .way = QK_WAY_TURNS,
                               .wide = ops->wide };
            ops->matmul(&mm, 0, rows);
            for (uint32_t i = 0; i < cols; i++)
                f->table->add(y + (c + i) * y_stride + r, sum + i * ROWS, rows);
        }
    }
}

void qsf_adapters_prefetch(const QsfForward *f, uint32_t unit, unsigned tensor, size_t row, size_t n) {
    const QsfAdapterSet *s = f->adapters.set;
    for (uint32_t i = s->first[unit]; i < s->first[unit + 1]; i++) {
        const QsfAdapterUse *u = &s->use[i];
        const QsfAdapterPair *pair = pair_of(s, u);
        if (u->tensor != tensor) continue;
        const size_t row_bytes = padded(&f->adapters, pair->rank) * elem_bytes(f), all = n * row_bytes;
        const uint8_t *p = b_row(f, pair, (uint64_t)u->part * pair->rows + u->row0 + row);
        for (size_t at = 0; at < all && at < PREFETCH; at += LINE) __builtin_prefetch(p + at, 0, 2);
    }
}

void qsf_adapters_rows(const QsfForward *f, uint32_t unit, unsigned tensor, const QsfProduct *p, float *y,
                       size_t row0, size_t lo, size_t hi) {
    const QsfAdapterSet *s = f->adapters.set;
    size_t slot = 0;
    for (uint32_t i = s->first[unit]; i < s->first[unit + 1]; i++) {
        const QsfAdapterUse *u = &s->use[i];
        const QsfAdapterPair *pair = pair_of(s, u);
        if (u->tensor == tensor)
            add_product(f, pair, f->adapters.ranks + slot, s->rank_floats,
                        (uint64_t)u->part * pair->rows + u->row0 + row0 + lo, y + lo, p->y_stride[tensor],
                        inactive(f, p, u->adapter), p->n_cols, hi - lo);
        slot += padded(&f->adapters, pair->rank);
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
            const size_t n = padded(&f->adapters, p->rank);
            ops_of(f)->dequant(at(f, p) + id * n * elem_bytes(f), ranks, n);
            f->table->scale(ranks, f->adapters.factor[p->index], n);
            add_product(f, p, ranks, n, 0, x, 0, 0, 1, p->cols);
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
