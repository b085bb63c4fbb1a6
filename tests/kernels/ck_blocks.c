/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An independent implementation of the weight formats, element by element in float64, from the definitions in
 * kernels/blocks.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/books.h"
#include "kernels/grids.h"
#include "tests/kernels/checkkern.h"

/* Integer q, its scale, zero point and minimum: x = scale * (q - zero) + min. */
typedef struct element {
    double scale, min;
    int q, zero;
} element;

typedef element (*element_at)(const uint8_t *p, size_t i);

double ck_half(uint16_t h) {
    const int exp = h >> 10 & 31, man = h & 1023;
    const double sign = h & 0x8000 ? -1.0 : 1.0;
    if (exp == 31) return man ? (double)NAN : sign * (double)INFINITY;
    return sign * (exp ? ldexp(1024 + man, exp - 25) : ldexp(man, -24));
}

static double half_at(const uint8_t *p) { return ck_half((uint16_t)(p[0] | p[1] << 8)); }

static int bit_at(const uint8_t *p, size_t i) { return p[i / 8] >> i % 8 & 1; }

/* n bits at bit position `at` of a little-endian stream. */
static int bits_at(const uint8_t *p, size_t at, int n) {
    int v = 0;
    for (int i = 0; i < n; i++) v |= bit_at(p, at + (size_t)i) << i;
    return v;
}

/* Element i of 32 nibbles: sixteen low ones, followed by sixteen high ones. */
static int nibble_at(const uint8_t *p, size_t i) { return p[i % 16] >> (i / 16 * 4) & 15; }

/* Element i of 256 bit pairs: 32 bytes hold four times 32 elements. */
static int pair_at(const uint8_t *p, size_t i) { return p[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3; }

static int iq4_at(const uint8_t *p, size_t i) {
    static const int values[16] = {
        -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
    };
    return values[nibble_at(p, i)];
}

static element f32_at(const uint8_t *p, size_t i) {
    float f;
    (void)i;
    memcpy(&f, p, sizeof f);
    return (element){ (double)f, 0, 1, 0 };
}

static element f16_at(const uint8_t *p, size_t i) {
    (void)i;
    return (element){ half_at(p), 0, 1, 0 };
}

static element bf16_at(const uint8_t *p, size_t i) {
    const uint8_t wide[4] = { 0, 0, p[0], p[1] };
    return f32_at(wide, i);
}

static element f8_e4m3_at(const uint8_t *p, size_t i) {
    const int exp = p[0] >> 3 & 15, man = p[0] & 7;
    (void)i;
    return (element){ exp ? ldexp(8 + man, exp - 10) : ldexp(man, -9), 0, p[0] & 0x80 ? -1 : 1, 0 };
}

static element f8_e5m2_at(const uint8_t *p, size_t i) {
    (void)i;
    return (element){ ck_half((uint16_t)(p[0] << 8)), 0, 1, 0 };
}

static element q8_0_at(const uint8_t *p, size_t i) { return (element){ half_at(p), 0, (int8_t)p[2 + i], 0 }; }

static element q4_0_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), 0, nibble_at(p + 2, i), 8 };
}

static element q4_1_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), half_at(p + 2), nibble_at(p + 4, i), 0 };
}

static element q5_0_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), 0, nibble_at(p + 6, i) | bit_at(p + 2, i) << 4, 16 };
}

static element q5_1_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), half_at(p + 2), nibble_at(p + 8, i) | bit_at(p + 4, i) << 4, 0 };
}

/* Scale (which = 0) or minimum (1) number s of the 12 packed bytes. */
static int six_bits(const uint8_t *p, size_t s, int which) {
    if (s < 4) return p[s + 4 * (size_t)which] & 63;
    return (p[s + 4] >> 4 * which & 15) | (p[s - 4 + 4 * (size_t)which] >> 6) << 4;
}

