/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Multiplies by matrices. */
#include "src/forward/ops/ops.h"

/* ---- matrices ---- */

/* Multiplies columns by the matrices of one unit, pinned or streamed. One pool job per chunk: each thread
 * computes a range of rows of all its tensors, adds biases and applies the activation to them. */

/* --- columns --- */

bool qsf_linear_is_quantized(const QsfForward *f, const QsfStep *s) {
    return f->act_of.buf == s->in.buf && f->act_of.off == s->in.off && f->act_of.width == s->in.width;
}

unsigned qsf_unit_acts(const QsfForward *f, const QsfUnit *u) {
    unsigned acts = 0;
    for (unsigned i = 0; i < u->n; i++) acts |= 1u << f->table->weight[u->type[i]].act;
    return f->exact ? 0 : acts & ~(1u << QK_ACT_F32); /* float columns are used where they lie */
}

static bool is_sketched(const QsfForward *f, const QsfStep *s) {
    return qsf_sketch_runs(&f->sketch) && f->n_cols == 1 && s->u.linear.unit == f->sketch.shape.unit;
}

unsigned qsf_linear_acts(const QsfForward *f, const QsfStep *s) {
    unsigned acts = qsf_unit_acts(f, qsf_weights_unit(f->weights, s->u.linear.unit));
    if (is_sketched(f, s)) acts |= 1u << f->table->weight[QSF_SKETCH_TYPE].act;
    return qsf_linear_is_quantized(f, s) ? acts & ~f->acts : acts;
}

void qsf_linear_quantize(const QsfForward *f, const QsfStep *s, unsigned acts, size_t c) {
    for (unsigned a = 0; a < QK_ACT_N; a++)
        if (acts >> a & 1)
            f->table->quantize[a](f->act[a] + c * f->l.act_stride[a], qsf_col(f, s->in, c), s->in.width);
}

/* --- rows --- */

typedef struct RowsJob {
    const QsfForward *f;
    const QsfProduct *p;
    const QsfUnit *u;
    QsfWeightView v;
    qk_mm mm[QSF_UNIT_TENSORS];          /* per part */
    const float *bias[QSF_UNIT_TENSORS]; /* per part, at its row0; NULL = none */
    QsfAdapted *adapted;                 /* NULL = no adapters */
} RowsJob;

static void set_part(RowsJob *j, unsigned i) {
    const QsfForward *f = j->f;
    const QsfProduct *p = j->p;
    const QsfPart *part = &j->v.part[i];
    unsigned t = part->tensor;
    qk_act act = f->exact ? QK_ACT_F32 : f->table->weight[j->u->type[t]].act;
    j->bias[i] = p->bias[t] != NULL ? p->bias[t] + part->row0 : NULL;
    j->mm[i] = (qk_mm){
        .scale = j->u->tensor[t]->scale,
        .way = f->table->weight[j->u->type[t]].way,
        .wide = f->table->weight[j->u->type[t]].wide,
        .w = j->v.rows[i],
        .row_bytes = (size_t)j->u->row_bytes[t],
        .x = act == QK_ACT_F32 ? (const void *)p->x
                               : (const void *)(f->act[act] + p->act0 * f->l.act_stride[act]),
        .x_stride = act == QK_ACT_F32 ? p->x_stride * sizeof(float) : (size_t)f->l.act_stride[act],
        .y = p->y[t] + part->row0,
        .y_stride = p->y_stride[t],
        .k = j->u->k,
        .n_cols = p->n_cols,
    };
}

void qsf_multiply_rows(const qk_weight_ops *ops, const qk_mm *mm, size_t interleaved, size_t lo, size_t hi) {
    size_t mid = hi < interleaved ? (hi + QSF_ROW_QUANTUM - 1) / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM
                                  : interleaved;
    if (lo < mid)
        ops->matmul16(mm, lo, mid);
    else
        mid = lo;
    if (mid < hi) ops->matmul(mm, mid, hi);
}

/* Multiply-adds of one call, which cannot be stopped: some tens of milliseconds. The reference level, and
 * exact floats, compute 200 to 1000 million per second; others are rarely divided. */
