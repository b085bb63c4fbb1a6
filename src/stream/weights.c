/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The unit table, and access to pinned rows and the loader. */
#include "src/stream/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/source.h"
#include "src/plan/layout.h"
#include "src/stream/interleave.h"
#include "src/stream/weights_impl.h"

#define PACK_NAME "groups of experts"

/* ---- the plan, unit by unit ---- */

static uint32_t piece_items(const QsfUnit *u) {
    if (u->items == 0) return 0;
    uint64_t per_quantum = u->bytes / u->items * QSF_ROW_QUANTUM,
             n = per_quantum > 0 ? QSF_PIN_PIECE / per_quantum : 1;
    if (n < 1) n = 1;
    return n * QSF_ROW_QUANTUM < u->items ? (uint32_t)n * QSF_ROW_QUANTUM : u->items;
}

/* What streams with a full context may stream later, whatever is pinned in lent memory now. */
static int plan_unit(QsfWeights *w, QsfWeightUnit *u, const QsfPlan *p, QsfErr *err) {
    u->piece_items = piece_items(&u->u);
    qsf_weights_set_chunks(w, u);
    if (p->pinned_items[u->u.index] >= u->u.items) return QSF_OK;
    if (u->u.on_demand)
        w->demands = true;
    else
        w->streams = true;
    if (u->u.on_demand && p->expert_slots > 0) return QSF_OK;
    if (p->n_slots > 0 && u->chunk_items > 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "internal: the plan has no slot large enough for rows of %s",
                       u->u.tensor[0]->name);
}

void qsf_weights_count_pins(QsfWeights *w) {
    uint64_t done = 0, total = 0;
    for (uint32_t i = 0; i < w->n_units; i++) {
        done += qsf_unit_item_bytes(&w->units[i].u, 0, qsf_weights_have(&w->units[i]));
        total += qsf_unit_item_bytes(&w->units[i].u, 0, w->units[i].pinned_items);
    }
    atomic_store(&w->counters->pin_done, done);
    atomic_store(&w->counters->pin_total, total);
}

static int start_loader(QsfWeights *w, const QsfPlan *p, QsfErr *err) {
    const QsfLoaderOptions lo = { .src = w->model->src,
                                  .units = w->units,
                                  .n_units = w->n_units,
                                  .n_slots = w->streams ? p->n_slots : 0,
                                  .may_pin_more = w->n_lend > 0,
                                  .slot_bytes = p->slot_bytes,
                                  .n_stages = p->n_stages,
                                  .stage_bytes = p->stage_bytes,
                                  .on_layer = w->on_layer,
                                  .on_layer_arg = w->on_layer_arg,
                                  .stream = p->stream,
                                  .group = w->pins.group,
                                  .ledger = w->ledger,
                                  .cancel = w->cancel,
                                  .counters = w->counters,
                                  .sums = w->checksums_open ? &w->sums : NULL };
    int rc = qsf_loader_create(&w->loader, &lo, err);
    if (rc == QSF_OK && w->demands && w->expert_slots > 0)
        rc = qsf_expert_pool_start(w->pool, &lo, err);
    else if (rc == QSF_OK && w->demands)
        rc = qsf_demand_create(&w->demand, &lo, p->n_slots, err);
    if (rc != QSF_OK) return rc;
    pthread_mutex_lock(&w->io_lock);
    snprintf(w->io_name, sizeof w->io_name, "%s", qsf_loader_io_name(w->loader));
    snprintf(w->io_notice, sizeof w->io_notice, "%s", qsf_loader_io_notice(w->loader));
    pthread_mutex_unlock(&w->io_lock);
    return QSF_OK;
}

static void stop_loader(QsfWeights *w) {
    qsf_expert_pool_stop(w->pool);
    qsf_demand_destroy(w->demand);
    qsf_loader_destroy(w->loader);
    w->demand = NULL;
    w->loader = NULL;
}

void qsf_weights_close_checksums(QsfWeights *w) {
    qsf_checksums_close(&w->sums);
    w->checksums_open = false;
}

/* Before the first rows are read. */
static int open_checksums(QsfWeights *w, QsfErr *err) {
    int rc = qsf_checksums_open(&w->sums, w->model->src, w->units, w->n_units, err);
    for (uint32_t i = 0; i < w->n_units; i++) w->units[i].checked_items = w->units[i].pinned_items;
    w->checksums_open = rc == QSF_OK;
    return rc;
}

