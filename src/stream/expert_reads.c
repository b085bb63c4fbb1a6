/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads experts into their slots. */
#include <string.h>

#include "src/base/clock.h"
#include "src/plan/expert_span.h"
#include "src/stream/checksums.h"
#include "src/stream/expert_pool_impl.h"

/* ---- reads ---- */

static void count_wait(const QsfExpertPool *p, uint32_t layer, uint64_t ns) {
    QsfStreamCounters *n = p->o.counters;
    if (p->filling) return;
    atomic_fetch_add_explicit(&n->wait_ns, ns, memory_order_relaxed);
    if (n->layer != NULL) atomic_fetch_add_explicit(&n->layer[layer].wait_ns, ns, memory_order_relaxed);
}

unsigned qsf_expert_start_reads(QsfExpertPool *p, uint32_t e, unsigned which, QsfIoRead *read) {
    const QsfWeightUnit *w = &p->units[p->unit[e]];
    const QsfUnit *u = &w[which].u;
    QsfExpertSpan s;
    QsfChunk c;
    uint8_t *slot = qsf_expert_place(p, e, which, &c);
    qsf_expert_span(&w[0].u, &w[1].u, &s);
    const QsfExpertRange *r = s.all.one ? &s.all : &s.unit[which];
    const unsigned n = r->one ? 1 : c.n_parts;
    if (r->one) {
        const uint64_t before = s.all.one || which == 0 ? 0 : s.unit[0].bytes;
        read[0] =
            (QsfIoRead){ .file = u->tensor[0]->file, .off = r->from, .len = r->bytes, .dst = slot + before };
    }
    for (unsigned i = 0; !r->one && i < n; i++)
        read[i] = (QsfIoRead){ .file = u->tensor[c.part[i].tensor]->file,
                               .off = c.part[i].file_off,
                               .len = c.part[i].window_bytes,
                               .dst = slot + c.part[i].window };
    const uint64_t t0 = qsf_now_ns();
    for (unsigned i = 0; i < n; i++) qsf_io_start(p->io, &read[i]);
    count_wait(p, u->layer, qsf_now_ns() - t0); /* what is cached is copied now, instead of computing */
    atomic_fetch_add_explicit(&p->o.counters->expert_reads, n, memory_order_relaxed);
    return n;
}

static void start(QsfExpertPool *p, uint32_t e, unsigned which) {
    QsfExpertRead *j = &p->job[(p->first_job + p->n_jobs++) % QSF_IO_DEPTH];
    if (p->n_jobs == 1 && p->ahead.n_reads == 0) p->busy_since = qsf_now_ns();
    *j = (QsfExpertRead){ .expert = e, .which = which };
    j->n_reads = qsf_expert_start_reads(p, e, which, j->read);
    p->n_reads += j->n_reads;
}

/* As qsf_expert_find_slot; slots that predictions are read into are waited for, if there are no others. */
static uint32_t find_slot(QsfExpertPool *p, uint32_t e, bool forced) {
    const uint32_t slot = qsf_expert_find_slot(p, p->n_slots, e, forced);
    if (slot != QSF_NO_SLOT || p->ahead.n_reads == 0) return slot;
    qsf_expert_ahead_finish(p);
    return qsf_expert_find_slot(p, p->n_slots, e, forced);
}

/* Starts reads in the order of the queue, as many as may be in flight. forced: for the first of them
 * another expert may have to be read again. */
static void read_on(QsfExpertPool *p, bool forced) {
    if (p->queue_at < p->n_queue) qsf_expert_ahead_take(p);
    while (p->queue_at < p->n_queue && p->n_jobs < QSF_IO_DEPTH &&
           p->n_reads + p->ahead.n_reads + QSF_UNIT_TENSORS <= QSF_IO_DEPTH) {
        const uint32_t unit = p->queue[p->queue_at], e = qsf_expert_find(p, unit);
        if (p->expert[e].slot == QSF_NO_SLOT) {
            const uint32_t slot = find_slot(p, e, forced && p->n_jobs == 0);
            if (slot == QSF_NO_SLOT) return;
            qsf_expert_enter(p, e, slot);
        }
        start(p, e, unit - p->unit[e]);
        p->queue_at++;
    }
}

void qsf_expert_count_read(QsfExpertPool *p, uint32_t layer, uint64_t bytes, uint64_t waited_since) {
    QsfStreamCounters *n = p->o.counters;
    const uint64_t now = qsf_now_ns();
    count_wait(p, layer, now - waited_since);
    atomic_fetch_add_explicit(&n->bytes_read, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->read_ns, now - p->busy_since, memory_order_relaxed);
    p->busy_since = now;
    if (n->layer != NULL) atomic_fetch_add_explicit(&n->layer[layer].read_bytes, bytes, memory_order_relaxed);
}