#define MACS_SLOW (4u << 20)
#define MACS      (256u << 20)

/* One call: all columns of some rows or, if the columns are very many, some of them. Tiles of
 * rows stay whole. */
static void multiply(const QsfForward *f, const qk_weight_ops *ops, const qk_mm *mm, size_t interleaved,
                     size_t lo, size_t hi, int worker) {
    if (f->exact)
        f->table->matmul_exact(mm, lo, hi, ops, f->exact_row + (size_t)worker * f->l.exact_stride);
    else
        qsf_multiply_rows(ops, mm, interleaved, lo, hi);
}

void qsf_multiply_stoppable(const QsfForward *f, const qk_weight_ops *ops, const qk_mm *mm,
                            size_t interleaved, size_t lo, size_t hi, int worker) {
    const bool slow = f->exact || f->table->level == QK_LEVEL_REF;
    const size_t most = (slow ? MACS_SLOW : MACS) / mm->k, tile = slow ? QSF_ROW_QUANTUM : QK_TILE_ROWS;
    size_t rows = most / mm->n_cols / tile * tile, cols = mm->n_cols;
    if (rows == 0) {
        rows = tile;
        cols = most / rows > QK_TILE_ROWS ? most / rows : QK_TILE_ROWS;
    }
    for (size_t to; lo < hi; lo = to) {
        to = hi - lo > rows ? lo + rows : hi;
        for (size_t c = 0; c < mm->n_cols; c += cols) {
            qk_mm part = *mm;
            if (qsf_cancelled(f)) return;
            part.n_cols = mm->n_cols - c < cols ? mm->n_cols - c : cols;
            if (mm->x) part.x = (const uint8_t *)mm->x + c * mm->x_stride;
            part.y = mm->y + c * mm->y_stride;
            multiply(f, ops, &part, interleaved, lo, to, worker);
        }
    }
}

/* Rows [lo, hi) of part i, counted from its row0. */
static void part_rows(const RowsJob *j, unsigned i, size_t lo, size_t hi, int worker) {
    const QsfForward *f = j->f;
    const qk_mm *mm = &j->mm[i];
    const QsfPart *part = &j->v.part[i];
    const qk_weight_ops *ops = &f->table->weight[j->u->type[part->tensor]];
    qsf_multiply_stoppable(f, ops, mm, j->v.interleaved[i], lo, hi, worker);
    for (size_t c = 0; j->bias[i] != NULL && c < mm->n_cols; c++)
        f->table->add(mm->y + c * mm->y_stride + lo, j->bias[i] + lo, hi - lo);
    if (j->adapted != NULL && !qsf_cancelled(f))
        qsf_adapters_rows(j->adapted, part->tensor, mm->y, part->row0, lo, hi);
}

/* Applies the activation to rows [lo, hi) of the unit's outputs. Bounds are multiples of 16, so that an
 * element's position in a vector, and thus its last bit, does not depend on the split. */
static void activate(const RowsJob *j, size_t lo, size_t hi) {
    const QsfProduct *p = j->p;
    for (size_t c = 0; c < p->n_cols; c++) {
        const float *up = j->u->n > 1 ? p->y[1] + c * p->y_stride[1] + lo : NULL;
        qsf_act(j->f->table, &p->act, p->y[0] + c * p->y_stride[0] + lo, up, hi - lo);
    }
}

static void run_rows(void *arg, int worker, size_t begin, size_t end) {
    const RowsJob *j = arg;
    size_t base = 0; /* item of part i's first row, counted from the chunk's first */
    if (j->adapted != NULL) qsf_adapters_ranks(j->adapted);
    for (unsigned i = 0; i < j->v.n_parts; i++) {
        size_t rows = j->v.part[i].row1 - j->v.part[i].row0;
        size_t lo = begin > base ? begin - base : 0, hi = end > base ? end - base : 0;
        if (hi > rows) hi = rows;
        if (lo < hi) part_rows(j, i, lo, hi, worker);
        if (!j->u->paired) base += (rows + QSF_ROW_QUANTUM - 1) / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
    }
    if (j->p->act.kind != QSF_ACT_NONE) activate(j, j->v.item0 + begin, j->v.item0 + end);
}

