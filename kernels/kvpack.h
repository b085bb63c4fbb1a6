/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cached K and V in few bits: how the elements of a tile are packed, for every level. All of it is exact or
 * rounded once, so that every level stores the same bits.
 *
 * An element is round(x / scale) plus half of the numbers of its bits: a code without sign. Codes of 2 bits
 * are the odd numbers -3, -1, 1 and 3 times the scale. Codes lie in words of 32 bits, E of them in W words
 * (qk_kvp_elems, qk_kvp_words): E dimensions of K, E positions of V. So a tile of K is, for each E
 * dimensions and each of the W words, 16 words side by side, one for each position. A tile of V is the same
 * with positions and dimensions exchanged. Byte j of a word has elements j, j + 4, ... in its bits, the
 * first in the lowest: four elements that are added up are next to each other. After the words come 16
 * scales, one for each position. */
#ifndef QSF_KERNELS_KVPACK_H
#define QSF_KERNELS_KVPACK_H

#include <math.h>

#include "kernels/kvrotate.h"
#include "kernels/load.h"
#include "kernels/ref/kv.h"
#include "kernels/unroll.h"

#define QK_KVP static inline __attribute__((always_inline))

QK_KVP size_t qk_kvp_elems(int bits) { return bits == 8 ? 4 : bits == 4 ? 8 : 16; }
QK_KVP size_t qk_kvp_words(int bits) { return bits == 6 ? 3 : 1; }
QK_KVP size_t qk_kvp_groups(int bits, size_t n) { return (n + qk_kvp_elems(bits) - 1) / qk_kvp_elems(bits); }

/* Bytes of the words of a tile, K or V. */
QK_KVP size_t qk_kvp_bytes(int bits, size_t dim) {
    return qk_kvp_groups(bits, dim) * qk_kvp_words(bits) * QK_KV_TILE * sizeof(uint32_t);
}

QK_KVP size_t qk_kvp_tile_bytes(int bits, size_t dim) {
    return qk_kvp_bytes(bits, dim) + QK_KV_TILE * sizeof(uint16_t);
}

/* Where a code is: `n` parts of it in one word each. */
typedef struct qk_kvp_at {
    int n, bits, shift; /* parts; bits and place of a part */
    size_t word;        /* of the first one */
} qk_kvp_at;

QK_KVP qk_kvp_at qk_kvp_place(int bits, size_t e) {
    const int byte = 8 * (int)(e % 4), in = (int)(e / 4);
    if (bits == 6 && in == 3) return (qk_kvp_at){ 3, 2, byte + 6, 0 };
    if (bits == 6) return (qk_kvp_at){ 1, 6, byte, e / 4 };
    return (qk_kvp_at){ 1, bits, byte + bits * in, 0 };
}

/* The code of a lane, whose words are `stride` bytes apart. */
QK_KVP uint32_t qk_kvp_get(const char *w, size_t stride, qk_kvp_at at) {
    uint32_t code = 0;
    for (int i = 0; i < at.n; i++)
        code |= (qk_load_u32(w + (at.word + (size_t)i) * stride) >> at.shift & ((1u << at.bits) - 1))
                << i * at.bits;
    return code;
}

/* Stores it, and leaves the other elements of the words as they are. */
QK_KVP void qk_kvp_put(char *w, size_t stride, qk_kvp_at at, uint32_t code) {
    const uint32_t mask = (1u << at.bits) - 1;
    for (int i = 0; i < at.n; i++) {
        char *p = w + (at.word + (size_t)i) * stride;
        const uint32_t x = (qk_load_u32(p) & ~(mask << at.shift)) | (code >> i * at.bits & mask) << at.shift;
        memcpy(p, &x, sizeof x);
    }
}

/* The first word of a position's (K) or dimension's (V) group g, and the bytes between the group's words. */
QK_KVP size_t qk_kvp_stride(int which, size_t dim) { return (which ? dim : QK_KV_TILE) * sizeof(uint32_t); }
QK_KVP size_t qk_kvp_group(int bits, int which, size_t g, size_t lane, size_t dim) {
    return g * qk_kvp_words(bits) * qk_kvp_stride(which, dim) + lane * sizeof(uint32_t);
}

/* The number that a code is, in units of the scale. */
QK_KVP int32_t qk_kvp_number(int bits, uint32_t code) {
    return bits == 2 ? 2 * (int32_t)code - 3 : (int32_t)code - (1 << (bits - 1));
}

