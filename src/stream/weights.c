/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The unit table, the pinned weights, and the door to the loader. */
#include "src/stream/weights.h"

#include <stdlib.h>
#include <string.h>

#include "src/stream/layout.h"
#include "src/stream/reader.h"

struct QsfWeights {
    const QsfModel *model;
    QsfLedger *ledger;
    QsfWeightUnit *units;   /* (n_units), META */
    uint64_t units_bytes;
    uint32_t n_units;
    QsfLoader *loader;      /* NULL when nothing streams */
};

/* What is passed on while pinned weights are read. */
typedef struct PinRun {
    const QsfWeightsOptions *o;
    uint64_t done;
} PinRun;

static bool pin_stop(void *arg) {
    const PinRun *r = arg;
    return r->o->cancel != NULL && atomic_load_explicit(r->o->cancel, memory_order_relaxed) != 0;
}

static void pin_did(void *arg, uint64_t bytes, uint64_t ns) {
    PinRun *r = arg;
    atomic_fetch_add_explicit(&r->o->counters->bytes_read, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->o->counters->read_ns, ns, memory_order_relaxed);
    r->done += bytes;
    if (r->o->progress != NULL) r->o->progress(r->o->progress_arg, r->done, r->o->plan->pinned_bytes);
}

static int pin_unit(QsfWeights *w, QsfWeightUnit *u, PinRun *run, QsfErr *err) {
    QsfChunk c;
    void *p;
    if (u->pinned_items == 0) return QSF_OK;
    qsf_chunk_make(&u->u, 0, u->pinned_items, &c);
    int rc = qsf_mem_map(w->ledger, QSF_MEM_PINNED, qsf_pages(c.bytes), "pinned weights", &p, err);
    if (rc != QSF_OK) return rc;
    u->pinned = p;
    u->pinned_bytes = qsf_pages(c.bytes);
    const QsfReadHooks hooks = {pin_stop, pin_did, run};
    return qsf_read_chunk(w->model->src, &u->u, &c, u->pinned, &hooks, err);
}

static int make_units(QsfWeights *w, const QsfPlan *p, QsfErr *err) {
    void *mem;
    w->n_units = p->n_units;
    w->units_bytes = qsf_pages(w->n_units * sizeof *w->units);
    int rc = qsf_mem_map(w->ledger, QSF_MEM_META, w->units_bytes, "weight units", &mem, err);
    if (rc != QSF_OK) return rc;
    w->units = mem;
    for (uint32_t i = 0; i < w->n_units; i++) {
        QsfWeightUnit *u = &w->units[i];
        qsf_unit_at(w->model, i, &u->u);
        u->pinned_items = p->pinned[i] ? u->u.items : 0;
        u->chunk_items = QSF_ROW_QUANTUM;
        if (u->pinned_items == u->u.items) continue;
        u->chunk_items = qsf_unit_chunk_items(&u->u, u->u.items - u->pinned_items, p->slot_bytes);
        if (p->n_slots == 0 || u->chunk_items == 0) {
            return qsf_err_set(err, QSF_E_RUNTIME, "the plan has no slot that holds rows of %s",
                               u->u.tensor[0]->name);
        }
    }
    return QSF_OK;
}

static int start_loader(QsfWeights *w, const QsfWeightsOptions *o, QsfErr *err) {
    bool streams = false;
    for (uint32_t i = 0; i < w->n_units; i++) streams |= !qsf_weights_pinned(w, i);
    if (!streams) return QSF_OK;
    const QsfLoaderOptions lo = {.src = w->model->src, .units = w->units, .n_units = w->n_units,
                                 .n_slots = o->plan->n_slots, .slot_bytes = o->plan->slot_bytes,
                                 .ledger = w->ledger, .cancel = o->cancel, .counters = o->counters};
    return qsf_loader_create(&w->loader, &lo, err);
}

int qsf_weights_create(QsfWeights **out, const QsfWeightsOptions *o, QsfErr *err) {
    *out = NULL;
    QsfWeights *w = calloc(1, sizeof *w);
    if (w == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: weights");
    w->model = o->model;
    w->ledger = o->ledger;
    PinRun run = {.o = o};
    int rc = make_units(w, o->plan, err);
    for (uint32_t i = 0; rc == QSF_OK && i < w->n_units; i++) rc = pin_unit(w, &w->units[i], &run, err);
    if (rc == QSF_OK) rc = qsf_source_check_unchanged(w->model->src, err);
    if (rc == QSF_OK) rc = start_loader(w, o, err);
    if (rc != QSF_OK) {
        qsf_weights_destroy(w);
        return rc;
    }
    *out = w;
    return QSF_OK;
}

void qsf_weights_destroy(QsfWeights *w) {
    if (w == NULL) return;
    qsf_loader_destroy(w->loader);
    for (uint32_t i = 0; w->units != NULL && i < w->n_units; i++) {
        qsf_mem_unmap(w->ledger, QSF_MEM_PINNED, w->units[i].pinned, w->units[i].pinned_bytes);
    }
    qsf_mem_unmap(w->ledger, QSF_MEM_META, w->units, w->units_bytes);
    free(w);
}

uint32_t qsf_weights_n_units(const QsfWeights *w) { return w->n_units; }

const QsfUnit *qsf_weights_unit(const QsfWeights *w, uint32_t i) { return &w->units[i].u; }

bool qsf_weights_pinned(const QsfWeights *w, uint32_t i) {
    return w->units[i].pinned_items == w->units[i].u.items;
}

const uint8_t *qsf_weights_pinned_data(const QsfWeights *w, uint32_t i, uint32_t *n_items) {
    *n_items = w->units[i].pinned_items;
    return w->units[i].pinned;
}

int qsf_weights_begin_pass(QsfWeights *w, bool head, QsfErr *err) {
    if (w->loader == NULL) return QSF_OK;
    int rc = qsf_source_check_unchanged(w->model->src, err);
    if (rc == QSF_OK) qsf_loader_begin_pass(w->loader, head);
    return rc;
}

int qsf_weights_acquire(QsfWeights *w, uint32_t unit, uint32_t item, QsfChunk *c, const uint8_t **data,
                        QsfErr *err) {
    const QsfWeightUnit *u = &w->units[unit];
    if (item < u->pinned_items) {
        qsf_chunk_make(&u->u, 0, u->pinned_items, c);
        *data = u->pinned;
        return QSF_OK;
    }
    return qsf_loader_acquire(w->loader, unit, item, c, data, err);
}

void qsf_weights_release(QsfWeights *w, const QsfChunk *c) {
    if (c->item0 >= w->units[c->unit].pinned_items) qsf_loader_release(w->loader);
}

void qsf_weights_end_pass(QsfWeights *w, bool ok) {
    if (w->loader == NULL) return;
    if (ok) qsf_loader_end_pass(w->loader);
    else qsf_loader_abort(w->loader);
}
