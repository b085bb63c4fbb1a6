/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fitting of a few levels to some values by weighted least squares: what the encoders of all block layouts are made
 * of. Inside of src/quant. Values and weights are finite, weights not negative; n is a multiple of 4 and at most
 * QSF_FIT_MAX. Pure functions without allocation, any thread. */
#ifndef QSF_QUANT_FIT_H
#define QSF_QUANT_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QSF_FIT_MAX = 256 };

/* A run of values with what the searches ask of it again and again. */
typedef struct QsfFit {
    size_t n;
    const float *x, *w;  /* (n) values and weights, the caller's */
    double sw, sx, sxx;  /* sums of w, w x, w x x */
    float lo, hi;        /* least and greatest value with a weight; 0, 0 where there is none */
} QsfFit;

void qsf_fit_begin(QsfFit *f, const float *x, const float *w, size_t n);

/* Sums over codes q: what an error and the best scale depend on. */
typedef struct QsfFitSums { double q, qq, xq; } QsfFitSums; /* of w q, w q q, w x q */

/* Sum of w (x - y)^2. */
double qsf_fit_error(const float *x, const float *w, const float *y, size_t n);

/* ---- x = m + d * q, q = 0 ... top */

typedef struct QsfAffine { double d, m; } QsfAffine;

/* Nearest codes for d >= 0; all 0 where d is 0. */
void qsf_affine_codes(const float *x, size_t n, QsfAffine a, unsigned top, uint8_t *q);
/* The same codes as sums, without storing them. */
void qsf_affine_sums(const QsfFit *f, QsfAffine a, unsigned top, QsfFitSums *s);
/* Error of a with the codes of s. */
double qsf_affine_error(const QsfFit *f, const QsfFitSums *s, QsfAffine a);
/* Least squares of d >= 0 and m for fixed codes, m <= 0 if below_zero. False where the codes do not tell d. */
bool qsf_affine_solve(const QsfFit *f, const QsfFitSums *s, bool below_zero, QsfAffine *a);
/* The best d and m that were found by a grid of ranges and alternating refinement; m <= 0 if below_zero. */
QsfAffine qsf_affine_search(const QsfFit *f, unsigned top, bool below_zero);
/* The same with d and m rounded to half precision inside of the refinement: exact halves come back. */
QsfAffine qsf_affine_search_half(const QsfFit *f, unsigned top);

/* ---- x = d * q, q = low ... high, low < 0 < high */

/* Nearest codes, for d of either sign; 0 where d is 0. */
void qsf_scale_codes(const float *x, size_t n, double d, int low, int high, int8_t *q);
void qsf_scale_sums(const QsfFit *f, double d, int low, int high, QsfFitSums *s);
/* The best d that was found, of either sign if low != -high. */
double qsf_scale_search(const QsfFit *f, int low, int high);
double qsf_scale_search_half(const QsfFit *f, int low, int high);

/* ---- |x| = d * inner or d * outer, 0 <= inner < outer */

/* The best d >= 0 there is, before rounding: sorts by size, so that one of n + 1 splits is it. */
double qsf_levels_search(const QsfFit *f, double inner, double outer);

#endif