/* The smallest half that is at least x >= 0, so that nothing is clipped where halves are coarse. */
QK_KVP uint16_t qk_half_above(float x) {
    const uint16_t h = qk_f32_to_f16(x);
    return (uint16_t)(qk_f16_to_f32(h) < x ? h + 1 : h);
}

/* The scale of n elements: the one with the largest magnitude becomes the lowest code, so it is negative if
 * that element is positive. A NaN makes it NaN. */
QK_KVP uint16_t qk_kvp_scale(int bits, const float *x, size_t n) {
    int32_t most = 0, highest = 0; /* floats ordered as integers: magnitudes; positive ones */
    for (size_t i = 0; i < n; i++) {
        const int32_t b = (int32_t)qk_bits_of(x[i]), magnitude = b & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
        highest = b > highest ? b : highest;
    }
    const uint16_t h = qk_half_above(qk_float_of((uint32_t)most) / (float)(1 << (bits - 1)));
    return most == highest ? (uint16_t)(h | 0x8000) : h;
}

/* Sums of QK_KVP_LANES numbers, halves added to halves. */
enum { QK_KVP_LANES = 16 };
QK_KVP float qk_kvp_fold(float *lane) {
    for (size_t n = QK_KVP_LANES / 2; n > 0; n /= 2)
        for (size_t i = 0; i < n; i++) lane[i] += lane[i + n];
    return lane[0];
}

/* Adds n elements, padded with zeros: their magnitudes and squares. Not unrolled, a loop over
 * lanes becomes one of vectors. */
QK_KVP void qk_kvp_add_squares(float *sum, float *square, const float *x, size_t n) {
    /* clang-format off */
    for (size_t i = 0; i < n; i += QK_KVP_LANES)
        QK_NO_UNROLL for (size_t j = 0; j < QK_KVP_LANES; j++) {
            sum[j] += fabsf(x[i + j]);
            square[j] += x[i + j] * x[i + j];
        }
    /* clang-format on */
}

/* The same: products of magnitudes with their codes at scale s, and squares of these. */
QK_KVP void qk_kvp_add_odd(float *product, float *square, const float *x, size_t n, float s) {
    /* clang-format off */
    for (size_t i = 0; i < n; i += QK_KVP_LANES)
        QK_NO_UNROLL for (size_t j = 0; j < QK_KVP_LANES; j++) {
            const float a = fabsf(x[i + j]), m = a < 2 * s ? 1.0f : 3.0f;
            product[j] += a * m;
            square[j] += m * m;
        }
    /* clang-format on */
}

/* The scale of n elements in 2 bits, after which x has zeros up to a multiple of QK_KVP_LANES. The scale with
 * the least error is found in a few steps, and would make rows shorter than they were; a larger one leaves
 * the product of a row with itself, and so on average scores and sums, as it was. Not much larger: of a row
 * with a single large element it would be far from all others. */
QK_KVP uint16_t qk_kvp_scale_of_odd(const float *x, size_t n) {
    float sum[QK_KVP_LANES] = { 0 }, xx[QK_KVP_LANES] = { 0 };
    qk_kvp_add_squares(sum, xx, x, n);
    float s = qk_kvp_fold(sum) * (0.624f / (float)n), square = qk_kvp_fold(xx), product = 0;
    /* The first scale is best for a normal distribution. */
    QK_NO_UNROLL for (int round = 0; round < 3; round++) {
        float xm[QK_KVP_LANES] = { 0 }, mm[QK_KVP_LANES] = { 0 };
        qk_kvp_add_odd(xm, mm, x, n, s);
        product = qk_kvp_fold(xm);
        s = product / (qk_kvp_fold(mm) - (float)((QK_KVP_LANES - n % QK_KVP_LANES) % QK_KVP_LANES));
    }
    const float same = square / product, most = 1.25f * s;
    return qk_f32_to_f16(same < most ? same : most);
}

QK_KVP void qk_kvp_odd_codes(uint8_t *code, const float *x, size_t n, uint16_t scale) {
    const float d = qk_f16_to_f32(scale), inv = d > 0 ? 1.0f / d : 0;
    for (size_t i = 0; i < n; i++) {
        const float v = x[i] * inv;
        code[i] = (uint8_t)((v >= -2) + (v >= 0) + (v >= 2));
    }
}

