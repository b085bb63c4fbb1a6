/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loader thread. Position and slots change under one lock; the read itself runs without it. The
 * loader may be one pass ahead of its consumer, but not past the body of that pass: whether the head is
 * wanted is known only when the pass begins. */
#include "src/stream/loader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/stream/reader.h"
#include "src/stream/slots.h"

#define STACK_BYTES (256u * 1024)
#define CANCEL_POLL_NS 20000000L

typedef struct Position {
    uint32_t unit, item;
} Position;

struct QsfLoader {
    QsfLoaderOptions o;
    QsfSlots slots;
    void *memory;
    uint64_t memory_bytes, stack_bytes;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock;
    pthread_cond_t work;    /* for the loader: there may be something to read */
    pthread_cond_t ready;   /* for the consumer: a slot is READY, or the loader failed or stopped */

    Position load;          /* next chunk to read */
    uint64_t load_pass, pass; /* pass that `load` belongs to, pass being computed */
    uint32_t limit;         /* units of the pass being computed */
    bool in_pass, loading, failed;
    QsfErr err;             /* why, when failed */
    atomic_bool stop, drop; /* end the thread; give up the read under way */
};

static bool give_up(void *arg) {
    QsfLoader *l = arg;
    return atomic_load_explicit(&l->stop, memory_order_relaxed) ||
           atomic_load_explicit(&l->drop, memory_order_relaxed);
}

static void count(void *arg, uint64_t bytes, uint64_t ns) {
    QsfStreamCounters *c = ((QsfLoader *)arg)->o.counters;
    atomic_fetch_add_explicit(&c->bytes_read, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->read_ns, ns, memory_order_relaxed);
}

static Position first_of(const QsfLoader *l, uint32_t unit) {
    return (Position){unit, unit < l->o.n_units ? l->o.units[unit].pinned_items : 0};
}

static void skip_pinned(const QsfLoader *l, Position *p, uint32_t limit) {
    while (p->unit < limit && p->item >= l->o.units[p->unit].u.items) *p = first_of(l, p->unit + 1);
}

/* Moves the position over the border between passes where it may; false when nothing can be read. */
static bool settle(QsfLoader *l) {
    if (l->load_pass == l->pass) {
        skip_pinned(l, &l->load, l->limit);
        if (l->load.unit < l->limit) return true;
        l->load_pass++;
        l->load = first_of(l, 0);
    }
    uint32_t body = l->o.n_units - 1;
    skip_pinned(l, &l->load, body);
    return l->load.unit < body;
}

static bool can_load(QsfLoader *l) {
    return !l->failed && !atomic_load(&l->drop) && qsf_slots_can_load(&l->slots) && settle(l);
}

static void next_chunk(const QsfLoader *l, QsfChunk *c) {
    const QsfWeightUnit *w = &l->o.units[l->load.unit];
    uint32_t left = w->u.items - l->load.item;
    qsf_chunk_make(&w->u, l->load.item, l->load.item + (left < w->chunk_items ? left : w->chunk_items), c);
}

/* Called and returns with the lock held. */
static void load_one(QsfLoader *l) {
    QsfChunk c;
    QsfErr err = {0};
    next_chunk(l, &c);
    QsfSlot *slot = qsf_slots_begin_load(&l->slots, &c);
    uint64_t began = l->pass;
    l->loading = true;
    pthread_mutex_unlock(&l->lock);
    const QsfReadHooks hooks = {give_up, count, l};
    int rc = qsf_read_chunk(l->o.src, &l->o.units[c.unit].u, &c, slot->data, &hooks, &err);
    pthread_mutex_lock(&l->lock);
    l->loading = false;
    qsf_slots_end_load(&l->slots, rc == QSF_OK);
    if (rc == QSF_OK) {
        l->load.item = c.item1;
    } else if (rc != QSF_E_INTERRUPTED && l->pass == began) { /* a pass begun since then gets its own try */
        l->failed = true;
        l->err = err;
    }
    pthread_cond_broadcast(&l->ready);
}