void qsf_weights_park(QsfWeights *w, const QsfPlan *p, uint64_t lent) {
    QsfErr none = { 0 };
    stop_loader(w);
    qsf_weights_close_checksums(w);
    qsf_weights_apply(w, p, lent);
    for (uint32_t i = 0; i < w->n_units; i++)
        qsf_pins_size(w->ledger, &w->units[i], true, &none); /* shrinking
                                                                cannot
                                                                fail */
    if (w->pool != NULL && qsf_weights_expert_slots(w, lent) < qsf_expert_pool_slots(w->pool))
        (void)qsf_expert_pool_resize(w->pool, qsf_weights_expert_slots(w, lent), &none);
}

/* Scratch for groups, for each thread. */
static int size_pack(QsfWeights *w, const QsfPlan *p, QsfErr *err) {
    const uint64_t bytes = (uint64_t)p->threads * w->pins.group_bytes;
    void *mem = w->pack;
    int rc = qsf_mem_resize(w->ledger, QSF_MEM_PINNED, w->pack_bytes, bytes, PACK_NAME, &mem, err);
    if (rc != QSF_OK) return rc;
    w->pack = mem;
    w->pack_bytes = bytes;
    return QSF_OK;
}

int qsf_weights_resume(QsfWeights *w, const QsfPlan *p, uint64_t lent, QsfErr *err) {
    int rc = QSF_OK;
    stop_loader(w);
    qsf_weights_close_checksums(w);
    w->slot_bytes = p->slot_bytes;
    qsf_weights_apply(w, p, lent);
    w->streams = w->demands = false;
    for (uint32_t i = 0; rc == QSF_OK && i < w->n_units; i++) rc = plan_unit(w, &w->units[i], p, err);
    for (uint32_t i = 0; rc == QSF_OK && i < w->n_units; i++)
        rc = qsf_pins_size(w->ledger, &w->units[i], false, err);
    if (rc == QSF_OK && w->pool != NULL) rc = size_pack(w, p, err);
    if (rc == QSF_OK && w->pool != NULL)
        rc = qsf_expert_pool_resize(w->pool, qsf_weights_expert_slots(w, lent), err);
    if (rc == QSF_OK && !w->begun) rc = open_checksums(w, err);
    if (rc != QSF_OK) return rc;
    w->begun = true;
    qsf_weights_count_pins(w);
    return start_loader(w, p, err);
}

/* ---- life ---- */

static int make_units(QsfWeights *w, const QsfWeightsOptions *o, QsfErr *err) {
    void *mem;
    bool experts = false;
    w->n_units = o->plan->n_units;
    w->units_bytes = qsf_pages(w->n_units * sizeof *w->units);
    int rc = qsf_mem_map(w->ledger, QSF_MEM_META, w->units_bytes, "weight units", &mem, err);
    if (rc != QSF_OK) return rc;
    w->units = mem;
    for (uint32_t i = 0; i < w->n_units; i++) {
        qsf_unit_at(w->model, i, &w->units[i].u);
        rc = qsf_interleave_choose(&w->units[i], o->table, o->interleaved_types, err);
        if (rc != QSF_OK) return rc;
        experts |= w->units[i].u.on_demand;
    }
    if (experts) rc = qsf_expert_pool_create(&w->pool, w->units, w->n_units, w->ledger, err);
    return rc == QSF_OK ? qsf_pins_open(&w->pins, w->units, w->n_units, w->ledger, err) : rc;
}

int qsf_weights_create(QsfWeights **out, const QsfWeightsOptions *o, QsfErr *err) {
    *out = NULL;
    QsfWeights *w = calloc(1, sizeof *w);
    if (w == NULL) return qsf_err_memory(err, "weights");
    w->model = o->model;
    w->ledger = o->ledger;
    w->cancel = o->cancel;
    w->counters = o->counters;
    w->on_layer = o->on_layer;
    w->on_layer_arg = o->on_layer_arg;
    pthread_mutex_init(&w->io_lock, NULL);
    int rc = make_units(w, o, err);
    if (rc == QSF_OK) rc = qsf_weights_resume(w, o->plan, o->lent, err);
    if (rc != QSF_OK) {
        qsf_weights_destroy(w);
        return rc;
    }
    *out = w;
    return QSF_OK;
}

