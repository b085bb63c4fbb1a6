/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searches a scale without a minimum: x = d * q with signed codes. For given codes, the best d reduces the
 * error by (sum w x q)^2 / sum w q q, so the search maximizes that. */
#include <math.h>

#include "src/base/half.h"
#include "src/convert/quant/fit.h"

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