static void *loader_main(void *arg) {
    QsfLoader *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!atomic_load(&l->stop)) {
        if (can_load(l)) load_one(l);
        else pthread_cond_wait(&l->work, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* With the lock held: everything to the start of the pass after this one. */
static void restart(QsfLoader *l) {
    atomic_store(&l->drop, true);
    while (l->loading) pthread_cond_wait(&l->ready, &l->lock);
    qsf_slots_reset(&l->slots);
    l->failed = false;
    qsf_err_clear(&l->err);
    l->load_pass = l->pass + 1;
    l->load = first_of(l, 0);
    l->in_pass = false;
    atomic_store(&l->drop, false);
    pthread_cond_signal(&l->work);
}

void qsf_loader_begin_pass(QsfLoader *l, bool head) {
    pthread_mutex_lock(&l->lock);
    if (l->in_pass || l->failed) restart(l);
    settle(l); /* the loader may not have looked since it read the last chunk: over the border first */
    l->pass++;
    l->limit = head ? l->o.n_units : l->o.n_units - 1;
    l->in_pass = true;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
}

static struct timespec soon(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += CANCEL_POLL_NS;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        t.tv_sec++;
    }
    return t;
}

static bool cancelled(const QsfLoader *l) {
    return l->o.cancel != NULL && atomic_load_explicit(l->o.cancel, memory_order_relaxed) != 0;
}

/* With the lock held. NULL with *err set when it cannot be had. */
static QsfSlot *wait_ready(QsfLoader *l, QsfErr *err) {
    QsfSlot *slot;
    while ((slot = qsf_slots_acquire(&l->slots)) == NULL) {
        if (l->failed) {
            qsf_err_set(err, l->err.code, "%s", l->err.msg);
            return NULL;
        }
        if (cancelled(l)) {
            qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
            return NULL;
        }
        struct timespec t = soon();
        pthread_cond_timedwait(&l->ready, &l->lock, &t);
    }
    return slot;
}

int qsf_loader_acquire(QsfLoader *l, uint32_t unit, uint32_t item, QsfChunk *c, const uint8_t **data,
                       QsfErr *err) {
    pthread_mutex_lock(&l->lock);
    QsfSlot *slot = qsf_slots_acquire(&l->slots);
    if (slot == NULL) {
        uint64_t t0 = qsf_now_ns();
        slot = wait_ready(l, err);
        atomic_fetch_add_explicit(&l->o.counters->wait_ns, qsf_now_ns() - t0, memory_order_relaxed);
    }
    pthread_mutex_unlock(&l->lock);
    if (slot == NULL) return err != NULL ? err->code : QSF_E_RUNTIME;
    if (slot->chunk.unit != unit || slot->chunk.item0 != item) {
        return qsf_err_set(err, QSF_E_RUNTIME, "weight unit %u was asked for, unit %u is next in the stream",
                           (unsigned)unit, (unsigned)slot->chunk.unit);
    }
    *c = slot->chunk;
    *data = slot->data;
    return QSF_OK;
}

void qsf_loader_release(QsfLoader *l) {
    pthread_mutex_lock(&l->lock);
    qsf_slots_release(&l->slots);
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
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

static void init_sync(QsfLoader *l) {
    pthread_condattr_t attr;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->work, &attr);
    pthread_cond_init(&l->ready, &attr);
    pthread_condattr_destroy(&attr);
}

/* Signals belong to the thread that owns the terminal; those of a fault stay open. */
static int start_thread(QsfLoader *l, QsfErr *err) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
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

static int set_up(QsfLoader *l, QsfErr *err) {
    const QsfLoaderOptions *o = &l->o;
    int rc = qsf_ledger_reserve(o->ledger, QSF_MEM_STACKS, STACK_BYTES, "loader thread", err);
    if (rc != QSF_OK) return rc;
    l->stack_bytes = STACK_BYTES;
    uint64_t bytes = o->n_slots * o->slot_bytes;
    rc = qsf_mem_map(o->ledger, QSF_MEM_SLOTS, bytes, "layer slots", &l->memory, err);
    if (rc != QSF_OK) return rc;
    l->memory_bytes = bytes;
    qsf_slots_init(&l->slots, o->n_slots, l->memory, o->slot_bytes);
    l->load = first_of(l, 0);
    l->load_pass = 1; /* reading ahead of the first pass */
    return start_thread(l, err);
}

int qsf_loader_create(QsfLoader **out, const QsfLoaderOptions *o, QsfErr *err) {
    *out = NULL;
    QsfLoader *l = calloc(1, sizeof *l);
    if (l == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: loader");
    l->o = *o;
    atomic_init(&l->stop, false);
    atomic_init(&l->drop, false);
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
        atomic_store(&l->stop, true);
        pthread_cond_broadcast(&l->work);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    qsf_mem_unmap(l->o.ledger, QSF_MEM_SLOTS, l->memory, l->memory_bytes);
    qsf_ledger_release(l->o.ledger, QSF_MEM_STACKS, l->stack_bytes);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
