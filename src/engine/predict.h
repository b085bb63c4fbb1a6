/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Predicts how fast a plan will decode, from two short measurements: of the disk with the model's file, and
 * of the kernels with some of its weights. */
#ifndef QSF_ENGINE_PREDICT_H
#define QSF_ENGINE_PREDICT_H

#include "src/base/pool.h"
#include "src/plan/plan.h"

typedef struct QsfPrediction {
    double disk_bps;    /* bytes per second from the disk; 0 = nothing streams, or not measurable */
    double compute_bps; /* bytes of weights per second that the matrix kernels process */
    double disk_tps;    /* tokens per second that the disk allows; 0 = no limit */
    double compute_tps; /* tokens per second that the kernels allow */
    double tps;         /* the smaller of the two */
} QsfPrediction;

/* Times every way of reading groups of rows (qk_way) with some of the model's weights, in three rounds, and
 * sets the fastest in t for the most common types, if it was faster than that of t in each of them. Takes
 * about 20 ms for each of up to three types; reads at most 8 MiB of each; within plan->budget. Does not
 * change any result. pool NULL = one thread. What cannot be measured stays as it is. */
void qsf_measure_ways(qk_table *t, const QsfPlan *p, const QsfModel *m, QsfPool *pool);

/* Measures for at most about 0.4 s in total, within plan->budget. pool NULL = one thread. A value that cannot
 * be measured is 0. */
void qsf_predict(QsfPrediction *out, const QsfPlan *p, const QsfModel *m, const qk_table *t, QsfPool *pool);

/* Computes a prediction from measured speeds; pure, for tests and live values. */
void qsf_predict_from(QsfPrediction *out, uint64_t streamed_bytes, uint64_t weight_bytes, double disk_bps,
                      double compute_bps);

#endif
