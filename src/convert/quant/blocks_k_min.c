/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q2_K and Q4_K (ggml-org/ggml src/ggml-common.h): 256 elements in groups, each with a scale and a minimum of
 * a few bits, x = d * scale * q - dmin * minimum. */
#include <math.h>
#include <string.h>

#include "src/base/half.h"
#include "src/convert/quant/blocks.h"
#include "src/convert/quant/fit.h"

enum { ELEMS = 256, GROUPS_MAX = 16, ROUNDS = 4 };

typedef struct Layout {
    size_t groups, size; /* number of groups, elements of each */
    unsigned top, limit; /* maximum code, maximum scale or minimum */
    void (*put)(uint8_t *out, const uint8_t *scale, const uint8_t *min, const uint8_t *q);
    size_t halves, bytes; /* offset of d, which dmin follows; size of a block */
} Layout;

/* A block before its bits are packed. */
typedef struct Parts {
    double d, dmin, error;
    uint8_t scale[GROUPS_MAX], min[GROUPS_MAX];
} Parts;

static QsfAffine group_of(const Parts *p, size_t g) {
    return (QsfAffine){ p->d * p->scale[g], -p->dmin * p->min[g] };
}

static unsigned near(double v, double unit, unsigned limit) {
    const double r = unit > 0 ? floor(v / unit + 0.5) : 0;
    return (unsigned)(r < 0 ? 0 : r > limit ? limit : r);
}

/* Finds the best scale and minimum of a group that differ by at most one from the desired ones. */
static double choose(const Layout *t, const QsfFit *f, QsfAffine want, Parts *p, size_t g) {
    const unsigned scale = near(want.d, p->d, t->limit), min = near(-want.m, p->dmin, t->limit);
    double best = INFINITY;
    for (unsigned s = scale ? scale - 1 : 0; s <= scale + 1 && s <= t->limit; s++)
        for (unsigned m = min ? min - 1 : 0; m <= min + 1 && m <= t->limit; m++) {
            const QsfAffine a = { p->d * s, -p->dmin * m };
            QsfFitSums sums;
            qsf_affine_sums(f, a, t->top, &sums);
            const double error = qsf_affine_error(f, &sums, a);
            if (!(error < best)) continue;
            best = error;
            p->scale[g] = (uint8_t)s;
            p->min[g] = (uint8_t)m;
        }
    return best;
}

/* Solves d and dmin by least squares with everything else fixed. */
static void solve(const Layout *t, const QsfFit *fits, Parts *p) {
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (size_t g = 0; g < t->groups; g++) {
        const double s = p->scale[g], m = -(double)p->min[g];
        QsfFitSums sums;
        qsf_affine_sums(&fits[g], group_of(p, g), t->top, &sums);
        aa += s * s * sums.qq;
        ab += s * m * sums.q;
        bb += m * m * fits[g].sw;
        xa += s * sums.xq;
        xb += m * fits[g].sx;
    }
    const double det = aa * bb - ab * ab;
    if (det > 1e-12 * aa * bb) {
        p->d = fmax(0, (xa * bb - xb * ab) / det);
        p->dmin = fmax(0, (xb * aa - xa * ab) / det);
    } else if (aa > 0) {
        p->d = fmax(0, xa / aa);
    }
    p->d = (double)qsf_half_round(p->d);
    p->dmin = (double)qsf_half_round(p->dmin);
}

/* Alternates between the scales of the groups and d and dmin, starting from a first d and dmin. */
static void refine(const Layout *t, const QsfFit *fits, const QsfAffine *want, Parts p, Parts *best) {
    double last = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        p.error = 0;
        for (size_t g = 0; g < t->groups; g++) p.error += choose(t, &fits[g], want[g], &p, g);
        if (p.error < best->error) *best = p;
        if (!(p.error < last)) return;
        last = p.error;
        solve(t, fits, &p);
    }
}

/* Chooses d and dmin so that the largest scale and minimum of the groups get about the maximum code. */
static Parts start_of(const Layout *t, const QsfAffine *want, double part) {
    Parts p = { 0, 0, INFINITY, { 0 }, { 0 } };
    for (size_t g = 0; g < t->groups; g++) {
        p.d = fmax(p.d, want[g].d);
        p.dmin = fmax(p.dmin, -want[g].m);
    }
    p.d = (double)qsf_half_round(part * p.d / t->limit);
    p.dmin = (double)qsf_half_round(part * p.dmin / t->limit);
    return p;
}

static void pack(const Layout *t, const QsfBlockIn *b, const Parts *p, uint8_t *out) {
    uint8_t q[ELEMS];
    for (size_t g = 0; g < t->groups; g++)
        qsf_affine_codes(b->x + g * t->size, t->size, group_of(p, g), t->top, q + g * t->size);
    t->put(out, p->scale, p->min, q);
    qsf_half_put(out + t->halves, qsf_half_bits(p->d));
    qsf_half_put(out + t->halves + 2, qsf_half_bits(p->dmin));
}

