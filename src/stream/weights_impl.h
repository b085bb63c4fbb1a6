/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the weights share: weights.c is the plan and the passes, pins.c the pinned rows, also
 * those in memory which the KV cache does not use yet. */
#ifndef QSF_STREAM_WEIGHTS_IMPL_H
#define QSF_STREAM_WEIGHTS_IMPL_H

#include <pthread.h>

#include "src/stream/checksums.h"
#include "src/stream/demand.h"
#include "src/stream/expert_pool.h"
#include "src/stream/loader.h"
#include "src/stream/pins.h"

/* A unit that is pinned further than to `base` items when memory is lent. */
typedef struct QsfLend {
    uint32_t unit, base;
} QsfLend;

struct QsfWeights {
    const QsfModel *model;
    QsfLedger *ledger;
    const atomic_int *cancel;
    QsfStreamCounters *counters;
    QsfLayerSeen on_layer;
    void *on_layer_arg;
    QsfWeightUnit *units; /* (n_units), META */
    uint64_t units_bytes;
    uint32_t n_units;
    QsfLend *lend; /* (n_lend) in the order of the plan */
    uint32_t n_lend;
    uint64_t slot_bytes; /* of the plan */
    QsfPins pins;
    QsfLoader *loader;   /* NULL while parked */
    QsfDemand *demand;   /* NULL while parked, if all experts are pinned, and with slots for them */
    QsfExpertPool *pool; /* NULL: there are no experts */
    uint8_t *pack;       /* (threads) scratch for groups of experts */
    uint64_t pack_bytes;
    uint32_t positions;    /* of the running pass */
    uint32_t expert_slots; /* of the plan, without those in lent memory; 0: no slots for experts */
    QsfChecksums sums;     /* until the plan changes: later reads were checked before, or are incomplete */
    bool checksums_open, begun;
    bool skips;            /* some units are skipped */
    bool streams, demands; /* fixed units stream; experts do */
    atomic_bool stale;
    pthread_mutex_t io_lock; /* the two below, read from any thread */
    char io_name[32], io_notice[160];
};

static inline uint32_t qsf_weights_have(const QsfWeightUnit *u) {
    return atomic_load_explicit(&u->have_items, memory_order_acquire);
}

/* QSF_E_RUNTIME: the model's files have changed since they were opened. */
int qsf_weights_check_files(QsfWeights *w, QsfErr *err);
/* A read failed with rc, which is returned. If the file was changed, the weights are stale. */
int qsf_weights_read_failed(QsfWeights *w, int rc);
/* Counts what is pinned, and what is to be. */
void qsf_weights_count_pins(QsfWeights *w);
/* Frees the checksums of layers; none are checked after that. */
void qsf_weights_close_checksums(QsfWeights *w);
/* Sets the size of the chunks in which the unit streams. */
void qsf_weights_set_chunks(const QsfWeights *w, QsfWeightUnit *u);
/* Sets which items are pinned, by the plan and in `lent` bytes, while nothing is read. Rows in memory stay as
 * far as they are pinned. */
void qsf_weights_apply(QsfWeights *w, const QsfPlan *p, uint64_t lent);
/* Frees the list of rows in lent memory. */
void qsf_weights_drop_lend(QsfWeights *w);
/* Returns the slots for experts with `lent` bytes more than the plan has for them. */
uint32_t qsf_weights_expert_slots(const QsfWeights *w, uint64_t lent);

#endif
