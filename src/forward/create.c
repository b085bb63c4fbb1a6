/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Creates and destroys a forward pass: apart from replans, the only place where it allocates. */
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "src/forward/ops/ops.h"
#include "src/plan/kv_lend.h"
#include "src/stream/interleave.h"

/* ---- small tensors ---- */

/* Small tensors: norms, biases and the like, always in RAM as floats. */

#define PIECE_ELEMS 256u /* a multiple of every block length */

static float *param_of(QsfForward *f, const QsfParam *p) { return f->params.mem + p->at; }

/* Elements [i, i + n) of a parameter, at most a piece. */
static void put(QsfForward *f, const QsfParam *q, uint64_t i, const uint8_t *raw, size_t n) {
    const uint64_t rows = q->tile_rows, tile = QSF_STATE_TILE;
    float x[PIECE_ELEMS], *to = param_of(f, q);
    f->table->weight[qk_type_of(q->tensor->dtype)].dequant(raw, x, n);
    if (rows == 0) memcpy(to + i, x, n * sizeof *x);
    for (uint64_t k = 0; rows > 0 && k < n; k++) {
        const uint64_t col = (i + k) / rows, row = (i + k) % rows;
        to[(col / tile * rows + row) * tile + col % tile] = x[k];
    }
}

/* Returns the bytes of n elements. */
static size_t piece_bytes(const QsfParam *q, uint64_t n) {
    const QsfDtype *d = qsf_dtype(q->tensor->dtype);
    return (size_t)(n / d->block_elems * d->block_bytes);
}

static int read_param(QsfForward *f, const QsfParam *q, QsfErr *err) {
    uint8_t raw[PIECE_ELEMS * sizeof(float)];
    for (uint64_t i = 0, m; i < q->n; i += m) {
        m = q->n - i < PIECE_ELEMS ? q->n - i : PIECE_ELEMS;
        int rc = qsf_source_read_bytes(f->model->src, q->tensor, piece_bytes(q, i), raw, piece_bytes(q, m),
                                       err);
        if (rc != QSF_OK) return rc;
        put(f, q, i, raw, (size_t)m);
    }
    return QSF_OK;
}

/* Parameters in compressed layers are read when the layer is loaded (params_of_layer). */
static int params_load(QsfForward *f, QsfErr *err) {
    const QsfProgram *prog = &f->model->prog;
    QsfParams *p = &f->params;
    void *mem;
    p->bytes = qsf_pages(4 * f->shape.param_floats);
    int rc = qsf_mem_map(f->ledger, QSF_MEM_PINNED, p->bytes, "norm weights", &mem, err);
    p->mem = mem;
    for (uint32_t i = 0; rc == QSF_OK && i < prog->n_params; i++) {
        const QsfParam *q = &prog->param[i];
        const bool later = q->tensor->compressed != NULL && q->block < prog->n_blocks;
        if (!later) rc = read_param(f, q, err);
    }
    if (rc != QSF_OK || prog->ones == 0) return rc;
    float *ones = p->mem + prog->param_floats;
    for (uint32_t i = 0; i < prog->ones; i++) ones[i] = 1.0f;
    f->ones = ones;
    return QSF_OK;
}

static void params_of_layer(void *arg, uint32_t layer, const uint8_t *whole) {
    QsfForward *f = arg;
    const QsfProgram *prog = &f->model->prog;
    for (uint32_t i = 0; i < prog->n_params; i++) {
        const QsfParam *q = &prog->param[i];
        if (q->block != layer) continue;
        const uint8_t *raw = whole + q->tensor->offset;
        for (uint64_t at = 0, m; at < q->n; at += m) {
            m = q->n - at < PIECE_ELEMS ? q->n - at : PIECE_ELEMS;
            put(f, q, at, raw + piece_bytes(q, at), (size_t)m);
        }
    }
}

static void params_free(QsfForward *f) {
    qsf_mem_unmap(f->ledger, QSF_MEM_PINNED, f->params.mem, f->params.bytes);
}

/* ---- scratch memory ---- */

/* The scratch buffers of a pass, all in one mapping. */

static void place_buffers(QsfForward *f) {
    const QsfLayout *l = &f->l;
    f->cols = (float *)(void *)(f->mem + l->cols);
    f->spare = (float *)(void *)(f->mem + l->spare);
    for (unsigned a = 0; a < QK_ACT_N; a++) f->act[a] = f->mem + l->act[a];
    f->cs = (float *)(void *)(f->mem + l->cs);
    f->parts = (float *)(void *)(f->mem + l->parts);
    f->exact_row = (float *)(void *)(f->mem + l->exact);
    f->chosen = (uint32_t *)(void *)(f->mem + l->chosen);
    f->row = f->mem + l->row;
}

void qsf_buffers_layout(const QsfForward *f, const QsfPlan *p, QsfLayout *l) {
    qsf_layout_make(l, f->model, &f->shape, p->batch, p->ctx, p->kv, qsf_pool_threads(f->pool), p->exact);
}

int qsf_buffers_set(QsfForward *f, const QsfLayout *l, QsfErr *err) {
    void *mem = f->mem;
    int rc = qsf_mem_resize(f->ledger, QSF_MEM_ACTIVATIONS, f->l.total, l->total, "activations", &mem, err);
    if (rc != QSF_OK) return rc;
    f->mem = mem;
    f->l = *l;
    place_buffers(f);
    return QSF_OK;
}

