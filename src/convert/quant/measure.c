/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Errors of quantized rows. */
#include "src/convert/quant/measure.h"

#include <math.h>

static void note_largest(QsfQuantStats *s, double error, uint64_t row, size_t col) {
    if (!(error > s->max_error)) return;
    s->max_error = error;
    s->max_row = row;
    s->max_col = col;
}

void qsf_stats_add(QsfQuantStats *s, const QsfQuantRows *rows, const float *y) {
    for (size_t r = 0; r < rows->n_rows; r++)
        for (size_t c = 0; c < rows->cols; c++) {
            const double x = (double)rows->x[r * rows->cols + c], v = (double)y[r * rows->cols + c],
                         e = x - v;
            const double w = rows->importance ? (double)rows->importance[c] : 1;
            s->signal += x * x;
            s->noise += e * e;
            s->decoded += v * v;
            s->product += x * v;
            s->heavy_signal += w * x * x;
            s->heavy_noise += w * e * e;
            s->heavy_decoded += w * v * v;
            s->heavy_product += w * x * v;
            note_largest(s, fabs(e), rows->first + r, c);
        }
    s->n += (uint64_t)rows->n_rows * rows->cols;
}

void qsf_stats_merge(QsfQuantStats *s, const QsfQuantStats *other) {
    s->n += other->n;
    s->signal += other->signal;
    s->noise += other->noise;
    s->decoded += other->decoded;
    s->product += other->product;
    s->heavy_signal += other->heavy_signal;
    s->heavy_noise += other->heavy_noise;
    s->heavy_decoded += other->heavy_decoded;
    s->heavy_product += other->heavy_product;
    note_largest(s, other->max_error, other->max_row, other->max_col);
}

static double decibels(double signal, double noise) {
    if (noise > 0) return 10 * log10(signal / noise);
    return signal > 0 ? (double)INFINITY : 0;
}

double qsf_stats_snr(const QsfQuantStats *s) { return decibels(s->signal, s->noise); }
double qsf_stats_heavy_snr(const QsfQuantStats *s) { return decibels(s->heavy_signal, s->heavy_noise); }

static double cosine(double signal, double decoded, double product) {
    if (!(signal > 0) || !(decoded > 0)) return signal > 0 || decoded > 0 ? 0 : 1;
    return product / (sqrt(signal) * sqrt(decoded));
}

double qsf_stats_cosine(const QsfQuantStats *s) { return cosine(s->signal, s->decoded, s->product); }
double qsf_stats_heavy_cosine(const QsfQuantStats *s) {
    return cosine(s->heavy_signal, s->heavy_decoded, s->heavy_product);
}
