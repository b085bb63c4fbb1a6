/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Least squares for one and two parameters of a block. Sums use four lanes and double precision, since the
 * error is a small difference of large sums. */
#include "src/convert/quant/fit.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "src/base/half.h"

/* ---- vectors of four values, with the vector extensions of gcc and clang: on every processor the same
 * results ---- */

enum { QSF_VEC = 4 };
typedef float QsfVec __attribute__((vector_size(16)));
typedef int32_t QsfVecMask __attribute__((vector_size(16)));
typedef double QsfVecWide __attribute__((vector_size(32)));

static inline QsfVec vec_all(float v) { return (QsfVec){ v, v, v, v }; }

static inline QsfVec vec_load(const float *p) {
    QsfVec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline QsfVec vec_min(QsfVec a, QsfVec b) {
    const QsfVecMask less = a < b;
    return (QsfVec)(((QsfVecMask)a & less) | ((QsfVecMask)b & ~less));
}
static inline QsfVec vec_max(QsfVec a, QsfVec b) {
    const QsfVecMask more = a > b;
    return (QsfVec)(((QsfVecMask)a & more) | ((QsfVecMask)b & ~more));
}

/* ---- fits ---- */

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
    QsfVec v = (x - vec_all(shift)) * vec_all(inverse);
    v = vec_min(vec_max(v, vec_all(low)), vec_all(high));
    return v + vec_all(ROUNDER) - vec_all(ROUNDER);
}

static double total(const QsfVecWide *v) { return ((*v)[0] + (*v)[1]) + ((*v)[2] + (*v)[3]); }

static void sums_of(const QsfFit *f, float shift, float inverse, float low, float high, QsfFitSums *s) {
    QsfVecWide q1 = { 0 }, q2 = { 0 }, qx = { 0 };
    for (size_t i = 0; i < f->n; i += QSF_VEC) {
        const QsfVec v = vec_load(f->x + i);
        const QsfVecWide q = __builtin_convertvector(codes(v, shift, inverse, low, high), QsfVecWide);
        const QsfVecWide wq = __builtin_convertvector(vec_load(f->w + i), QsfVecWide) * q;
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

/* --- two level magnitudes, inner and outer, times one scale: ternary (0 and 1) and 2 bits without a
 * minimum (0.5 and 1.5). With the best scale, the outer values are those with the largest magnitudes, so
 * the best split of the values sorted by magnitude is optimal --- */

typedef struct Sized {
    double size, weight;
} Sized;

/* D. L. Shell's sort, largest first, with M. Ciura's gaps: small blocks, no allocation. */
static void sort(Sized *v, size_t n) {
    static const size_t gaps[] = { 132, 57, 23, 10, 4, 1 };
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (size_t i = gaps[g]; i < n; i++) {
            const Sized one = v[i];
            size_t k = i;
            for (; k >= gaps[g] && v[k - gaps[g]].size < one.size; k -= gaps[g]) v[k] = v[k - gaps[g]];
            v[k] = one;
        }
}

double qsf_levels_search(const QsfFit *f, double inner, double outer) {
    Sized v[QSF_FIT_MAX];
    double xl = 0, ll = 0, gain = 0, best = 0;
    for (size_t i = 0; i < f->n; i++) {
        v[i] = (Sized){ fabs((double)f->x[i]), (double)f->w[i] };
        xl += inner * v[i].weight * v[i].size;
        ll += inner * inner * v[i].weight;
    }
    sort(v, f->n);
    if (xl > 0 && ll > 0) gain = xl * xl / ll, best = xl / ll;
    for (size_t i = 0; i < f->n; i++) {
        xl += (outer - inner) * v[i].weight * v[i].size;
        ll += (outer * outer - inner * inner) * v[i].weight;
        if (!(xl > 0 && ll > 0 && xl * xl / ll > gain)) continue;
        gain = xl * xl / ll;
        best = xl / ll;
    }
    return best;
}

/* --- searches a scale without a minimum: x = d * q with signed codes. For given codes, the best d reduces
 * the error by (sum w x q)^2 / sum w q q, so the search maximizes that --- */

/* Maps the largest value to low - 0.6 ... low + 2.4, before clamping to the code range. */
enum { TRIES = 16, ROUNDS = 6 };

typedef struct Best {
    double d, gain;
} Best;

/* Replaces d by the solution for the codes of d, if that is better. */
static bool improve(const QsfFit *f, int low, int high, double d, Best *best) {
    QsfFitSums s;
    qsf_scale_sums(f, d, low, high, &s);
    const double gain = s.qq > 0 ? s.xq * s.xq / s.qq : 0;
    if (!(gain > best->gain)) return false;
    *best = (Best){ s.xq / s.qq, gain };
    return true;
}

double qsf_scale_search(const QsfFit *f, int low, int high) {
    const double size = fmax(fabs((double)f->lo), fabs((double)f->hi));
    Best best = { 0, 0 };
    if (!(size > 0)) return 0;
    for (int i = 0; i < TRIES; i++) {
        const double d = size / (-low - 0.6 + 0.2 * i);
        (void)improve(f, low, high, d, &best);
        if (low != -high) (void)improve(f, low, high, -d, &best);
    }
    for (int round = 0; round < ROUNDS; round++)
        if (!improve(f, low, high, best.d, &best)) break;
    return best.d;
}

static double error_at(const QsfFit *f, int low, int high, double d) {
    QsfFitSums s;
    qsf_scale_sums(f, d, low, high, &s);
    return f->sxx + d * (d * s.qq - 2 * s.xq);
}

double qsf_scale_search_half(const QsfFit *f, int low, int high) {
    double d = (double)qsf_half_round(qsf_scale_search(f, low, high)), error = error_at(f, low, high, d);
    for (int round = 0; round < ROUNDS; round++) {
        const uint16_t at = qsf_half_bits(d);
        const double before = error;
        for (int step = -1; step <= 1; step += 2) {
            const double near = (double)qsf_half_value(qsf_half_step(at, step));
            const double e = error_at(f, low, high, near);
            if (e < error) error = e, d = near;
        }
        if (!(error < before)) break;
    }
    return d;
}
