/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads of the benchmark: they spin between jobs, so that starting or waking one is not measured. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/kernels/ck_bench.h"

enum { HUGE_PAGE = 2 << 20, SPINS = 1 << 14 };

static struct {
    pthread_t th[CK_MAX_THREADS];
    int n;
    ck_piece fn;
    void *arg;
    size_t pieces;
    int threads;        /* of the job */
    atomic_size_t next; /* piece */
    atomic_uint job;    /* incremented when a job begins */
    atomic_int busy;    /* threads that have not seen its end */
    atomic_int stop;
} pool;

double ck_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void *ck_memory(size_t n) {
    n = (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *p = aligned_alloc(HUGE_PAGE, n);
    if (!p) {
        fprintf(stderr, "checkkern: no memory for the benchmark\n");
        exit(1);
    }
#ifdef MADV_HUGEPAGE
    (void)madvise(p, n, MADV_HUGEPAGE);
#endif
    return p;
}

int ck_cpus(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > CK_MAX_THREADS ? CK_MAX_THREADS : (int)n;
}

static void take_pieces(void) {
    for (size_t i; (i = atomic_fetch_add(&pool.next, 1)) < pool.pieces;) pool.fn(pool.arg, i);
}

/* One more iteration of a waiting loop; after many of them the core is yielded. */
static void wait_a_turn(unsigned *turns) {
    if (++*turns > SPINS) {
        sched_yield();
        return;
    }
#if defined __x86_64__
    __builtin_ia32_pause();
#endif
}

static void *worker(void *arg) {
    const int me = (int)(size_t)arg;
    for (unsigned seen = 0;; seen++) {
        unsigned turns = 0;
        while (atomic_load(&pool.job) == seen) wait_a_turn(&turns);
        if (atomic_load(&pool.stop)) return NULL;
        if (me < pool.threads) take_pieces();
        atomic_fetch_sub(&pool.busy, 1);
    }
}

void ck_pool_start(int n) {
    pool.n = n;
    atomic_store(&pool.stop, 0);
    atomic_store(&pool.job, 0);
    for (int i = 1; i < n; i++)
        if (pthread_create(&pool.th[i], NULL, worker, (void *)(size_t)i) != 0) {
            fprintf(stderr, "checkkern: cannot start a thread\n");
            exit(1);
        }
}

void ck_pool_stop(void) {
    atomic_store(&pool.stop, 1);
    atomic_fetch_add(&pool.job, 1);
    for (int i = 1; i < pool.n; i++) pthread_join(pool.th[i], NULL);
    pool.n = 0;
}

double ck_pool_run(int threads, ck_piece fn, void *arg, size_t n) {
    unsigned turns = 0;
    pool.fn = fn;
    pool.arg = arg;
    pool.pieces = n;
    pool.threads = threads;
    atomic_store(&pool.next, 0);
    atomic_store(&pool.busy, pool.n - 1);
    const double start = ck_now();
    atomic_fetch_add(&pool.job, 1);
    take_pieces();
    while (atomic_load(&pool.busy) > 0) wait_a_turn(&turns);
    return ck_now() - start;
}
