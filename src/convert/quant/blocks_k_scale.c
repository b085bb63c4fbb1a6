/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q3_K and Q6_K (ggml-org/ggml src/ggml-common.h): 256 elements in 16 groups, each with a signed scale,
 * x = d * scale * q with signed codes. */
#include <math.h>
#include <string.h>

#include "src/base/half.h"
#include "src/convert/quant/blocks.h"
#include "src/convert/quant/fit.h"

enum { ELEMS = 256, GROUPS = 16, SIZE = ELEMS / GROUPS, ROUNDS = 4, REACH = 2 };

typedef struct Layout {
    int low;   /* codes are low ... -low - 1 */
    int least; /* scales are least ... -least - 1 */
    void (*put)(uint8_t *out, const int8_t *scale, const int8_t *q);
    size_t half; /* offset of d */
} Layout;

typedef struct Parts {
    double d, error;
    int8_t scale[GROUPS];
} Parts;

static int near(double v, double unit, int least) {
    const double r = unit != 0 ? floor(v / unit + 0.5) : 0;
    return (int)(r < least ? least : r > -least - 1 ? -least - 1 : r);
}

/* Finds the best scale of a group that differs by at most REACH from the desired one. */
static double choose(const Layout *t, const QsfFit *f, double want, Parts *p, size_t g) {
    const int scale = near(want, p->d, t->least);
    double best = INFINITY;
    for (int s = scale - REACH; s <= scale + REACH; s++) {
        if (s < t->least || s >= -t->least) continue;
        QsfFitSums sums;
        const double d = p->d * s;
        qsf_scale_sums(f, d, t->low, -t->low - 1, &sums);
        const double error = f->sxx + d * (d * sums.qq - 2 * sums.xq);
        if (!(error < best)) continue;
        best = error;
        p->scale[g] = (int8_t)s;
    }
    return best;
}

/* Solves d by least squares for the current scales and codes of the groups. */
static void solve(const Layout *t, const QsfFit *fits, Parts *p) {
    double aa = 0, xa = 0;
    for (size_t g = 0; g < GROUPS; g++) {
        const double s = p->scale[g];
        QsfFitSums sums;
        qsf_scale_sums(&fits[g], p->d * s, t->low, -t->low - 1, &sums);
        aa += s * s * sums.qq;
        xa += s * sums.xq;
    }
    if (aa > 0) p->d = (double)qsf_half_round(xa / aa);
}

static void refine(const Layout *t, const QsfFit *fits, const double *want, double d, Parts *best) {
    Parts p = { (double)qsf_half_round(d), INFINITY, { 0 } };
    double last = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        p.error = 0;
        for (size_t g = 0; g < GROUPS; g++) p.error += choose(t, &fits[g], want[g], &p, g);
        if (p.error < best->error) *best = p;
        if (!(p.error < last)) return;
        last = p.error;
        solve(t, fits, &p);
    }
}

/* Returns the scale with the largest magnitude, signed. */
static double largest(const double *v) {
    double max = 0;
    for (size_t g = 0; g < GROUPS; g++)
        if (fabs(v[g]) > fabs(max)) max = v[g];
    return max;
}

static void pack(const Layout *t, const QsfBlockIn *b, const Parts *p, uint8_t *out) {
    int8_t q[ELEMS];
    for (size_t g = 0; g < GROUPS; g++)
        qsf_scale_codes(b->x + g * SIZE, SIZE, p->d * p->scale[g], t->low, -t->low - 1, q + g * SIZE);
    t->put(out, p->scale, q);
    qsf_half_put(out + t->half, qsf_half_bits(p->d));
}

/* Maps the value with the largest magnitude in a group to the code without a counterpart; the same for
 * scales. */
static void plain(const Layout *t, const QsfBlockIn *b, uint8_t *out) {
    double want[GROUPS];
    Parts p = { 0, 0, { 0 } };
    for (size_t g = 0; g < GROUPS; g++) {
        float max = 0;
        for (size_t i = g * SIZE; i < (g + 1) * SIZE; i++)
            if (fabsf(b->x[i]) > fabsf(max)) max = b->x[i];
        want[g] = (double)max / t->low;
    }
    p.d = (double)qsf_half_round(largest(want) / t->least);
    for (size_t g = 0; g < GROUPS; g++) p.scale[g] = (int8_t)near(want[g], p.d, t->least);
    pack(t, b, &p, out);
}

