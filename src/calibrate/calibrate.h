/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calibration of a model file with a text: opens the model within a RAM budget, runs it over the text and closes it. */
#ifndef QSF_CALIBRATE_CALIBRATE_H
#define QSF_CALIBRATE_CALIBRATE_H

#include <stdatomic.h>

#include "qsf_engine.h"
#include "src/requantize/calibration.h"

typedef struct QsfCalibrateOptions {
    const char *model, *text; /* paths: a GGUF or QSF file; text.h says of what */
    QSFSettings settings;     /* budget, threads and what else decides how it runs; the context is chosen here */
    const atomic_int *cancel; /* NULL, or not 0 ends it */
    /* NULL, or called from time to time: what is done and all of it, in tokens. */
    void (*progress)(void *arg, uint64_t done, uint64_t all);
    void *arg;
} QsfCalibrateOptions;

/* Fills out, which the caller frees. QSF_E_MODEL: the model cannot be opened or run, the text is none or too short;
 * QSF_E_BUDGET with the smallest budget that works; QSF_E_USAGE, QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_calibrate(QsfCalibration *out, const QsfCalibrateOptions *o, QsfErr *err);

#endif
