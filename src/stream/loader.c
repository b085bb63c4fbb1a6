/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loader thread and the consumer's side. Position, slots and the ring of jobs change under one lock;
 * reads are started and awaited without it. */
#include "src/stream/loader.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/base/platform.h"
#include "src/file/qsf/layout.h"
#include "src/stream/checksums.h"
#include "src/stream/interleave.h"
#include "src/stream/loader_impl.h"

_Static_assert(sizeof(QsfWeightUnit) <= QSF_WEIGHT_UNIT_BYTES, "the plan has room for it");
_Static_assert(sizeof(QsfLayerCounters) <= QSF_LAYER_COUNTER_BYTES, "the plan has room for them");

#define STACK_BYTES    (256u * 1024)
#define CANCEL_POLL_NS 20000000L

/* ---- the thread ---- */

/* Called and returns with the lock held. */
static void begin_job(QsfLoader *l, QsfJob *j) {
    pthread_mutex_unlock(&l->lock);
    for (unsigned i = 0; i < j->n_reads; i++) qsf_io_start(l->io, &j->read[i]);
    pthread_mutex_lock(&l->lock);
}

static int wait_reads(QsfLoader *l, QsfJob *j, QsfErr *first) {
    QsfErr err = { 0 };
    int rc = QSF_OK;
    for (unsigned i = 0; i < j->n_reads;
         i++) { /* wait for all, even after a failure: their memory is in use */
        int one = qsf_io_wait(l->io, &j->read[i], rc == QSF_OK ? first : &err);
        if (rc == QSF_OK) rc = one;
    }
    return rc;
}

/* A read that was started before the running pass may have failed for a reason that no longer exists: it is
 * repeated. */
static bool is_outdated(const QsfLoader *l, const QsfJob *j) {
    return j->pass != l->pass && !l->drop && !l->failed && !l->stop;
}

/* Returns the address of the part's first row in the job's memory. */
static uint8_t *row_at(const QsfWeightUnit *w, const QsfJob *j, const QsfPart *p) {
    if (j->slot != NULL) return j->slot->data + p->at;
    const uint64_t off = w->u.offset[p->tensor], base = off & ~(uint64_t)(QSF_WINDOW - 1);
    return w->pin[p->tensor] + (off - base) + p->row0 * w->u.row_bytes[p->tensor];
}

/* Adds data read for the first time to the checksums. Data arrives in order, but an aborted pass starts over,
 * and rows that were pinned when they were checked may stream later. */
static int verify_checksums(QsfLoader *l, const QsfJob *j, const QsfChunk *c, QsfErr *err) {
    QsfWeightUnit *w = &l->o.units[j->unit];
    uint32_t *seen = j->slot != NULL ? &w->checked_items : &w->checked_pins;
    int rc = QSF_OK;
    if (l->o.sums == NULL || j->item0 > *seen || j->item1 <= *seen) return QSF_OK;
    for (unsigned i = 0; rc == QSF_OK && i < c->n_parts; i++) {
        const QsfPart *p = &c->part[i];
        uint32_t from, to;
        qsf_unit_rows(&w->u, *seen, j->item1, p->tensor, &from, &to);
        if (from < to)
            rc = qsf_checksums_add(l->o.sums, w, p->tensor, from, to,
                                   row_at(w, j, p) + (from - p->row0) * w->u.row_bytes[p->tensor], err);
    }
    if (rc == QSF_OK) *seen = j->item1;
    return rc;
}

static void take_form(const QsfLoader *l, const QsfJob *j, const QsfWeightUnit *w, const QsfChunk *c) {
    for (unsigned i = 0; i < c->n_parts; i++)
        qsf_interleave_arrived(w, &c->part[i], row_at(w, j, &c->part[i]), j->slot == NULL, l->o.group);
}

/* Converts rows to the form in which they are multiplied before they become visible. Pinned rows after a
 * failed piece do not count (qsf_job_done). */
static int arrive(QsfLoader *l, QsfJob *j, QsfErr *err) {
    const QsfWeightUnit *w = &l->o.units[j->unit];
    QsfChunk c;
    pthread_mutex_unlock(&l->lock);
    int rc = wait_reads(l, j, err);
    qsf_chunk_make(&w->u, j->item0, j->item1, &c);
    if (rc == QSF_OK)
        rc = j->compressed != NULL ? qsf_job_unpack(l, j, err) : verify_checksums(l, j, &c, err);
    bool counts = j->slot != NULL || atomic_load_explicit(&w->have_items, memory_order_relaxed) == j->item0;
    for (uint32_t k = 0; rc == QSF_OK && counts && k < qsf_job_units(l, j); k++) {
        if (k > 0) qsf_chunk_make(&w[k].u, 0, w[k].u.items, &c);
        take_form(l, j, &w[k], &c);
    }
    pthread_mutex_lock(&l->lock);
    return rc;
}

