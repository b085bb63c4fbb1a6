/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A ring of slots that weights stream through, and which thread may touch which slot:
 *
 *     EMPTY --begin_load--> LOADING --end_load(ok)--> READY --acquire--> IN_USE --release--> EMPTY
 *                              \--end_load(failed)--> EMPTY
 *
 * Several may be LOADING at once; they are begun, ended and used in the same order. Knows no threads: the
 * loader calls it under its lock. A call that does not fit the state changes nothing and returns NULL or
 * false. After a failed load the ring takes nothing new until it is reset. */
#ifndef QSF_STREAM_SLOTS_H
#define QSF_STREAM_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/plan/plan.h"
#include "src/plan/units.h"

typedef enum QsfSlotState { QSF_SLOT_EMPTY, QSF_SLOT_LOADING, QSF_SLOT_READY, QSF_SLOT_IN_USE } QsfSlotState;

typedef struct QsfSlot {
    QsfSlotState state;
    uint8_t *data;  /* slot_bytes */
    QsfChunk chunk; /* what is, or is being, loaded */
} QsfSlot;

typedef struct QsfSlots {
    QsfSlot slot[QSF_MAX_SLOTS];
    uint32_t n;               /* 0: nothing streams */
    uint32_t load, done, use; /* next to fill, next whose load ends, next to use */
    bool broken;              /* a load failed */
} QsfSlots;

/* n in 0..QSF_MAX_SLOTS; memory (n x slot_bytes) stays the caller's. */
void qsf_slots_init(QsfSlots *s, uint32_t n, uint8_t *memory, uint64_t slot_bytes);

/* Whether begin_load would succeed. */
bool qsf_slots_can_load(const QsfSlots *s);
/* Returns the next slot, now LOADING c; NULL if it is not EMPTY, nothing streams or a load has failed. */
QsfSlot *qsf_slots_begin_load(QsfSlots *s, const QsfChunk *c);
/* The oldest slot that is LOADING becomes READY, or EMPTY if ok is false. */
bool qsf_slots_end_load(QsfSlots *s, bool ok);
/* Returns the oldest READY slot, now IN_USE; NULL if the next one to use is not READY. */
QsfSlot *qsf_slots_acquire(QsfSlots *s);
/* The slot IN_USE becomes EMPTY; false if there is none. */
bool qsf_slots_release(QsfSlots *s);
/* All to EMPTY and the ring to its start; false while one is LOADING. */
bool qsf_slots_reset(QsfSlots *s);

#endif
