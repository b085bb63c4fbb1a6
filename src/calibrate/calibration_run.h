/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs an open model over token ids and collects its calibration data. */
#ifndef QSF_CALIBRATE_RUN_H
#define QSF_CALIBRATE_RUN_H

#include "src/engine/runtime.h"
#include "src/requantize/calibration.h"

enum { QSF_CALIBRATE_SKIP_TOKENS = 256 }; /* maximum number of tokens to measure layer skipping with */

typedef struct QsfCalibrateRun {
    QsfRuntime *rt;
    int32_t *ids;    /* (n) the text; modified during the run and restored afterwards */
    size_t n;        /* 1 or more */
    uint32_t window; /* number of tokens evaluated together, from an empty context; 1 to the context size */
    int32_t bos;     /* replaces the first token of every window but the first; -1: no replacement */
    void (*progress)(void *arg, uint64_t done, uint64_t all); /* in tokens times layers; may be NULL */
    void *arg;
} QsfCalibrateRun;

/* Returns the bytes that a run charges to QSF_MEM_TRANSCRIPT. widths: (QSF_CAL_INPUTS) as in
 * QsfCalibration. */
uint64_t qsf_calibrate_run_bytes(uint32_t n_layers, const uint32_t *widths, uint32_t n_vocab,
                                 uint32_t window);

/* Fills out, which must be allocated for the model: energies, each at least 1/100 of the median of its input,
 * and cosines, from all tokens; skip_kl from at most QSF_CALIBRATE_SKIP_TOKENS tokens at the start of the
 * middle window. The result depends only on ids, window, KV type and instruction set. QSF_E_INTERRUPTED;
 * errors of qsf_forward_eval; QSF_E_BUDGET. */
int qsf_calibrate_run(const QsfCalibrateRun *r, QsfCalibration *out, QsfErr *err);

#endif
