/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Multiplies columns by the matrices of one unit, pinned or streamed. One pool job per chunk: each thread
 * computes a range of rows of all its tensors, adds biases and applies the activation to them. */
#include "src/forward/state.h"

/* --- columns --- */

typedef struct PrepJob {
    QsfForward *f;
    const QsfPrep *p;
    unsigned acts; /* bit a = activation kind a is needed */
} PrepJob;

static unsigned acts_of(const QsfForward *f, uint32_t unit) {
    const QsfUnit *u = qsf_weights_unit(f->weights, unit);
    unsigned acts = 0;
    for (unsigned i = 0; i < u->n; i++) acts |= 1u << f->table->weight[u->type[i]].act;
    return f->exact ? 0 : acts & ~(1u << QK_ACT_F32); /* float columns are used where they lie */
}

static void norm_column(const QsfForward *f, const QsfPrep *p, float *y, const float *x) {
    const QsfHparams *hp = &f->model->hp;
    const float *w = qsf_param(f, p->norm, p->layer), *b = qsf_param(f, p->norm + 1, p->layer);
    if (hp->arch->norm == QSF_NORM_RMS)
        f->table->rms_norm(y, x, w, hp->hidden, hp->norm_eps);
    else
        f->table->layer_norm(y, x, w, b, hp->hidden, hp->norm_eps);
}

static void prep_columns(void *arg, int worker, size_t begin, size_t end) {
    const PrepJob *j = arg;
    const QsfForward *f = j->f;
    const QsfPrep *p = j->p;
    uint32_t k = qsf_weights_unit(f->weights, p->unit)->k;
    (void)worker;
    for (size_t c = p->col0 + begin; c < p->col0 + end; c++) {
        float *x = f->x + c * f->l.x_stride, *xn = f->xn + c * f->l.x_stride;
        if (p->residual) f->table->add(x, xn, f->model->hp.hidden);
        if (p->norm != QSF_ROLE_N) norm_column(f, p, xn, x);
        for (unsigned a = 0; a < QK_ACT_N; a++) {
            if (j->acts >> a & 1)
                f->table->quantize[a](f->act[a] + c * f->l.act_stride[a], p->src + c * p->src_stride, k);
        }
    }
}

void qsf_prep(QsfForward *f, const QsfPrep *p) {
    PrepJob j = { f, p, acts_of(f, p->unit) };
    if (j.acts == 0 && !p->residual && p->norm == QSF_ROLE_N) return;
    QsfSpan s = qsf_span_begin(f);
    qsf_pool_run(f->pool, prep_columns, &j, p->n_cols, 1);
    qsf_span_end(f, &s, &f->n.prep_ns);
}

/* --- rows --- */

typedef struct RowsJob {
    const QsfForward *f;
    const QsfProject *p;
    const QsfUnit *u;
    QsfWeightView v;
    qk_mm mm[QSF_UNIT_TENSORS];          /* per part */
    const float *bias[QSF_UNIT_TENSORS]; /* per part, at its row0; NULL = none */
} RowsJob;

static const QsfRole bias_role[QSF_ROLE_N] = {
    [QSF_ROLE_Q] = QSF_ROLE_Q_B,       [QSF_ROLE_K] = QSF_ROLE_K_B,       [QSF_ROLE_V] = QSF_ROLE_V_B,
    [QSF_ROLE_O] = QSF_ROLE_O_B,       [QSF_ROLE_GATE] = QSF_ROLE_GATE_B, [QSF_ROLE_UP] = QSF_ROLE_UP_B,
    [QSF_ROLE_DOWN] = QSF_ROLE_DOWN_B, [QSF_ROLE_HEAD] = QSF_ROLE_HEAD_B,
};

static void set_part(RowsJob *j, unsigned i) {
    const QsfForward *f = j->f;
    const QsfPrep *in = j->p->in;
    const QsfPart *part = &j->v.part[i];
    unsigned t = part->tensor;
    qk_act act = f->exact ? QK_ACT_F32 : f->table->weight[j->u->type[t]].act;
    const float *bias = qsf_param(f, bias_role[j->u->role[t]], in->layer);
    j->bias[i] = bias != NULL ? bias + part->row0 : NULL;
    j->mm[i] = (qk_mm){
        .w = j->v.rows[i],
        .row_bytes = (size_t)j->u->row_bytes[t],
        .x = act == QK_ACT_F32 ? (const void *)(in->src + (size_t)in->col0 * in->src_stride)
                               : (const void *)(f->act[act] + in->col0 * f->l.act_stride[act]),
        .x_stride = act == QK_ACT_F32 ? in->src_stride * sizeof(float) : (size_t)f->l.act_stride[act],
        .y = j->p->y[t] + part->row0,
        .y_stride = j->p->y_stride[t],
        .k = j->u->k,
        .n_cols = in->n_cols,
        .scale = j->u->tensor[t]->scale,
    };
}

