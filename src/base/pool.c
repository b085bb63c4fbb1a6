/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Thread pool. A job is published by advancing a generation number; a waiting worker spins on that number for
 * a moment and then sleeps on it. The generation and the counts of sleepers and pending units are
 * sequentially consistent, and the kernel checks the number again before it puts a thread to sleep, so a
 * wake-up cannot be lost.
 *
 * A job is divided into units of a grain, and every thread has a range of them. A thread takes a quarter of
 * what is left of its range at a time; when its range is empty, it steals half of what is left of another
 * one. So pieces start long and become short, all threads finish within one unit of each other, and a thread
 * that loses its CPU, to the loader or another program, delays only the units it has started. A thread that
 * has taken units may read the job, which cannot end before they are done; a range includes the generation of
 * its job, so a late worker cannot take units of the next job while that is being set up.
 *
 * Fewer threads than there are may be in use. The others sleep on the number in use, not on the generation,
 * so that a job does not wake them; one that notices late can only do units that have to be done anyway. */
#include "src/base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/cpus.h"
#include "src/base/platform.h"

#define STACK_BYTES     (256u * 1024)
#define SPIN_NS         500000u /* longer than the pause between two tokens; then sleep */
#define QUIET_NS        5000u   /* yield after this time: the thread waited for may need this CPU */
#define SPINS_PER_CHECK 64      /* pauses between two checks of the clock */

/* Units [begin, end) that no thread has taken yet, and the generation of their job: 24, 24 and 16 bits. */
#define UNIT_BITS 24
#define UNIT_MASK ((1u << UNIT_BITS) - 1)
typedef struct Range {
    _Alignas(64) atomic_uint_fast64_t left;
} Range;

typedef struct Worker {
    QsfPool *pool;
    int index;
    pthread_t thread;
} Worker;

struct QsfPool {
    QsfLedger *ledger;
    int n;           /* number of threads, including the caller */
    int cpus;        /* that this process may use at once */
    int started;     /* number of running worker threads */
    size_t stack;    /* bytes charged per worker */
    Worker *workers; /* (n - 1) */

    /* The job: written by the caller before it fills the ranges, read by threads that have taken units. */
    QsfPoolFn fn;
    void *arg;
    size_t n_items, grain;
    atomic_bool stop;
    Range *range;       /* (n) */
    uint64_t waited_ns; /* the caller's */

    _Alignas(64) atomic_uint used;    /* threads in use: 1 .. n */
    _Alignas(64) atomic_uint job;     /* generation */
    _Alignas(64) atomic_uint pending; /* units that are not finished */
    _Alignas(64) atomic_int sleepers; /* workers that sleep, or are about to */
    atomic_bool caller_sleeps;
};

static void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static int in_use(const QsfPool *p) { return (int)atomic_load_explicit(&p->used, memory_order_relaxed); }

/* ---- units ---- */

static uint64_t pack(unsigned job, uint32_t begin, uint32_t end) {
    return (uint64_t)(job & 0xFFFF) << 2 * UNIT_BITS | (uint64_t)end << UNIT_BITS | begin;
}

/* Takes some of the first units of the range, or, if called by another thread, of the last ones. */
static bool take(Range *r, unsigned job, bool own, uint32_t *begin, uint32_t *end) {
    uint64_t v = atomic_load_explicit(&r->left, memory_order_relaxed);
    for (;;) {
        uint32_t b = v & UNIT_MASK, e = v >> UNIT_BITS & UNIT_MASK;
        if (b >= e || v >> 2 * UNIT_BITS != (job & 0xFFFF)) return false;
        uint32_t mid = own ? b + (e - b + 3) / 4 : e - (e - b + 1) / 2;
        *begin = own ? b : mid;
        *end = own ? mid : e;
        if (atomic_compare_exchange_weak_explicit(&r->left, &v, own ? pack(job, mid, e) : pack(job, b, mid),
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    }
}

/* Moves units from another thread to this one, whose range is empty. */
static bool take_over(QsfPool *p, unsigned job, int worker) {
    uint32_t begin, end;
    const int n = in_use(p);
    for (int k = 1; k <= n; k++) {
        const int other = (worker + k) % n;
        if (other == worker || !take(&p->range[other], job, false, &begin, &end)) continue;
        atomic_store_explicit(&p->range[worker].left, pack(job, begin, end), memory_order_release);
        return true;
    }
    return false;
}

/* Runs all units that this thread can get. Returns their number. */
static uint32_t work(QsfPool *p, unsigned job, int worker) {
    uint32_t begin, end, n = 0;
    do {
        while (take(&p->range[worker], job, true, &begin, &end)) {
            size_t last = (size_t)end * p->grain;
            p->fn(p->arg, worker, (size_t)begin * p->grain, last < p->n_items ? last : p->n_items);
            n += end - begin;
        }
    } while (take_over(p, job, worker));
    return n;
}

static void finish(QsfPool *p, uint32_t n) {
    if (n == 0 || atomic_fetch_sub(&p->pending, n) != n || !atomic_load(&p->caller_sleeps)) return;
    qsf_os_wake(&p->pending, true);
}

/* ---- waiting ---- */

static bool job_is_new(QsfPool *p, unsigned seen) {
    return atomic_load_explicit(&p->job, memory_order_acquire) != seen;
}

static bool workers_done(QsfPool *p, unsigned unused) {
    (void)unused;
    return atomic_load_explicit(&p->pending, memory_order_acquire) == 0;
}

/* Spins until cond holds; returns false when the time is up. */
static bool spin_until(QsfPool *p, bool (*cond)(QsfPool *, unsigned), unsigned arg) {
    if (cond(p, arg)) return true;
    if (in_use(p) > p->cpus) return false; /* spinning would steal the CPU it waits for */
    uint64_t start = qsf_now_ns(), waited;
    do {
        for (int i = 0; i < SPINS_PER_CHECK; i++) {
            if (cond(p, arg)) return true;
            cpu_relax();
        }
        waited = qsf_now_ns() - start;
        if (waited > QUIET_NS) sched_yield();
    } while (waited < SPIN_NS);
    return false;
}

/* Sleeps while this worker is not in use. */
static void wait_for_use(QsfPool *p, int worker) {
    unsigned used;
    while ((used = atomic_load(&p->used)) <= (unsigned)worker) qsf_os_sleep(&p->used, used);
}

static void wait_for_job(QsfPool *p, unsigned seen) {
    if (spin_until(p, job_is_new, seen)) return;
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->job) == seen) qsf_os_sleep(&p->job, seen);
    atomic_fetch_sub(&p->sleepers, 1);
}