/* ---- creating and destroying ---- */

static int map_buffers(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    QsfLayout l;
    void *mem;
    qsf_shape_make(&f->shape, f->model, f->table);
    qsf_buffers_layout(f, p, &l);
    int rc = qsf_buffers_set(f, &l, err);
    if (rc != QSF_OK) return rc;
    f->logits_bytes = qsf_pages(sizeof(float) * (uint64_t)qsf_pad16(f->model->hp.n_vocab));
    rc = qsf_mem_map(f->ledger, QSF_MEM_LOGITS, f->logits_bytes, "logits", &mem, err);
    f->logits = mem;
    return rc;
}

static int load(QsfForward *f, const QsfForwardOptions *o, QsfErr *err) {
    const QsfPlan *p = o->plan;
    int rc = map_buffers(f, p, err);
    if (rc == QSF_OK)
        rc = qsf_kvcache_init(&f->kv, f->model->prog.kv, f->model->prog.n_kv, f->table, p->kv, p->ctx,
                              f->ledger, err);
    const uint32_t start = qsf_lend_positions(0, p->kv_step, p->ctx);
    if (rc == QSF_OK) rc = qsf_kvcache_reserve(&f->kv, start, err);
    if (rc == QSF_OK)
        rc = qsf_recurrent_init(&f->recurrent, &f->model->prog, p->kv, p->checkpoints, f->ledger, err);
    if (rc == QSF_OK) rc = qsf_counters_open(f, err);
    if (rc == QSF_OK) rc = qsf_reduction_open(f, err);
    if (rc == QSF_OK) rc = params_load(f, err);
    if (rc == QSF_OK) rc = qsf_embed_open(f, p, err);
    if (rc == QSF_OK) rc = qsf_sketch_open(f, p, err);
    if (rc == QSF_OK && qsf_cancelled(f)) rc = qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
    if (rc != QSF_OK) return rc;
    const QsfWeightsOptions wo = {
        .model = o->model,
        .plan = p,
        .table = f->table,
        .interleaved_types = f->exact ? 0 : qsf_interleaved_types(f->table), /* --exact uses plain rows */
        .lent = qsf_reserve_lent(f, p->ctx, p->kv, start),
        .ledger = o->ledger,
        .cancel = o->cancel,
        .counters = &f->n.io,
        .on_layer = params_of_layer,
        .on_layer_arg = f,
    };
    rc = qsf_weights_create(&f->weights, &wo, err);
    if (rc != QSF_OK) return rc;
    atomic_store_explicit(&f->n.lent, wo.lent, memory_order_relaxed);
    qsf_counters_pins(f);
    return QSF_OK;
}

int qsf_forward_create(QsfForward **out, const QsfForwardOptions *o, QsfErr *err) {
    *out = NULL;
    if (o->model->vocab_only || o->plan->ctx == 0 || o->plan->batch == 0) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: the model has no weights", qsf_source_path(o->model->src));
    }
    QsfForward *f = calloc(1, sizeof *f);
    if (f == NULL) return qsf_err_memory(err, "forward pass");
    f->model = o->model;
    f->table = o->table;
    f->pool = o->pool;
    f->ledger = o->ledger;
    f->cancel = o->cancel;
    f->block = QSF_NONE;
    f->exact = o->plan->exact;
    f->wanted_ctx = o->plan->wanted_ctx;
    f->kv_step = o->plan->kv_step;
    int rc = load(f, o, err);
    if (rc != QSF_OK) {
        qsf_forward_destroy(f);
        return rc;
    }
    *out = f;
    return QSF_OK;
}

void qsf_forward_destroy(QsfForward *f) {
    if (f == NULL) return;
    qsf_weights_destroy(f->weights); /* first, because its loader writes the counters */
    params_free(f);
    qsf_kvcache_free(&f->kv);
    qsf_recurrent_free(&f->recurrent);
    qsf_embed_close(f, NULL);
    qsf_sketch_close(f, NULL);
    qsf_counters_close(f);
    qsf_reduction_close(f);
    qsf_mem_unmap(f->ledger, QSF_MEM_LOGITS, f->logits, f->logits_bytes);
    qsf_mem_unmap(f->ledger, QSF_MEM_ACTIVATIONS, f->mem, f->l.total);
    free(f);
}

int qsf_forward_settle(QsfForward *f, void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                       QsfErr *err) {
    int rc = qsf_forward_usable(f, err);
    if (rc == QSF_OK) rc = qsf_weights_settle(f->weights, progress, arg, err);
    if (rc == QSF_OK) rc = qsf_embed_fill(f, UINT64_MAX, err);
    return rc == QSF_OK && f->sketch.mem != NULL ? qsf_sketch_fill(f, err) : rc;
}

bool qsf_forward_stale(const QsfForward *f) {
    return atomic_load(&f->stale) || qsf_weights_stale(f->weights);
}

void qsf_forward_io(QsfForward *f, char *name, size_t name_cap, char *notice, size_t notice_cap) {
    qsf_weights_io(f->weights, name, name_cap, notice, notice_cap);
}
