/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Search of d and words of a block with codebooks.
 *
 * For fixed codes, the error of a group is a parabola in the unit of its levels, and the error with the
 * nearest codes is never above any of those parabolas. So each group is measured with only a few units,
 * before d is known. Each book and unit gives a parabola; for any d and scale, the minimum of the parabolas
 * approximates the error without access to the values. That makes it cheap to try many d. For the best one,
 * words near the best of each group are evaluated exactly.
 *
 * This file is compiled once for each instruction set. Books, signs and units are in 16 lanes and values are
 * processed one at a time, so that no sum depends on the vector width: all give the same bytes. */
#ifndef QSF_CONVERT_QUANT_BOOKS_CORE_H
#define QSF_CONVERT_QUANT_BOOKS_CORE_H

#include <math.h>

#include "src/base/half.h"
#include "src/convert/quant/books.h"
#include "src/convert/quant/lanes.h"

enum { PASSES_MAX = 5 /* two and a half times those of a Look */, CURVES_MAX = PASSES_MAX * QSF_LANES_N };
enum { ROUNDS = 2, REACH_ROUNDS = 4 };

/* Adding and subtracting 1.5 * 2^23 rounds a float below 2^22 to nearest even. */
#define ROUNDER 12582912.0f

/* How thoroughly groups are searched. */
typedef struct Look {
    float noise;     /* squared error of a level relative to its reach: the cost of a larger reach */
    float low, high; /* range of units tried, relative to the reach of the group */
    unsigned passes; /* number of passes over 16 books, signs and units */
    float close;     /* d is chosen by the curves whose error is at most this many times the smallest */
    unsigned scales; /* number of scales near the best one that are evaluated exactly */
} Look;

static const Look looks[] = {
    [2] = { 0.02f, 0.95f, 1.25f, 2, 1.5f, 1 },
    [3] = { 0.005f, 0.92f, 1.2f, 2, 1.25f, 2 },
    [4] = { 0.0013f, 0.96f, 1.25f, 2, 1.25f, 4 },
};

/* All books of a layout, once for each sign; the remaining lanes repeat them. The shape of a lane is sign <<
 * book_bits | book. In units of the levels. */
typedef struct Shelf {
    unsigned shapes, bits;
    float sign[QSF_LANES_N]; /* 1 or -1 */
    float first[QSF_LANES_N], border[QSF_BOOK_LEVELS - 1][QSF_LANES_N],
        step[QSF_BOOK_LEVELS - 1][QSF_LANES_N];
} Shelf;

/* Sums of w x L and of w L L over the levels L that are nearest to the values. */
typedef struct Sums {
    QsfSixteen xl, ll;
} Sums;

/* Parabolas of a group: error + ll * (u - unit)^2 with a unit of u. */
typedef struct Curves {
    float unit[CURVES_MAX], ll[CURVES_MAX], error[CURVES_MAX];
    uint8_t close[CURVES_MAX]; /* indexes of those whose error is close to the smallest */
    size_t n, n_close;
    float zero; /* error with scale 0 */
} Curves;

static inline Shelf shelf_of(const QsfBooks *t) {
    const unsigned books = 1u << t->book_bits, levels = 1u << t->bits;
    Shelf s = { .shapes = 2 * books, .bits = t->bits };
    for (unsigned lane = 0; lane < QSF_LANES_N; lane++) {
        const int8_t *book = t->levels + ((lane & (books - 1)) << t->bits);
        s.sign[lane] = lane & books ? -1 : 1;
        s.first[lane] = book[0];
        for (unsigned k = 0; k + 1 < levels; k++) {
            s.border[k][lane] = 0.5f * (float)(book[k] + book[k + 1]);
            s.step[k][lane] = (float)(book[k + 1] - book[k]);
        }
    }
    return s;
}

