/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one I/O thread. It reads what is to be pinned, once, and walks the streamed chunks of all units in the
 * order in which the forward pass uses them, again and again, keeping the slots filled ahead of the
 * computation, across the border between two passes. Several reads are in flight; they end in the order in
 * which they were begun. One consumer. */
#ifndef QSF_STREAM_LOADER_H
#define QSF_STREAM_LOADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/stream/slots.h"
#include "src/stream/weights.h"

#define QSF_PIN_PIECE (1u << 20) /* about as many bytes are pinned by one job */

/* A unit, and the decisions of the plan about it. */
typedef struct QsfWeightUnit {
    QsfUnit u;
    uint32_t pinned_items;       /* items [0, pinned_items) are or will be in RAM, the rest streams */
    uint32_t started_items;      /* reads are begun, or over, up to here; the loader's */
    _Atomic uint32_t have_items; /* in RAM; grows while the loader runs */
    uint32_t chunk_items;        /* of a streamed chunk */
    uint32_t piece_items;        /* of a job that pins */
    /* interleave rows and restore them (interleave.h); NULL: not interleaved */
    const qk_weight_ops *ops[QSF_UNIT_TENSORS];
    bool interleaved[QSF_UNIT_TENSORS];   /* groups of 16 are what is multiplied */
    uint8_t *pin[QSF_UNIT_TENSORS];       /* its place, which starts with the window that holds row 0 */
    uint64_t pin_bytes[QSF_UNIT_TENSORS]; /* memory that exists already */
    uint32_t section[QSF_UNIT_TENSORS];   /* checksums.h */
    bool skipped;                         /* not read by the passes that are running */
    _Atomic bool seen; /* first unit of a compressed layer: it has been there, and was whole */
    /* pinned items, and streamed ones, up to here have been there once */
    uint32_t checked_pins, checked_items;
} QsfWeightUnit;

typedef struct QsfLoaderOptions {
    const QsfSource *src;
    QsfWeightUnit *units; /* (n_units), the last one is the head; outlive the loader */
    uint32_t n_units;
    uint32_t n_slots;      /* 0..QSF_MAX_SLOTS; 0 when nothing streams, now and after any pause */
    bool may_pin_more;     /* items may be pinned after a pause even if nothing streams */
    uint64_t slot_bytes;   /* whole pages; every chunk fits */
    uint32_t n_stages;     /* at least 1 where layers are compressed */
    uint64_t stage_bytes;  /* whole pages; the windows of every compressed layer fit */
    QsfLayerSeen on_layer; /* weights.h; NULL allowed */
    void *on_layer_arg;
    QsfStreamConfig stream;
    uint8_t *group; /* scratch for a group of rows (interleave.h); outlives the loader */
    QsfLedger *ledger;
    const atomic_int *cancel; /* polled while the consumer waits; may be NULL */
    QsfStreamCounters *counters;
    /* what is read for the first time is checked; NULL: nothing is. Outlives the loader */
    struct QsfChecksums *sums;
} QsfLoaderOptions;

typedef struct QsfLoader QsfLoader;

/* Starts reading at once. Slots are charged to SLOTS, the thread's 256 KiB stack to STACKS.
 * QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_loader_create(QsfLoader **out, const QsfLoaderOptions *o, QsfErr *err);
/* Ends the reads in flight; units keep what they have. NULL allowed. */
void qsf_loader_destroy(QsfLoader *l);

/* qsf_io_name and qsf_io_notice of its back end, as they were at creation. */
const char *qsf_loader_io_name(const QsfLoader *l);
const char *qsf_loader_io_notice(const QsfLoader *l);

/* A pass over all units, or over all but the head. An unfinished or failed pass before it is dropped. */
void qsf_loader_begin_pass(QsfLoader *l, bool head);
/* A unit that is to be pinned is needed soon: it is read before those that were not wanted, and after those
 * that were wanted before it. */
void qsf_loader_want(QsfLoader *l, uint32_t unit);
/* Waits for items that are to be pinned: until have_items of the unit is above item. Errors as
 * for acquire. */
int qsf_loader_wait_pinned(QsfLoader *l, uint32_t unit, uint32_t item, QsfErr *err);
/* Waits until the compressed layer that begins with `unit` has been there once. Errors as for acquire. */
int qsf_loader_wait_seen(QsfLoader *l, uint32_t unit, QsfErr *err);
/* Waits for the next chunk, which must be the one that begins with `item` of `unit`. *data (c->bytes) stays
 * valid until the release. The loader's error when a read failed (what was read before it comes first),
 * QSF_E_INTERRUPTED when cancelled. */
int qsf_loader_acquire(QsfLoader *l, uint32_t unit, uint32_t item, QsfChunk *c, const uint8_t **data,
                       QsfErr *err);
/* The chunk that was acquired last was used; its slot is read into again. */
void qsf_loader_release(QsfLoader *l);
/* Between passes: waits until all reads have ended and drops what was read ahead; the consumer may then
 * change which items of the units are pinned. Continue starts reading again. */
void qsf_loader_pause(QsfLoader *l);
void qsf_loader_continue(QsfLoader *l);
/* All chunks of the pass were used. */
void qsf_loader_end_pass(QsfLoader *l);
/* Gives up the running pass: what is read for it is dropped, and reading starts over with the
 * first chunk. Does not wait. */
void qsf_loader_abort(QsfLoader *l);

#endif
