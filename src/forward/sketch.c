/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the sketch of a head. What its rows share, about their mean, is kept apart: it says nothing about
 * which logit is the largest. Of what a row has beyond that, the sketch has the sign of each weight and the
 * mean size of 128 of them, which is the best that one bit can say (Rastegari et al. 2016, XNOR-Net). */
#include "src/forward/sketch.h"

#include <math.h>
#include <string.h>

#include "src/base/half.h"
#include "src/file/rows.h"
#include "src/forward/forward_impl.h"
#include "src/stream/interleave.h"

#define MEAN_GROUPS 256u

static bool wanted(const QsfForward *f, const QsfPlan *p) {
    return p != NULL && p->sketch_bytes > 0 && !f->exact;
}

void qsf_sketch_close(QsfForward *f, const QsfPlan *p) {
    QsfSketch *k = &f->sketch;
    if (k->mem == NULL || (wanted(f, p) && p->sketch_bytes == k->shape.total)) return;
    qsf_mem_unmap(f->ledger, QSF_MEM_PINNED, k->mem, k->shape.total);
    *k = (QsfSketch){ .on = k->on };
}

int qsf_sketch_open(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    QsfSketch *k = &f->sketch;
    void *mem;
    if (!wanted(f, p) || k->mem != NULL || !qsf_sketch_shape(f->model, p->threads, &k->shape)) return QSF_OK;
    int rc = qsf_mem_map(f->ledger, QSF_MEM_PINNED, k->shape.total, "sketch of the head", &mem, err);
    if (rc != QSF_OK) return rc;
    k->mem = mem;
    k->types = qsf_interleaved_types(f->table);
    k->grouped = (k->types >> QSF_SKETCH_TYPE & 1) != 0;
    return QSF_OK;
}

float *qsf_sketch_mean(const QsfForward *f) {
    return (float *)(void *)(f->sketch.mem + f->sketch.shape.mean);
}

QsfWeights *qsf_sketch_weights(const QsfForward *f, uint32_t *unit) {
    *unit = f->sketch.shape.unit;
    if (!f->model->prog.unit[*unit].borrowed) return f->weights;
    *unit = qsf_weights_n_units(f->lender->weights) - 1;
    return f->lender->weights;
}

bool qsf_sketch_walks_head(const QsfForward *f) {
    uint32_t unit;
    if (!qsf_sketch_runs(&f->sketch)) return true;
    const QsfWeights *w = qsf_sketch_weights(f, &unit);
    return qsf_weights_pinned(w, unit);
}

/* ---- rows ---- */

/* Groups [first, first + n) of the head, in RAM (data NULL) or as they were read. */
typedef struct Fill {
    QsfForward *f;
    const QsfWeights *w; /* with the head, */
    const QsfUnit *u;    /* which is this unit */
    const uint8_t *data;
    uint32_t first;
} Fill;

/* LANES sums side by side, for the compiler's vectors; the order is the same everywhere. */
static float mean_size(const float *x) {
    enum { LANES = 16 };
    float sum[LANES] = { 0 };
    for (uint32_t i = 0; i < QK_Q1_BLOCK; i += LANES)
        for (uint32_t l = 0; l < LANES; l++) sum[l] += fabsf(x[i + l]);
    for (uint32_t n = LANES / 2; n > 0; n /= 2)
        for (uint32_t l = 0; l < n; l++) sum[l] += sum[l + n];
    return sum[0] / QK_Q1_BLOCK;
}

static void sketch_row(uint8_t *dst, const float *x, uint32_t n) {
    for (uint32_t at = 0; at < n; at += QK_Q1_BLOCK, dst += sizeof(qk_q1_0)) {
        uint8_t *bits = dst + offsetof(qk_q1_0, qs);
        qsf_half_put(dst, qsf_half_bits((double)mean_size(x + at)));
        for (uint32_t i = 0; i < QK_Q1_BLOCK / 8; i++) {
            unsigned byte = 0;
            for (uint32_t k = 0; k < 8; k++) byte |= (unsigned)(x[at + 8 * i + k] >= 0) << k;
            bits[i] = (uint8_t)byte;
        }
    }
}

/* Returns row `row` of the head, in place or in buf. */
static const uint8_t *head_row(const Fill *j, uint32_t row, uint8_t *buf) {
    const QsfForward *f = j->f;
    const uint32_t in_group = row % QSF_ROW_QUANTUM;
    const uint64_t bytes = j->u->row_bytes[0];
    if (j->data == NULL) return qsf_weights_pinned_row(j->w, j->u->index, 0, row, buf);
    const uint8_t *group = j->data + (row / QSF_ROW_QUANTUM - j->first) * QSF_ROW_QUANTUM * bytes;
    if (!j->u->x16[0]) return group + in_group * bytes;
    f->table->weight[j->u->type[0]].unpack_row(buf, group, in_group, j->u->k);
    return buf;
}

