/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The weight formats once more, element by element in float64, and their random fillings. */
#include <math.h>
#include <string.h>

#include "kernels/act.h"
#include "tests/kernels/checkkern.h"

typedef struct layout {
    size_t elems, bytes, d, m, high, q; /* offsets; m and high only where the format has them */
    int bits, offset, has_min;
} layout;

static const layout layouts[QK_TYPE_N] = {
    [QK_F32] = { 1, 4, 0, 0, 0, 0, 32, 0, 0 },
    [QK_F16] = { 1, 2, 0, 0, 0, 0, 16, 0, 0 },
    [QK_BF16] = { 1, 2, 0, 0, 0, 0, 16, 0, 0 },
    [QK_Q8_0] = { 32, 34, 0, 0, 0, 2, 8, 0, 0 },
    [QK_Q4_0] = { 32, 18, 0, 0, 0, 2, 4, 8, 0 },
    [QK_Q4_1] = { 32, 20, 0, 2, 0, 4, 4, 0, 1 },
    [QK_Q5_0] = { 32, 22, 0, 0, 2, 6, 5, 16, 0 },
    [QK_Q5_1] = { 32, 24, 0, 2, 4, 8, 5, 0, 1 },
    [QK_Q4_K] = { 256, 144, 0, 2, 0, 16, 4, 0, 1 },
    [QK_Q5_K] = { 256, 176, 0, 2, 16, 48, 5, 0, 1 },
    [QK_Q6_K] = { 256, 210, 208, 0, 128, 0, 6, 32, 0 },
};

size_t ck_block_elems(qk_type t)
{
    return layouts[t].elems;
}

size_t ck_block_bytes(qk_type t)
{
    return layouts[t].bytes;
}

double ck_half(uint16_t h)
{
    const int exp = h >> 10 & 31, man = h & 1023;
    const double sign = h & 0x8000 ? -1.0 : 1.0;
    if (exp == 31)
        return man ? (double)NAN : sign * (double)INFINITY;
    return sign * (exp ? ldexp(1024 + man, exp - 25) : ldexp(man, -24));
}

static double half_at(const uint8_t *p)
{
    return ck_half((uint16_t)(p[0] | p[1] << 8));
}

