/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calibration data: statistics of weights and layers from running the model over a text (created by
 * src/calibrate; defined in man/qsf-format.5). One thread writes; read-only afterwards. */
#ifndef QSF_PACK_CALIBRATION_H
#define QSF_PACK_CALIBRATION_H

#include <stdint.h>

#include "src/base/strbuf.h"
#include "src/format/source.h"
#include "src/requantize/items.h"

/* Inputs of a layer's matrices; matrices with the same input share one. */
typedef enum QsfCalInput {
    QSF_CAL_QKV,
    QSF_CAL_O,
    QSF_CAL_FFN_IN,
    QSF_CAL_FFN_OUT,
    QSF_CAL_INPUTS
} QsfCalInput;

typedef struct QsfCalibration {
    uint32_t n_layers;
    uint32_t width[QSF_CAL_INPUTS]; /* channels of an input; for the head: width[QSF_CAL_QKV] */
    uint64_t tokens, skip_tokens;   /* number of tokens for energy and cosine, and for skip_kl */
    float *energy;                  /* mean square of each input channel, with the floor of qsf_calibrate_run;
                                       use qsf_calibration_energy. NULL: only layer scores are known */
    float *cosine, *skip_kl;        /* (n_layers) cosine between input and output of a layer; KL divergence in
                                       nats from skipping the layer */
} QsfCalibration;

/* Allocates zeroed calibration data. widths: (QSF_CAL_INPUTS), or NULL for layer scores only. QSF_E_RUNTIME
 * if out of memory. The caller frees it. */
int qsf_calibration_make(QsfCalibration *c, uint32_t n_layers, const uint32_t *widths, QsfErr *err);
void qsf_calibration_free(QsfCalibration *c); /* *c may be zeroed */

/* Returns the energies of the channels of an input, (width[input]), to read or write. Layer n_layers is the
 * head, which has width[QSF_CAL_QKV] and ignores input. */
float *qsf_calibration_energy(const QsfCalibration *c, uint32_t layer, QsfCalInput input);
uint32_t qsf_calibration_width(const QsfCalibration *c, uint32_t layer, QsfCalInput input);

/* Returns the importance of a layer, 0 to 1: 1 - exp(-skip_kl). */
float qsf_calibration_importance(const QsfCalibration *c, uint32_t layer);

/* Sets the column weights of each matrix in l to the energies of its input, which remain owned by c. A tied
 * embedding gets those of the head. QSF_E_MODEL if the number of columns differs. */
int qsf_calibration_weigh(const QsfCalibration *c, QsfItems *l, const char *path, QsfErr *err);

/* Appends the layer scores to b as metadata pairs; *n of them. */
void qsf_calibration_put(const QsfCalibration *c, QsfStrbuf *b, uint64_t *n);
/* Reads the scores of n_layers layers from s; *present is false if it has none. QSF_E_MODEL names an invalid
 * key. The caller frees c. */
int qsf_calibration_read(QsfCalibration *c, const QsfSource *s, uint32_t n_layers, bool *present,
                         QsfErr *err);

#endif
