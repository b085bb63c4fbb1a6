/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses what each quality leaves out, from measurements of each token. */
#ifndef QSF_MEASURE_QUALITY_SEARCH_H
#define QSF_MEASURE_QUALITY_SEARCH_H

#include "src/measure/quality_measure.h"

#define QSF_MEASURED_EXITS    8u
#define QSF_MEASURED_VARIANTS (QSF_MEASURED_EXITS + QSF_QUALITY_CHOICES)

/* A token with a variant: divergence from everything and -log p of the next token, nats; how far its two
 * largest logits are apart. */
typedef struct QsfMeasuredToken {
    float kl, nll, margin;
} QsfMeasuredToken;

typedef struct QsfMeasuredVariant {
    QsfQuality quality; /* exit = 0: layers that a quality would skip; else all layers after
                           the exit, for all tokens */
    float lowest;       /* quality that would leave out the same */
    QsfMeasuredToken token[QSF_MEASURED_TOKENS];
} QsfMeasuredVariant;

typedef struct QsfMeasured {
    uint32_t n_tokens, n_variants;
    double base_nll[QSF_MEASURED_TOKENS];
    QsfMeasuredVariant variant[QSF_MEASURED_VARIANTS];
} QsfMeasured;

/* After the start of the text was evaluated: lists the variants that are worth measuring. QSF_E_USAGE:
 * nothing of this model can be left out. */
int qsf_measured_variants(QsfMeasured *m, const QsfRuntime *rt, QsfErr *err);
/* For each quality, the variant, and for an exit the margin, with the smallest divergence among those that do
 * not cost more than this quality allows, or than a higher quality does. */
void qsf_measured_choose(const QsfMeasured *m, const QsfModel *model, QsfQualityTable *out);

#endif
