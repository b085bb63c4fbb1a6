/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searches scale and minimum of a block. Alternating between codes for fixed scale and minimum and scale and
 * minimum for fixed codes never increases the error (S. Lloyd, "Least squares quantization in PCM", with
 * equal steps), but ends in a local minimum, so the search starts from several, increasingly narrow
 * ranges. */
#include <math.h>
#include <string.h>

#include "src/base/half.h"
#include "src/convert/quant/fit.h"

/* Number of best grid points to refine, iterations of refinement, and range ends tried on each side. */
enum { STARTS = 2, ROUNDS = 6, SHRINKS = 5, RANKS = 2, ENDS = SHRINKS + RANKS };

typedef struct Found {
    QsfAffine a;
    double error;
} Found;

/* Fractions of the range to omit at an end: more for fewer levels. With 4 levels, a normal distribution needs
 * 3 of the 4.8 sigma that 64 values span. */
static double shrink_of(unsigned top, int i) {
    const double step = top <= 3 ? 0.07 : top <= 7 ? 0.04 : 0.025;
    return step * i;
}

/* Also tries the values of rank 2 and 4 at either end, for single large values of little weight. */
static void ranked(const QsfFit *f, double sign, double out[RANKS]) {
    double top[4];
    for (int k = 0; k < 4; k++) top[k] = -INFINITY;
    for (size_t i = 0; i < f->n; i++) {
        double v = sign * (double)f->x[i];
        if (!(f->w[i] > 0) || v <= top[3]) continue;
        for (int k = 0; k < 4; k++)
            if (v > top[k]) {
                const double moved = top[k];
                top[k] = v;
                v = moved;
            }
    }
    out[0] = sign * (isfinite(top[1]) ? top[1] : top[0]);
    out[1] = sign * (isfinite(top[3]) ? top[3] : top[0]);
}

static void ends_of(const QsfFit *f, unsigned top, double low[ENDS], double high[ENDS]) {
    const double range = (double)f->hi - (double)f->lo;
    for (int i = 0; i < SHRINKS; i++) {
        low[i] = (double)f->lo + range * shrink_of(top, i);
        high[i] = (double)f->hi - range * shrink_of(top, i);
    }
    ranked(f, -1, low + SHRINKS);
    ranked(f, 1, high + SHRINKS);
}

/* Inserts into the list of starts, which is sorted, the best first. */
static void keep(Found *best, Found one) {
    for (int i = 0; i < STARTS; i++)
        if (one.error < best[i].error) {
            const Found moved = best[i];
            best[i] = one;
            one = moved;
        }
}

/* Evaluates the grid, with scale and minimum solved for the codes of each range. */
static void scan(const QsfFit *f, unsigned top, bool below_zero, Found best[STARTS]) {
    double low[ENDS], high[ENDS];
    for (int i = 0; i < STARTS; i++) best[i] = (Found){ { 0, (double)f->lo }, INFINITY };
    ends_of(f, top, low, high);
    for (int i = 0; i < ENDS; i++)
        for (int k = 0; k < ENDS; k++) {
            QsfFitSums s;
            QsfAffine a = { 0, below_zero && low[i] > 0 ? 0 : low[i] };
            a.d = (high[k] - a.m) / top;
            if (!(a.d > 0)) continue;
            qsf_affine_sums(f, a, top, &s);
            if (qsf_affine_solve(f, &s, below_zero, &a)) keep(best, (Found){ a, qsf_affine_error(f, &s, a) });
        }
}

/* Uses one level for all: the mean, but at most zero if below_zero. */
static Found level(const QsfFit *f, bool below_zero) {
    const QsfFitSums none = { 0, 0, 0 };
    Found one = { { 0, f->sw > 0 ? f->sx / f->sw : 0 }, 0 };
    if (below_zero && one.a.m > 0) one.a.m = 0;
    one.error = qsf_affine_error(f, &none, one.a);
    return one;
}

