/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many of the pool's threads a pass uses: the number of the plan, or, where that is left to the engine,
 * the one that was measured to be the fastest, for single tokens and for prompts each. A turn of a race is a
 * token, or some blocks of a chunk of a prompt. The result of a pass does not depend on it. For the thread
 * that evaluates, except where stated. */
#ifndef QSF_FORWARD_THREADS_H
#define QSF_FORWARD_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/forward/forward.h"
#include "src/forward/race.h"

#define QSF_THREADS_TEXT 600

typedef struct QsfThreads {
    bool measured; /* else the plan's number is used, and nothing is measured */
    int most;      /* threads of the pool */
    QsfCpus cpus;
    QsfRace decode, prefill;
    uint64_t raced_ns;              /* when the last race of prompts began */
    uint32_t cols;                  /* of the pass that is running */
    uint64_t pass_ns;               /* of its blocks so far, without waiting for weights */
    atomic_uint now[2];             /* numbers in use for tokens and for prompts; any thread */
    atomic_bool automatic;          /* = measured; any thread */
    pthread_mutex_t lock;           /* of both texts */
    char machine[120];              /* the CPUs */
    char text[2][QSF_THREADS_TEXT]; /* for tokens and for prompts: what was measured, or will be */
} QsfThreads;

/* Creates the lock and follows the plan. Never fails. */
void qsf_threads_open(QsfForward *f, const QsfPlan *p);
/* Destroys the lock; the pool stays. */
void qsf_threads_close(QsfForward *f);
/* After f->pool was set: follows the plan. What was measured stays if the pool has as many threads. */
void qsf_threads_plan(QsfForward *f, const QsfPlan *p);

/* A pass of n columns begins; ok: it ended, completely. */
void qsf_threads_begin_pass(QsfForward *f, uint32_t n);
void qsf_threads_end_pass(QsfForward *f, bool ok);
/* In a pass: a block was computed in ns, waiting for weights not counted. May change the number. */
void qsf_threads_end_block(QsfForward *f, uint32_t block, uint64_t ns);

#endif
