/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks with scale, minimum and codes of 2, 3 or 4 bits (man/qsf-format.5): 2 bytes d, 2 bytes m, codes. */
#include <math.h>
#include <string.h>

#include "src/base/half.h"
#include "src/convert/quant/blocks.h"
#include "src/convert/quant/fit.h"

enum { HEAD = 4 };

static void put(uint8_t *out, QsfAffine a, const uint8_t *q, size_t n, unsigned bits) {
    qsf_half_put(out, qsf_half_bits(a.d));
    qsf_half_put(out + 2, qsf_half_bits(a.m));
    qsf_bits_put(out + HEAD, q, n, bits);
}

static void put_nearest(uint8_t *out, const QsfBlockIn *b, QsfAffine a, unsigned bits) {
    uint8_t q[QSF_FIT_MAX];
    qsf_affine_codes(b->x, b->n, a, (1u << bits) - 1, q);
    put(out, a, q, b->n, bits);
}

static void decode(const uint8_t *in, size_t n, float *x, unsigned bits) {
    const float d = qsf_half_get(in), m = qsf_half_get(in + 2);
    uint8_t q[QSF_FIT_MAX];
    qsf_bits_get(q, in + HEAD, n, bits);
    for (size_t i = 0; i < n; i++) x[i] = d * (float)q[i] + m;
}

/* Codes are computed before scale and minimum are rounded. */
static void put_plain(uint8_t *out, const QsfBlockIn *b, float min, float scale, unsigned bits) {
    const float top = (float)((1u << bits) - 1);
    uint8_t q[QSF_FIT_MAX];
    for (size_t i = 0; i < b->n; i++) {
        const float v = scale > 0 ? floorf((b->x[i] - min) / scale + 0.5f) : 0;
        q[i] = (uint8_t)(v < 0 ? 0 : v > top ? top : v);
    }
    put(out, (QsfAffine){ (double)scale, (double)min }, q, b->n, bits);
}

static void plain_range(const QsfBlockIn *b, uint8_t *out, unsigned bits) {
    float lo = b->x[0], hi = b->x[0];
    for (size_t i = 1; i < b->n; i++) {
        if (b->x[i] < lo) lo = b->x[i];
        if (b->x[i] > hi) hi = b->x[i];
    }
    put_plain(out, b, lo, (hi - lo) / (float)((1u << bits) - 1), bits);
}

/* Returns the error of the decoded block. */
static double cost(const QsfBlockIn *b, const uint8_t *block, unsigned bits) {
    float y[QSF_FIT_MAX];
    decode(block, b->n, y, bits);
    return qsf_fit_error(b->x, b->w, y, b->n);
}

static void keep_better(const QsfBlockIn *b, uint8_t *out, const uint8_t *other, unsigned bits) {
    if (cost(b, other, bits) < cost(b, out, bits)) memcpy(out, other, HEAD + b->n * bits / 8);
}

static void search_range(const QsfBlockIn *b, uint8_t *out, unsigned bits) {
    uint8_t plain[HEAD + QSF_FIT_MAX / 2];
    QsfFit f;
    qsf_fit_begin(&f, b->x, b->w, b->n);
    put_nearest(out, b, qsf_affine_search_half(&f, (1u << bits) - 1), bits);
    plain_range(b, plain, bits);
    keep_better(b, out, plain, bits);
}

/* ---- 2 bits, symmetric: levels -1.5 d, -0.5 d, 0.5 d, 1.5 d, within half precision */

static QsfAffine symmetric(double scale) {
    const double d = (double)qsf_half_round(scale);
    return (QsfAffine){ d, d > 0 ? (double)qsf_half_round(-1.5 * d) : 0 };
}

static void plain_2bit(const QsfBlockIn *b, uint8_t *out) {
    float size = 0;
    for (size_t i = 0; i < b->n; i++) size = fmaxf(size, fabsf(b->x[i]));
    const float scale = size / 1.5f;
    put_plain(out, b, (float)symmetric((double)scale).m, scale, 2);
}

static void search_2bit(const QsfBlockIn *b, uint8_t *out) {
    uint8_t other[HEAD + QSF_FIT_MAX / 4];
    QsfFit f;
    qsf_fit_begin(&f, b->x, b->w, b->n);
    const uint16_t d = qsf_half_bits(qsf_levels_search(&f, 0.5, 1.5));
    plain_2bit(b, out);
    for (int step = -1; step <= 1; step++) {
        const double near = (double)qsf_half_value(qsf_half_step(d, step));
        if (near < 0) continue;
        put_nearest(other, b, symmetric(near), 2);
        keep_better(b, out, other, 2);
    }
}

static void decode_2bit(const uint8_t *in, size_t n, float *x) { decode(in, n, x, 2); }
static void decode_3bit(const uint8_t *in, size_t n, float *x) { decode(in, n, x, 3); }
static void decode_4bit(const uint8_t *in, size_t n, float *x) { decode(in, n, x, 4); }
static void plain_2bit_asym(const QsfBlockIn *b, uint8_t *out) { plain_range(b, out, 2); }
static void plain_3bit(const QsfBlockIn *b, uint8_t *out) { plain_range(b, out, 3); }
static void plain_4bit(const QsfBlockIn *b, uint8_t *out) { plain_range(b, out, 4); }
static void search_2bit_asym(const QsfBlockIn *b, uint8_t *out) { search_range(b, out, 2); }
static void search_3bit(const QsfBlockIn *b, uint8_t *out) { search_range(b, out, 3); }
static void search_4bit(const QsfBlockIn *b, uint8_t *out) { search_range(b, out, 4); }

const QsfBlockOps qsf_block_2bit = { search_2bit, plain_2bit, decode_2bit };
const QsfBlockOps qsf_block_2bit_asym = { search_2bit_asym, plain_2bit_asym, decode_2bit };
const QsfBlockOps qsf_block_3bit = { search_3bit, plain_3bit, decode_3bit };
const QsfBlockOps qsf_block_4bit = { search_4bit, plain_4bit, decode_4bit };
