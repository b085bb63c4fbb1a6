/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calibrates a model file with a text: opens the model within a RAM budget, runs it over the text and closes
 * it. */
#ifndef QSF_CONVERT_CALIBRATE_CALIBRATE_H
#define QSF_CONVERT_CALIBRATE_CALIBRATE_H

#include <stdatomic.h>

#include "qsf_engine.h"
#include "src/convert/pack/calibration.h"

typedef struct QsfCalibrateOptions {
    const char *model, *text;     /* paths: a model, and a text (see calibration_text.h) */
    const char *const *overrides; /* of metadata, NULL-terminated; or NULL */
    QSFSettings settings;         /* budget, threads and so on; the context is chosen here */
    const atomic_int *cancel;     /* NULL, or a nonzero value cancels */
    /* NULL, or called periodically with the tokens done and in total. */
    void (*progress)(void *arg, uint64_t done, uint64_t all);
    void (*notice)(
        void *arg,
        const char *text); /* NULL, or called with what is wrong with the text although it is used */
    void *arg;
} QsfCalibrateOptions;

/* Runs the calibration and fills out, which the caller frees. QSF_E_MODEL: the model cannot be opened or run,
 * or the text is invalid or too short; QSF_E_BUDGET with the smallest budget that works; QSF_E_USAGE,
 * QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_calibrate(QsfCalibration *out, const QsfCalibrateOptions *o, QsfErr *err);

#endif