/* Multiplies interleaved tiles first, then plain rows. lo is a multiple of 16. A padded last tile is
 * multiplied whole: the columns of y are multiples of 16 floats apart, and the padding after a column's end
 * is not read. */
static void multiply(const qk_weight_ops *ops, const qk_mm *mm, size_t packed, size_t lo, size_t hi) {
    size_t mid = hi < packed ? (hi + QSF_ROW_QUANTUM - 1) / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM : packed;
    if (lo < mid)
        ops->matmul16(mm, lo, mid);
    else
        mid = lo;
    if (mid < hi) ops->matmul(mm, mid, hi);
}

/* Rows [lo, hi) of part i, counted from its row0. */
static void part_rows(const RowsJob *j, unsigned i, size_t lo, size_t hi, int worker) {
    const QsfForward *f = j->f;
    const qk_mm *mm = &j->mm[i];
    const qk_weight_ops *ops = &f->table->weight[j->u->type[j->v.part[i].tensor]];
    if (f->exact)
        f->table->matmul_exact(mm, lo, hi, ops, f->exact_row + (size_t)worker * f->l.exact_stride);
    else
        multiply(ops, mm, j->v.packed[i], lo, hi);
    if (j->bias[i] == NULL) return;
    for (size_t c = 0; c < mm->n_cols; c++)
        f->table->add(mm->y + c * mm->y_stride + lo, j->bias[i] + lo, hi - lo);
}

/* Applies the activation to rows [lo, hi) of the unit's outputs. Bounds are multiples of 16, so that an
 * element's position in a vector, and thus its last bit, does not depend on the split. */
static void activate(const RowsJob *j, size_t lo, size_t hi) {
    const QsfProject *p = j->p;
    for (size_t c = 0; c < p->in->n_cols; c++) {
        const float *up = j->u->n > 1 ? p->y[1] + c * p->y_stride[1] + lo : NULL;
        p->act(p->y[0] + c * p->y_stride[0] + lo, up, hi - lo);
    }
}

static void run_rows(void *arg, int worker, size_t begin, size_t end) {
    const RowsJob *j = arg;
    size_t base = 0; /* item of part i's first row, counted from the chunk's first */
    for (unsigned i = 0; i < j->v.n_parts; i++) {
        size_t rows = j->v.part[i].row1 - j->v.part[i].row0;
        size_t lo = begin > base ? begin - base : 0, hi = end > base ? end - base : 0;
        if (hi > rows) hi = rows;
        if (lo < hi) part_rows(j, i, lo, hi, worker);
        if (!j->u->paired) base += (rows + QSF_ROW_QUANTUM - 1) / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
    }
    if (j->p->act != NULL) activate(j, j->v.item0 + begin, j->v.item0 + end);
}

static void note_types(QsfForward *f, const QsfUnit *u) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < u->n; i++) bits |= UINT64_C(1) << u->type[i];
    const uint64_t have = atomic_load_explicit(&f->n.types_used, memory_order_relaxed);
    if ((have & bits) != bits) atomic_store_explicit(&f->n.types_used, have | bits, memory_order_relaxed);
}

static void show_input(const QsfForward *f, const QsfPrep *in, const QsfUnit *u) {
    const QsfTapData t = { .layer = u->layer,
                           .group = u->group,
                           .pos = f->kv.n_past + in->col0,
                           .n_cols = in->n_cols,
                           .x = in->src + (size_t)in->col0 * in->src_stride,
                           .k = u->k,
                           .x_stride = in->src_stride,
                           .hidden = f->x + (size_t)in->col0 * f->l.x_stride,
                           .hidden_stride = f->l.x_stride };
    f->tap(f->tap_arg, &t);
}

int qsf_project(QsfForward *f, const QsfProject *p, QsfErr *err) {
    RowsJob j = { .f = f, .p = p, .u = qsf_weights_unit(f->weights, p->in->unit) };
    note_types(f, j.u);
    if (f->tap != NULL) show_input(f, p->in, j.u);
    for (uint32_t item = 0; item < j.u->items; item = j.v.item1) {
        if (qsf_cancelled(f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        int rc = qsf_weights_acquire(f->weights, p->in->unit, item, &j.v, err);
        if (rc != QSF_OK) return rc;
        for (unsigned i = 0; i < j.v.n_parts; i++) set_part(&j, i);
        QsfSpan s = qsf_span_begin(f);
        qsf_pool_run(f->pool, run_rows, &j, j.v.item1 - item, QSF_ROW_QUANTUM);
        qsf_span_end(f, &s, &f->n.matmul_ns[j.u->group]);
        qsf_weights_release(f->weights, &j.v);
    }
    return QSF_OK;
}