void qsf_weights_destroy(QsfWeights *w) {
    QsfErr none = { 0 };
    if (w == NULL) return;
    stop_loader(w);
    qsf_weights_close_checksums(w);
    for (uint32_t i = 0; w->units != NULL && i < w->n_units; i++) {
        w->units[i].pinned_items = 0;
        qsf_pins_size(w->ledger, &w->units[i], true, &none);
    }
    qsf_expert_pool_destroy(w->pool);
    qsf_mem_unmap_named(w->ledger, QSF_MEM_PINNED, w->pack, w->pack_bytes, PACK_NAME);
    qsf_weights_drop_lend(w);
    qsf_pins_close(&w->pins, w->ledger);
    qsf_mem_unmap(w->ledger, QSF_MEM_META, w->units, w->units_bytes);
    pthread_mutex_destroy(&w->io_lock);
    free(w);
}

/* ---- location of rows ---- */

uint32_t qsf_weights_n_units(const QsfWeights *w) { return w->n_units; }

const QsfUnit *qsf_weights_unit(const QsfWeights *w, uint32_t i) { return &w->units[i].u; }

uint32_t qsf_weights_items(const QsfWeights *w, uint32_t i) { return w->units[i].pinned_items; }

bool qsf_weights_pinned(const QsfWeights *w, uint32_t i) {
    return w->units[i].pinned_items == w->units[i].u.items;
}

bool qsf_weights_has_row(const QsfWeights *w, uint32_t i, unsigned t, uint32_t row) {
    const QsfWeightUnit *u = &w->units[i];
    uint32_t lo, hi;
    qsf_unit_rows(&u->u, 0, qsf_weights_have(u), t, &lo, &hi);
    return row < hi;
}

const uint8_t *qsf_weights_pinned_row(const QsfWeights *w, uint32_t i, unsigned t, uint32_t row,
                                      uint8_t *buf) {
    const QsfWeightUnit *u = &w->units[i];
    uint32_t group = row / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
    if (!qsf_weights_has_row(w, i, t, row)) return NULL;
    if (qsf_interleaved_rows(u, t, u->u.rows[t]) <= row) return qsf_pinned_at(u, t, row);
    u->ops[t]->unpack_row(buf, qsf_pinned_at(u, t, group), row - group, u->u.k);
    return buf;
}

bool qsf_weights_stale(const QsfWeights *w) { return atomic_load(&w->stale); }

void qsf_weights_io(QsfWeights *w, char *name, size_t name_cap, char *notice, size_t notice_cap) {
    pthread_mutex_lock(&w->io_lock);
    snprintf(name, name_cap, "%s", w->io_name);
    snprintf(notice, notice_cap, "%s", w->io_notice);
    pthread_mutex_unlock(&w->io_lock);
}

/* ---- blocks that are skipped ---- */

static bool is_skipped(const QsfBlockSet *blocks, const QsfWeightUnit *u) {
    return blocks != NULL && qsf_blocks_have(blocks, u->u.layer);
}

void qsf_weights_skip(QsfWeights *w, const QsfBlockSet *blocks) {
    bool differs = false;
    if (blocks == NULL && !w->skips) return;
    w->skips = blocks != NULL;
    for (uint32_t i = 0; i < w->n_units; i++)
        differs |= w->units[i].skipped != is_skipped(blocks, &w->units[i]);
    if (!differs) return;
    const bool pause = w->loader != NULL && (w->streams || w->n_lend > 0); /* else the loader does not ask */
    if (pause) qsf_loader_pause(w->loader);
    for (uint32_t i = 0; i < w->n_units; i++) w->units[i].skipped = is_skipped(blocks, &w->units[i]);
    if (pause) qsf_loader_continue(w->loader);
}

/* ---- passes ---- */

/* When everything is in RAM, changes to the files do not matter. */
static bool all_in_ram(const QsfWeights *w) {
    return !w->streams && !w->demands &&
           atomic_load_explicit(&w->counters->pin_done, memory_order_relaxed) ==
               atomic_load_explicit(&w->counters->pin_total, memory_order_relaxed);
}

int qsf_weights_check_files(QsfWeights *w, QsfErr *err) {
    int rc = qsf_source_check_unchanged(w->model->src, err);
    atomic_store(&w->stale, rc != QSF_OK);
    return rc;
}

int qsf_weights_begin_pass(QsfWeights *w, bool head, QsfErr *err) {
    if (w->loader == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "internal: the weights are parked");
    if (all_in_ram(w)) return QSF_OK;
    int rc = qsf_weights_check_files(w, err);
    if (rc == QSF_OK) qsf_loader_begin_pass(w->loader, head);
    return rc;
}

int qsf_weights_read_failed(QsfWeights *w, int rc) {
    QsfErr ignored = { 0 };
    if (rc == QSF_E_RUNTIME) qsf_weights_check_files(w, &ignored);
    return rc;
}

