/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models that exist only as shapes, laid out like files, and what must be true of every plan for them. */
#ifndef QSF_TESTS_PLANS_H
#define QSF_TESTS_PLANS_H

#include "src/plan/plan.h"
#include "tests/harness/rig.h"

#define MIB (1ull << 20)
enum { QSF_SHAPE_F32 = 0, QSF_SHAPE_Q4_0 = 2, QSF_SHAPE_Q4_K = 12 }; /* GGML type numbers */

typedef enum QsfPlanShape {
    QSF_SHAPE_SMALL, /* 1.1B, grouped queries */
    QSF_SHAPE_BIG,   /* 7B */
    QSF_SHAPE_TIED,  /* 1B, large vocabulary, the head is the embedding table */
    QSF_SHAPE_TINY,  /* 260K */
    QSF_SHAPE_HUGE,  /* 70B in many files */
    QSF_SHAPE_COUNT
} QsfPlanShape;

/* qsf_shape_model with places for the tensors; free it with qsf_shape_model_free. */
void qsf_plans_open(QsfModel *m, const QsfShapeSpec *s);
void qsf_plans_open_shape(QsfModel *m, QsfPlanShape shape);
/* Layers l with l % 3 < 2 as LZ4 takes them: of 60 % of their size. The caller frees the
 * result after the model. */
QsfCompressed *qsf_plans_press(QsfModel *m);
/* Of a program of 6 MiB with 2 threads on a machine of 16 GiB. */
QsfPlanOptions qsf_plans_options(uint64_t budget);
/* Fails the test when there is no plan. */
void qsf_plans_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o);
/* Sums, pins, slots, windows, limits. */
void qsf_plans_check(const QsfModel *m, const QsfPlan *p, const QsfPlanOptions *o);
/* The streamed rows lie evenly over the pass. */
void qsf_plans_check_spread(const QsfModel *m, const QsfPlan *p);
/* The budget, in bytes, in the last line of a refusal. */
uint64_t qsf_plans_advised(const QsfErr *err);

#endif