static double plain_at(qk_type t, const uint8_t *p)
{
    float f;
    uint32_t bits;
    if (t == QK_F16)
        return half_at(p);
    memcpy(&bits, p, t == QK_F32 ? 4 : 2);
    if (t == QK_BF16)
        bits = (uint32_t)(p[0] | p[1] << 8) << 16;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Element i of a block of 32. */
static double small_at(const layout *l, const uint8_t *p, size_t i, double *mag)
{
    const double d = half_at(p + l->d), m = l->has_min ? half_at(p + l->m) : 0.0;
    int q;
    if (l->bits == 8) {
        q = (int8_t)p[l->q + i];
    } else {
        q = p[l->q + i % 16] >> (i / 16 * 4) & 15;
        if (l->bits == 5)
            q |= (p[l->high + i / 8] >> i % 8 & 1) << 4;
    }
    *mag = fabs(d * q) + fabs(m) + fabs(d * l->offset);
    return d * (q - l->offset) + m;
}

/* Scale (which = 0) or minimum (1) number s of the 12 packed bytes. */
static int six_bits(const uint8_t *p, size_t s, int which)
{
    if (s < 4)
        return p[s + 4 * (size_t)which] & 63;
    return (p[s + 4] >> 4 * which & 15) | (p[s - 4 + 4 * (size_t)which] >> 6) << 4;
}

static double k45_at(const layout *l, const uint8_t *p, size_t i, double *mag)
{
    const size_t s = i / 32, j = i / 64;
    const double scale = half_at(p) * six_bits(p + 4, s, 0), min = half_at(p + 2) * six_bits(p + 4, s, 1);
    int q = p[l->q + j * 32 + i % 32] >> s % 2 * 4 & 15;
    if (l->bits == 5)
        q |= (p[l->high + i % 32] >> s & 1) << 4;
    *mag = fabs(scale * q) + fabs(min);
    return scale * q - min;
}

static double k6_at(const layout *l, const uint8_t *p, size_t i, double *mag)
{
    const size_t half = i / 128, group = i % 128 / 32, e = i % 32;
    const int low = p[half * 64 + group % 2 * 32 + e] >> group / 2 * 4 & 15;
    const int high = p[l->high + half * 32 + e] >> 2 * group & 3;
    const double scale = half_at(p + l->d) * (int8_t)p[192 + i / 16];
    *mag = fabs(scale) * 64;
    return scale * ((low | high << 4) - 32);
}

double ck_weight(qk_type t, const uint8_t *row, size_t i, double *mag)
{
    const layout *l = &layouts[t];
    const uint8_t *p = row + i / l->elems * l->bytes;
    double v;
    i %= l->elems;
    if (l->elems == 32)
        return small_at(l, p, i, mag);
    if (t == QK_Q6_K)
        return k6_at(l, p, i, mag);
    if (l->elems == 256)
        return k45_at(l, p, i, mag);
    v = plain_at(t, p);
    *mag = fabs(v);
    return v;
}

double ck_act_at(qk_act act, const void *col, size_t k, size_t i)
{
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

static uint16_t scale_of(ck_kind kind)
{
    switch (kind) {
    case CK_UNIT: return 0x3c00;                                       /* 1 */
    case CK_TINY: return (uint16_t)(ck_below(0x3ff) | (ck_rand() & 0x8000)); /* denormal */
    case CK_HUGE: return 0x7bff;                                       /* 65504 */
    case CK_ZERO: return ck_rand() & 1 ? 0x8000 : 0;
    default: return (uint16_t)(0x2000 + ck_below(0x1000) + (ck_rand() & 0x8000));
    }
}

static void fill_block(qk_type t, uint8_t *p, ck_kind kind)
{
    const layout *l = &layouts[t];
    uint16_t d;
    ck_fill_bytes(p, l->bytes);
    if (kind == CK_ALL_MIN || kind == CK_ALL_MAX)
        memset(p, kind == CK_ALL_MAX ? 0xff : 0, l->bytes);
    if (t == QK_Q8_0 && (kind == CK_ALL_MIN || kind == CK_ALL_MAX))
        memset(p, kind == CK_ALL_MAX ? 0x7f : 0x80, l->bytes);
    if (kind == CK_UNIT && t == QK_Q6_K)
        for (int i = 0; i < 16; i++)
            p[192 + i] = (uint8_t)((int)ck_below(7) - 3);
    if (kind == CK_UNIT && (t == QK_Q4_K || t == QK_Q5_K))
        for (int i = 0; i < 12; i++)
            p[4 + i] &= i < 8 ? 0x03 : 0x33;
    d = scale_of(kind);
    memcpy(p + l->d, &d, sizeof d);
    d = scale_of(kind);
    if (l->has_min)
        memcpy(p + l->m, &d, sizeof d);
}

void ck_fill_weights(qk_type t, uint8_t *p, size_t n_elems, ck_kind kind)
{
    const layout *l = &layouts[t];
    for (size_t i = 0; i < n_elems / l->elems; i++, p += l->bytes) {
        float f;
        uint16_t h;
        uint32_t bits;
        if (l->elems > 1) {
            fill_block(t, p, kind);
            continue;
        }
        ck_fill_floats(&f, 1, kind == CK_UNIT ? CK_RANDOM : kind);
        f = kind == CK_UNIT ? (float)((int)ck_below(31) - 15) : f;
        memcpy(&bits, &f, sizeof bits);
        h = t == QK_F16 ? qk_f32_to_f16(kind == CK_HUGE ? f * 0x1p-28f : f) : (uint16_t)(bits >> 16);
        memcpy(p, t == QK_F32 ? (const void *)&f : (const void *)&h, l->bytes);
    }
}
