/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one I/O thread. It walks the streamed chunks of all units in the order in which the forward pass
 * uses them, again and again, and keeps the slots filled ahead of the computation, across the border
 * between two passes. One consumer. */
#ifndef QSF_STREAM_LOADER_H
#define QSF_STREAM_LOADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/ledger.h"
#include "src/stream/units.h"

/* A unit with what the plan decided about it. */
typedef struct QsfWeightUnit {
    QsfUnit u;
    uint32_t pinned_items;  /* items [0, pinned_items) are in RAM, the rest streams */
    uint32_t chunk_items;   /* of a streamed chunk */
    uint8_t *pinned;        /* the pinned items as one chunk */
    uint64_t pinned_bytes;  /* whole pages */
} QsfWeightUnit;

/* Written by the loader and its consumer, read by any thread. */
typedef struct QsfStreamCounters {
    atomic_uint_fast64_t bytes_read, read_ns, wait_ns;
} QsfStreamCounters;

typedef struct QsfLoaderOptions {
    const QsfSource *src;
    const QsfWeightUnit *units;  /* (n_units), the last one is the head; outlive the loader */
    uint32_t n_units;
    uint32_t n_slots;            /* 1..QSF_MAX_SLOTS */
    uint64_t slot_bytes;         /* whole pages; every chunk fits */
    QsfLedger *ledger;
    const atomic_int *cancel;    /* polled while the consumer waits; may be NULL */
    QsfStreamCounters *counters;
} QsfLoaderOptions;

typedef struct QsfLoader QsfLoader;

/* Starts reading at once. Slots are charged to SLOTS, the thread's 256 KiB stack to STACKS.
 * QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_loader_create(QsfLoader **out, const QsfLoaderOptions *o, QsfErr *err);
void qsf_loader_destroy(QsfLoader *l); /* NULL allowed */

/* A pass over all units, or over all but the head. An unfinished or failed pass before it is dropped. */
void qsf_loader_begin_pass(QsfLoader *l, bool head);
/* Waits for the next chunk, which must be the one of `unit` from `item` on. *data (c->bytes) stays valid
 * until the release. The loader's error when a read failed (what was read before it comes first),
 * QSF_E_INTERRUPTED when cancelled. */
int qsf_loader_acquire(QsfLoader *l, uint32_t unit, uint32_t item, QsfChunk *c, const uint8_t **data,
                       QsfErr *err);
void qsf_loader_release(QsfLoader *l);
/* All chunks of the pass were used. */
void qsf_loader_end_pass(QsfLoader *l);
/* Gives up the running pass: stops the read under way, empties the slots and starts over with the first
 * chunk. */
void qsf_loader_abort(QsfLoader *l);

#endif
