/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All weights of the units, wherever they are: pinned in RAM or streamed through slots. The forward
 * pass walks each unit chunk by chunk and never knows the difference. One consumer. */
#ifndef QSF_STREAM_WEIGHTS_H
#define QSF_STREAM_WEIGHTS_H

#include "src/stream/loader.h"
#include "src/stream/plan.h"

typedef struct QsfWeights QsfWeights;

typedef struct QsfWeightsOptions {
    const QsfModel *model;
    const QsfPlan *plan;          /* read during creation only */
    QsfLedger *ledger;
    const atomic_int *cancel;     /* may be NULL */
    QsfStreamCounters *counters;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes pinned; may be NULL */
    void *progress_arg;
} QsfWeightsOptions;

/* Reads the pinned units and starts the loader. Errors as qsf_forward_create. */
int qsf_weights_create(QsfWeights **out, const QsfWeightsOptions *o, QsfErr *err);
void qsf_weights_destroy(QsfWeights *w); /* NULL allowed */

uint32_t qsf_weights_n_units(const QsfWeights *w);
const QsfUnit *qsf_weights_unit(const QsfWeights *w, uint32_t i);
/* Whether all of unit i is in RAM. */
bool qsf_weights_pinned(const QsfWeights *w, uint32_t i);
/* The pinned items of unit i (from item 0) and how many they are; NULL when none. */
const uint8_t *qsf_weights_pinned_data(const QsfWeights *w, uint32_t i, uint32_t *n_items);

/* Units must then be walked in order, up to the head or to the unit before it. QSF_E_RUNTIME when
 * weights stream and a model file has changed. */
int qsf_weights_begin_pass(QsfWeights *w, bool head, QsfErr *err);
/* The chunk of `unit` that starts at `item`: from 0 on, then from the end of the one before. */
int qsf_weights_acquire(QsfWeights *w, uint32_t unit, uint32_t item, QsfChunk *c, const uint8_t **data,
                        QsfErr *err);
void qsf_weights_release(QsfWeights *w, const QsfChunk *c);
/* ok false: the pass broke off; the next one starts from the first unit. */
void qsf_weights_end_pass(QsfWeights *w, bool ok);

#endif