/* Computes the ends of the range of each group, which includes zero. */
static void plain(const Layout *t, const QsfBlockIn *b, uint8_t *out) {
    QsfAffine want[GROUPS_MAX];
    for (size_t g = 0; g < t->groups; g++) {
        float lo = 0, hi = b->x[g * t->size];
        for (size_t i = g * t->size; i < (g + 1) * t->size; i++) {
            lo = fminf(lo, b->x[i]);
            hi = fmaxf(hi, b->x[i]);
        }
        want[g] = (QsfAffine){ fmax(0, ((double)hi - (double)lo) / t->top), (double)lo };
    }
    Parts p = start_of(t, want, 1);
    for (size_t g = 0; g < t->groups; g++) {
        p.scale[g] = (uint8_t)near(want[g].d, p.d, t->limit);
        p.min[g] = (uint8_t)near(-want[g].m, p.dmin, t->limit);
    }
    pack(t, b, &p, out);
}

static void search(const Layout *t, const QsfBlockIn *b, qsf_block_decode decode, uint8_t *out) {
    static const double parts[] = { 1, 0.9, 0.8 };
    QsfFit fits[GROUPS_MAX];
    QsfAffine want[GROUPS_MAX];
    float y[ELEMS];
    Parts best = { 0, 0, INFINITY, { 0 }, { 0 } };
    for (size_t g = 0; g < t->groups; g++) {
        qsf_fit_begin(&fits[g], b->x + g * t->size, b->w + g * t->size, t->size);
        want[g] = qsf_affine_search(&fits[g], t->top, true);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        refine(t, fits, want, start_of(t, want, parts[i]), &best);
    plain(t, b, out);
    decode(out, ELEMS, y);
    if (best.error < qsf_fit_error(b->x, b->w, y, ELEMS)) pack(t, b, &best, out);
}

/* Every 32 bytes contain 128 elements: two bits of each byte for each 32 elements. */
static void put_q2(uint8_t *out, const uint8_t *scale, const uint8_t *min, const uint8_t *q) {
    for (size_t g = 0; g < 16; g++) out[g] = (uint8_t)(scale[g] | min[g] << 4);
    memset(out + 16, 0, 64);
    for (size_t i = 0; i < ELEMS; i++) out[16 + i / 128 * 32 + i % 32] |= (uint8_t)(q[i] << i / 32 % 4 * 2);
}

static void decode_q2(const uint8_t *in, size_t n, float *x) {
    const float d = qsf_half_get(in + 80), dmin = qsf_half_get(in + 82);
    for (size_t i = 0; i < n; i++) {
        const int q = in[16 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3, s = in[i / 16];
        x[i] = d * (float)(s & 15) * (float)q - dmin * (float)(s >> 4);
    }
}

/* Scales and minimums have 6 bits: for groups 0-3 in bytes 0-3 and 4-7; for groups 4-7 the low nibbles are in
 * bytes 8-11 and the upper two bits in the upper bits of bytes 0-3 and 4-7. Every 32 bytes of codes contain
 * 64 elements, low nibbles first. */
static void put_q4(uint8_t *out, const uint8_t *scale, const uint8_t *min, const uint8_t *q) {
    uint8_t *s = out + 4, *codes = out + 16;
    for (size_t g = 0; g < 4; g++) {
        s[g] = (uint8_t)(scale[g] | scale[g + 4] >> 4 << 6);
        s[g + 4] = (uint8_t)(min[g] | min[g + 4] >> 4 << 6);
        s[g + 8] = (uint8_t)((scale[g + 4] & 15) | (min[g + 4] & 15) << 4);
    }
    for (size_t i = 0; i < ELEMS / 2; i++)
        codes[i] = (uint8_t)(q[i / 32 * 64 + i % 32] | q[i / 32 * 64 + 32 + i % 32] << 4);
}

static int six_bits(const uint8_t *s, size_t g, size_t which) {
    if (g < 4) return s[g + 4 * which] & 63;
    return (s[g + 4] >> 4 * which & 15) | s[g - 4 + 4 * which] >> 6 << 4;
}

static void decode_q4(const uint8_t *in, size_t n, float *x) {
    const float d = qsf_half_get(in), dmin = qsf_half_get(in + 2);
    for (size_t i = 0; i < n; i++) {
        const int q = in[16 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
        x[i] = d * (float)six_bits(in + 4, i / 32, 0) * (float)q - dmin * (float)six_bits(in + 4, i / 32, 1);
    }
}

static const Layout q2_k = { 16, 16, 3, 15, put_q2, 80, 84 }, q4_k = { 8, 32, 15, 63, put_q4, 0, 144 };

static void plain_q2(const QsfBlockIn *b, uint8_t *out) { plain(&q2_k, b, out); }
static void plain_q4(const QsfBlockIn *b, uint8_t *out) { plain(&q4_k, b, out); }
static void search_q2(const QsfBlockIn *b, uint8_t *out) { search(&q2_k, b, decode_q2, out); }
static void search_q4(const QsfBlockIn *b, uint8_t *out) { search(&q4_k, b, decode_q4, out); }

const QsfBlockOps qsf_block_q2_k = { search_q2, plain_q2, decode_q2 };
const QsfBlockOps qsf_block_q4_k = { search_q4, plain_q4, decode_q4 };
