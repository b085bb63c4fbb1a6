/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calibration data: statistics of weights and layers from running the model over a text (created by
 * src/convert/calibrate; defined in man/qsf-format.5). One thread writes; read-only afterwards. */
#ifndef QSF_CONVERT_PACK_CALIBRATION_H
#define QSF_CONVERT_PACK_CALIBRATION_H

#include <stdint.h>

#include "src/base/strbuf.h"
#include "src/convert/pack/items.h"
#include "src/file/source.h"

/* Where the energies of the columns of a tensor are. Tensors that are multiplied by the same
 * input share them. */
typedef struct QsfCalTensor {
    uint64_t at;    /* energies before them */
    uint32_t width; /* columns */
    uint32_t sets;  /* one set for all rows, or one for each of its matrices (of experts, of
                       heads); 0: unknown */
} QsfCalTensor;

typedef struct QsfCalibration {
    uint32_t n_layers;
    uint64_t tokens, skip_tokens; /* number of tokens for energy and cosine, and for skip_kl */
    QsfCalTensor *tensor; /* (n_tensors) of the source, in its order; NULL: only layer scores are known */
    uint64_t n_tensors;
    float *energy; /* (n_energies) mean square of each input channel, with the floor of qsf_calibrate_run */
    uint64_t n_energies;
    float *cosine,
        *skip_kl; /* (n_layers) cosine between input and output of a layer; KL divergence in nats from
                     skipping the layer */
} QsfCalibration;

/* Allocates zeroed calibration data; n_tensors 0 for layer scores only. QSF_E_RUNTIME if out of
 * memory. The caller frees it. */
int qsf_calibration_make(QsfCalibration *c, uint32_t n_layers, uint64_t n_tensors, uint64_t n_energies,
                         QsfErr *err);
void qsf_calibration_free(QsfCalibration *c); /* *c may be zeroed */

/* Returns the energies of set 0 of a tensor, (sets, width); NULL if they are unknown. */
const float *qsf_calibration_of(const QsfCalibration *c, uint64_t tensor);

/* Returns the importance of a layer, 0 to 1: 1 - exp(-skip_kl). */
float qsf_calibration_importance(const QsfCalibration *c, uint32_t layer);

/* Sets the column weights of each matrix in l, whose tensors belong to s, to the energies of its input, which
 * remain owned by c. QSF_E_MODEL if the number of columns differs. */
int qsf_calibration_weigh(const QsfCalibration *c, QsfItems *l, const QsfSource *s, QsfErr *err);

/* Appends the layer scores to b as metadata pairs; *n of them. */
void qsf_calibration_put(const QsfCalibration *c, QsfStrbuf *b, uint64_t *n);
/* Reads the scores of n_layers layers from s; *present is false if it has none. QSF_E_MODEL names an invalid
 * key. The caller frees c. */
int qsf_calibration_read(QsfCalibration *c, const QsfSource *s, uint32_t n_layers, bool *present,
                         QsfErr *err);

#endif
