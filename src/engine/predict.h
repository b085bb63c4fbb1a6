/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How fast a plan will decode, from two short measurements: the disk under this very file, and the kernels on
 * some of its weights. */
#ifndef QSF_ENGINE_PREDICT_H
#define QSF_ENGINE_PREDICT_H

#include "src/base/pool.h"
#include "src/plan/plan.h"

typedef struct QsfPrediction {
    double disk_bps;      /* bytes a second from the disk; 0 = nothing streams, or not measurable */
    double compute_bps;   /* bytes of weights a second that the matrix kernels get through */
    double disk_tps;      /* tokens a second that the disk allows; 0 = no limit */
    double compute_tps;   /* that computing allows */
    double tps;           /* the smaller one */
} QsfPrediction;

/* Measures for at most about 0.4 s in all, within plan->budget. pool NULL = one thread. A figure that cannot
 * be had is 0. */
void qsf_predict(QsfPrediction *out, const QsfPlan *p, const QsfModel *m, const qk_table *t, QsfPool *pool);

/* The arithmetic alone: pure, for tests and for live figures. */
void qsf_predict_from(QsfPrediction *out, uint64_t streamed_bytes, uint64_t weight_bytes, double disk_bps,
                      double compute_bps);

#endif
