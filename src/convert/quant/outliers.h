/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Outliers of a tensor (man/qsf-format.5): values more than three standard deviations from the mean.
 * Fewer than 0.1 % are clamped; up to 1 % are stored in a list after the tensor (tensor type 31) and replaced
 * by the mean; with more, the tensor needs more bits instead.
 *
 * Three pure passes over ranges of rows: moments (merged), counts (summed), then extraction. Any thread. */
#ifndef QSF_CONVERT_QUANT_OUTLIERS_H
#define QSF_CONVERT_QUANT_OUTLIERS_H

#include "src/convert/quant/formats.h"

#define QSF_OUTLIER_SIGMAS      3.0
#define QSF_OUTLIER_CLAMP_BELOW 0.001 /* fraction of all values */
#define QSF_OUTLIER_BUMP_ABOVE  0.01

typedef struct QsfMoments {
    uint64_t n;
    double mean, squares; /* squares: sum of (x - mean)^2 */
} QsfMoments;

/* Adds rows; *m must be zeroed first. QSF_E_MODEL as qsf_quant_check. */
int qsf_moments_add(QsfMoments *m, const QsfQuantRows *rows, QsfErr *err);
/* Adds what was counted in other to m. */
void qsf_moments_merge(QsfMoments *m, const QsfMoments *other);

typedef struct QsfOutlierLimits {
    float low, high; /* outliers are below low or above high */
    float mean;
} QsfOutlierLimits;

QsfOutlierLimits qsf_outlier_limits(const QsfMoments *m);
uint64_t qsf_outlier_count(const QsfOutlierLimits *limits, const QsfQuantRows *rows);

typedef enum QsfOutlierWay {
    QSF_OUTLIERS_NONE, /* there are none */
    QSF_OUTLIERS_CLAMP,
    QSF_OUTLIERS_LIST,
    QSF_OUTLIERS_BUMP
} QsfOutlierWay;

/* Returns how to handle `outliers` outliers among n values. */
QsfOutlierWay qsf_outlier_way(uint64_t outliers, uint64_t n);

enum { QSF_OUTLIER_BYTES = 10 }; /* u32 row, u32 column, half */

typedef struct QsfOutlier {
    uint32_t row, col;
    uint16_t half; /* the value, which replaces the decoded one */
} QsfOutlier;

/* Clamps outliers, or lists them and replaces them by the mean, in x (n_rows, cols), whose first row has
 * index `first`; row indexes and cols must fit 32 bits. Otherwise leaves x unchanged. list must have space
 * for the number that qsf_outlier_count found; it is sorted by row and column. Returns the number listed. */
size_t qsf_outlier_take(const QsfOutlierLimits *limits, QsfOutlierWay way, float *x, uint32_t first,
                        size_t n_rows, size_t cols, QsfOutlier *list);

#endif
