/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One calibration: a model that is open runs over token ids, and what it shows is summed up. */
#ifndef QSF_CALIBRATE_RUN_H
#define QSF_CALIBRATE_RUN_H

#include "src/engine/runtime.h"
#include "src/requantize/calibration.h"

enum { QSF_CALIBRATE_SKIP_TOKENS = 256 }; /* most of them; every layer is left out for these */

typedef struct QsfCalibrateRun {
    QsfRuntime *rt;
    int32_t *ids;    /* (n) the text; changed while it runs, afterwards as before */
    size_t n;        /* from 1 on */
    uint32_t window; /* tokens that are evaluated together, from an empty context; 1 to the context */
    int32_t bos;     /* stands in place of the first token of every window but the first; -1: nothing does */
    void (*progress)(void *arg, uint64_t done, uint64_t all); /* tokens, a layer's each; may be NULL */
    void *arg;
} QsfCalibrateRun;

/* Bytes that a run charges to QSF_MEM_TRANSCRIPT. widths: (QSF_CAL_INPUTS) as in QsfCalibration. */
uint64_t qsf_calibrate_run_bytes(uint32_t n_layers, const uint32_t *widths, uint32_t n_vocab, uint32_t window);

/* Fills out, which was made for the model: energies and cosines of all tokens, an energy at least 1/100 of its input's
 * median; skip_kl of at most QSF_CALIBRATE_SKIP_TOKENS, those that begin the window in the middle. The result depends on ids, window, KV type and
 * instruction set only. QSF_E_INTERRUPTED; errors of qsf_forward_eval; QSF_E_BUDGET. */
int qsf_calibrate_run(const QsfCalibrateRun *r, QsfCalibration *out, QsfErr *err);

#endif
