/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of reads. What the running pass needs next comes first: pins that it has asked for, then those of
 * the units up to the next streamed chunk, then that chunk; when the slots are full, further pins, experts
 * last. The loader may be one pass ahead of its consumer, but not beyond the body of that pass: whether the
 * head is needed is known only when the pass begins. */
#include <string.h>

#include "src/base/clock.h"
#include "src/file/qsf/compressed.h"
#include "src/stream/loader_impl.h"
#include "src/stream/pins.h"

QsfPosition qsf_loader_first(const QsfLoader *l, uint32_t unit) {
    return (QsfPosition){ unit, unit < l->o.n_units ? l->o.units[unit].pinned_items : 0 };
}

/* Experts are not in the stream: which ones are needed is known only when they are chosen (demand.h). */
static bool is_passed(const QsfLoader *l, const QsfPosition *p) {
    const QsfWeightUnit *w = &l->o.units[p->unit];
    return w->u.on_demand || w->skipped || p->item >= w->u.items;
}

static void skip_pinned(const QsfLoader *l, QsfPosition *p, uint32_t limit) {
    while (p->unit < limit && is_passed(l, p)) *p = qsf_loader_first(l, p->unit + 1);
}

bool qsf_loader_settle(QsfLoader *l) {
    if (l->load_pass == l->pass) {
        skip_pinned(l, &l->load, l->limit);
        if (l->load.unit < l->limit) return true;
        l->load_pass++;
        l->load = qsf_loader_first(l, 0);
    }
    uint32_t body = l->o.n_units - 1;
    skip_pinned(l, &l->load, body);
    return l->load.unit < body;
}

static bool lacks_pin(const QsfLoader *l, uint32_t unit) {
    return l->o.units[unit].started_items < l->o.units[unit].pinned_items;
}

/* An expert that does not come with others. */
static bool is_expert(const QsfLoader *l, uint32_t unit) {
    return l->o.units[unit].u.on_demand && l->o.units[unit].u.compressed == NULL;
}

/* Returns the next unit with pinned items that no job reads yet; n_units when there is none. A pass needs a
 * few experts, but all of the rest: those that it waits for come first, the other experts last. */
static uint32_t next_pin(QsfLoader *l) {
    const uint32_t n = l->o.n_units;
    for (; l->n_wants > 0; l->first_want = (l->first_want + 1) % QSF_WANTED, l->n_wants--) {
        const uint32_t unit = l->want[l->first_want];
        if (lacks_pin(l, unit) && l->o.units[unit].u.compressed == NULL) return unit;
    }
    while (l->pin_unit < n && (is_expert(l, l->pin_unit) || !lacks_pin(l, l->pin_unit))) l->pin_unit++;
    if (l->pin_unit < n) return l->pin_unit;
    while (l->pin_expert < n && !lacks_pin(l, l->pin_expert)) l->pin_expert++;
    return l->pin_expert;
}

bool qsf_loader_finished(const QsfLoader *l) {
    if (l->streams || l->o.may_pin_more) return false;
    for (uint32_t i = 0; i < l->o.n_units; i++) {
        const QsfWeightUnit *w = &l->o.units[i];
        if (atomic_load_explicit(&w->have_items, memory_order_relaxed) < w->pinned_items) return false;
    }
    return true;
}

static void add_read(QsfJob *j, uint32_t file, uint64_t off, uint64_t len, uint8_t *dst) {
    j->read[j->n_reads++] = (QsfIoRead){ .file = file, .off = off, .len = len, .dst = dst };
}

/* Adds the reads of a chunk's windows into its slot. */
static void stream_reads(const QsfUnit *u, const QsfChunk *c, uint8_t *data, QsfJob *j) {
    for (unsigned i = 0; i < c->n_parts; i++) {
        const QsfPart *p = &c->part[i];
        add_read(j, u->tensor[p->tensor]->file, p->file_off, p->window_bytes, data + p->window);
    }
}

/* Adds the reads of a chunk's windows to the pinned place of its rows. The window that contains the chunk's
 * start was read with the rows before it, and may be in use. */