static element q4_k_at(const uint8_t *p, size_t i) {
    const int q = p[16 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
    return (element){ half_at(p) * six_bits(p + 4, i / 32, 0), -half_at(p + 2) * six_bits(p + 4, i / 32, 1),
                      q, 0 };
}

static element q5_k_at(const uint8_t *p, size_t i) {
    const int q = p[48 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15, high = p[16 + i % 32] >> i / 32 & 1;
    return (element){ half_at(p) * six_bits(p + 4, i / 32, 0), -half_at(p + 2) * six_bits(p + 4, i / 32, 1),
                      q | high << 4, 0 };
}

static element q6_k_at(const uint8_t *p, size_t i) {
    const size_t half = i / 128, group = i % 128 / 32, e = i % 32;
    const int low = p[half * 64 + group % 2 * 32 + e] >> group / 2 * 4 & 15;
    const int high = p[128 + half * 32 + e] >> 2 * group & 3;
    return (element){ half_at(p + 208) * (int8_t)p[192 + i / 16], 0, low | high << 4, 32 };
}

static element q2_k_at(const uint8_t *p, size_t i) {
    const int s = p[i / 16];
    return (element){ half_at(p + 80) * (s & 15), -half_at(p + 82) * (s >> 4), pair_at(p + 16, i), 0 };
}

/* Bits of a scale: the low four are nibble s of bytes 0-7 (low nibbles first), the high two
 * pair s of bytes 8-11. */
static element q3_k_at(const uint8_t *p, size_t i) {
    const size_t s = i / 16;
    const int low = p[96 + s % 8] >> (s < 8 ? 0 : 4) & 15, high = p[104 + s % 4] >> 2 * (s / 4) & 3;
    const int top = p[i % 32] >> i / 32 & 1;
    return (element){ half_at(p + 108) * (low + 16 * high - 32), 0, pair_at(p + 32, i) + 4 * top, 4 };
}

static element iq4_nl_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), 0, iq4_at(p + 2, i), 0 };
}

static element iq4_xs_at(const uint8_t *p, size_t i) {
    const size_t s = i / 32;
    const int scale = bits_at(p + 4, 4 * s, 4) + 16 * bits_at(p + 2, 2 * s, 2) - 32;
    return (element){ half_at(p) * scale, 0, iq4_at(p + 8 + s * 16, i % 32), 0 };
}

/* Digit n after the point of byte / 256 in base three. */
static int digit_at(uint8_t byte, size_t n) {
    return (int)fmod(floor(byte / 256.0 * pow(3, (double)n + 1)), 3);
}

static element tq1_0_at(const uint8_t *p, size_t i) {
    const int q = i < 160   ? digit_at(p[i % 32], i / 32)
                  : i < 240 ? digit_at(p[32 + (i - 160) % 16], (i - 160) / 16)
                            : digit_at(p[48 + (i - 240) % 4], (i - 240) / 4);
    return (element){ half_at(p + 52), 0, q, 1 };
}

static element tq2_0_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p + 64), 0, pair_at(p, i), 1 };
}

/* The first 32 elements in the top bits. */
static element i2_s_at(const uint8_t *p, size_t i) {
    return (element){ 1, 0, p[i % 32] >> 2 * (3 - i / 32) & 3, 1 };
}

static element qsf2_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), half_at(p + 2), bits_at(p + 4, 2 * i, 2), 0 };
}

static element qsf3_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), half_at(p + 2), bits_at(p + 4, 3 * i, 3), 0 };
}

static element qsf4_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), half_at(p + 2), bits_at(p + 4, 4 * i, 4), 0 };
}

static element qsft_at(const uint8_t *p, size_t i) {
    const int sign = bit_at(p + 2, i) ? -1 : 1;
    return (element){ half_at(p), 0, bit_at(p + 10, i) ? 0 : sign, 0 };
}

/* Exactly as defined in kernels/books.h. */
static element book_at(const uint8_t *p, size_t i, int bits, const int8_t *levels) {
    const int scale_bits = bits + 1;
    const size_t word = 7 * (i / 16);
    const int scale = bits_at(p + 2, word, scale_bits),
              sign = bit_at(p + 2, word + (size_t)scale_bits) ? -1 : 1;
    const int book = bits_at(p + 2, word + (size_t)scale_bits + 1, 6 - scale_bits);
    const int code = bits_at(p + 16, (size_t)bits * i, bits);
    return (element){ half_at(p) / 128 * scale, 0, sign * levels[(book << bits) + code], 0 };
}

static element qsb2_at(const uint8_t *p, size_t i) { return book_at(p, i, 2, qk_books2); }

static element qsb3_at(const uint8_t *p, size_t i) { return book_at(p, i, 3, qk_books3); }

static element qsb4_at(const uint8_t *p, size_t i) { return book_at(p, i, 4, qk_books4); }