int qsf_expert_verify(const QsfExpertPool *p, uint32_t e, unsigned which, QsfErr *err) {
    QsfWeightUnit *w = &p->units[p->unit[e] + which];
    QsfChunk c;
    int rc = QSF_OK;
    if (p->o.sums == NULL || w->checked_items != 0) return QSF_OK;
    const uint8_t *data = qsf_expert_place(p, e, which, &c);
    for (unsigned i = 0; rc == QSF_OK && i < c.n_parts; i++) {
        const QsfPart *part = &c.part[i];
        rc = qsf_checksums_add(p->o.sums, w, part->tensor, part->row0, part->row1, data + part->at, err);
    }
    if (rc == QSF_OK) w->checked_items = c.item1;
    return rc;
}

/* Waits for the oldest read. */
static int finish(QsfExpertPool *p, QsfErr *err) {
    QsfExpertRead *j = &p->job[p->first_job];
    QsfExpert *x = &p->expert[j->expert];
    const uint64_t t0 = qsf_now_ns();
    uint64_t got = 0;
    QsfErr later = { 0 };
    int rc = QSF_OK;
    for (unsigned i = 0; i < j->n_reads; i++) { /* all, even after a failure: their memory is in use */
        const int one = qsf_io_wait(p->io, &j->read[i], rc == QSF_OK ? err : &later);
        if (rc == QSF_OK) rc = one;
        got += j->read[i].got;
    }
    qsf_err_clear(&later);
    qsf_expert_count_read(p, x->block, got, t0);
    p->n_reads -= j->n_reads;
    p->first_job = (p->first_job + 1) % QSF_IO_DEPTH;
    p->n_jobs--;
    const unsigned first = j->which, last = x->together ? 1 : first;
    for (unsigned which = first; rc == QSF_OK && which <= last; which++)
        rc = qsf_expert_verify(p, j->expert, which, err);
    if (rc == QSF_OK) x->there |= (uint8_t)(1u << first | 1u << last);
    if (rc == QSF_OK && x->there == 3) qsf_expert_count(p, j->expert, 1);
    if (last == 1) x->queued = false;
    return rc;
}

/* ---- requests ---- */

static bool is_missing(const QsfExpertPool *p, uint32_t e) { return p->expert[e].there != 3; }

/* What was predicted is already being read. */
static bool is_to_read(const QsfExpertPool *p, uint32_t e) {
    return is_missing(p, e) && !p->expert[e].guessed;
}

static void enqueue(QsfExpertPool *p, uint32_t unit) {
    if (p->n_queue < 2 * QSF_MAX_EXPERTS) p->queue[p->n_queue++] = unit;
}

static void enqueue_second(QsfExpertPool *p, uint32_t e) {
    if (!p->expert[e].together) enqueue(p, p->unit[e] + 1);
}

void qsf_expert_pool_read_ahead(QsfExpertPool *p, bool first_units) {
    p->queue_at = p->n_queue = 0;
    qsf_expert_ahead_chosen(p);
    for (uint32_t i = 0; i < p->n_list; i++) {
        const uint32_t e = p->list[i];
        if (!is_to_read(p, e)) continue;
        p->expert[e].queued = true;
        enqueue(p, p->unit[e]);
        if (!first_units) enqueue_second(p, e);
    }
    for (uint32_t i = 0; first_units && i < p->n_list; i++)
        if (is_to_read(p, p->list[i])) enqueue_second(p, p->list[i]);
    qsf_expert_ahead_prompt(p);
    read_on(p, false);
}

/* The units of e, which are the last ones of the queue, come first. */
static void put_first(QsfExpertPool *p, uint32_t e) {
    const uint32_t own = p->expert[e].together ? 1 : 2, n = p->n_queue - p->queue_at - own;
    uint32_t last[2];
    memcpy(last, p->queue + p->n_queue - own, own * sizeof *last);
    memmove(p->queue + p->queue_at + own, p->queue + p->queue_at, n * sizeof *p->queue);
    memcpy(p->queue + p->queue_at, last, own * sizeof *last);
}

/* It was given up after it was requested. */
static void request_again(QsfExpertPool *p, uint32_t e) {
    const uint32_t left = p->n_queue - p->queue_at;
    memmove(p->queue, p->queue + p->queue_at, left * sizeof *p->queue);
    p->queue_at = 0;
    p->n_queue = left;
    p->expert[e].queued = true;
    enqueue(p, p->unit[e]);
    enqueue_second(p, e);
    put_first(p, e);
}

/* Nothing is in flight, and all slots belong to experts that are half read: e comes first, the others begin
 * again. */
static void start_over(QsfExpertPool *p, uint32_t e) {
    qsf_expert_ahead_finish(p);
    p->queue_at = p->n_queue = 0;
    for (uint32_t i = 0; i < p->n_list; i++) {
        const uint32_t x = p->list[i];
        if (!p->expert[x].wanted || !is_missing(p, x)) continue;
        qsf_expert_leave(p, x);
        p->expert[x].queued = true;
        enqueue(p, p->unit[x]);
        enqueue_second(p, x);
        if (x == e) put_first(p, x);
    }
}

