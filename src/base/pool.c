/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Persistent workers. A job is published by advancing a generation number; a worker that waits
 * spins on that number for a moment and then sleeps. Sleeper counts and the generation are
 * sequentially consistent, so a worker that goes to sleep and a caller that publishes cannot
 * both miss each other.
 *
 * A job is cut into some shares per thread. A thread takes its own shares first and then those that nobody has
 * begun, so a worker whose CPU is taken away, by the loader or by another program, holds up the others by one
 * share at most. A share is taken by moving its claim forward to the job's generation; whoever succeeds may read
 * the job, since it cannot end before that share does. */
#include "src/base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"

#define STACK_BYTES     (256u * 1024)
#define SPIN_NS         40000u /* longer than the gap between two jobs of a token */
#define QUIET_NS        5000u /* from here on let others run: the thread waited for may need this CPU */
#define SPINS_PER_CHECK 64    /* pauses between two looks at the clock */
#define SHARES_EACH     4     /* per thread */

typedef struct Worker {
    QsfPool *pool;
    int index;
    pthread_t thread;
} Worker;

struct QsfPool {
    QsfLedger *ledger;
    int n;        /* threads in all, the caller included */
    int started;  /* worker threads that run */
    size_t stack; /* bytes charged per worker */
    bool spin;    /* false when there are more threads than CPUs: spinning would steal the CPU it waits for */
    Worker *workers; /* (n - 1) */

    /* The job: written by the caller before it advances job, read by who has claimed a share of it. */
    QsfPoolFn fn;
    void *arg;
    size_t n_items, grain;
    atomic_bool stop;
    atomic_uint *claim;  /* (n_shares) newest generation of which the share is taken */
    int n_shares;
    uint64_t waited_ns;  /* the caller's */

    _Alignas(64) atomic_uint job;     /* generation */
    _Alignas(64) atomic_int pending;  /* shares that are not finished */
    _Alignas(64) atomic_int sleepers; /* workers in cond_wait on start */
    atomic_bool caller_sleeps;
    pthread_mutex_t lock;
    pthread_cond_t start, done;
};

static void cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* [*begin, *end) of share w: whole grains, spread evenly, the first shares take the remainder. */
static void share(size_t n_items, size_t grain, int n, int w, size_t *begin, size_t *end) {
    size_t units = n_items / grain + (n_items % grain != 0);
    size_t per = units / (size_t)n, rest = units % (size_t)n, i = (size_t)w;
    size_t first = i * per + (i < rest ? i : rest);
    size_t last = first + per + (i < rest ? 1 : 0);
    *begin = first < units ? first * grain : n_items;
    *end = last < units ? last * grain : n_items;
}

static void run_share(QsfPool *p, int i, int worker) {
    size_t begin, end;
    share(p->n_items, p->grain, p->n_shares, i, &begin, &end);
    if (begin < end) p->fn(p->arg, worker, begin, end);
}

