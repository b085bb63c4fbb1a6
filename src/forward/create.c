/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Creates, replans and destroys a forward pass: the only place where it allocates. */
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/ledger.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "src/forward/ops/ops.h"
#include "src/plan/kv_lend.h"
#include "src/stream/interleave.h"

#define SETTLE_BYTES (16u << 20) /* read between two looks at whether to stop */

/* ---- small tensors ---- */

/* Small tensors: norms, biases and the like, always in RAM as floats. */

#define PIECE_ELEMS 256u /* a multiple of every block length */

/* Elements [i, i + n) of a parameter, at most a piece. */
static void put(QsfForward *f, const QsfParam *q, uint64_t i, const uint8_t *raw, size_t n) {
    const uint64_t rows = q->tile_rows, tile = QSF_STATE_TILE;
    float x[PIECE_ELEMS], *to = f->params.mem + q->at;
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

/* create.c: gives the scratch memory the sizes of l; its contents are lost. On failure (QSF_E_BUDGET,
 * QSF_E_RUNTIME) everything is as before. */
static void buffers_layout(const QsfForward *f, const QsfPlan *p, QsfLayout *l) {
    qsf_layout_make(l, f->model, &f->shape, p->batch, p->draft_cols, p->ctx, p->kv, qsf_pool_threads(f->pool),
                    p->exact);
}

/* create.c: gives the scratch memory the sizes of l; its contents are lost. On failure (QSF_E_BUDGET,
 * QSF_E_RUNTIME) everything is as before. */
static int buffers_set(QsfForward *f, const QsfLayout *l, QsfErr *err) {
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
    buffers_layout(f, p, &l);
    int rc = buffers_set(f, &l, err);
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
    if (rc == QSF_OK) rc = qsf_adapters_load(f, p, err);
    if (rc == QSF_OK) rc = qsf_pinned_open(f, p, err);
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
    f->lender = o->lender;
    f->cancel = o->cancel;
    f->block = QSF_NONE;
    f->stale_from = f->invoked_from = UINT32_MAX;
    f->exact = o->plan->exact;
    f->wanted_ctx = o->plan->wanted_ctx;
    f->expert_hits = o->plan->expert_hits;
    f->kv_step = o->plan->kv_step;
    qsf_threads_open(f, o->plan);
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
    qsf_mem_unmap(f->ledger, QSF_MEM_PINNED, f->params.mem, f->params.bytes);
    qsf_kvcache_free(&f->kv);
    qsf_recurrent_free(&f->recurrent);
    qsf_embed_close(f, NULL);
    qsf_sketch_close(f, NULL);
    qsf_adapters_free(f, NULL);
    qsf_pinned_close(f);
    qsf_counters_close(f);
    qsf_reduction_close(f);
    qsf_mem_unmap(f->ledger, QSF_MEM_LOGITS, f->logits, f->logits_bytes);
    qsf_mem_unmap(f->ledger, QSF_MEM_ACTIVATIONS, f->mem, f->l.total);
    qsf_threads_close(f);
    free(f);
}

void qsf_forward_trace_experts(QsfForward *f, QsfRoutes *r) { f->routes = r; }

int qsf_forward_fill_experts(QsfForward *f, uint64_t max_bytes, bool *more, QsfErr *err) {
    *more = false;
    if (f->broken) return QSF_OK;
    return qsf_weights_fill_experts(f->weights, max_bytes, more, err);
}

uint32_t qsf_forward_take_uses(QsfForward *f, uint32_t *uses, uint32_t n) {
    return qsf_weights_take_uses(f->weights, uses, n);
}

void qsf_forward_learned(QsfForward *f, const uint16_t *uses, uint32_t n, double positions,
                         const uint32_t *depth) {
    qsf_weights_learned(f->weights, uses, n, positions, depth);
}

int qsf_forward_settle(QsfForward *f, void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                       QsfErr *err) {
    int rc = qsf_forward_usable(f, err);
    if (rc == QSF_OK) rc = qsf_weights_settle(f->weights, progress, arg, err);
    for (bool more = true; rc == QSF_OK && more;) {
        rc = qsf_forward_fill_experts(f, SETTLE_BYTES, &more, err);
        if (rc == QSF_OK && qsf_cancelled(f)) rc = qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
    }
    if (rc == QSF_OK) rc = qsf_embed_fill(f, UINT64_MAX, err);
    return rc == QSF_OK && f->sketch.mem != NULL ? qsf_sketch_fill(f, err) : rc;
}

bool qsf_forward_stale(const QsfForward *f) {
    return atomic_load(&f->stale) || qsf_weights_stale(f->weights);
}

void qsf_forward_io(QsfForward *f, char *name, size_t name_cap, char *notice, size_t notice_cap) {
    qsf_weights_io(f->weights, name, name_cap, notice, notice_cap);
}

/* --- changes the plan during a conversation: first everything that the new plan does not use is freed,
 * then the rest is mapped. Positions and logits stay --- */

static int check(const QsfForward *f, const QsfPlan *p, QsfErr *err) {
    if (qk_kv_tiles(p->ctx) * QK_KV_TILE < qsf_kvcache_used(&f->kv) ||
        (!f->kv.lists.on && p->ctx < f->kv.n_past) || p->ctx == 0) {
        return qsf_err_set(err, QSF_E_CONTEXT, "cannot shrink the context to %u tokens: %u are in use",
                           (unsigned)p->ctx, (unsigned)qsf_kvcache_used(&f->kv));
    }
    if (p->exact != f->exact || p->batch == 0 || p->n_units != qsf_weights_n_units(f->weights)) {
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: the plan is for a different model");
    }
    return QSF_OK;
}

/* The positions in the cache, in whole steps. */
static uint32_t reserved(const QsfForward *f, const QsfPlan *p) {
    return qsf_lend_positions(f->kv.n_past, p->kv_step, p->ctx);
}

/* The memory of recent positions is returned while the types of the cache change; what it
 * holds is carried beside it. */
static int carry_recent(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    const QsfProgram *prog = &f->model->prog;
    const uint64_t states = 4 * prog->state_floats, now = f->recurrent.copy - states,
                   later = qsf_state_bytes(prog, p->kv) - states;
    if (qsf_kv_types_equal(p->kv, f->kv.types) || (now == 0 && later == 0)) return QSF_OK;
    if (now > 0 && f->kv.n_past > 0) {
        f->kv.carried = malloc(now);
        if (f->kv.carried == NULL) return qsf_err_memory(err, "converting the KV cache");
        memcpy(f->kv.carried, qsf_recurrent_old_recent(&f->recurrent), now);
    }
    const QsfKvTypes none = { QK_KV_F32, QK_KV_F32 };
    return qsf_recurrent_set_types(&f->recurrent, none, 0, err);
}

/* Gives states room for recent positions of the new types, and what was carried. */
static int place_recent(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    const uint64_t bytes = qsf_state_bytes(&f->model->prog, p->kv);
    if (f->recurrent.copy == bytes) return qsf_recurrent_resize(&f->recurrent, p->checkpoints, err);
    int rc = qsf_recurrent_set_types(&f->recurrent, p->kv, p->checkpoints, err);
    if (rc == QSF_OK && f->kv.carried != NULL)
        memcpy(qsf_recurrent_old_recent(&f->recurrent), f->kv.carried,
               bytes - 4 * f->model->prog.state_floats);
    free(f->kv.carried);
    f->kv.carried = NULL;
    return rc;
}

static int shrink(QsfForward *f, const QsfPlan *p, const QsfLayout *l, QsfErr *err) {
    qsf_weights_park(f->weights, p, qsf_reserve_lent(f, p->ctx, p->kv, reserved(f, p)));
    qsf_embed_close(f, p);
    qsf_sketch_close(f, p);
    qsf_adapters_free(f, p);
    qsf_pinned_close(f);
    qsf_mem_discard(f->mem, f->l.total); /* scratch: pages of a larger layout need not stay resident */
    int rc = l->total < f->l.total ? buffers_set(f, l, err) : QSF_OK;
    if (rc == QSF_OK) rc = carry_recent(f, p, err);
    if (rc == QSF_OK && p->checkpoints < f->recurrent.n_slots)
        rc = qsf_recurrent_resize(&f->recurrent, p->checkpoints, err);
    if (rc == QSF_OK && reserved(f, p) < f->kv.reserved)
        rc = qsf_kvcache_reserve(&f->kv, reserved(f, p), err);
    if (rc == QSF_OK) {
        const uint32_t ctx = p->ctx < f->kv.ctx ? p->ctx : f->kv.ctx;
        rc = qsf_kvcache_resize(&f->kv, ctx, qsf_kv_types_less(p->kv, f->kv.types), err);
    }
    return rc;
}

static int grow(QsfForward *f, const QsfPlan *p, const QsfLayout *l, QsfErr *err) {
    int rc = buffers_set(f, l, err);
    if (rc == QSF_OK && (p->ctx > f->kv.ctx || !qsf_kv_types_equal(p->kv, f->kv.types)))
        rc = qsf_kvcache_resize(&f->kv, p->ctx, p->kv, err);
    if (rc == QSF_OK) rc = qsf_kvcache_reserve(&f->kv, reserved(f, p), err);
    if (rc == QSF_OK) rc = place_recent(f, p, err);
    if (rc == QSF_OK) rc = qsf_forward_evict(f, &f->evict, err); /* the number of threads */
    if (rc == QSF_OK) rc = qsf_embed_open(f, p, err);
    if (rc == QSF_OK) rc = qsf_sketch_open(f, p, err);
    if (rc == QSF_OK) rc = qsf_adapters_load(f, p, err);
    if (rc == QSF_OK) rc = qsf_pinned_open(f, p, err);
    const uint64_t lent = qsf_reserve_lent(f, p->ctx, p->kv, reserved(f, p));
    if (rc == QSF_OK) rc = qsf_weights_resume(f->weights, p, lent, err);
    atomic_store_explicit(&f->n.lent, lent, memory_order_relaxed);
    return rc;
}

int qsf_forward_replan(QsfForward *f, const QsfPlan *p, QsfPool *pool, QsfErr *err) {
    QsfLayout l;
    QsfErr why = { 0 };
    int rc = check(f, p, err);
    if (rc != QSF_OK) return rc;
    f->pool = pool;
    f->wanted_ctx = p->wanted_ctx;
    f->expert_hits = p->expert_hits;
    f->kv_step = p->kv_step;
    buffers_layout(f, p, &l);
    rc = shrink(f, p, &l, &why);
    if (rc == QSF_OK) rc = grow(f, p, &l, &why);
    f->broken = rc != QSF_OK;
    f->broken_why = why;
    if (rc != QSF_OK) return qsf_err_pass(err, &why);
    qsf_threads_plan(f, p);
    qsf_counters_pins(f);
    qsf_evicting_note(f);
    return QSF_OK;
}