/* Reads until the unit is there. */
static int wait_for(QsfExpertPool *p, uint32_t e, unsigned which, QsfErr *err) {
    const QsfExpert *x = &p->expert[e];
    bool again = false;
    int rc = QSF_OK;
    if (x->guessed) qsf_expert_ahead_wait(p, e);
    if (is_missing(p, e) && !x->queued) request_again(p, e);
    while (rc == QSF_OK && !(x->there >> which & 1)) {
        read_on(p, true);
        if (p->n_jobs > 0) {
            rc = finish(p, err);
            read_on(p, false);
        } else if (p->ahead.n_reads > 0) {
            qsf_expert_ahead_finish(p); /* they were all that may be in flight */
        } else if (!again) {
            start_over(p, e);
            again = true;
        } else {
            rc = qsf_err_set(err, QSF_E_RUNTIME, "internal: no slot for expert unit %u", p->unit[e] + which);
        }
    }
    return rc;
}

int qsf_expert_pool_acquire(QsfExpertPool *p, uint32_t unit, QsfChunk *c, const uint8_t **data, QsfErr *err) {
    const uint32_t e = qsf_expert_find(p, unit);
    const unsigned which = unit - p->unit[e];
    if (!p->expert[e].wanted)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: expert unit %u was not requested", unit);
    int rc = wait_for(p, e, which, err);
    if (rc != QSF_OK) return rc;
    qsf_expert_ahead_on(p);
    *data = qsf_expert_place(p, e, which, c);
    return QSF_OK;
}

void qsf_expert_pool_release(QsfExpertPool *p, uint32_t unit) {
    const uint32_t e = qsf_expert_find(p, unit);
    if (unit == p->unit[e] || !p->expert[e].wanted) return;
    p->expert[e].wanted = false;
    p->n_wanted--;
    read_on(p, false);
    qsf_expert_ahead_on(p);
}

/* ---- a pass that broke off ---- */

void qsf_expert_pool_reset(QsfExpertPool *p) {
    QsfErr ignored = { 0 };
    while (p->n_jobs > 0) (void)finish(p, &ignored);
    qsf_err_clear(&ignored);
    qsf_expert_ahead_finish(p);
    qsf_expert_ahead_chosen(p);
    for (uint32_t i = 0; i < p->n_list; i++) {
        QsfExpert *x = &p->expert[p->list[i]];
        if (x->there != 3) qsf_expert_leave(p, p->list[i]);
        x->wanted = x->queued = false;
    }
    p->n_list = p->n_wanted = p->queue_at = p->n_queue = 0;
}

/* ---- free slots ---- */

uint32_t qsf_expert_next_to_fill(QsfExpertPool *p) {
    for (; p->fill_at < p->n_experts; p->fill_at++)
        if (p->expert[p->order[p->fill_at]].slot == QSF_NO_SLOT) return p->order[p->fill_at];
    return QSF_NO_SLOT;
}

/* Starts to read one expert into a free slot; false: there is none, or no expert is missing. */
static bool fill_one(QsfExpertPool *p) {
    const uint32_t e = p->n_free > 0 ? qsf_expert_next_to_fill(p) : QSF_NO_SLOT,
                   slot = e != QSF_NO_SLOT ? qsf_expert_find_slot(p, p->n_slots, e, false) : QSF_NO_SLOT;
    if (slot == QSF_NO_SLOT || p->owner[slot] != QSF_NO_SLOT) return false;
    qsf_expert_enter(p, e, slot);
    p->expert[e].queued = true;
    start(p, e, 0);
    if (!p->expert[e].together) start(p, e, 1);
    return true;
}

int qsf_expert_pool_fill(QsfExpertPool *p, uint64_t max_bytes, bool *more, QsfErr *err) {
    const uint32_t most = QSF_IO_DEPTH - 2 * QSF_UNIT_TENSORS;
    uint64_t done = 0;
    int rc = QSF_OK;
    p->fill_at = 0;
    qsf_expert_ahead_finish(p);
    if (!p->in_order && p->n_free > 0) qsf_expert_sort(p);
    p->filling = *more = true;
    while (rc == QSF_OK && done < max_bytes && *more) {
        while (p->n_reads <= most && done < max_bytes && (*more = fill_one(p))) done += p->slot_bytes;
        if (p->n_jobs > 0) rc = finish(p, err);
    }
    while (p->n_jobs > 0) {
        QsfErr later = { 0 };
        const int one = finish(p, rc == QSF_OK ? err : &later);
        if (rc == QSF_OK) rc = one;
        qsf_err_clear(&later);
    }
    p->filling = false;
    for (uint32_t s = 0; rc != QSF_OK && s < p->n_slots; s++)
        if (p->owner[s] != QSF_NO_SLOT && p->expert[p->owner[s]].there != 3) qsf_expert_leave(p, p->owner[s]);
    *more = *more && rc == QSF_OK && p->n_free > 0;
    return rc;
}
