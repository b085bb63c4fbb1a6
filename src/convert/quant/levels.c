/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two level magnitudes, inner and outer, times one scale: ternary (0 and 1) and 2 bits without a minimum (0.5
 * and 1.5). With the best scale, the outer values are those with the largest magnitudes, so the best split of
 * the values sorted by magnitude is optimal. */
#include <math.h>

#include "src/convert/quant/fit.h"

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