/* The row as floats. */
static float *row_floats(const Fill *j, uint32_t row, int worker) {
    const QsfForward *f = j->f;
    const QsfSketchShape *s = &f->sketch.shape;
    const qk_weight_ops *ops = &f->table->weight[j->u->type[0]];
    float *x = (float *)(void *)(f->sketch.mem + s->scratch + (size_t)worker * s->scratch_stride);
    ops->dequant(head_row(j, row, (uint8_t *)(x + qsf_pad16(s->k))), x, s->k);
    if (ops->scaled) f->table->scale(x, j->u->tensor[0]->scale, s->k);
    return x;
}

static void fill_groups(void *arg, int worker, size_t begin, size_t end) {
    const Fill *j = arg;
    const QsfForward *f = j->f;
    const QsfSketchShape *s = &f->sketch.shape;
    const qk_weight_ops *ops = &f->table->weight[QSF_SKETCH_TYPE];
    const float *mean = qsf_sketch_mean(f);
    const size_t bytes = QSF_ROW_QUANTUM * s->row_bytes;
    uint8_t *rows = f->sketch.mem + s->scratch + (size_t)worker * s->scratch_stride + s->scratch_rows;
    for (size_t g = begin; g < end; g++) {
        uint8_t *to = f->sketch.mem + (j->first + g) * bytes;
        memset(rows, 0, bytes);
        for (uint32_t r = 0; r < QSF_ROW_QUANTUM; r++) {
            const uint32_t at = (j->first + (uint32_t)g) * QSF_ROW_QUANTUM + r;
            if (at >= s->rows) break;
            float *x = row_floats(j, at, worker);
            for (uint32_t i = 0; i < s->k; i++) x[i] -= mean[i];
            sketch_row(rows + r * s->row_bytes, x, s->k);
        }
        if (f->sketch.grouped)
            ops->pack(to, rows, s->row_bytes, s->k);
        else
            memcpy(to, rows, bytes);
    }
}

/* ---- reading ---- */

/* The mean of the rows of about MEAN_GROUPS groups, which lie all over the head. */
static int fill_mean(Fill *j, bool resident, QsfErr *err) {
    QsfForward *f = j->f;
    const QsfSketchShape *s = &f->sketch.shape;
    const uint32_t step = s->groups > MEAN_GROUPS ? s->groups / MEAN_GROUPS : 1;
    float *mean = qsf_sketch_mean(f);
    uint32_t n = 0;
    memset(mean, 0, s->k * sizeof *mean);
    for (j->first = 0; j->first < s->groups; j->first += step) {
        int rc = resident ? QSF_OK : qsf_sketch_read(f, j->first, 1, 0, err);
        if (rc != QSF_OK) return rc;
        for (uint32_t r = j->first * QSF_ROW_QUANTUM; r < (j->first + 1) * QSF_ROW_QUANTUM && r < s->rows;
             r++) {
            f->table->add(mean, row_floats(j, r, 0), s->k);
            n++;
        }
    }
    f->table->scale(mean, 1 / (float)n, s->k);
    return QSF_OK;
}

int qsf_sketch_fill(QsfForward *f, QsfErr *err) {
    QsfSketch *k = &f->sketch;
    const QsfSketchShape *s = &k->shape;
    uint32_t unit;
    if (k->filled) return QSF_OK;
    QsfWeights *w = qsf_sketch_weights(f, &unit);
    Fill j = { .f = f, .w = w, .u = qsf_weights_unit(w, unit) };
    /* Rows are pinned in order. */
    const bool resident = qsf_weights_has_row(w, unit, 0, s->rows - 1);
    j.data = resident ? NULL : k->mem + s->stage;
    int rc = fill_mean(&j, resident, err);
    if (rc != QSF_OK) return rc;
    j.first = 0;
    for (uint32_t n; j.first < s->groups; j.first += n) {
        n = s->groups - j.first < s->stage_groups ? s->groups - j.first : (uint32_t)s->stage_groups;
        if (qsf_cancelled(f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        rc = resident ? QSF_OK : qsf_sketch_read(f, j.first, n, 0, err);
        if (rc != QSF_OK) return rc;
        qsf_pool_run(f->pool, fill_groups, &j, n, 1);
    }
    k->filled = true;
    return QSF_OK;
}

int qsf_sketch_read(QsfForward *f, uint32_t first, uint32_t n, uint32_t slot, QsfErr *err) {
    const QsfSketchShape *s = &f->sketch.shape;
    uint32_t unit;
    const QsfWeights *w = qsf_sketch_weights(f, &unit);
    const QsfUnit *u = qsf_weights_unit(w, unit);
    const QsfTensor *t = u->tensor[0];
    uint8_t *stage = f->sketch.mem + s->stage + slot * s->head_group;
    const uint64_t at = first * s->head_group, left = t->bytes - at, all = n * s->head_group;
    const uint64_t t0 = qsf_now_ns(), bytes = all < left ? all : left;
    int rc = qsf_source_read_bytes(f->model->src, t, at, stage, (size_t)bytes, err);
    if (rc != QSF_OK) return rc;
    qsf_interleave_by_use(u, 0, &f->table->weight[u->type[0]], stage, n);
    qsf_count(&f->n.io.bytes_read, bytes);
    qsf_count(&f->n.io.read_ns, qsf_now_ns() - t0);
    return QSF_OK;
}
