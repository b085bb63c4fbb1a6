/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams experts: which ones are needed is known only when a router has chosen them, so they are not in the
 * loader's fixed order. The evaluating thread requests them, and reads them into a ring of buffers with an
 * I/O back end of its own while it computes those that have arrived. All functions of one QsfDemand are
 * called from that thread. */
#ifndef QSF_STREAM_DEMAND_H
#define QSF_STREAM_DEMAND_H

#include "src/stream/loader.h"

typedef struct QsfDemand QsfDemand;

/* n_buffers (1..QSF_MAX_SLOTS) of o->slot_bytes, charged to SLOTS. Of o only units, source, sizes, ledger,
 * counters, scratch and checksums are used. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_demand_create(QsfDemand **out, const QsfLoaderOptions *o, uint32_t n_buffers, QsfErr *err);
/* Ends the reads in flight. NULL allowed. */
void qsf_demand_destroy(QsfDemand *d);

/* Adds a unit to the list of those that are acquired next. At most two per expert of a block. */
void qsf_demand_request(QsfDemand *d, uint32_t unit);
/* Starts as many reads as there are free buffers. */
void qsf_demand_read_ahead(QsfDemand *d);
/* Waits for the next chunk of the list: it begins with `item` of `unit`. Units come in order; the first chunk
 * of a unit begins with item 0, each other one where the chunk before ends. *data (c->bytes) is valid until
 * the release. QSF_E_RUNTIME, QSF_E_MODEL (a damaged file). */
int qsf_demand_acquire(QsfDemand *d, uint32_t unit, uint32_t item, QsfChunk *c, const uint8_t **data,
                       QsfErr *err);
/* The oldest chunk was used: its buffer is filled again. */
void qsf_demand_release(QsfDemand *d);
/* Drops the list and what was read for it. */
void qsf_demand_reset(QsfDemand *d);

#endif
