/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs an open model over token ids and collects its calibration data. */
#ifndef QSF_CONVERT_CALIBRATE_CALIBRATION_RUN_H
#define QSF_CONVERT_CALIBRATE_CALIBRATION_RUN_H

#include "src/convert/calibrate/channels.h"
#include "src/engine/runtime.h"
#include "src/model/residual.h"

enum { QSF_CALIBRATE_SKIP_TOKENS = 256 }; /* maximum number of tokens to measure layer skipping with */

/* What is collected about a model. It refers to tensors and steps by number, and so to any
 * opening of the same file. */
typedef struct QsfCalibratePlan {
    QsfChannels channels;
    QsfResidual residual;
    uint32_t n_layers; /* in the file */
    uint32_t n_named;  /* of them, those that are run: block b of the program has the weights of
                          layer b % n_named */
    uint32_t n_vocab;
    uint32_t window; /* number of tokens evaluated together, from an empty context */
} QsfCalibratePlan;

/* window: the maximum number of tokens to evaluate together; lowered to the model's training context. Errors
 * as qsf_channels_make and qsf_residual_make. The caller frees *out. */
int qsf_calibrate_plan(QsfCalibratePlan *out, const QsfModel *m, uint32_t window, QsfErr *err);
void qsf_calibrate_plan_free(QsfCalibratePlan *p); /* *p may be zeroed */
/* Returns the bytes that a run charges to QSF_MEM_TRANSCRIPT. */
uint64_t qsf_calibrate_run_bytes(const QsfCalibratePlan *p);

typedef struct QsfCalibrateRun {
    QsfRuntime *rt; /* a context of at least plan->window */
    const QsfCalibratePlan *plan;
    int32_t *ids; /* (n) the text; modified during the run and restored afterwards */
    size_t n;     /* 1 or more */
    int32_t bos;  /* replaces the first token of every window but the first; -1: no replacement */
    void (*progress)(void *arg, uint64_t done, uint64_t all); /* in tokens times layers; may be NULL */
    void *arg;
} QsfCalibrateRun;

/* Fills out: energies, each at least 1/100 of the median of its list, and cosines, from all tokens; skip_kl
 * from at most QSF_CALIBRATE_SKIP_TOKENS tokens at the start of the middle window. Experts count the columns
 * that chose them and, as one more, the mean over all experts of their block: all that is known about experts
 * that no column chose. Layers that are not run have the cosine 1 and cost nothing. The result depends only
 * on ids, window, KV type and instruction set. QSF_E_INTERRUPTED; errors of qsf_forward_eval; QSF_E_BUDGET;
 * QSF_E_RUNTIME if out of memory. The caller frees *out after success. */
int qsf_calibrate_run(const QsfCalibrateRun *r, QsfCalibration *out, QsfErr *err);

#endif