static inline void sums_of(const Shelf *s, const QsfBookValues *g, const QsfSixteen *unit, Sums *sums,
                           int levels) {
    QSF_EACH(i) {
        const int at = i * QSF_LANES;
        const QsfLanes sign = qsf_lanes_load(s->sign + at), first = qsf_lanes_load(s->first + at),
                       inverse = sign / unit->v[i];
        QsfLanes xl = qsf_lanes_all(0), ll = xl;
        for (int j = 0; j < QSF_BOOK_GROUP; j++) {
            const QsfLanes x = qsf_lanes_all(g->x[j]), v = x * inverse;
            QsfLanes y = first;
            for (int k = 0; k + 1 < levels; k++)
                y += qsf_lanes_where(v > qsf_lanes_load(s->border[k] + at), qsf_lanes_load(s->step[k] + at));
            const QsfLanes wy = qsf_lanes_all(g->w[j]) * y;
            xl += wy * x;
            ll += wy * y;
        }
        sums->xl.v[i] = xl * sign;
        sums->ll.v[i] = ll;
    }
}

/* Computes the sums of all shapes, each lane with its unit. The number of levels is a constant, so that loops
 * are unrolled. */
static inline void all_sums(const Shelf *s, const QsfBookValues *g, const QsfSixteen *unit, Sums *sums) {
    if (s->bits == 2)
        sums_of(s, g, unit, sums, 4);
    else if (s->bits == 3)
        sums_of(s, g, unit, sums, 8);
    else
        sums_of(s, g, unit, sums, 16);
}

/* ---- curves */

/* Computes how far levels should reach: minimizes the sum of the clipping error and the cost of wider steps.
 * Newton's method, which converges from below after its first step, since the slope is piecewise linear and
 * increasing. 0 if all values are 0. */
static inline float reach_of(const QsfBookValues *g, float noise, float heavy) {
    const QsfSixteen values = qsf_sixteen_load(g->x), weights = qsf_sixteen_load(g->w);
    float reach = 0.7f * g->size;
    for (int round = 0; round < REACH_ROUNDS; round++) {
        QsfSixteen w, wa;
        QSF_EACH(i) {
            const QsfLanes a = qsf_lanes_max(values.v[i], -values.v[i]);
            w.v[i] = qsf_lanes_where(a > qsf_lanes_all(reach), weights.v[i]);
            wa.v[i] = w.v[i] * a;
        }
        reach = qsf_sixteen_total(&wa) / (qsf_sixteen_total(&w) + noise * heavy);
    }
    return reach;
}

/* Returns 0 if all weights are equal, nearly 1 if one of them dominates. Sets heavy to their sum. */
static inline float inequality(const QsfBookValues *g, float *heavy) {
    const QsfSixteen w = qsf_sixteen_load(g->w);
    QsfSixteen ww;
    QSF_EACH(i) ww.v[i] = w.v[i] * w.v[i];
    const float squares = qsf_sixteen_total(&ww);
    *heavy = qsf_sixteen_total(&w);
    return squares > 0 ? 1 - *heavy * *heavy / (QSF_BOOK_GROUP * squares) : 0;
}

/* Computes 16 curves with these units. */
static inline void add_curves(const Shelf *s, const QsfBookValues *g, const QsfSixteen *units, Curves *c) {
    const QsfLanes zero = qsf_lanes_all(0);
    Sums sums;
    all_sums(s, g, units, &sums);
    QSF_EACH(i) {
        const QsfLanes xl = qsf_lanes_max(sums.xl.v[i], zero), ll = sums.ll.v[i],
                       unit = qsf_lanes_where(ll > zero, xl / ll);
        qsf_lanes_store(c->unit + c->n, unit);
        qsf_lanes_store(c->ll + c->n, ll);
        qsf_lanes_store(c->error + c->n, qsf_lanes_all(g->xx) - unit * xl);
        c->n += QSF_LANES;
    }
}