/* Generations only grow (and wrap around): one that was overtaken claims nothing. */
static bool claim(QsfPool *p, int i, unsigned job) {
    unsigned last = atomic_load_explicit(&p->claim[i], memory_order_relaxed);
    if ((int)(job - last) <= 0) return false;
    return atomic_compare_exchange_strong_explicit(&p->claim[i], &last, job, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* All shares that this thread gets: its own from their first on, then those of the others from the last on. Returns
 * their number. */
static int take_shares(QsfPool *p, unsigned job, int worker) {
    int own = worker * SHARES_EACH, n = 0;
    for (int k = 0; k < p->n_shares; k++) {
        int i = k < SHARES_EACH ? own + k : (own + p->n_shares + SHARES_EACH - 1 - k) % p->n_shares;
        if (!claim(p, i, job)) continue;
        run_share(p, i, worker);
        n++;
    }
    return n;
}

static bool job_is_new(QsfPool *p, unsigned seen) {
    return atomic_load_explicit(&p->job, memory_order_acquire) != seen;
}

static bool workers_done(QsfPool *p, unsigned unused) {
    (void)unused;
    return atomic_load_explicit(&p->pending, memory_order_acquire) == 0;
}

/* Spins until cond holds; false when the time is up. */
static bool spin_until(QsfPool *p, bool (*cond)(QsfPool *, unsigned), unsigned arg) {
    if (cond(p, arg)) return true;
    if (!p->spin) return false;
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

static void wait_for_job(QsfPool *p, unsigned seen) {
    if (spin_until(p, job_is_new, seen)) return;
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->job) == seen) pthread_cond_wait(&p->start, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static void publish(QsfPool *p) {
    atomic_store_explicit(&p->pending, p->n_shares, memory_order_relaxed);
    atomic_fetch_add(&p->job, 1);
    if (atomic_load(&p->sleepers) == 0) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
}

static void finish_shares(QsfPool *p, int n) {
    if (n == 0 || atomic_fetch_sub(&p->pending, n) != n || !atomic_load(&p->caller_sleeps)) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg) {
    Worker *w = arg;
    QsfPool *p = w->pool;
    for (unsigned seen = 0;;) {
        wait_for_job(p, seen);
        if (atomic_load(&p->stop)) return NULL;
        seen = atomic_load(&p->job); /* it may have advanced by more than one */
        finish_shares(p, take_shares(p, seen, w->index));
    }
}

static void wait_for_shares(QsfPool *p) {
    if (spin_until(p, workers_done, 0)) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (atomic_load(&p->pending) != 0) pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

void qsf_pool_run(QsfPool *p, QsfPoolFn fn, void *arg, size_t n_items, size_t grain) {
    if (n_items == 0) return;
    if (grain == 0) grain = 1;
    if (p->n == 1 || n_items <= grain) {
        fn(arg, 0, 0, n_items);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->n_items = n_items;
    p->grain = grain;
    publish(p);
    finish_shares(p, take_shares(p, atomic_load_explicit(&p->job, memory_order_relaxed), 0));
    if (workers_done(p, 0)) return;
    uint64_t t0 = qsf_now_ns();
    wait_for_shares(p);
    p->waited_ns += qsf_now_ns() - t0;
}

uint64_t qsf_pool_waited_ns(const QsfPool *p) { return p->waited_ns; }

int qsf_pool_threads(const QsfPool *p) { return p->n; }

/* Workers take no asynchronous signals: those belong to the thread that handles the terminal.
 * Signals of a fault stay open, a blocked one would kill the process without its handler. */
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
    p->n_shares = n_threads * SHARES_EACH;
    p->workers = calloc((size_t)n_threads, sizeof *p->workers);
    p->claim = calloc((size_t)p->n_shares, sizeof *p->claim);
    if (p->workers == NULL || p->claim == NULL) {
        free(p->workers);
        free(p->claim);
        free(p);
        return NULL;
    }
    p->spin = n_threads <= qsf_cpu_count();
    atomic_init(&p->job, 0);
    atomic_init(&p->pending, 0);
    atomic_init(&p->sleepers, 0);
    atomic_init(&p->caller_sleeps, false);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    pthread_cond_init(&p->done, NULL);
    return p;
}

int qsf_pool_create(QsfPool **out, int n_threads, QsfLedger *ledger, QsfErr *err) {
    *out = NULL;
    if (n_threads < 1) n_threads = 1;
    size_t stack = STACK_BYTES;
    long least = sysconf(_SC_THREAD_STACK_MIN);
    if (least > 0 && stack < (size_t)least) stack = (size_t)least;
    int rc =
        qsf_ledger_reserve(ledger, QSF_MEM_STACKS, stack * (size_t)(n_threads - 1), "worker threads", err);
    if (rc != QSF_OK) return rc;
    QsfPool *p = pool_alloc(n_threads);
    if (p == NULL) {
        qsf_ledger_release(ledger, QSF_MEM_STACKS, stack * (size_t)(n_threads - 1));
        return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: %d threads", n_threads);
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
    publish(p);
    for (int i = 0; i < p->started; i++) pthread_join(p->workers[i].thread, NULL);
    qsf_ledger_release(p->ledger, QSF_MEM_STACKS, p->stack * (size_t)(p->n - 1));
    pthread_cond_destroy(&p->start);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p->claim);
    free(p);
}
