/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sketch of the head in memory: internals of src/forward. */
#ifndef QSF_FORWARD_SKETCH_H
#define QSF_FORWARD_SKETCH_H

#include "src/forward/forward.h"
#include "src/plan/sketch.h"
#include "src/stream/weights.h"

typedef struct QsfSketch {
    QsfSketchShape shape;
    uint8_t *mem;   /* rows first, PINNED; NULL: the plan has none */
    bool filled;    /* they are there */
    bool on;        /* the eval that is running uses it */
    bool alone;     /* no rows of the head are multiplied in full */
    bool grouped;   /* its rows are interleaved */
    uint64_t types; /* qsf_interleaved_types */
} QsfSketch;

/* Returns what has the rows of the head, and its unit there: of a borrowed head the lender's. */
QsfWeights *qsf_sketch_weights(const QsfForward *f, uint32_t *unit);

/* Drops / maps what the plan has (NULL: nothing). QSF_E_BUDGET, QSF_E_RUNTIME. */
void qsf_sketch_close(QsfForward *f, const QsfPlan *p);
int qsf_sketch_open(QsfForward *f, const QsfPlan *p, QsfErr *err);

/* Will a pass of the running eval find the logits of one column with the sketch? */
static inline bool qsf_sketch_runs(const QsfSketch *k) { return k->on && k->mem != NULL; }
/* sketch.c: makes the sketch from the rows of the head, which are in RAM or are read.
 * QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_sketch_fill(QsfForward *f, QsfErr *err);
/* Reads groups [first, first + n) of the head to groups [slot, slot + n) of the stage. QSF_E_RUNTIME. */
int qsf_sketch_read(QsfForward *f, uint32_t first, uint32_t n, uint32_t slot, QsfErr *err);
/* k floats, which were taken from every row before it was sketched. */
float *qsf_sketch_mean(const QsfForward *f);
/* Does this pass, which needs logits, walk the head as other units? */
bool qsf_sketch_walks_head(const QsfForward *f);
/* sketch_head.c: the logits of one column. Those of the rows that the sketch puts first are as
 * without it, the others are the sketch's. If one of these may be the largest, all are
 * computed. Errors of a linear step. */
int qsf_sketch_head(QsfForward *f, const QsfStep *s, QsfErr *err);

#endif