void qsf_linear_note_types(QsfForward *f, const QsfUnit *u) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < u->n; i++) bits |= 1ull << u->type[i];
    uint64_t have = atomic_load_explicit(&f->n.types_used, memory_order_relaxed);
    if ((have & bits) != bits) atomic_store_explicit(&f->n.types_used, have | bits, memory_order_relaxed);
}

void qsf_linear_show(const QsfForward *f, const QsfStep *s, uint32_t k) {
    if (f->tap == NULL) return;
    const QsfTapData t = { .step = (uint32_t)(s - f->model->prog.step),
                           .expert = QSF_NONE,
                           .pos = f->past + f->col0,
                           .n_cols = f->n_cols,
                           .x = qsf_col(f, s->in, f->col0),
                           .k = k,
                           .x_stride = qsf_col_stride(f, s->in) };
    f->tap(f->tap_arg, &t);
}

/* Rows that threads take at a time to multiply with n_cols columns. */
static size_t row_grain(size_t n_cols) { return n_cols >= QK_TILE_COLS ? QK_TILE_ROWS : QSF_ROW_QUANTUM; }

int qsf_multiply(QsfForward *f, uint32_t unit, const QsfProduct *p, QsfErr *err) {
    QsfWeights *w = f->weights;
    if (f->model->prog.unit[unit].borrowed) {
        w = f->lender->weights;
        unit = qsf_weights_n_units(w) - 1;
    }
    RowsJob j = { .f = f, .p = p, .u = qsf_weights_unit(w, unit) };
    qsf_linear_note_types(f, j.u);
    QsfAdapted adapted;
    if (qsf_adapters_have(&f->adapters, unit)) j.adapted = &adapted;
    int rc = j.adapted != NULL ? qsf_adapters_begin(&adapted, f, unit, p, err) : QSF_OK;
    if (rc != QSF_OK) return rc;
    for (uint32_t item = 0; item < j.u->items; item = j.v.item1) {
        if (qsf_cancelled(f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        rc = qsf_weights_acquire(w, unit, item, &j.v, err);
        if (rc != QSF_OK) return rc;
        for (unsigned i = 0; i < j.v.n_parts; i++) set_part(&j, i);
        QsfSpan span = qsf_span_begin(f);
        qsf_pool_run(f->pool, run_rows, &j, j.v.item1 - item, row_grain(p->n_cols));
        qsf_span_end(f, &span, &f->n.matmul_ns[j.u->matmul_class]);
        qsf_weights_release(w, &j.v);
    }
    return qsf_cancelled(f) ? qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted") : QSF_OK;
}

int qsf_linear(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfUnit *u = qsf_weights_unit(f->weights, s->u.linear.unit);
    QsfProduct p = { .x = qsf_col(f, s->in, f->col0),
                     .x_stride = qsf_col_stride(f, s->in),
                     .act0 = f->col0,
                     .n_cols = f->n_cols,
                     .act.kind = s->u.linear.act };
    for (unsigned i = 0; i < u->n; i++) {
        p.y[i] = qsf_col(f, s->out[i], f->col0);
        p.y_stride[i] = qsf_col_stride(f, s->out[i]);
        p.bias[i] = qsf_param(f, s->u.linear.bias[i]);
    }
    qsf_linear_show(f, s, u->k);
    if (is_sketched(f, s)) return qsf_sketch_head(f, s, err);
    return qsf_multiply(f, s->u.linear.unit, &p, err);
}

/* ---- a matrix for each head ---- */

/* Multiplies each head of the columns by its own matrix. The unit is streamed, pinned and interleaved as one
 * matrix with the rows of all heads; an input of a head is quantized by itself. */

typedef struct HeadsJob {
    const QsfForward *f;
    const QsfStep *s;
    const QsfHeadLinearStep *p;
    const QsfUnit *u;
    const qk_weight_ops *ops;
    qk_act act;
    size_t act_bytes; /* of one head */
    QsfWeightView v;
} HeadsJob;

/* Items are (column, head). */
static void quantize(void *arg, int worker, size_t begin, size_t end) {
    const HeadsJob *j = arg;
    const QsfForward *f = j->f;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const size_t c = f->col0 + i / j->p->heads, h = i % j->p->heads;
        f->table->quantize[j->act](f->act[j->act] + c * f->l.act_stride[j->act] + h * j->act_bytes,
                                   qsf_col(f, j->s->in, c) + h * j->p->in_stride, j->u->k);
    }
}

/* Describes the product of head h; row 0 is the first row of part i. */
static qk_mm product(const HeadsJob *j, unsigned i, size_t h) {
    const QsfForward *f = j->f;
    const float *x = qsf_col(f, j->s->in, f->col0) + h * j->p->in_stride;
    const uint8_t *act = f->act[j->act] + f->col0 * f->l.act_stride[j->act] + h * j->act_bytes;
    const bool floats = j->act == QK_ACT_F32;
    /* Not before the start of out: a head's outputs are at least as far apart as its rows. */
    float *y = qsf_col(f, j->s->out[0], f->col0) + h * (j->p->out_stride - j->p->rows) + j->v.part[i].row0;
    return (qk_mm){ .w = j->v.rows[i],
                    .scale = j->u->tensor[0]->scale,
                    .way = j->ops->way,
                    .wide = j->ops->wide,
                    .row_bytes = (size_t)j->u->row_bytes[0],
                    .x = floats ? (const void *)x : (const void *)act,
                    .x_stride = floats ? qsf_col_stride(f, j->s->in) * sizeof(float)
                                       : (size_t)f->l.act_stride[j->act],
                    .y = y,
                    .y_stride = qsf_col_stride(f, j->s->out[0]),
                    .k = j->u->k,
                    .n_cols = f->n_cols };
}

/* Rows [lo, hi) of part i, counted from its row0. Tiles of 16 rows belong to one head: units whose heads'
 * rows are not a multiple of 16 are not interleaved. */
static void head_part_rows(const HeadsJob *j, unsigned i, size_t lo, size_t hi, int worker) {
    const QsfForward *f = j->f;
    const size_t row0 = j->v.part[i].row0, rows = j->p->rows;
    while (lo < hi) {
        const size_t h = (row0 + lo) / rows, border = (h + 1) * rows - row0, to = border < hi ? border : hi;
        const qk_mm mm = product(j, i, h);
        qsf_multiply_stoppable(f, j->ops, &mm, j->v.interleaved[i], lo, to, worker);
        lo = to;
    }
}

static void run_head_rows(void *arg, int worker, size_t begin, size_t end) {
    const HeadsJob *j = arg;
    if (j->v.n_parts == 0) return;
    const size_t rows = j->v.part[0].row1 - j->v.part[0].row0;
    head_part_rows(j, 0, begin, end < rows ? end : rows, worker);
}

int qsf_head_linear(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfHeadLinearStep *p = &s->u.head_linear;
    HeadsJob j = { .f = f, .s = s, .p = p, .u = qsf_weights_unit(f->weights, p->unit) };
    j.ops = &f->table->weight[j.u->type[0]];
    j.act = f->exact ? QK_ACT_F32 : j.ops->act;
    qsf_linear_note_types(f, j.u);
    qsf_linear_show(f, s, j.u->k);
    if (j.act != QK_ACT_F32) {
        QsfSpan span = qsf_span_begin(f);
        j.act_bytes = qk_act_bytes(j.act, j.u->k);
        f->act_of.buf = QSF_NONE;
        qsf_pool_run(f->pool, quantize, &j, (size_t)f->n_cols * p->heads, 1);
        qsf_span_end(f, &span, &f->n.prep_ns);
    }
    for (uint32_t item = 0; item < j.u->items; item = j.v.item1) {
        if (qsf_cancelled(f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        int rc = qsf_weights_acquire(f->weights, p->unit, item, &j.v, err);
        if (rc != QSF_OK) return rc;
        QsfSpan span = qsf_span_begin(f);
        qsf_pool_run(f->pool, run_head_rows, &j, j.v.item1 - item, row_grain(f->n_cols));
        qsf_span_end(f, &span, &f->n.matmul_ns[j.u->matmul_class]);
        qsf_weights_release(f->weights, &j.v);
    }
    return QSF_OK;
}