static void end_oldest(QsfLoader *l) {
    QsfJob *j = &l->job[l->first_job];
    QsfErr err = { 0 };
    int rc = arrive(l, j, &err);
    if (rc != QSF_OK && is_outdated(l, j)) {
        j->pass = l->pass;
        qsf_err_clear(&err);
        begin_job(l, j);
        rc = arrive(l, j, &err);
    }
    qsf_job_done(l, rc, &err);
    pthread_cond_broadcast(&l->ready);
}

static void forget(QsfLoader *l) {
    qsf_slots_reset(&l->slots);
    for (uint32_t i = 0; i < l->o.n_units; i++) {
        QsfWeightUnit *w = &l->o.units[i];
        w->started_items = atomic_load_explicit(&w->have_items, memory_order_relaxed);
    }
    l->pin_unit = l->pin_expert = 0;
    l->drop = false;
    pthread_cond_broadcast(&l->ready);
}

/* Frees the back end's threads and rings, and the stages, when nothing more will be read. */
static void close_io(QsfLoader *l) {
    QsfIo *io = l->io;
    l->io = NULL;
    pthread_mutex_unlock(&l->lock);
    qsf_io_destroy(io);
    qsf_mem_unmap(l->o.ledger, QSF_MEM_SLOTS, l->memory, l->memory_bytes);
    l->memory = NULL;
    pthread_mutex_lock(&l->lock);
}

static void *loader_main(void *arg) {
    QsfLoader *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        QsfJob *j;
        while (!l->stop && (j = qsf_job_next(l)) != NULL) begin_job(l, j);
        if (l->n_jobs > 0)
            end_oldest(l);
        else if (l->drop)
            forget(l);
        else if (l->io != NULL && qsf_loader_finished(l))
            close_io(l);
        else if (!l->stop)
            pthread_cond_wait(&l->work, &l->lock);
    }
    while (l->n_jobs > 0) end_oldest(l);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- the consumer ---- */

/* With the lock held. Moves everything to the start of the pass after this one. */
static void restart(QsfLoader *l) {
    l->drop = true;
    l->failed = false;
    qsf_err_clear(&l->err);
    l->load_pass = l->pass + 1;
    l->load = qsf_loader_first(l, 0);
    l->in_pass = false;
    l->held = NULL;
    l->n_wants = 0;
    pthread_cond_signal(&l->work);
}

void qsf_loader_begin_pass(QsfLoader *l, bool head) {
    pthread_mutex_lock(&l->lock);
    if (l->in_pass || l->failed) restart(l);
    /* The loader may not have run since it read the last chunk: move to the next pass first. */
    if (l->streams)
        qsf_loader_settle(l);
    else
        l->load_pass = l->pass + 1;
    l->pass++;
    l->limit = head ? l->o.n_units : l->o.n_units - 1;
    l->in_pass = true;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
}

static bool cancelled(const QsfLoader *l) {
    return l->o.cancel != NULL && atomic_load_explicit(l->o.cancel, memory_order_relaxed) != 0;
}