/* Records the curves whose errors are close to the smallest. */
static inline void sift(Curves *c, float times) {
    QsfSixteen least = qsf_sixteen_load(c->error);
    for (size_t k = QSF_LANES_N; k < c->n; k += QSF_LANES_N)
        QSF_EACH(i)
            least.v[i] = qsf_lanes_min(qsf_lanes_load(c->error + k + (size_t)i * QSF_LANES), least.v[i]);
    const float limit = qsf_sixteen_min(&least) * times;
    c->n_close = 0;
    for (size_t k = 0; k < c->n; k++) {
        c->close[c->n_close] = (uint8_t)k;
        c->n_close += c->error[k] <= limit;
    }
}

/* Computes the curves of a group and returns its reach. The more unequal the weights, the fewer values
 * matter, and the farther the best unit may be from the usual one: so a wider range is searched more
 * thoroughly. */
static inline float curves_of(const QsfBooks *t, const Shelf *s, const QsfBookValues *g, Curves *c) {
    const Look *look = &looks[t->bits];
    float heavy, part[QSF_LANES_N];
    const float unequal = inequality(g, &heavy), reach = reach_of(g, look->noise, heavy),
                unit = reach / QSF_BOOK_LARGEST;
    const unsigned passes = look->passes + (unsigned)(unequal * 1.5f * (float)look->passes),
                   each = QSF_LANES_N / s->shapes;
    const float low = unit * (look->low - 0.5f * unequal), high = unit * (look->high + 0.4f * unequal);
    const float step = (high - low) / (float)(passes * each - 1);
    c->n = c->n_close = 0;
    c->zero = g->xx;
    if (!(unit > 0)) return 0;
    for (unsigned p = 0; p < passes; p++) {
        for (unsigned lane = 0; lane < QSF_LANES_N; lane++)
            part[lane] = low + step * (float)(p * each + lane / s->shapes);
        const QsfSixteen units = qsf_sixteen_load(part);
        add_curves(s, g, &units, c);
    }
    sift(c, look->close);
    return reach;
}

/* ---- choice of d by curves */

static inline QsfLanes round_to(QsfLanes x, QsfLanes top) {
    const QsfLanes rounder = qsf_lanes_all(ROUNDER);
    return qsf_lanes_min(x, top) + rounder - rounder;
}

/* Adds the cost of a group with 16 units for scale 1. */
static inline void add_errors(const Curves *c, const QsfSixteen *unit, const QsfSixteen *inverse, float top,
                              QsfSixteen *sum) {
    QsfSixteen least;
    QSF_EACH(i) least.v[i] = qsf_lanes_all(c->zero);
    for (size_t k = 0; k < c->n_close; k++) {
        const size_t at = c->close[k];
        const QsfLanes its = qsf_lanes_all(c->unit[at]), ll = qsf_lanes_all(c->ll[at]),
                       error = qsf_lanes_all(c->error[at]);
        QSF_EACH(i) {
            const QsfLanes off = round_to(its * inverse->v[i], qsf_lanes_all(top)) * unit->v[i] - its;
            least.v[i] = qsf_lanes_min(error + ll * off * off, least.v[i]);
        }
    }
    QSF_EACH(i) sum->v[i] += least.v[i];
}

/* Returns the one of 16 units for scale 1 with the smallest cost by the curves, relative to a given one. */
static inline float best_unit(const QsfBooks *t, const Curves *curves, const float parts[QSF_LANES_N],
                              float whole) {
    const float top = (float)((1u << t->scale_bits) - 1);
    QsfSixteen unit = qsf_sixteen_load(parts), inverse, sum;
    float error[QSF_LANES_N];
    size_t best = 0;
    QSF_EACH(i) {
        unit.v[i] *= qsf_lanes_all(whole);
        inverse.v[i] = qsf_lanes_all(1) / unit.v[i];
        sum.v[i] = qsf_lanes_all(0);
    }
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++) add_errors(&curves[g], &unit, &inverse, top, &sum);
    memcpy(error, &sum, sizeof error);
    for (size_t i = 1; i < QSF_LANES_N; i++) best = error[i] < error[best] ? i : best;
    return parts[best] * whole;
}

