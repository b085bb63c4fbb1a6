/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What passes of a forward pass leave out, and how important blocks are: internals of src/forward. */
#ifndef QSF_FORWARD_QUALITY_IMPL_H
#define QSF_FORWARD_QUALITY_IMPL_H

#include "src/forward/forward.h"
#include "src/model/residual.h"

/* Positions that were not evaluated in the blocks after an early exit (exit.c). */
typedef struct QsfPending {
    float *x; /* (QSF_PENDING_POSITIONS + 1, hidden) their residuals before block `exit`, META;
                 NULL: the model cannot exit */
    uint64_t bytes;
    int32_t id[QSF_PENDING_POSITIONS + 1];
    uint32_t first, n, exit; /* positions [first, first + n); n = 0: none */
} QsfPending;

/* What passes leave out, and how important blocks are (quality.c). */
typedef struct QsfReduction {
    QsfQuality quality; /* of qsf_forward_decode */
    bool reduced;       /* the eval that is running uses it */
    QsfBlockSet skip;   /* what its passes skip; skips: it is not empty */
    bool skips;
    uint32_t exact;              /* positions [0, exact) were evaluated with everything */
    QsfBlockSet holes;           /* blocks that later ones were not evaluated in: they are skipped until
                                    those are removed */
    QsfBlockSet optional, exits; /* blocks that may be skipped; that a token may end before */
    bool exiting; /* the eval that is running decides for each token whether it ends at the exit */
    QsfPending pending;
    QsfResidual residual;
    float *score; /* (window, n_blocks) of position i + 1, META */
    uint64_t score_bytes;
    uint32_t window, measured; /* positions [1, window] are measured, [1, measured] have been */
    bool measures;             /* the pass that is running */
} QsfReduction;

/* Finds the blocks that may be skipped, and maps the scores. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_reduction_open(QsfForward *f, QsfErr *err);
void qsf_reduction_close(QsfForward *f);
/* Passes that are to follow skip these blocks. */
void qsf_reduction_set_skip(QsfForward *f, const QsfBlockSet *blocks);
/* exit.c: finds the blocks before which a token may end, and maps room for those that wait; after
 * qsf_reduction_open. Errors as there. */
int qsf_exit_open(QsfForward *f, QsfErr *err);
void qsf_exit_close(QsfForward *f);
/* An eval begins: evaluates what waits, unless the eval has the same exit. Errors of an eval. */
int qsf_exit_settle(QsfForward *f, bool reduced, QsfErr *err);
/* In a pass over token id that skips the blocks after the exit, before the head: keeps its residual. */
void qsf_exit_keep(QsfForward *f, int32_t id);
/* After the pass: if the token does not end at the exit, evaluates all that waits in the other blocks, and
 * the head again. Errors of an eval; the token is then removed. */
int qsf_exit_decide(QsfForward *f, QsfErr *err);
/* An eval begins; reduced: it is qsf_forward_decode. */
void qsf_reduction_begin(QsfForward *f, bool reduced);
/* A pass over n positions begins. */
void qsf_reduction_begin_pass(QsfForward *f, uint32_t n);
/* A state that a skipped block did not compute becomes the one before. */
void qsf_reduction_keep_states(QsfForward *f);
/* It has succeeded, and its states are not committed yet. */
void qsf_reduction_end_pass(QsfForward *f);
/* Positions n and later were removed. */
void qsf_reduction_truncate(QsfForward *f, uint32_t n);
/* Positions [0, n) were restored from a snapshot. */
void qsf_reduction_restored(QsfForward *f, uint32_t n);
/* Step i is the first one of a block, in a pass that measures. */
void qsf_reduction_border(QsfForward *f, uint32_t i);
/* Returns the residual stream at the start of a block. */
QsfSlice qsf_reduction_residual(const QsfForward *f, uint32_t block);
/* Is the block of step i skipped? */
bool qsf_reduction_skips(const QsfForward *f, uint32_t i);
/* Returns how many of n_used experts a position uses, at most. */
uint32_t qsf_reduction_experts(const QsfForward *f, uint32_t n_used);
/* Returns the part of the largest weight below which an expert is not used; 0: all are. */
float qsf_reduction_drop(const QsfForward *f);

#endif
