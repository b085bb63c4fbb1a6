/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures the error of decoded values. Sums of ranges of rows can be merged: the same ranges merged in the
 * same order give the same results on any thread. Pure functions, any thread. */
#ifndef QSF_CONVERT_QUANT_MEASURE_H
#define QSF_CONVERT_QUANT_MEASURE_H

#include "src/convert/quant/formats.h"

typedef struct QsfQuantStats {
    uint64_t n;                          /* values */
    double signal, noise;                /* sums of x^2 and (x - y)^2 */
    double decoded, product;             /* of y^2 and x y */
    double heavy_signal, heavy_noise;    /* of x^2 and (x - y)^2 times the importance of the column */
    double heavy_decoded, heavy_product; /* of y^2 and x y likewise */
    double max_error;                    /* the largest |x - y|, and its first position */
    uint64_t max_row;
    size_t max_col;
} QsfQuantStats;

/* Adds rows and their decoded values y (n_rows, cols). *s must be zeroed first. */
void qsf_stats_add(QsfQuantStats *s, const QsfQuantRows *rows, const float *y);
/* Merges another one. */
void qsf_stats_merge(QsfQuantStats *s, const QsfQuantStats *other);
/* Returns 10 log10(signal / noise); infinite without noise, 0 dB without either. */
double qsf_stats_snr(const QsfQuantStats *s);
/* The same, weighted by importance. */
double qsf_stats_heavy_snr(const QsfQuantStats *s);
/* Returns x y / (|x| |y|); 1 if both are zero, 0 if one is. */
double qsf_stats_cosine(const QsfQuantStats *s);
/* The same, weighted by importance. */
double qsf_stats_heavy_cosine(const QsfQuantStats *s);

#endif