static void publish(QsfPool *p) {
    atomic_fetch_add(&p->job, 1);
    if (atomic_load(&p->sleepers) > 0) qsf_os_wake(&p->job, true);
}

static void *worker_main(void *arg) {
    Worker *w = arg;
    QsfPool *p = w->pool;
    for (unsigned seen = 0;;) {
        wait_for_job(p, seen);
        /* The generation may have advanced by more than one. The last one is published after the stop flag,
         * so the flag is checked after reading the generation; otherwise a late worker would wait forever. */
        seen = atomic_load(&p->job);
        if (atomic_load(&p->stop)) return NULL;
        if (w->index < in_use(p))
            finish(p, work(p, seen, w->index));
        else
            wait_for_use(p, w->index);
    }
}

static void wait_for_workers(QsfPool *p) {
    if (spin_until(p, workers_done, 0)) return;
    unsigned left;
    atomic_store(&p->caller_sleeps, true);
    while ((left = atomic_load(&p->pending)) != 0) qsf_os_sleep(&p->pending, left);
    atomic_store(&p->caller_sleeps, false);
}

static void set_job(QsfPool *p, QsfPoolFn fn, void *arg, size_t n_items, size_t grain) {
    while (n_items / grain >= UNIT_MASK) grain *= 2;
    unsigned job = atomic_load_explicit(&p->job, memory_order_relaxed) + 1;
    uint32_t units = (uint32_t)(n_items / grain + (n_items % grain != 0)), n = (uint32_t)in_use(p);
    p->fn = fn;
    p->arg = arg;
    p->n_items = n_items;
    p->grain = grain;
    atomic_store_explicit(&p->pending, units, memory_order_relaxed);
    for (uint32_t i = 0, begin = 0; i < n; i++) {
        uint32_t end = begin + units / n + (i < units % n ? 1 : 0);
        atomic_store_explicit(&p->range[i].left, pack(job, begin, end), memory_order_release);
        begin = end;
    }
}

void qsf_pool_run(QsfPool *p, QsfPoolFn fn, void *arg, size_t n_items, size_t grain) {
    if (n_items == 0) return;
    if (grain == 0) grain = 1;
    if (in_use(p) == 1 || n_items <= grain) {
        fn(arg, 0, 0, n_items);
        return;
    }
    set_job(p, fn, arg, n_items, grain);
    publish(p);
    finish(p, work(p, atomic_load_explicit(&p->job, memory_order_relaxed), 0));
    if (workers_done(p, 0)) return;
    uint64_t t0 = qsf_now_ns();
    wait_for_workers(p);
    p->waited_ns += qsf_now_ns() - t0;
}

uint64_t qsf_pool_waited_ns(const QsfPool *p) { return p->waited_ns; }

int qsf_pool_threads(const QsfPool *p) { return p->n; }

int qsf_pool_used(const QsfPool *p) { return in_use(p); }

void qsf_pool_use(QsfPool *p, int n_threads) {
    if (n_threads < 1) n_threads = 1;
    if (n_threads > p->n) n_threads = p->n;
    const int before = in_use(p);
    if (n_threads == before) return;
    atomic_store(&p->used, (unsigned)n_threads);
    if (n_threads > before) qsf_os_wake(&p->used, true);
}

