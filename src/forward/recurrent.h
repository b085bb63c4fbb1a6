/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recurrent state of all blocks: what a position leaves for the next one. There are two copies: a pass reads the old
 * one and writes the new one, so that a pass that fails or is cancelled changes nothing. One thread at a time, except
 * that several threads may use different parts of a state in one step. */
#ifndef QSF_FORWARD_RECURRENT_H
#define QSF_FORWARD_RECURRENT_H

#include "src/base/ledger.h"
#include "src/model/program.h"

typedef struct QsfRecurrent {
    const QsfProgram *p;
    float *mem; /* (2, p->state_floats) */
    uint64_t bytes;
    unsigned old; /* the copy that holds the state after n_past positions */
    QsfLedger *ledger;
} QsfRecurrent;

/* Maps states of zeros (qsf_recurrent_bytes), charged to KV. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_recurrent_init(QsfRecurrent *r, const QsfProgram *p, QsfLedger *ledger, QsfErr *err);
void qsf_recurrent_free(QsfRecurrent *r); /* zero-initialised is allowed */

/* Return a state before the pass that is running, and the place for the state after it, which must be written whole:
 * column 0 of a pass reads the old one, later columns read what the column before them wrote. */
const float *qsf_recurrent_old(const QsfRecurrent *r, uint32_t state);
float *qsf_recurrent_new(const QsfRecurrent *r, uint32_t state);
/* A pass succeeded: the new states become the old ones. */
void qsf_recurrent_commit(QsfRecurrent *r);
/* Back to the start of a sequence. */
void qsf_recurrent_reset(QsfRecurrent *r);

#endif
