/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Everything besides K and V that the next position needs from earlier ones: the recurrent states of all
 * blocks, and after them the recent positions of caches that store them separately (kv/recent.h). There are
 * two copies: a pass reads the old one and writes the new one, so that a pass that fails or is cancelled
 * changes nothing. A recurrence cannot be truncated to any position, as attention can: checkpoints, which
 * are copies of the state at some positions, are what a conversation can go back to. The start of the
 * sequence is one that needs no memory. One thread at a time, except that several threads may use different
 * parts of a state in one step. */
#ifndef QSF_FORWARD_RECURRENT_H
#define QSF_FORWARD_RECURRENT_H

#include "src/base/ledger.h"
#include "src/model/program.h"
#include "src/plan/layout.h"

/* With fewer slots all are needed for the newest positions. */
#define QSF_LEAD_SLOTS 3u

typedef struct QsfRecurrent {
    const QsfProgram *p;
    uint8_t *mem;  /* (2 + n_slots, copy): the two copies, then the checkpoints */
    uint64_t copy; /* bytes, qsf_state_bytes */
    uint64_t bytes;
    unsigned old; /* the copy that holds the state after n_past positions */
    uint32_t n_slots;
    uint32_t grain; /* the state after a position is also that after earlier ones of the same `grain`: of a
                       tile if there are only recent positions, otherwise 1 */
    uint32_t lead;  /* a checkpoint here is dropped last, if there are QSF_LEAD_SLOTS slots; 0 = none */
    uint32_t n;     /* checkpoints: slots [0, n), of ascending positions */
    uint32_t pos[QSF_CHECKPOINTS_MAX];
    QsfLedger *ledger;
} QsfRecurrent;

/* Maps states of zeros for caches of these types, and n_slots checkpoints (qsf_recurrent_bytes), charged to
 * KV. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_recurrent_init(QsfRecurrent *r, const QsfProgram *p, QsfKvTypes types, uint32_t n_slots,
                       QsfLedger *ledger, QsfErr *err);
void qsf_recurrent_free(QsfRecurrent *r); /* zero-initialised is allowed */

/* Return a state before the pass that is running, and the place for the state after it, which must be written
 * whole: column 0 of a pass reads the old one, later columns read what the column before them wrote. */
const float *qsf_recurrent_old(const QsfRecurrent *r, uint32_t state);
float *qsf_recurrent_new(const QsfRecurrent *r, uint32_t state);
/* The same for recent positions. */
uint8_t *qsf_recurrent_old_recent(const QsfRecurrent *r);
uint8_t *qsf_recurrent_new_recent(const QsfRecurrent *r);
/* A pass succeeded: the new states become the old ones. */
void qsf_recurrent_commit(QsfRecurrent *r);

/* Saves the state, which must be the one after `pos` positions, as the newest checkpoint. If all
 * slots are taken, one checkpoint is dropped first. The choice keeps recent checkpoints close
 * together and old ones far apart. */
void qsf_recurrent_save(QsfRecurrent *r, uint32_t pos);
/* Drops the newest checkpoint if it is the one at pos. */
void qsf_recurrent_drop_newest(QsfRecurrent *r, uint32_t pos);
/* Returns the newest position at or before pos that qsf_recurrent_restore can go back to; pos itself for a
 * program without states. */
uint32_t qsf_recurrent_reaches(const QsfRecurrent *r, uint32_t pos);
/* The same, only of positions at which a checkpoint was saved. */
uint32_t qsf_recurrent_before(const QsfRecurrent *r, uint32_t pos);
/* Goes back to this position, drops later checkpoints, and returns it. */
uint32_t qsf_recurrent_restore(QsfRecurrent *r, uint32_t pos);

/* Is the state after n_past positions also that after pos < n_past? */
bool qsf_recurrent_covers(const QsfRecurrent *r, uint32_t pos, uint32_t n_past);
/* Drops all checkpoints after pos. */
void qsf_recurrent_forget(QsfRecurrent *r, uint32_t pos);

/* Returns the state after `pos` positions, a checkpoint's or, of n_past positions, the newest: (copy) bytes.
 * NULL if it is not held. */
uint8_t *qsf_recurrent_at(const QsfRecurrent *r, uint32_t pos, uint32_t n_past);

/* Changes the number of checkpoints; the state stays, and as many checkpoints as possible. After an error
 * (QSF_E_BUDGET, QSF_E_RUNTIME; only when growing) everything is as before. */
int qsf_recurrent_resize(QsfRecurrent *r, uint32_t n_slots, QsfErr *err);
/* Changes the room for recent positions to that of caches of these types; n_slots checkpoints. Recurrent
 * states stay; recent positions and checkpoints are dropped. After an error (QSF_E_BUDGET, QSF_E_RUNTIME) the
 * states are gone, too. */
int qsf_recurrent_set_types(QsfRecurrent *r, QsfKvTypes types, uint32_t n_slots, QsfErr *err);

#endif
