/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pinned rows: their addresses and sizes; rows that are pinned beyond the plan's pins, and given up, as the
 * memory that is lent for them changes. */
#include "src/stream/pins.h"

#include <stdlib.h>

#include "src/plan/kv_lend.h"
#include "src/plan/layout.h"
#include "src/stream/interleave.h"
#include "src/stream/weights_impl.h"

#define NAME       "pinned weights"
#define GROUP_NAME "group of rows"

/* u is a unit of a compressed layer. */
static void place_in_layer(QsfWeightUnit *u, uint8_t *layer) {
    for (unsigned t = 0; t < u->u.n; t++) u->pin[t] = layer + (u->u.offset[t] & ~(uint64_t)(QSF_WINDOW - 1));
}

/* With the skew of the file's windows (units.h). */
static int place_tensors(QsfPins *p, QsfWeightUnit *units, uint32_t n_units, QsfErr *err) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n_units; i++) bytes += qsf_unit_pinned_bytes(&units[i].u, units[i].u.items);
    int rc = qsf_space_open(&p->space, bytes, NAME, err);
    uint8_t *at = p->space.base, *layer = NULL;
    for (uint32_t i = 0; rc == QSF_OK && i < n_units; i++) {
        QsfWeightUnit *u = &units[i];
        if (qsf_unit_opens_compressed(&u->u)) {
            layer = at;
            at += qsf_compressed_whole(u->u.compressed);
        }
        for (unsigned t = 0; t < u->u.n; t++) {
            if (u->u.compressed != NULL) continue;
            u->pin[t] = at;
            at += qsf_tensor_pinned_bytes(&u->u, t, u->u.rows[t]);
        }
        if (u->u.compressed != NULL) place_in_layer(u, layer);
    }
    return rc;
}

static int map_group(QsfPins *p, const QsfWeightUnit *units, uint32_t n_units, QsfLedger *l, QsfErr *err) {
    void *mem;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n_units; i++) {
        uint64_t group = qsf_interleave_scratch(&units[i]);
        if (group > bytes) bytes = group;
    }
    p->group_bytes = qsf_pages(bytes);
    int rc = qsf_mem_map(l, QSF_MEM_PINNED, p->group_bytes, GROUP_NAME, &mem, err);
    p->group = mem;
    return rc;
}

int qsf_pins_open(QsfPins *p, QsfWeightUnit *units, uint32_t n_units, QsfLedger *l, QsfErr *err) {
    int rc = place_tensors(p, units, n_units, err);
    return rc == QSF_OK ? map_group(p, units, n_units, l, err) : rc;
}

void qsf_pins_close(QsfPins *p, QsfLedger *l) {
    qsf_space_close(&p->space);
    qsf_mem_unmap_named(l, QSF_MEM_PINNED, p->group, p->group_bytes, GROUP_NAME);
    *p = (QsfPins){ 0 };
}

static uint32_t pinned_rows(const QsfWeightUnit *u, unsigned t) {
    uint32_t lo, hi;
    qsf_unit_rows(&u->u, 0, u->pinned_items, t, &lo, &hi);
    return hi;
}

uint8_t *qsf_pins_layer(const QsfWeightUnit *u) {
    return u->pin[0] - (u->u.offset[0] & ~(uint64_t)(QSF_WINDOW - 1));
}

/* A compressed layer: all or nothing, with its first unit. */
static int size_layer(QsfLedger *l, QsfWeightUnit *u, bool shrink_only, QsfErr *err) {
    uint64_t want = qsf_unit_pinned_bytes(&u->u, u->pinned_items);
    if (!qsf_unit_opens_compressed(&u->u) || (shrink_only && want > u->pin_bytes[0])) return QSF_OK;
    uint8_t *layer = qsf_pins_layer(u);
    int rc = qsf_space_resize(l, QSF_MEM_PINNED, NAME, &layer, u->pin_bytes[0], want, err);
    if (rc != QSF_OK) return rc;
    u->pin_bytes[0] = want;
    for (uint32_t i = 0; i < u->u.layer_units; i++) place_in_layer(&u[i], layer);
    return QSF_OK;
}

int qsf_pins_size(QsfLedger *l, QsfWeightUnit *u, bool shrink_only, QsfErr *err) {
    if (u->u.compressed != NULL) return size_layer(l, u, shrink_only, err);
    for (unsigned t = 0; t < u->u.n; t++) {
        uint64_t want = qsf_tensor_pinned_bytes(&u->u, t, pinned_rows(u, t));
        if (shrink_only && want > u->pin_bytes[t]) continue;
        int rc = qsf_space_resize(l, QSF_MEM_PINNED, NAME, &u->pin[t], u->pin_bytes[t], want, err);
        if (rc != QSF_OK) return rc;
        u->pin_bytes[t] = want;
    }
    return QSF_OK;
}

/* --- the weights' rows --- */

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

void qsf_weights_set_chunks(const QsfWeights *w, QsfWeightUnit *u) {
    const uint32_t rest = u->u.items - u->pinned_items;
    u->chunk_items = rest > 0 ? qsf_unit_chunk_items(&u->u, rest, w->slot_bytes) : QSF_ROW_QUANTUM;
}