static int fp4_at(const uint8_t *p, size_t byte, int high) {
    static const int twice[8] = { 0, 1, 2, 3, 4, 6, 8, 12 };
    const int q = p[byte] >> 4 * high & 15;
    return q & 8 ? -twice[q & 7] : twice[q];
}

static element mxfp4_at(const uint8_t *p, size_t i) {
    return (element){ ldexp(0.5, p[0] - 127), 0, fp4_at(p + 1, i % 16, i >= 16), 0 };
}

static element nvfp4_at(const uint8_t *p, size_t i) {
    const int code = p[i / 16] & 127, exp = code / 8, man = code % 8;
    const double scale = code == 127 ? 0
                         : exp       ? (1 + man / 8.0) * ldexp(1, exp - 7)
                                     : man / 8.0 * ldexp(1, -6);
    return (element){ scale / 2, 0, fp4_at(p + 4 + i / 16 * 8, i % 8, i % 16 >= 8), 0 };
}

static element q1_0_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), 0, 2 * bit_at(p + 2, i), 1 };
}

static element q2_0_at(const uint8_t *p, size_t i) {
    return (element){ half_at(p), 0, bits_at(p + 2, 2 * i, 2), 1 };
}

/* Element i of the eight or four that index chooses. */
static int point_at(const uint16_t *grid, int index, size_t i, int bits, const int *levels) {
    return levels[grid[index] >> bits * (int)i & ((1 << bits) - 1)];
}

static int iq2_at(const uint16_t *grid, int index, size_t i) {
    static const int levels[4] = { 8, 25, 43, 1000 };
    return point_at(grid, index, i, 2, levels);
}

static int iq1_at(int index, size_t i, int minus) {
    static const int levels[4] = { -8, 0, 8, 1000 };
    return point_at(qk_grid_iq1, index, i, 2, levels) + (minus ? -1 : 1);
}

/* Seven signs at bit `at`; an eighth where they are odd in number. */
static int seven_at(const uint8_t *p, size_t at, size_t i) {
    int odd = 0;
    for (size_t j = 0; j < 7; j++) odd ^= bit_at(p, at + j);
    return i < 7 ? bit_at(p, at + i) : odd;
}

static element signed_level(double d, int scale, int level, int minus) {
    return (element){ d * (2 * scale + 1), 0, minus ? -level : level, 0 };
}

static element iq2_xxs_at(const uint8_t *p, size_t i) {
    const uint8_t *q = p + 2 + i / 32 * 8;
    const size_t l = i % 32 / 8;
    return signed_level(half_at(p) / 8, q[7] >> 4, iq2_at(qk_grid_iq2_xxs, q[l], i % 8),
                        seven_at(q + 4, 7 * l, i % 8));
}

static element iq2_xs_at(const uint8_t *p, size_t i) {
    const size_t at = i / 8 * 16;
    return signed_level(half_at(p) / 8, bits_at(p + 66, i / 16 * 4, 4),
                        iq2_at(qk_grid_iq2_xs, bits_at(p + 2, at, 9), i % 8), seven_at(p + 2, at + 9, i % 8));
}

static element iq2_s_at(const uint8_t *p, size_t i) {
    const int index = p[2 + i / 8] + 256 * bits_at(p + 66, i / 8 * 2, 2);
    return signed_level(half_at(p) / 8, bits_at(p + 74, i / 16 * 4, 4), iq2_at(qk_grid_iq2_s, index, i % 8),
                        bit_at(p + 34, i));
}

static element iq3_xxs_at(const uint8_t *p, size_t i) {
    static const int levels[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };
    const uint8_t *signs = p + 66 + i / 32 * 4;
    return signed_level(half_at(p) / 4, signs[3] >> 4,
                        point_at(qk_grid_iq3_xxs, p[2 + i / 4], i % 4, 4, levels),
                        seven_at(signs, i % 32 / 8 * 7, i % 8));
}

static element iq3_s_at(const uint8_t *p, size_t i) {
    static const int levels[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };
    const int index = p[2 + i / 4] + 256 * bit_at(p + 66, i / 4);
    return signed_level(half_at(p), bits_at(p + 106, i / 32 * 4, 4),
                        point_at(qk_grid_iq3_s, index, i % 4, 4, levels), bit_at(p + 74, i));
}

