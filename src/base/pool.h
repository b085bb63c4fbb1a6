/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Thread pool for parallel row ranges. The caller is worker 0; the other workers spin for a short time
 * between jobs and then sleep on a futex, so that the many small jobs of a token need no wake-up and an idle
 * program uses no CPU. */
#ifndef QSF_BASE_POOL_H
#define QSF_BASE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/ledger.h"

typedef struct QsfPool QsfPool;

/* Processes items [begin, end). worker is 0 .. n_threads-1. */
typedef void (*QsfPoolFn)(void *arg, int worker, size_t begin, size_t end);

/* Creates a pool of n_threads >= 1 threads including the caller: starts n_threads-1, each with a 256 KiB
 * stack charged to STACKS. Free *out with qsf_pool_destroy. QSF_E_RUNTIME, QSF_E_BUDGET. */
int qsf_pool_create(QsfPool **out, int n_threads, QsfLedger *ledger, QsfErr *err);
/* Returns the number of threads, including the caller. */
int qsf_pool_threads(const QsfPool *p);
/* Between two jobs, by the thread that calls qsf_pool_run: uses n_threads of the pool's threads, at least 1,
 * at most all, for the next jobs; first all are in use. The others sleep and cost nothing. */
void qsf_pool_use(QsfPool *p, int n_threads);
/* Returns the number of threads in use. Only for the thread that calls qsf_pool_run. */
int qsf_pool_used(const QsfPool *p);
/* Splits n_items into contiguous pieces, several per thread and smaller towards the end, whose bounds are
 * multiples of grain (the last one ends at n_items). Returns when all are done. Other threads steal the
 * pieces that a delayed thread has not started. Only one thread at a time may call it. The result of an item
 * must not depend on its piece or its worker, so that the split never changes a result. */
void qsf_pool_run(QsfPool *p, QsfPoolFn fn, void *arg, size_t n_items, size_t grain);
/* Returns the total time that qsf_pool_run has spent waiting for the other threads. Only for the thread that
 * calls qsf_pool_run. */
uint64_t qsf_pool_waited_ns(const QsfPool *p);
/* Stops and joins the threads. p may be NULL. */
void qsf_pool_destroy(QsfPool *p);

/* ---- what all pieces of a job need ---- */

/* Small tasks of a job whose results all of its pieces need: a gate instead of a job of its own, which
 * would wait for all threads. Each piece first does the tasks that are left, then what needs no results,
 * and waits for the gate last. Lives until the job has ended. */
typedef struct QsfGate {
    _Alignas(64) atomic_uint next; /* the first task that is not taken */
    atomic_uint left;              /* tasks that are not done */
    atomic_uint is_open;
    atomic_int sleepers;
    unsigned n;
} QsfGate;

/* Before the job: n > 0 tasks. */
void qsf_gate_init(QsfGate *g, unsigned n);
/* Any thread of the job. Takes the next task; false: all are taken. Each task that is taken needs a call of
 * qsf_gate_done, when it is done, without waiting for anything. */
bool qsf_gate_take(QsfGate *g, unsigned *task);
/* Was this the last task that was not done? Then all results are there, and the caller must call
 * qsf_gate_open, when it has finished what is made of all of them. */
bool qsf_gate_done(QsfGate *g);
/* Wakes the threads that wait for the results. Once. */
void qsf_gate_open(QsfGate *g);
/* Waits until it is open. What was written before that can then be read. */
void qsf_gate_wait(QsfGate *g);

#endif