/* Finds the d with the smallest cost by the curves: searches from the one for which seven tenths of the
 * maximum scale give the farthest reach to twice that, and then near the best. */
static inline double first_d(const QsfBooks *t, const Curves *curves, float reach) {
    static const float wide[QSF_LANES_N] = { 1.4f,  1.28f, 1.18f, 1.12f, 1.06f, 1.0f,  0.95f, 0.9f,
                                             0.86f, 0.82f, 0.77f, 0.72f, 0.67f, 0.62f, 0.56f, 0.5f };
    static const float narrow[QSF_LANES_N] = {
        1,      1.003f, 0.997f, 1.006f, 0.994f, 1.009f, 0.991f, 1.012f,
        0.988f, 1.015f, 0.985f, 1.018f, 0.982f, 1.022f, 0.978f, 1.026f
    };
    const float whole = reach / (QSF_BOOK_LARGEST * (float)((1u << t->scale_bits) - 1));
    return (double)best_unit(t, curves, narrow, best_unit(t, curves, wide, whole)) * QSF_BOOK_UNITS;
}

/* Returns the scale with the smallest cost by the curves for this d, the smallest of equals. */
static inline unsigned scale_of(const QsfBooks *t, const Curves *c, double d) {
    const QsfLanes inverse = qsf_lanes_all((float)(QSF_BOOK_UNITS / d)),
                   unit = qsf_lanes_all((float)(d / QSF_BOOK_UNITS));
    const QsfLanes top = qsf_lanes_all((float)((1u << t->scale_bits) - 1));
    QsfSixteen least, scale;
    QSF_EACH(i) {
        least.v[i] = qsf_lanes_all(c->zero);
        scale.v[i] = qsf_lanes_all(0);
        for (size_t k = (size_t)i * QSF_LANES; k < c->n; k += QSF_LANES_N) {
            const QsfLanes its = qsf_lanes_load(c->unit + k), s = round_to(its * inverse, top),
                           off = s * unit - its;
            const QsfLanes error = qsf_lanes_load(c->error + k) + qsf_lanes_load(c->ll + k) * off * off;
            const QsfLanesMask better = error < least.v[i];
            least.v[i] = qsf_lanes_choose(better, error, least.v[i]);
            scale.v[i] = qsf_lanes_choose(better, s, scale.v[i]);
        }
    }
    const QsfLanes best = qsf_lanes_all(qsf_sixteen_min(&least));
    QSF_EACH(i) scale.v[i] = qsf_lanes_choose(least.v[i] <= best, scale.v[i], top);
    return (unsigned)qsf_sixteen_min(&scale);
}

/* ---- choice of words by values */

/* A word, its error and sums. */
typedef struct Choice {
    QsfBookWord word;
    float error, xl, ll;
} Choice;

/* Finds the best word with a scale in the given range. */
static inline Choice choose(const Shelf *s, const QsfBookValues *g, double d, unsigned first, unsigned last) {
    float units[QSF_LANES_N], error[QSF_LANES_N], xl[QSF_LANES_N], ll[QSF_LANES_N];
    Choice best = { { 0, 0, 0 }, g->xx, 0, 0 };
    for (unsigned scale = first; scale <= last; scale += QSF_LANES_N / s->shapes) {
        Sums sums;
        QsfSixteen its;
        for (unsigned lane = 0; lane < QSF_LANES_N; lane++)
            units[lane] = (float)(d / QSF_BOOK_UNITS * (scale + lane / s->shapes));
        const QsfSixteen unit = qsf_sixteen_load(units);
        all_sums(s, g, &unit, &sums);
        QSF_EACH(i)
            its.v[i] = qsf_lanes_all(g->xx) +
                       unit.v[i] * (unit.v[i] * sums.ll.v[i] - (sums.xl.v[i] + sums.xl.v[i]));
        if (!(qsf_sixteen_min(&its) < best.error)) continue;
        memcpy(error, &its, sizeof error);
        memcpy(xl, &sums.xl, sizeof xl);
        memcpy(ll, &sums.ll, sizeof ll);
        for (unsigned lane = 0; lane < QSF_LANES_N && scale + lane / s->shapes <= last; lane++) {
            const unsigned shape = lane & (s->shapes - 1), books = s->shapes / 2;
            if (!(error[lane] < best.error)) continue;
            best = (Choice){ { scale + lane / s->shapes, shape / books, shape & (books - 1) },
                             error[lane],
                             xl[lane],
                             ll[lane] };
        }
    }
    return best;
}