static void search(const Layout *t, const QsfBlockIn *b, qsf_block_decode decode, uint8_t *out) {
    QsfFit fits[GROUPS];
    double want[GROUPS];
    float y[ELEMS];
    Parts best = { 0, INFINITY, { 0 } };
    for (size_t g = 0; g < GROUPS; g++) {
        qsf_fit_begin(&fits[g], b->x + g * SIZE, b->w + g * SIZE, SIZE);
        want[g] = qsf_scale_search(&fits[g], t->low, -t->low - 1);
    }
    const double d = largest(want) / t->least;
    refine(t, fits, want, d, &best);
    refine(t, fits, want, -d, &best);
    refine(t, fits, want, 0.9 * d, &best);
    plain(t, b, out);
    decode(out, ELEMS, y);
    if (best.error < qsf_fit_error(b->x, b->w, y, ELEMS)) pack(t, b, &best, out);
}

/* Bit 2 of code i is bit i / 32 of byte i % 32; then the low two bits as in Q2_K; then 16 scales of 6 bits:
 * low nibbles of 0-7 and 8-15 in eight bytes, upper two bits of s at bits s / 4 * 2 of byte 8 + s % 4. */
static void put_q3(uint8_t *out, const int8_t *scale, const int8_t *q) {
    uint8_t *codes = out + 32, *s = codes + 64;
    memset(out, 0, 108);
    for (size_t i = 0; i < ELEMS; i++) {
        const unsigned v = (unsigned)(q[i] + 4);
        out[i % 32] |= (uint8_t)(v >> 2 << i / 32);
        codes[i / 128 * 32 + i % 32] |= (uint8_t)((v & 3) << i / 32 % 4 * 2);
    }
    for (size_t g = 0; g < GROUPS; g++) {
        const unsigned v = (unsigned)(scale[g] + 32);
        s[g % 8] |= (uint8_t)((v & 15) << g / 8 * 4);
        s[8 + g % 4] |= (uint8_t)(v >> 4 << g / 4 * 2);
    }
}

static void decode_q3(const uint8_t *in, size_t n, float *x) {
    const uint8_t *codes = in + 32, *s = codes + 64;
    const float d = qsf_half_get(in + 108);
    for (size_t i = 0; i < n; i++) {
        const size_t g = i / SIZE;
        const int scale = ((s[g % 8] >> g / 8 * 4 & 15) | (s[8 + g % 4] >> g / 4 * 2 & 3) << 4) - 32;
        const int low = codes[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
        x[i] = d * (float)scale * (float)((low | (in[i % 32] >> i / 32 & 1) << 2) - 4);
    }
}

/* Two halves of 128: element i has its low nibble in byte i % 64 of 64, the low half of them first, and its
 * upper two bits in byte i % 32 of 32 at bits i / 32 * 2. */
static void put_q6(uint8_t *out, const int8_t *scale, const int8_t *q) {
    memset(out, 0, 192);
    for (size_t i = 0; i < ELEMS; i++) {
        const size_t half = i / 128, k = i % 128;
        const unsigned v = (unsigned)(q[i] + 32);
        out[half * 64 + k % 64] |= (uint8_t)((v & 15) << k / 64 * 4);
        out[128 + half * 32 + k % 32] |= (uint8_t)(v >> 4 << k / 32 * 2);
    }
    memcpy(out + 192, scale, GROUPS);
}

static void decode_q6(const uint8_t *in, size_t n, float *x) {
    const float d = qsf_half_get(in + 208);
    for (size_t i = 0; i < n; i++) {
        const size_t half = i / 128, k = i % 128;
        const int low = in[half * 64 + k % 64] >> k / 64 * 4 & 15,
                  high = in[128 + half * 32 + k % 32] >> k / 32 * 2 & 3;
        x[i] = d * (float)(int8_t)in[192 + i / SIZE] * (float)((low | high << 4) - 32);
    }
}

static const Layout q3_k = { -4, -32, put_q3, 108 }, q6_k = { -32, -128, put_q6, 208 };

static void plain_q3(const QsfBlockIn *b, uint8_t *out) { plain(&q3_k, b, out); }
static void plain_q6(const QsfBlockIn *b, uint8_t *out) { plain(&q6_k, b, out); }
static void search_q3(const QsfBlockIn *b, uint8_t *out) { search(&q3_k, b, decode_q3, out); }
static void search_q6(const QsfBlockIn *b, uint8_t *out) { search(&q6_k, b, decode_q6, out); }

const QsfBlockOps qsf_block_q3_k = { search_q3, plain_q3, decode_q3 };
const QsfBlockOps qsf_block_q6_k = { search_q6, plain_q6, decode_q6 };
