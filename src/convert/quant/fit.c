/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Least squares for one and two parameters of a block. Sums use four lanes and double precision, since the
 * error is a small difference of large sums. */
#include "src/convert/quant/fit.h"

#include <math.h>

#include "src/convert/quant/vec.h"

/* Adding and subtracting 1.5 * 2^23 rounds a float below 2^22 to nearest even. */
#define ROUNDER 12582912.0f
/* A smaller step is treated as 0: half precision cannot represent it. */
#define STEP_MIN 1e-30

void qsf_fit_begin(QsfFit *f, const float *x, const float *w, size_t n) {
    bool any = false;
    *f = (QsfFit){ .n = n, .x = x, .w = w };
    for (size_t i = 0; i < n; i++) {
        const double wx = (double)w[i] * (double)x[i];
        f->sw += (double)w[i];
        f->sx += wx;
        f->sxx += wx * (double)x[i];
        if (!(w[i] > 0)) continue;
        if (!any || x[i] < f->lo) f->lo = x[i];
        if (!any || x[i] > f->hi) f->hi = x[i];
        any = true;
    }
}

double qsf_fit_error(const float *x, const float *w, const float *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = (double)x[i] - (double)y[i];
        sum += (double)w[i] * e * e;
    }
    return sum;
}

static inline float code(float x, float shift, float inverse, float low, float high) {
    float v = (x - shift) * inverse;
    v = v < low ? low : v;
    v = v > high ? high : v;
    return v + ROUNDER - ROUNDER;
}

static float inverse_of(double d) { return fabs(d) > STEP_MIN ? (float)(1 / d) : 0.0f; }

/* The same four at a time. */
static inline QsfVec codes(QsfVec x, float shift, float inverse, float low, float high) {
    QsfVec v = (x - qsf_vec_all(shift)) * qsf_vec_all(inverse);
    v = qsf_vec_min(qsf_vec_max(v, qsf_vec_all(low)), qsf_vec_all(high));
    return v + qsf_vec_all(ROUNDER) - qsf_vec_all(ROUNDER);
}

static double total(const QsfVecWide *v) { return ((*v)[0] + (*v)[1]) + ((*v)[2] + (*v)[3]); }

static void sums_of(const QsfFit *f, float shift, float inverse, float low, float high, QsfFitSums *s) {
    QsfVecWide q1 = { 0 }, q2 = { 0 }, qx = { 0 };
    for (size_t i = 0; i < f->n; i += QSF_VEC) {
        const QsfVec v = qsf_vec_load(f->x + i);
        const QsfVecWide q = __builtin_convertvector(codes(v, shift, inverse, low, high), QsfVecWide);
        const QsfVecWide wq = __builtin_convertvector(qsf_vec_load(f->w + i), QsfVecWide) * q;
        q1 += wq;
        q2 += wq * q;
        qx += wq * __builtin_convertvector(v, QsfVecWide);
    }
    *s = (QsfFitSums){ total(&q1), total(&q2), total(&qx) };
}

void qsf_affine_codes(const float *x, size_t n, QsfAffine a, unsigned top, uint8_t *q) {
    const float inverse = inverse_of(a.d);
    for (size_t i = 0; i < n; i++) q[i] = (uint8_t)code(x[i], (float)a.m, inverse, 0, (float)top);
}

void qsf_affine_sums(const QsfFit *f, QsfAffine a, unsigned top, QsfFitSums *s) {
    sums_of(f, (float)a.m, inverse_of(a.d), 0, (float)top, s);
}

double qsf_affine_error(const QsfFit *f, const QsfFitSums *s, QsfAffine a) {
    const double fixed = f->sxx - 2 * a.m * f->sx + a.m * a.m * f->sw;
    return fixed + a.d * (a.d * s->qq - 2 * (s->xq - a.m * s->q));
}

bool qsf_affine_solve(const QsfFit *f, const QsfFitSums *s, bool below_zero, QsfAffine *a) {
    const double det = f->sw * s->qq - s->q * s->q;
    if (!(det > 1e-12 * f->sw * s->qq)) return false;
    a->d = (f->sw * s->xq - s->q * f->sx) / det;
    a->m = (f->sx - a->d * s->q) / f->sw;
    if (below_zero && a->m > 0) *a = (QsfAffine){ s->xq / s->qq, 0 };
    return a->d > 0;
}

void qsf_scale_codes(const float *x, size_t n, double d, int low, int high, int8_t *q) {
    const float inverse = inverse_of(d);
    for (size_t i = 0; i < n; i++) q[i] = (int8_t)code(x[i], 0, inverse, (float)low, (float)high);
}

void qsf_scale_sums(const QsfFit *f, double d, int low, int high, QsfFitSums *s) {
    sums_of(f, 0, inverse_of(d), (float)low, (float)high, s);
}