static void pin_reads(const QsfWeightUnit *w, const QsfChunk *c, QsfJob *j) {
    for (unsigned i = 0; i < c->n_parts; i++) {
        const QsfPart *p = &c->part[i];
        const QsfTensor *t = w->u.tensor[p->tensor];
        uint64_t base = w->u.offset[p->tensor] & ~(uint64_t)(QSF_WINDOW - 1), off = p->file_off,
                 end = off + p->window_bytes;
        if (p->row0 > 0 && p->at != p->window) off += QSF_WINDOW;
        if (off < end) add_read(j, t->file, off, end - off, w->pin[p->tensor] + (off - base));
    }
}

static QsfJob *push(QsfLoader *l, uint32_t unit, uint32_t item0, uint32_t item1, QsfSlot *slot) {
    QsfJob *j = &l->job[(l->first_job + l->n_jobs) % QSF_MAX_JOBS];
    *j = (QsfJob){ .unit = unit, .item0 = item0, .item1 = item1, .slot = slot, .pass = l->pass };
    if (l->n_jobs++ == 0) l->busy_since = qsf_now_ns();
    return j;
}

/* Adds the reads of a whole compressed layer, contiguous and in several pieces. */
static void compressed_reads(QsfLoader *l, QsfJob *j, const QsfCompressed *c, uint8_t *whole) {
    const uint64_t from = c->off & ~(uint64_t)(QSF_WINDOW - 1), bytes = qsf_compressed_windows(c);
    const uint64_t piece = (bytes / QSF_UNIT_TENSORS + QSF_WINDOW - 1) & ~(uint64_t)(QSF_WINDOW - 1);
    j->compressed = c;
    j->whole = whole;
    j->stage = l->stages + l->next_stage * l->o.stage_bytes;
    l->next_stage = (l->next_stage + 1) % l->o.n_stages;
    l->n_staged++;
    for (uint64_t at = 0; at < bytes;) {
        bool last = j->n_reads + 1 == QSF_UNIT_TENSORS || bytes - at <= piece || piece == 0;
        uint64_t n = last ? bytes - at : piece;
        add_read(j, c->file, from + at, n, j->stage + at);
        at += n;
    }
}

static bool stage_free(const QsfLoader *l, uint32_t unit) {
    return l->o.units[unit].u.compressed == NULL || l->n_staged < l->o.n_stages;
}

static QsfJob *pin_layer(QsfLoader *l, uint32_t unit) {
    QsfWeightUnit *w = &l->o.units[unit];
    for (uint32_t k = 0; k < w->u.layer_units; k++) w[k].started_items = w[k].pinned_items;
    QsfJob *j = push(l, unit, 0, w->pinned_items, NULL);
    compressed_reads(l, j, w->u.compressed, qsf_pins_layer(w));
    return j;
}

static QsfJob *stream_layer(QsfLoader *l) {
    const uint32_t first = l->load.unit;
    const QsfWeightUnit *w = &l->o.units[first];
    const uint32_t last = first + w->u.layer_units - 1;
    QsfChunk c;
    l->load = (QsfPosition){ last, l->o.units[last].u.items };
    qsf_chunk_make(&w->u, 0, w->u.items, &c);
    QsfSlot *slot = qsf_slots_begin_load(&l->slots, &c);
    QsfJob *j = push(l, first, 0, w->u.items, slot);
    compressed_reads(l, j, w->u.compressed, slot->data);
    return j;
}

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static QsfJob *pin_job(QsfLoader *l, uint32_t unit) {
    QsfWeightUnit *w = &l->o.units[unit];
    QsfChunk c;
    uint32_t from = w->started_items;
    if (w->u.compressed != NULL) return pin_layer(l, unit);
    w->started_items = from + min_u32(w->piece_items, w->pinned_items - from);
    qsf_chunk_make(&w->u, from, w->started_items, &c);
    QsfJob *j = push(l, unit, from, w->started_items, NULL);
    pin_reads(w, &c, j);
    return j;
}

static QsfJob *stream_job(QsfLoader *l) {
    const QsfWeightUnit *w = &l->o.units[l->load.unit];
    QsfChunk c;
    uint32_t from = l->load.item;
    if (w->u.compressed != NULL) return stream_layer(l);
    l->load.item = from + min_u32(w->chunk_items, w->u.items - from);
    qsf_chunk_make(&w->u, from, l->load.item, &c);
    QsfSlot *slot = qsf_slots_begin_load(&l->slots, &c);
    QsfJob *j = push(l, c.unit, from, c.item1, slot);
    stream_reads(&w->u, &c, slot->data, j);
    return j;
}

