/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sketch of a large head: its rows with one bit per weight, from which passes with a quality below 1 find
 * the rows whose logits matter; only these are multiplied in full (forward/sketch.c). Here are the models
 * that have one, and its size. Pure functions. */
#ifndef QSF_PLAN_SKETCH_H
#define QSF_PLAN_SKETCH_H

#include "src/plan/units.h"

#define QSF_SKETCH_TYPE QK_Q1_0

/* Sizes in bytes; a group is 16 rows. */
typedef struct QsfSketchShape {
    uint32_t unit;         /* the head */
    uint32_t rows, k;      /* of the head */
    uint32_t groups;       /* the last one may be cut */
    uint32_t chosen;       /* groups that are always multiplied in full */
    uint64_t row_bytes;    /* of the sketch */
    uint64_t head_group;   /* a group of the head */
    uint64_t chosen_bytes; /* those groups */
    uint64_t stage_groups; /* groups of the head that are read at a time, where it is not in RAM */
    /* Offsets in one mapping. */
    uint64_t mean, best, picks, list, values, stage, scratch, total;
    uint64_t scratch_rows, scratch_stride; /* in the scratch of a thread; of a thread */
} QsfSketchShape;

/* Fills s for this number of threads. Returns false, and s is zero, for a model whose head is computed in
 * full: it is small, a small part of the weights, or cannot be sketched. */
bool qsf_sketch_shape(const QsfModel *m, int threads, QsfSketchShape *s);

#endif
