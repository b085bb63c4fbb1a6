/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Multiplies each head of the columns by a matrix of its own. The unit is streamed, pinned and interleaved as one
 * matrix with the rows of all heads; an input of a head is quantized by itself. */
#include "src/forward/forward_impl.h"

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

/* Rows [lo, hi) of part i, counted from its row0. Tiles of 16 rows belong to one head: units whose heads' rows are
 * not a multiple of 16 are not interleaved. */
static void part_rows(const HeadsJob *j, unsigned i, size_t lo, size_t hi, int worker) {
    const QsfForward *f = j->f;
    const size_t row0 = j->v.part[i].row0, rows = j->p->rows;
    while (lo < hi) {
        const size_t h = (row0 + lo) / rows, border = (h + 1) * rows - row0, to = border < hi ? border : hi;
        const qk_mm mm = product(j, i, h);
        qsf_multiply_stoppable(f, j->ops, &mm, j->v.interleaved[i], lo, to, worker);
        lo = to;
    }
}

static void run_rows(void *arg, int worker, size_t begin, size_t end) {
    const HeadsJob *j = arg;
    if (j->v.n_parts == 0) return;
    const size_t rows = j->v.part[0].row1 - j->v.part[0].row0;
    part_rows(j, 0, begin, end < rows ? end : rows, worker);
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
        qsf_pool_run(f->pool, run_rows, &j, j.v.item1 - item, qsf_row_grain(f->n_cols));
        qsf_span_end(f, &span, &f->n.matmul_ns[j.u->matmul_class]);
        qsf_weights_release(f->weights, &j.v);
    }
    return QSF_OK;
}