/* Rows in memory stay as far as they are pinned. */
static void set_items(const QsfWeights *w, QsfWeightUnit *u, uint32_t items) {
    u->pinned_items = items;
    if (qsf_weights_have(u) > items) {
        qsf_interleave_cut(u, items, qsf_weights_have(u), w->pins.group);
        atomic_store(&u->have_items, items);
    }
    u->started_items = qsf_weights_have(u);
}

/* ---- lent memory ---- */

void qsf_weights_drop_lend(QsfWeights *w) {
    free(w->lend);
    w->lend = NULL;
    w->n_lend = 0;
}

/* Without memory for the list, no memory is lent. */
static void take_lend(QsfWeights *w, const QsfPlan *p) {
    qsf_weights_drop_lend(w);
    if (p->n_lend == 0 || (w->lend = malloc(p->n_lend * sizeof *w->lend)) == NULL) return;
    w->n_lend = p->n_lend;
    for (uint32_t i = 0; i < w->n_lend; i++)
        w->lend[i] = (QsfLend){ .unit = p->lend[i], .base = p->pinned_items[p->lend[i]] };
}

/* Returns the items that entry i of the list pins with *room left. The entries after one that
 * does not fit get none. */
static uint32_t lent_items(const QsfWeights *w, uint32_t i, uint64_t *room) {
    const QsfUnit *u = &w->units[w->lend[i].unit].u;
    const uint32_t n = qsf_lend_items(u, w->lend[i].base, room);
    if (n < u->items) *room = 0;
    return n;
}

/* Applies the plan, and to `lent` bytes its list. */
void qsf_weights_apply(QsfWeights *w, const QsfPlan *p, uint64_t lent) {
    for (uint32_t i = 0; i < w->n_units; i++)
        w->units[i].pinned_items = min_u32(p->pinned_items[i], w->units[i].u.items);
    take_lend(w, p);
    w->expert_slots = p->expert_slots;
    for (uint32_t i = 0; i < w->n_lend; i++) w->units[w->lend[i].unit].pinned_items = lent_items(w, i, &lent);
    for (uint32_t i = 0; i < w->n_units; i++) set_items(w, &w->units[i], w->units[i].pinned_items);
}

uint32_t qsf_weights_expert_slots(const QsfWeights *w, uint64_t lent) {
    if (w->expert_slots == 0) return 0;
    const uint64_t more = lent / qsf_expert_pool_slot_bytes(w->pool);
    return w->expert_slots + (more < UINT32_MAX / 2 ? (uint32_t)more : UINT32_MAX / 2);
}

/* ---- changes of what is lent ---- */

/* Rows that stream from now on are checked when they arrive, unless they were while they were pinned. */
static void move_checks(QsfWeightUnit *u, uint32_t old, uint32_t items) {
    if (items < old && u->checked_items == old)
        u->checked_items = items > u->checked_pins ? items : u->checked_pins;
}

static void give_up(QsfWeights *w, QsfWeightUnit *u, uint32_t items) {
    QsfErr none = { 0 };
    move_checks(u, u->pinned_items, items);
    set_items(w, u, items);
    qsf_weights_set_chunks(w, u);
    qsf_pins_size(w->ledger, u, true, &none);
}

/* Pins more rows of a unit, or as many as before. */
static int take_more(QsfWeights *w, QsfWeightUnit *u, uint32_t items, QsfErr *err) {
    const uint32_t old = u->pinned_items;
    u->pinned_items = items;
    int rc = qsf_pins_size(w->ledger, u, false, err);
    if (rc != QSF_OK) {
        QsfErr none = { 0 };
        u->pinned_items = old;
        qsf_pins_size(w->ledger, u, true, &none);
    }
    qsf_weights_set_chunks(w, u);
    return rc;
}

/* Does anything change? *more: rows are pinned. */
static bool lend_differs(const QsfWeights *w, uint64_t room, bool *more) {
    bool differs = false;
    for (uint32_t i = 0; i < w->n_lend; i++) {
        const uint32_t n = lent_items(w, i, &room), now = w->units[w->lend[i].unit].pinned_items;
        differs |= n != now;
        *more |= n > now;
    }
    return differs;
}

int qsf_weights_lend(QsfWeights *w, uint64_t lent, QsfErr *err) {
    bool more = false;
    int rc = QSF_OK;
    if (w->expert_slots > 0 && w->loader != NULL)
        return qsf_expert_pool_resize(w->pool, qsf_weights_expert_slots(w, lent), err);
    if (w->loader == NULL || !lend_differs(w, lent, &more)) return QSF_OK;
    qsf_loader_pause(w->loader);
    if (more)
        qsf_weights_close_checksums(w); /* rows that were checked when they were streamed are read again */
    for (uint64_t i = 0, room = lent; i < w->n_lend; i++) {
        QsfWeightUnit *u = &w->units[w->lend[i].unit];
        const uint32_t n = lent_items(w, (uint32_t)i, &room);
        if (n < u->pinned_items) give_up(w, u, n);
    }
    for (uint64_t i = 0, room = lent; rc == QSF_OK && i < w->n_lend; i++) {
        QsfWeightUnit *u = &w->units[w->lend[i].unit];
        const uint32_t n = lent_items(w, (uint32_t)i, &room);
        if (n > u->pinned_items) rc = take_more(w, u, n, err);
    }
    qsf_weights_count_pins(w);
    qsf_loader_continue(w->loader);
    return rc;
}
