/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a run of the model over some text told about its weights and layers (src/calibrate makes one; man/qsf-format.5 has
 * the definitions). One thread writes; read-only afterwards. */
#ifndef QSF_PACK_CALIBRATION_H
#define QSF_PACK_CALIBRATION_H

#include <stdint.h>

#include "src/base/strbuf.h"
#include "src/format/source.h"
#include "src/requantize/items.h"

/* Inputs of a layer's matrices; matrices with the same input share one. */
typedef enum QsfCalInput { QSF_CAL_QKV, QSF_CAL_O, QSF_CAL_FFN_IN, QSF_CAL_FFN_OUT, QSF_CAL_INPUTS } QsfCalInput;

typedef struct QsfCalibration {
    uint32_t n_layers;
    uint32_t width[QSF_CAL_INPUTS]; /* channels of an input; of the head: width[QSF_CAL_QKV] */
    uint64_t tokens, skip_tokens;   /* that energy and cosine, and the effect of leaving layers out, are means of */
    float *energy;                  /* what a channel of an input means: the mean of its square, but for
                                       qsf_calibrate_run's floor; use qsf_calibration_energy. NULL: only layers are known */
    float *cosine, *skip_kl;        /* (n_layers) of what comes into a layer with what leaves it; nats that it costs to
                                       leave the layer out */
} QsfCalibration;


/* Room for all of it, as zeros. widths: (QSF_CAL_INPUTS), or NULL for layers alone. QSF_E_RUNTIME without memory. The
 * caller frees. */
int qsf_calibration_make(QsfCalibration *c, uint32_t n_layers, const uint32_t *widths, QsfErr *err);
void qsf_calibration_free(QsfCalibration *c); /* a zeroed one is allowed */

/* Channels of an input, to be written or read: (width[input]); layer n_layers is the head (width[QSF_CAL_QKV]), whatever
 * input says. */
float *qsf_calibration_energy(const QsfCalibration *c, uint32_t layer, QsfCalInput input);
uint32_t qsf_calibration_width(const QsfCalibration *c, uint32_t layer, QsfCalInput input);

/* 0 to 1: 1 - exp(-skip_kl). */
float qsf_calibration_importance(const QsfCalibration *c, uint32_t layer);

/* Points each matrix of l to the energies of its input, which are the weights of its columns; c keeps them. An embedding
 * that is the head too has the head's. QSF_E_MODEL where a matrix has other columns. */
int qsf_calibration_weigh(const QsfCalibration *c, QsfItems *l, const char *path, QsfErr *err);

/* The layers' scores as metadata pairs, appended to b; *n of them. */
void qsf_calibration_put(const QsfCalibration *c, QsfStrbuf *b, uint64_t *n);
/* Scores that s has, of n_layers layers; *present false where it has none. QSF_E_MODEL names a key that is wrong. The
 * caller frees. */
int qsf_calibration_read(QsfCalibration *c, const QsfSource *s, uint32_t n_layers, bool *present, QsfErr *err);

#endif