QsfJob *qsf_job_next(QsfLoader *l) {
    if (l->failed || l->drop || l->paused || l->n_jobs == QSF_MAX_JOBS) return NULL;
    bool more = l->streams && qsf_loader_settle(l), slot = more && qsf_slots_can_load(&l->slots);
    uint32_t pin = next_pin(l);
    if (pin < l->o.n_units && (!slot || pin <= l->load.unit))
        return stage_free(l, pin) ? pin_job(l, pin) : NULL;
    return slot && stage_free(l, l->load.unit) ? stream_job(l) : NULL;
}

uint32_t qsf_job_units(const QsfLoader *l, const QsfJob *j) {
    return j->compressed != NULL ? l->o.units[j->unit].u.layer_units : 1;
}

/* Bytes of weights that a job loads. */
static uint64_t weights_of(const QsfLoader *l, const QsfJob *j) {
    uint64_t sum = 0;
    if (j->compressed == NULL) return qsf_unit_item_bytes(&l->o.units[j->unit].u, j->item0, j->item1);
    for (uint32_t k = 0; k < qsf_job_units(l, j); k++) sum += l->o.units[j->unit + k].u.bytes;
    return sum;
}

static void count(QsfLoader *l, const QsfJob *j, uint64_t bytes) {
    QsfStreamCounters *n = l->o.counters;
    const QsfUnit *u = &l->o.units[j->unit].u;
    if (j->slot == NULL) {
        atomic_fetch_add_explicit(&n->pin_read, bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&n->pin_done, weights_of(l, j), memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&n->bytes_read, bytes, memory_order_relaxed);
    if (n->layer != NULL)
        atomic_fetch_add_explicit(&n->layer[u->layer].read_bytes, bytes, memory_order_relaxed);
}

static void count_time(QsfLoader *l) {
    uint64_t now = qsf_now_ns();
    atomic_fetch_add_explicit(&l->o.counters->read_ns, now - l->busy_since, memory_order_relaxed);
    l->busy_since = now;
}

void qsf_job_done(QsfLoader *l, int rc, const QsfErr *err) {
    const QsfJob *j = &l->job[l->first_job];
    QsfWeightUnit *w = &l->o.units[j->unit];
    uint64_t bytes = 0;
    for (unsigned i = 0; i < j->n_reads; i++) bytes += j->read[i].got;
    count_time(l);
    /* Rows are pinned in order: nothing after a failed piece counts. */
    bool next = j->slot != NULL || atomic_load_explicit(&w->have_items, memory_order_relaxed) == j->item0;
    bool ok = rc == QSF_OK && next;
    if (ok) count(l, j, bytes);
    if (j->slot != NULL)
        qsf_slots_end_load(&l->slots, ok && !l->failed);
    else if (ok && j->compressed == NULL)
        atomic_store_explicit(&w->have_items, j->item1, memory_order_release);
    else
        for (uint32_t k = 0; ok && k < w->u.layer_units; k++)
            atomic_store_explicit(&w[k].have_items, w[k].u.items, memory_order_release);
    l->n_staged -= j->compressed != NULL;
    if (rc != QSF_OK && !l->failed && !l->drop) {
        l->failed = true;
        l->err = *err;
    }
    l->first_job = (l->first_job + 1) % QSF_MAX_JOBS;
    l->n_jobs--;
}

/* On the loader's thread. */
int qsf_job_unpack(QsfLoader *l, const QsfJob *j, QsfErr *err) {
    QsfWeightUnit *w = &l->o.units[j->unit];
    const QsfCompressed *c = j->compressed;
    const uint8_t *raw = j->stage + (c->off & (QSF_WINDOW - 1));
    const bool first = !atomic_load_explicit(&w->seen, memory_order_relaxed);
    int rc = first ? qsf_compressed_check(l->o.src, c, raw, err) : QSF_OK;
    if (rc == QSF_OK) rc = qsf_compressed_unpack(l->o.src, c, &l->unpacker, raw, j->whole, err);
    if (rc != QSF_OK || !first) return rc;
    if (l->o.on_layer != NULL) l->o.on_layer(l->o.on_layer_arg, c->layer, j->whole);
    atomic_store_explicit(&w->seen, true, memory_order_release);
    return QSF_OK;
}