/* Codes of n elements. */
QK_KVP void qk_kvp_codes(int bits, uint8_t *code, const float *x, size_t n, uint16_t scale) {
    const float d = qk_f16_to_f32(scale), inv = d > 0 || d < 0 ? 1.0f / d : 0;
    const float low = (float)-(1 << (bits - 1)), high = (float)((1 << (bits - 1)) - 1);
    const float round = 0x1.8p23f +
                        (float)(1 << (bits - 1)); /* leaves the rounded number in the lowest bits */
    for (size_t i = 0; i < n; i++) {
        float v = x[i] * inv;
        v = v > low ? v : low; /* also a NaN */
        v = v < high ? v : high;
        code[i] = (uint8_t)(qk_bits_of(v + round) & 0xff);
    }
}

QK_KVP void qk_kvp_store(int bits, void *tiles, int which, size_t pos, const float *x, size_t dim) {
    char *tile = (char *)tiles + pos / QK_KV_TILE * qk_kvp_tile_bytes(bits, dim);
    const size_t in = pos % QK_KV_TILE, elems = qk_kvp_elems(bits), stride = qk_kvp_stride(which, dim);
    float turned[QK_KV_MAX_DIM];
    uint8_t code[QK_KV_MAX_DIM];
    qk_kv_rotate(turned, x, dim, 0);
    if (bits == 2) memset(turned + dim, 0, (qk_kv_pad(dim) - dim) * sizeof *turned);
    const uint16_t scale = bits == 2 ? qk_kvp_scale_of_odd(turned, dim) : qk_kvp_scale(bits, turned, dim);
    if (bits == 2)
        qk_kvp_odd_codes(code, turned, dim, scale);
    else
        qk_kvp_codes(bits, code, turned, dim, scale);
    memcpy(tile + qk_kvp_bytes(bits, dim) + in * sizeof scale, &scale, sizeof scale);
    if (which == 0) {
        for (size_t i = 0; i < dim; i++)
            qk_kvp_put(tile + qk_kvp_group(bits, 0, i / elems, in, dim), stride,
                       qk_kvp_place(bits, i % elems), code[i]);
        return;
    }
    const qk_kvp_at at = qk_kvp_place(bits, in % elems);
    for (size_t i = 0; i < dim; i++)
        qk_kvp_put(tile + qk_kvp_group(bits, 1, in / elems, i, dim), stride, at, code[i]);
}

QK_KVP void qk_kvp_load(int bits, float *x, const void *tiles, int which, size_t pos, size_t dim) {
    const char *tile = (const char *)tiles + pos / QK_KV_TILE * qk_kvp_tile_bytes(bits, dim);
    const size_t in = pos % QK_KV_TILE, elems = qk_kvp_elems(bits), stride = qk_kvp_stride(which, dim);
    const float d = qk_f16_to_f32(qk_load_u16(tile + qk_kvp_bytes(bits, dim) + in * sizeof(uint16_t)));
    float turned[QK_KV_MAX_DIM];
    for (size_t i = 0; i < dim; i++) {
        const size_t e = which ? in : i, lane = which ? i : in;
        const uint32_t code = qk_kvp_get(tile + qk_kvp_group(bits, which, e / elems, lane, dim), stride,
                                         qk_kvp_place(bits, e % elems));
        turned[i] = d * (float)qk_kvp_number(bits, code);
    }
    qk_kv_rotate(x, turned, dim, 1);
}

QK_KVP void qk_kvp_copy(int bits, void *dst, size_t to, const void *src, size_t from, int which, size_t dim) {
    char *into = (char *)dst + to / QK_KV_TILE * qk_kvp_tile_bytes(bits, dim);
    const char *of = (const char *)src + from / QK_KV_TILE * qk_kvp_tile_bytes(bits, dim);
    const size_t t = to % QK_KV_TILE, f = from % QK_KV_TILE, elems = qk_kvp_elems(bits);
    const size_t stride = qk_kvp_stride(which, dim), scales = qk_kvp_bytes(bits, dim);
    memcpy(into + scales + t * sizeof(uint16_t), of + scales + f * sizeof(uint16_t), sizeof(uint16_t));
    for (size_t i = 0; i < dim; i++) {
        const size_t te = which ? t : i, fe = which ? f : i, tl = which ? i : t, fl = which ? i : f;
        const uint32_t code = qk_kvp_get(of + qk_kvp_group(bits, which, fe / elems, fl, dim), stride,
                                         qk_kvp_place(bits, fe % elems));
        qk_kvp_put(into + qk_kvp_group(bits, which, te / elems, tl, dim), stride,
                   qk_kvp_place(bits, te % elems), code);
    }
}

#endif