/* Finds words for p->d and their error. Returns the best d for the resulting codes, 0 if there is none. */
static inline double settle(const QsfBooks *t, const Shelf *s, const QsfBookValues *groups,
                            const Curves *curves, QsfBookParts *p) {
    const unsigned top = (1u << t->scale_bits) - 1, scales = looks[t->bits].scales;
    double xy = 0, yy = 0;
    p->error = 0;
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++) {
        const unsigned scale = scale_of(t, &curves[g], p->d), low = scale > 1 ? scale - (scales > 2) : 1;
        const unsigned first = low + scales - 1 < top ? low : top - scales + 1;
        const Choice best = choose(s, &groups[g], p->d, first, first + scales - 1);
        const double its = best.word.scale;
        p->word[g] = best.word;
        p->error += (double)best.error;
        xy += its * (double)best.xl;
        yy += its * its * (double)best.ll;
    }
    return yy > 0 ? xy / yy * QSF_BOOK_UNITS : 0;
}

static inline void search(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS],
                          QsfBookParts *best) {
    const Shelf shelf = shelf_of(t);
    Curves curves[QSF_BOOK_GROUPS];
    float reach = 0;
    *best = (QsfBookParts){ 0, INFINITY, { { 0, 0, 0 } } };
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++) {
        const float its = curves_of(t, &shelf, &groups[g], &curves[g]);
        reach = its > reach ? its : reach;
    }
    double d = reach > 0 ? first_d(t, curves, reach) : 0;
    for (int round = 0; round < ROUNDS; round++) {
        QsfBookParts p = { (double)qsf_half_round(d), 0, { { 0, 0, 0 } } };
        if (!(p.d > 0)) return;
        d = settle(t, &shelf, groups, curves, &p);
        if (p.error < best->error) *best = p;
    }
}

static inline void books_of(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS], QsfBookParts *p) {
    const Shelf shelf = shelf_of(t);
    p->error = 0;
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++) {
        const Choice best = choose(&shelf, &groups[g], p->d, p->word[g].scale, p->word[g].scale);
        p->word[g] = best.word;
        p->error += (double)best.error;
    }
}

static inline void codes_of(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS],
                            const QsfBookParts *p, uint8_t codes[QSF_BOOK_BLOCK]) {
    const Shelf s = shelf_of(t);
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++) {
        const QsfBookWord word = p->word[g];
        const float unit = (float)(p->d / QSF_BOOK_UNITS * word.scale), inverse = unit > 0 ? 1 / unit : 0;
        const QsfSixteen x = qsf_sixteen_load(groups[g].x);
        QSF_EACH(i) {
            const QsfLanes v = x.v[i] * qsf_lanes_all(word.negative ? -inverse : inverse);
            QsfLanesMask code = { 0 };
            for (int k = 0; k + 1 < 1 << t->bits; k++) code -= v > qsf_lanes_all(s.border[k][word.book]);
            for (int j = 0; j < QSF_LANES; j++)
                codes[g * QSF_BOOK_GROUP + (size_t)(i * QSF_LANES + j)] = (uint8_t)code[j];
        }
    }
}

#define QSF_BOOK_CORE(name) const QsfBookCore qsf_book_core_##name = { search, books_of, codes_of };

#endif