/* Workers block asynchronous signals, which belong to the thread that handles the terminal. Fault signals
 * stay unblocked: a blocked one would kill the process without its handler. */
static void block_signals(sigset_t *old) {
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_SETMASK, &set, old);
}

static int start_workers(QsfPool *p, QsfErr *err) {
    pthread_attr_t attr;
    sigset_t old;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) return qsf_err_set(err, QSF_E_RUNTIME, "cannot start threads: %s", strerror(rc));
    pthread_attr_setstacksize(&attr, p->stack);
    block_signals(&old);
    for (int i = 0; rc == 0 && i < p->n - 1; i++) {
        p->workers[i] = (Worker){ .pool = p, .index = i + 1 };
        rc = pthread_create(&p->workers[i].thread, &attr, worker_main, &p->workers[i]);
        if (rc == 0) p->started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (rc == 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "cannot start thread %d of %d: %s", p->started + 2, p->n,
                       strerror(rc));
}

static QsfPool *pool_alloc(int n_threads) {
    QsfPool *p = aligned_alloc(_Alignof(QsfPool), sizeof *p);
    if (p == NULL) return NULL;
    memset(p, 0, sizeof *p);
    p->n = n_threads;
    p->workers = calloc((size_t)n_threads, sizeof *p->workers);
    p->range = aligned_alloc(_Alignof(Range), (size_t)n_threads * sizeof *p->range);
    if (p->workers == NULL || p->range == NULL) {
        free(p->workers);
        free(p->range);
        free(p);
        return NULL;
    }
    for (int i = 0; i < n_threads; i++) atomic_init(&p->range[i].left, 0);
    p->cpus = qsf_cpu_count();
    atomic_init(&p->used, (unsigned)n_threads);
    atomic_init(&p->job, 0);
    atomic_init(&p->pending, 0);
    atomic_init(&p->sleepers, 0);
    atomic_init(&p->caller_sleeps, false);
    return p;
}

int qsf_pool_create(QsfPool **out, int n_threads, QsfLedger *ledger, QsfErr *err) {
    *out = NULL;
    if (n_threads < 1) n_threads = 1;
    size_t stack = STACK_BYTES;
    long least = sysconf(_SC_THREAD_STACK_MIN);
    if (least > 0 && stack < (size_t)least) stack = (size_t)least;
    int rc = qsf_ledger_reserve(ledger, QSF_MEM_STACKS, stack * (size_t)(n_threads - 1), "worker threads",
                                err);
    if (rc != QSF_OK) return rc;
    QsfPool *p = pool_alloc(n_threads);
    if (p == NULL) {
        qsf_ledger_release(ledger, QSF_MEM_STACKS, stack * (size_t)(n_threads - 1));
        return qsf_err_memory(err, "%d threads", n_threads);
    }
    p->ledger = ledger;
    p->stack = stack;
    rc = start_workers(p, err);
    if (rc != QSF_OK) {
        qsf_pool_destroy(p);
        return rc;
    }
    *out = p;
    return QSF_OK;
}

void qsf_pool_destroy(QsfPool *p) {
    if (p == NULL) return;
    atomic_store(&p->stop, true);
    qsf_pool_use(p, p->n); /* wakes those that are not in use */
    publish(p);
    for (int i = 0; i < p->started; i++) pthread_join(p->workers[i].thread, NULL);
    qsf_ledger_release(p->ledger, QSF_MEM_STACKS, p->stack * (size_t)(p->n - 1));
    free(p->workers);
    free(p->range);
    free(p);
}

/* ---- gates ---- */

#define GATE_SPINS 500u /* pauses before a thread sleeps: tasks are that short */

void qsf_gate_init(QsfGate *g, unsigned n) {
    g->n = n;
    atomic_init(&g->next, 0);
    atomic_init(&g->left, n);
    atomic_init(&g->is_open, 0);
    atomic_init(&g->sleepers, 0);
}

bool qsf_gate_take(QsfGate *g, unsigned *task) {
    if (atomic_load_explicit(&g->next, memory_order_relaxed) >= g->n) return false;
    *task = atomic_fetch_add_explicit(&g->next, 1, memory_order_relaxed);
    return *task < g->n;
}

bool qsf_gate_done(QsfGate *g) { return atomic_fetch_sub_explicit(&g->left, 1, memory_order_acq_rel) == 1; }

void qsf_gate_open(QsfGate *g) {
    atomic_store(&g->is_open, 1);
    if (atomic_load(&g->sleepers) > 0) qsf_os_wake(&g->is_open, true);
}

void qsf_gate_wait(QsfGate *g) {
    for (unsigned i = 0; i < GATE_SPINS; i++) {
        if (atomic_load_explicit(&g->is_open, memory_order_acquire)) return;
        cpu_relax();
    }
    atomic_fetch_add(&g->sleepers, 1);
    while (!atomic_load(&g->is_open)) qsf_os_sleep(&g->is_open, 0);
    atomic_fetch_sub(&g->sleepers, 1);
}
