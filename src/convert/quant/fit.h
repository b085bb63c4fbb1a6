/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fits a few levels to values by weighted least squares; used by the encoders of all block layouts. Private
 * to src/convert/quant. Values and weights must be finite and weights not negative; n must be a multiple of 4
 * and at most QSF_FIT_MAX. Pure functions without allocation, any thread. */
#ifndef QSF_CONVERT_QUANT_FIT_H
#define QSF_CONVERT_QUANT_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QSF_FIT_MAX = 256 };

/* A run of values with sums that the searches need repeatedly. */
typedef struct QsfFit {
    size_t n;
    const float *x, *w; /* (n) values and weights, the caller's */
    double sw, sx, sxx; /* sums of w, w x, w x x */
    float lo, hi;       /* minimum and maximum value with a nonzero weight; 0, 0 if there is none */
} QsfFit;

void qsf_fit_begin(QsfFit *f, const float *x, const float *w, size_t n);

/* Sums over codes q, which determine the error and the best scale. */
typedef struct QsfFitSums {
    double q, qq, xq;
} QsfFitSums; /* of w q, w q q, w x q */

/* Returns the sum of w (x - y)^2. */
double qsf_fit_error(const float *x, const float *w, const float *y, size_t n);

/* ---- x = m + d * q, q = 0 ... top */

typedef struct QsfAffine {
    double d, m;
} QsfAffine;

/* Computes the nearest codes for d >= 0; all 0 if d is 0. */
void qsf_affine_codes(const float *x, size_t n, QsfAffine a, unsigned top, uint8_t *q);
/* Computes the sums of the same codes, without storing them. */
void qsf_affine_sums(const QsfFit *f, QsfAffine a, unsigned top, QsfFitSums *s);
/* Returns the error of a with the codes of s. */
double qsf_affine_error(const QsfFit *f, const QsfFitSums *s, QsfAffine a);
/* Solves d >= 0 and m by least squares for fixed codes; m <= 0 if below_zero. False if the codes do not
 * determine d. */
bool qsf_affine_solve(const QsfFit *f, const QsfFitSums *s, bool below_zero, QsfAffine *a);
/* Returns the best d and m found by a grid of ranges and alternating refinement; m <= 0 if below_zero. */
QsfAffine qsf_affine_search(const QsfFit *f, unsigned top, bool below_zero);
/* The same with d and m rounded to half precision during the refinement; the result is exact halves. */
QsfAffine qsf_affine_search_half(const QsfFit *f, unsigned top);

/* ---- x = d * q, q = low ... high, low < 0 < high */

/* Computes the nearest codes for d of either sign; 0 if d is 0. */
void qsf_scale_codes(const float *x, size_t n, double d, int low, int high, int8_t *q);
void qsf_scale_sums(const QsfFit *f, double d, int low, int high, QsfFitSums *s);
/* Returns the best d found, of either sign if low != -high. */
double qsf_scale_search(const QsfFit *f, int low, int high);
double qsf_scale_search_half(const QsfFit *f, int low, int high);

/* ---- |x| = d * inner or d * outer, 0 <= inner < outer */

/* Returns the optimal d >= 0, before rounding: sorts by magnitude, so that one of n + 1 splits is the
 * best. */
double qsf_levels_search(const QsfFit *f, double inner, double outer);

#endif
