/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How far decoded values are from the true ones. Sums of ranges of rows can be merged: the same ranges merged in the
 * same order give the same figures, whoever computed them. Pure functions, any thread. */
#ifndef QSF_QUANT_MEASURE_H
#define QSF_QUANT_MEASURE_H

#include "src/quant/formats.h"

typedef struct QsfQuantStats {
    uint64_t n;                       /* values */
    double signal, noise;             /* sums of x^2 and (x - y)^2 */
    double decoded, product;          /* of y^2 and x y */
    double heavy_signal, heavy_noise; /* of x^2 and (x - y)^2 times the importance of the column */
    double heavy_decoded, heavy_product; /* of y^2 and x y likewise */
    double max_error;                 /* the largest |x - y|, and where it is first */
    uint64_t max_row;
    size_t max_col;
} QsfQuantStats;

/* Adds rows and what they decode to: y (n_rows, cols). *s begins as all zeros. */
void qsf_stats_add(QsfQuantStats *s, const QsfQuantRows *rows, const float *y);
/* Adds what another one holds. */
void qsf_stats_merge(QsfQuantStats *s, const QsfQuantStats *other);
/* 10 log10(signal / noise); infinite without noise, 0 dB where there is neither. */
double qsf_stats_snr(const QsfQuantStats *s);
/* The same, weighted by importance. */
double qsf_stats_heavy_snr(const QsfQuantStats *s);
/* x y / (|x| |y|); 1 where both are zero, 0 where one is. */
double qsf_stats_cosine(const QsfQuantStats *s);
/* The same, weighted by importance. */
double qsf_stats_heavy_cosine(const QsfQuantStats *s);

#endif
