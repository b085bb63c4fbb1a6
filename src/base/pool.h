/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Persistent workers for parallel row ranges. The caller is worker 0; the others spin for a short
 * time between jobs and then sleep on a futex, so that the many small jobs of
 * a token cost no wake-up each and an idle program costs nothing. */
#ifndef QSF_BASE_POOL_H
#define QSF_BASE_POOL_H

#include <stddef.h>

#include "src/base/ledger.h"

typedef struct QsfPool QsfPool;

/* worker is 0 .. n_threads-1; [begin, end) is a piece of the items. */
typedef void (*QsfPoolFn)(void *arg, int worker, size_t begin, size_t end);

/* n_threads >= 1 in all (n_threads-1 are started, each with a 256 KiB stack charged to STACKS).
 * *out is freed by qsf_pool_destroy. QSF_E_RUNTIME / QSF_E_BUDGET. */
int qsf_pool_create(QsfPool **out, int n_threads, QsfLedger *ledger, QsfErr *err);
int qsf_pool_threads(const QsfPool *p);
/* Splits n_items into contiguous pieces, several per thread and smaller towards the end, whose borders are multiples of
 * grain (the last one ends at n_items), and returns when all are done. A thread that is held up loses what it has not
 * begun to the others; worker says who runs a piece. Only one thread at a time may call it. The split never changes a
 * result: an item's value may not depend on its piece or its worker. */
void qsf_pool_run(QsfPool *p, QsfPoolFn fn, void *arg, size_t n_items, size_t grain);
/* Time that callers of qsf_pool_run have spent with nothing left to do but to wait for the other threads, since the
 * creation. For the thread that calls qsf_pool_run. */
uint64_t qsf_pool_waited_ns(const QsfPool *p);
/* p NULL is allowed. */
void qsf_pool_destroy(QsfPool *p);

#endif
