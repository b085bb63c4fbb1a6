/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What passes of a forward pass leave out, and how important blocks are: internals of src/forward. */
#ifndef QSF_FORWARD_REDUCTION_H
#define QSF_FORWARD_REDUCTION_H

#include "src/forward/forward.h"
#include "src/model/residual.h"

/* What passes leave out, and how important blocks are (quality.c). */
typedef struct QsfReduction {
    QsfQuality quality; /* of qsf_forward_decode */
    bool reduced;       /* the eval that is running uses it */
    QsfBlockSet skip;   /* what its passes skip; skips: it is not empty */
    bool skips;
    uint32_t exact; /* positions [0, exact) were evaluated with everything */
    QsfBlockSet
        holes; /* blocks that later ones were not evaluated in: they are skipped until those are removed */
    QsfBlockSet optional;
    QsfResidual residual;
    float *score; /* (window, n_blocks) of position i + 1, META */
    uint64_t score_bytes;
    uint32_t window, measured; /* positions [1, window] are measured, [1, measured] have been */
    bool measures;             /* the pass that is running */
} QsfReduction;

/* Finds the blocks that may be skipped, and maps the scores. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_reduction_open(QsfForward *f, QsfErr *err);
void qsf_reduction_close(QsfForward *f);
/* An eval begins; reduced: it is qsf_forward_decode. */
void qsf_reduction_begin(QsfForward *f, bool reduced);
/* A pass over n positions begins. */
void qsf_reduction_begin_pass(QsfForward *f, uint32_t n);
/* It has succeeded, and its states are not committed yet. */
void qsf_reduction_end_pass(QsfForward *f);
/* Positions n and later were removed. */
void qsf_reduction_truncate(QsfForward *f, uint32_t n);
/* Positions [0, n) were restored from a snapshot. */
void qsf_reduction_restored(QsfForward *f, uint32_t n);
/* Step i is the first one of a block, in a pass that measures. */
void qsf_reduction_border(QsfForward *f, uint32_t i);
/* Is the block of step i skipped? */
bool qsf_reduction_skips(const QsfForward *f, uint32_t i);
/* Returns how many of n_used experts a position uses. */
uint32_t qsf_reduction_experts(const QsfForward *f, uint32_t n_used);

#endif