QsfAffine qsf_affine_search(const QsfFit *f, unsigned top, bool below_zero) {
    Found start[STARTS], best = level(f, below_zero);
    scan(f, top, below_zero, start);
    for (int i = 0; i < STARTS; i++) {
        double last = INFINITY;
        QsfAffine a = start[i].a;
        for (int round = 0; round < ROUNDS; round++) {
            QsfFitSums s;
            qsf_affine_sums(f, a, top, &s);
            if (!qsf_affine_solve(f, &s, below_zero, &a)) break;
            const double error = qsf_affine_error(f, &s, a);
            if (error < best.error) best = (Found){ a, error };
            if (!(error < last)) break;
            last = error;
        }
    }
    return best.a;
}

/* Rounds one of scale and minimum, then solves the other one again and rounds it, in the better of the two
 * orders. */
static QsfAffine rounded(const QsfFit *f, const QsfFitSums *s, QsfAffine a) {
    QsfAffine p, r;
    p.m = (double)qsf_half_round(a.m);
    p.d = (double)qsf_half_round(s->qq > 0 ? fmax(0, (s->xq - p.m * s->q) / s->qq) : a.d);
    r.d = (double)qsf_half_round(a.d);
    r.m = (double)qsf_half_round((f->sx - r.d * s->q) / f->sw);
    return qsf_affine_error(f, s, p) <= qsf_affine_error(f, s, r) ? p : r;
}

static void try_pair(const QsfFit *f, unsigned top, QsfAffine a, QsfFitSums *s, Found *best, double *error) {
    qsf_affine_sums(f, a, top, s);
    *error = qsf_affine_error(f, s, a);
    if (*error < best->error) *best = (Found){ a, *error };
}

static void refine_half(const QsfFit *f, unsigned top, QsfAffine a, Found *best) {
    QsfFitSums s;
    double last = INFINITY, error;
    qsf_affine_sums(f, a, top, &s);
    for (int round = 0; round < ROUNDS; round++) {
        try_pair(f, top, rounded(f, &s, a), &s, best, &error);
        if (!(error < last) || !qsf_affine_solve(f, &s, false, &a)) return;
        last = error;
    }
}

/* Moves to an adjacent half while that is better: for values so small, or so far from zero, that one step of
 * scale or minimum matters. */
static void polish(const QsfFit *f, unsigned top, Found *best) {
    for (int round = 0; round < ROUNDS; round++) {
        const double before = best->error;
        const uint16_t d = qsf_half_bits(best->a.d), m = qsf_half_bits(best->a.m);
        for (int step = -1; step <= 1; step += 2) {
            QsfFitSums s;
            double error;
            const QsfAffine by_d = { (double)qsf_half_value(qsf_half_step(d, step)), best->a.m };
            const QsfAffine by_m = { best->a.d, (double)qsf_half_value(qsf_half_step(m, step)) };
            if (by_d.d >= 0) try_pair(f, top, by_d, &s, best, &error);
            try_pair(f, top, by_m, &s, best, &error);
        }
        if (!(best->error < before)) return;
    }
}

/* Handles values that are almost equal: one step from the half below them. */
static void try_step(const QsfFit *f, unsigned top, Found *best) {
    QsfFitSums s;
    double error;
    uint16_t m = qsf_half_bits((double)f->lo);
    if (qsf_half_value(m) > f->lo) m = qsf_half_step(m, -1);
    const double base = (double)qsf_half_value(m), mean = f->sw > 0 ? f->sx / f->sw : base;
    try_pair(f, top, (QsfAffine){ (double)qsf_half_round(fmax(0, mean - base)), base }, &s, best, &error);
}

QsfAffine qsf_affine_search_half(const QsfFit *f, unsigned top) {
    Found start[STARTS], best = level(f, false);
    const QsfFitSums none = { 0, 0, 0 };
    if (!(f->sw > 0)) return (QsfAffine){ 0, 0 };
    best.a.m = (double)qsf_half_round(best.a.m);
    best.error = qsf_affine_error(f, &none, best.a);
    try_step(f, top, &best);
    scan(f, top, false, start);
    for (int i = 0; i < STARTS; i++)
        if (start[i].error < INFINITY) refine_half(f, top, start[i].a, &best);
    polish(f, top, &best);
    return best.a;
}