static void view_of(QsfWeightView *v, const QsfChunk *c, bool streamed) {
    v->unit = c->unit;
    v->item0 = c->item0;
    v->item1 = c->item1;
    v->n_parts = c->n_parts;
    v->streamed = streamed;
    v->on_demand = false;
    memcpy(v->part, c->part, sizeof v->part);
    memset(v->interleaved, 0, sizeof v->interleaved);
}

static int acquire_pinned(QsfWeights *w, const QsfWeightUnit *u, uint32_t item, QsfWeightView *v,
                          QsfErr *err) {
    QsfChunk c;
    if (qsf_weights_have(u) <= item) {
        int rc = qsf_loader_wait_pinned(w->loader, u->u.index, item, err);
        if (rc != QSF_OK) return qsf_weights_read_failed(w, rc);
    }
    qsf_chunk_make(&u->u, item, qsf_weights_have(u), &c);
    view_of(v, &c, false);
    for (unsigned i = 0; i < v->n_parts; i++) {
        const QsfPart *p = &v->part[i];
        v->rows[i] = qsf_pinned_at(u, p->tensor, p->row0);
        v->interleaved[i] = qsf_interleaved_rows(u, p->tensor, p->row1 - p->row0);
    }
    return QSF_OK;
}

int qsf_weights_wait_layer(QsfWeights *w, uint32_t layer, QsfErr *err) {
    const QsfWeightUnit *u = &w->units[w->model->prog.block_unit[layer]];
    if (u->u.compressed == NULL || atomic_load_explicit(&u->seen, memory_order_acquire)) return QSF_OK;
    int rc = qsf_loader_wait_seen(w->loader, u->u.index, err);
    return rc == QSF_OK ? rc : qsf_weights_read_failed(w, rc);
}

int qsf_weights_acquire(QsfWeights *w, uint32_t unit, uint32_t item, QsfWeightView *v, QsfErr *err) {
    const QsfWeightUnit *u = &w->units[unit];
    const uint8_t *data;
    QsfChunk c;
    if (item < u->pinned_items) return acquire_pinned(w, u, item, v, err);
    int rc = !u->u.on_demand     ? qsf_loader_acquire(w->loader, unit, item, &c, &data, err)
             : w->demand != NULL ? qsf_demand_acquire(w->demand, unit, item, &c, &data, err)
                                 : qsf_expert_pool_acquire(w->pool, unit, &c, &data, err);
    if (rc != QSF_OK) return qsf_weights_read_failed(w, rc);
    view_of(v, &c, true);
    v->on_demand = u->u.on_demand;
    const bool packed = v->on_demand && w->demand == NULL && qsf_expert_pool_is_packed(w->pool, unit);
    for (unsigned i = 0; i < v->n_parts; i++) {
        const QsfPart *p = &v->part[i];
        v->rows[i] = data + p->at;
        v->interleaved[i] = packed ? qsf_interleaved_rows(u, p->tensor, p->row1 - p->row0)
                                   : qsf_interleaved_streamed(u, p->tensor, p->row1 - p->row0);
    }
    return QSF_OK;
}

/* ---- the end of a pass ---- */

void qsf_weights_release(QsfWeights *w, const QsfWeightView *v) {
    if (v->on_demand && w->demand == NULL)
        qsf_expert_pool_release(w->pool, v->unit);
    else if (v->on_demand)
        qsf_demand_release(w->demand);
    else if (v->streamed)
        qsf_loader_release(w->loader);
}

void qsf_weights_end_pass(QsfWeights *w, bool ok) {
    if (w->loader == NULL) return;
    if (!ok && w->demand != NULL) qsf_demand_reset(w->demand);
    if (!ok && w->expert_slots > 0) qsf_expert_pool_reset(w->pool);
    if (ok)
        qsf_loader_end_pass(w->loader);
    else
        qsf_loader_abort(w->loader);
}

int qsf_weights_settle(QsfWeights *w, void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                       QsfErr *err) {
    if (w->loader == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "internal: the weights are parked");
    for (uint32_t i = 0; i < w->n_units; i++) {
        QsfWeightUnit *u = &w->units[i];
        uint32_t n;
        while ((n = qsf_weights_have(u)) < u->pinned_items) {
            int rc = qsf_loader_wait_pinned(w->loader, i, n, err);
            if (rc != QSF_OK) return qsf_weights_read_failed(w, rc);
            if (progress != NULL)
                progress(arg, atomic_load(&w->counters->pin_done), atomic_load(&w->counters->pin_total));
        }
    }
    return QSF_OK;
}