static element iq1_s_at(const uint8_t *p, size_t i) {
    const size_t word = 16 * (i / 32);
    const int index = p[2 + i / 8] + 256 * bits_at(p + 34, word + i % 32 / 8 * 3, 3);
    return (element){ half_at(p) / 8 * (2 * bits_at(p + 34, word + 12, 3) + 1), 0,
                      iq1_at(index, i % 8, bit_at(p + 34, word + 15)), 0 };
}

static element iq1_m_at(const uint8_t *p, size_t i) {
    const int index = p[i / 8] + 256 * bits_at(p + 32, i / 8 * 4, 3);
    const int scale = bits_at(p + 48, i / 64 * 16 + i % 64 / 16 * 3, 3);
    int d = 0;
    for (size_t n = 0; n < 4; n++) d |= bits_at(p + 48, 16 * n + 12, 4) << 4 * n;
    return (element){ ck_half((uint16_t)d) / 8 * (2 * scale + 1), 0,
                      iq1_at(index, i % 8, bit_at(p + 32, i / 8 * 4 + 3)), 0 };
}

static element i2_256_at(const uint8_t *p, size_t i) {
    static const int values[4] = { -2, -1, 1, 2 };
    return (element){ 1, 0, values[bits_at(p, 2 * i, 2)], 0 };
}

static element i2_32_at(const uint8_t *p, size_t i) {
    const element e = i2_256_at(p, i);
    return (element){ half_at(p + 8), 0, e.q, 0 };
}

static const element_at elements[QK_TYPE_N] = {
    [QK_F32] = f32_at,         [QK_F16] = f16_at,       [QK_BF16] = bf16_at,
    [QK_Q8_0] = q8_0_at,       [QK_Q4_0] = q4_0_at,     [QK_Q4_1] = q4_1_at,
    [QK_Q5_0] = q5_0_at,       [QK_Q5_1] = q5_1_at,     [QK_Q4_K] = q4_k_at,
    [QK_Q5_K] = q5_k_at,       [QK_Q6_K] = q6_k_at,     [QK_Q2_K] = q2_k_at,
    [QK_Q3_K] = q3_k_at,       [QK_IQ4_NL] = iq4_nl_at, [QK_IQ4_XS] = iq4_xs_at,
    [QK_TQ1_0] = tq1_0_at,     [QK_TQ2_0] = tq2_0_at,   [QK_I2_S] = i2_s_at,
    [QK_QSF2] = qsf2_at,       [QK_QSF3] = qsf3_at,     [QK_QSF4] = qsf4_at,
    [QK_QSFT] = qsft_at,       [QK_QSB2] = qsb2_at,     [QK_QSB3] = qsb3_at,
    [QK_QSB4] = qsb4_at,       [QK_MXFP4] = mxfp4_at,   [QK_NVFP4] = nvfp4_at,
    [QK_Q1_0] = q1_0_at,       [QK_Q2_0] = q2_0_at,     [QK_IQ2_XXS] = iq2_xxs_at,
    [QK_IQ2_XS] = iq2_xs_at,   [QK_IQ2_S] = iq2_s_at,   [QK_IQ3_XXS] = iq3_xxs_at,
    [QK_IQ3_S] = iq3_s_at,     [QK_IQ1_S] = iq1_s_at,   [QK_IQ1_M] = iq1_m_at,
    [QK_I2_256] = i2_256_at,   [QK_I2_32] = i2_32_at,   [QK_F8_E4M3] = f8_e4m3_at,
    [QK_F8_E5M2] = f8_e5m2_at,
};

double ck_weight(qk_type t, const uint8_t *row, size_t i, double *mag) {
    const size_t elems = qk_type_elems(t);
    const element e = elements[t](row + i / elems * qk_type_bytes(t), i % elems);
    *mag = fabs(e.scale) * (abs(e.q) + abs(e.zero)) + fabs(e.min);
    return e.scale * (e.q - e.zero) + e.min;
}

double ck_act_at(qk_act act, const void *col, size_t k, size_t i) {
    if (act == QK_ACT_Q8) {
        const qk_col_q8 x = qk_col_q8_at(col, k);
        return (double)x.d[i / 32] * x.q[i];
    }
    if (act == QK_ACT_Q8K) {
        const qk_col_q8k x = qk_col_q8k_at(col, k);
        return (double)x.d[i / 256] * x.q[i];
    }
    return (double)((const float *)col)[i];
}