/* Sleeps until something happens. Fails if no progress is possible. */
static int wait_more(QsfLoader *l, QsfErr *err) {
    if (l->failed) return qsf_err_pass(err, &l->err);
    if (cancelled(l)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
    qsf_os_wait_for(&l->ready, &l->lock, CANCEL_POLL_NS);
    return QSF_OK;
}

static void count_wait(const QsfLoader *l, uint32_t unit, uint64_t since) {
    QsfStreamCounters *n = l->o.counters;
    uint64_t ns = qsf_now_ns() - since;
    atomic_fetch_add_explicit(&n->wait_ns, ns, memory_order_relaxed);
    if (n->layer != NULL)
        atomic_fetch_add_explicit(&n->layer[l->o.units[unit].u.layer].wait_ns, ns, memory_order_relaxed);
}

static bool has(const QsfLoader *l, uint32_t unit, uint32_t item) {
    return atomic_load_explicit(&l->o.units[unit].have_items, memory_order_acquire) > item;
}

/* With the lock held. */
static void want(QsfLoader *l, uint32_t unit) {
    if (l->n_wants == QSF_WANTED) return;
    l->want[(l->first_want + l->n_wants++) % QSF_WANTED] = unit;
    pthread_cond_signal(&l->work);
}

void qsf_loader_want(QsfLoader *l, uint32_t unit) {
    pthread_mutex_lock(&l->lock);
    want(l, unit);
    pthread_mutex_unlock(&l->lock);
}

int qsf_loader_wait_pinned(QsfLoader *l, uint32_t unit, uint32_t item, QsfErr *err) {
    uint64_t t0 = qsf_now_ns();
    int rc = QSF_OK;
    pthread_mutex_lock(&l->lock);
    if (!has(l, unit, item)) want(l, unit);
    while (rc == QSF_OK && !has(l, unit, item)) rc = wait_more(l, err);
    pthread_mutex_unlock(&l->lock);
    count_wait(l, unit, t0);
    return rc;
}

static bool seen(const QsfLoader *l, uint32_t unit) {
    return atomic_load_explicit(&l->o.units[unit].seen, memory_order_acquire);
}

int qsf_loader_wait_seen(QsfLoader *l, uint32_t unit, QsfErr *err) {
    uint64_t t0 = qsf_now_ns();
    int rc = QSF_OK;
    pthread_mutex_lock(&l->lock);
    while (rc == QSF_OK && !seen(l, unit)) rc = wait_more(l, err);
    pthread_mutex_unlock(&l->lock);
    count_wait(l, unit, t0);
    return rc;
}

/* Slots with data of a dropped pass are not for this one. */
static QsfSlot *acquire_slot(QsfLoader *l) { return l->drop ? NULL : qsf_slots_acquire(&l->slots); }

/* Does the slot hold the requested chunk, or the compressed layer of the unit? */
static bool is_wanted(const QsfLoader *l, const QsfSlot *slot, uint32_t unit, uint32_t item) {
    if (slot->chunk.unit == unit && slot->chunk.item0 == item) return true;
    const QsfCompressed *c = l->o.units[slot->chunk.unit].u.compressed;
    return c != NULL && c == l->o.units[unit].u.compressed && item == 0;
}

/* Makes the chunk for the consumer. A compressed layer stays until its last unit was used. */
static void show(QsfLoader *l, QsfSlot *slot, uint32_t unit, QsfChunk *c) {
    const QsfUnit *u = &l->o.units[unit].u;
    *c = slot->chunk;
    l->held = u->compressed != NULL ? slot : NULL;
    l->held_unit = unit;
    if (u->compressed != NULL) qsf_chunk_make(u, 0, u->items, c);
}

int qsf_loader_acquire(QsfLoader *l, uint32_t unit, uint32_t item, QsfChunk *c, const uint8_t **data,
                       QsfErr *err) {
    int rc = QSF_OK;
    pthread_mutex_lock(&l->lock);
    QsfSlot *slot = l->held != NULL ? l->held : acquire_slot(l);
    if (slot == NULL) {
        uint64_t t0 = qsf_now_ns();
        while (rc == QSF_OK && (slot = acquire_slot(l)) == NULL) rc = wait_more(l, err);
        count_wait(l, unit, t0);
    }
    pthread_mutex_unlock(&l->lock);
    if (slot == NULL) return rc;
    if (!is_wanted(l, slot, unit, item)) {
        return qsf_err_set(err, QSF_E_RUNTIME,
                           "internal: weight unit %u was requested, but unit %u is next in the stream",
                           (unsigned)unit, (unsigned)slot->chunk.unit);
    }
    show(l, slot, unit, c);
    *data = slot->data;
    return QSF_OK;
}

void qsf_loader_release(QsfLoader *l) {
    if (l->held != NULL && !qsf_unit_closes_compressed(&l->o.units[l->held_unit].u)) return;
    l->held = NULL;
    pthread_mutex_lock(&l->lock);
    qsf_slots_release(&l->slots);
    pthread_mutex_unlock(&l->lock);
    pthread_cond_signal(&l->work); /* signal after unlocking: the loader takes the lock immediately */
}

void qsf_loader_end_pass(QsfLoader *l) {
    pthread_mutex_lock(&l->lock);
    l->in_pass = false;
    pthread_mutex_unlock(&l->lock);
}

void qsf_loader_abort(QsfLoader *l) {
    pthread_mutex_lock(&l->lock);
    restart(l);
    pthread_mutex_unlock(&l->lock);
}

void qsf_loader_pause(QsfLoader *l) {
    pthread_mutex_lock(&l->lock);
    restart(l);
    l->paused = true;
    while (l->drop) pthread_cond_wait(&l->ready, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

void qsf_loader_continue(QsfLoader *l) {
    pthread_mutex_lock(&l->lock);
    l->paused = false;
    l->load = qsf_loader_first(l, 0);
    l->pin_unit = l->pin_expert = 0;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
}

const char *qsf_loader_io_name(const QsfLoader *l) { return l->io_name; }
const char *qsf_loader_io_notice(const QsfLoader *l) { return l->io_notice; }

/* ---- life ---- */

static void init_sync(QsfLoader *l) {
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    qsf_os_cond_init(&l->ready);
}

/* Blocks signals, which the thread that owns the terminal handles, except those of a fault. */
static int start_thread(QsfLoader *l, QsfErr *err) {
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
    pthread_attr_t attr;
    sigset_t set, old;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&set, faults[i]);
    int rc = pthread_attr_init(&attr);
    if (rc == 0) {
        pthread_attr_setstacksize(&attr, STACK_BYTES);
        pthread_sigmask(SIG_SETMASK, &set, &old);
        rc = pthread_create(&l->thread, &attr, loader_main, l);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
    }
    if (rc != 0) return qsf_err_set(err, QSF_E_RUNTIME, "cannot start the loader thread: %s", strerror(rc));
    l->started = true;
    return QSF_OK;
}

static int open_io(QsfLoader *l, QsfErr *err) {
    const QsfLoaderOptions *o = &l->o;
    const QsfIoOptions io = { .src = o->src,
                              .config = o->stream,
                              .buffers = l->memory,
                              .buffer_bytes = l->memory_bytes,
                              .ledger = o->ledger };
    int rc = qsf_io_create(&l->io, &io, err);
    if (rc != QSF_OK) return rc;
    snprintf(l->io_name, sizeof l->io_name, "%s", qsf_io_name(l->io));
    snprintf(l->io_notice, sizeof l->io_notice, "%s", qsf_io_notice(l->io));
    return QSF_OK;
}

/* Opens the decompressor, if any layer needs one. */
static int open_unpacker(QsfLoader *l, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < l->o.n_units; i++) {
        const QsfCompressed *c = l->o.units[i].u.compressed;
        if (c != NULL && c->how == QSFF_ZSTD && l->unpack_bytes == 0) {
            rc = qsf_ledger_reserve(l->o.ledger, QSF_MEM_SLOTS, QSF_ZSTD_READER_BYTES, "zstd", err);
            if (rc == QSF_OK) l->unpack_bytes = QSF_ZSTD_READER_BYTES;
        }
        if (rc == QSF_OK && c != NULL) rc = qsf_unpacker_need(&l->unpacker, c->how, err);
    }
    return rc;
}

static int set_up(QsfLoader *l, QsfErr *err) {
    const QsfLoaderOptions *o = &l->o;
    int rc = qsf_ledger_reserve(o->ledger, QSF_MEM_STACKS, STACK_BYTES, "loader thread", err);
    if (rc != QSF_OK) return rc;
    l->stack_bytes = STACK_BYTES;
    rc = open_unpacker(l, err);
    if (rc != QSF_OK) return rc;
    uint64_t bytes = o->n_slots * o->slot_bytes + o->n_stages * o->stage_bytes;
    rc = qsf_mem_map(o->ledger, QSF_MEM_SLOTS, bytes, "layer slots", &l->memory, err);
    if (rc != QSF_OK) return rc;
    l->memory_bytes = bytes;
    qsf_slots_init(&l->slots, o->n_slots, l->memory, o->slot_bytes);
    if (bytes > 0) l->stages = (uint8_t *)l->memory + o->n_slots * o->slot_bytes;
    l->streams = o->n_slots > 0;
    l->load = qsf_loader_first(l, 0);
    l->load_pass = 1; /* reading ahead of the first pass */
    rc = open_io(l, err);
    return rc == QSF_OK ? start_thread(l, err) : rc;
}

int qsf_loader_create(QsfLoader **out, const QsfLoaderOptions *o, QsfErr *err) {
    *out = NULL;
    QsfLoader *l = calloc(1, sizeof *l);
    if (l == NULL) return qsf_err_memory(err, "loader");
    l->o = *o;
    init_sync(l);
    int rc = set_up(l, err);
    if (rc != QSF_OK) {
        qsf_loader_destroy(l);
        return rc;
    }
    *out = l;
    return QSF_OK;
}

void qsf_loader_destroy(QsfLoader *l) {
    if (l == NULL) return;
    if (l->started) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_broadcast(&l->work);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    qsf_io_destroy(l->io);
    qsf_mem_unmap(l->o.ledger, QSF_MEM_SLOTS, l->memory, l->memory_bytes);
    qsf_unpacker_close(&l->unpacker);
    qsf_ledger_release(l->o.ledger, QSF_MEM_SLOTS, l->unpack_bytes);
    qsf_ledger_release(l->o.ledger, QSF_MEM_STACKS, l->stack_bytes);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
