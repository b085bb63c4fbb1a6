/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random and adversarial weights and activations. */
#include <stdio.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

/* Offsets of the halves of a block, plus one; 0 where the format has none. */
static const struct {
    uint8_t d, m;
} halves[QK_TYPE_N] = {
    [QK_Q8_0] = { 1, 0 },   [QK_Q4_0] = { 1, 0 },   [QK_Q4_1] = { 1, 3 },    [QK_Q5_0] = { 1, 0 },
    [QK_Q5_1] = { 1, 3 },   [QK_Q4_K] = { 1, 3 },   [QK_Q5_K] = { 1, 3 },    [QK_Q6_K] = { 209, 0 },
    [QK_Q2_K] = { 81, 83 }, [QK_Q3_K] = { 109, 0 }, [QK_IQ4_NL] = { 1, 0 },  [QK_IQ4_XS] = { 1, 0 },
    [QK_TQ1_0] = { 53, 0 }, [QK_TQ2_0] = { 65, 0 }, [QK_QSF2] = { 1, 3 },    [QK_QSF3] = { 1, 3 },
    [QK_QSF4] = { 1, 3 },   [QK_QSFT] = { 1, 0 },   [QK_QSB2] = { 1, 0 },    [QK_QSB3] = { 1, 0 },
    [QK_QSB4] = { 1, 0 },   [QK_Q1_0] = { 1, 0 },   [QK_Q2_0] = { 1, 0 },    [QK_IQ2_XXS] = { 1, 0 },
    [QK_IQ2_XS] = { 1, 0 }, [QK_IQ2_S] = { 1, 0 },  [QK_IQ3_XXS] = { 1, 0 }, [QK_IQ3_S] = { 1, 0 },
    [QK_IQ1_S] = { 1, 0 },  [QK_I2_32] = { 9, 0 },
};

const char *ck_kind_name(ck_kind kind) {
    static const char *const names[CK_KINDS] = { "random", "unit", "all-min", "all-max", "tiny",
                                                 "small",  "huge", "zero",    "mixed" };
    return names[kind];
}

static ck_kind any_kind(void) {
    static const ck_kind kinds[] = { CK_RANDOM, CK_ALL_MIN, CK_ALL_MAX, CK_TINY, CK_SMALL, CK_HUGE, CK_ZERO };
    return kinds[ck_below(sizeof kinds / sizeof kinds[0])];
}

static float one_float(size_t i, ck_kind kind) {
    const float u = ck_normal();
    switch (kind) {
    case CK_UNIT: /* integers with one 127 in every 32: an activation scale of exactly 1 */
        return i % 32 == 5 ? 127.0f : (float)((int)ck_below(255) - 127);
    case CK_ALL_MIN: return -1.0f;
    case CK_ALL_MAX: return 1.0f;
    case CK_TINY: return u * 0x1p-140f;
    case CK_SMALL:
        return u * 0x1p-96f; /* not yet zero as a block, but its scale times a small one is denormal */
    case CK_HUGE: return u * 0x1p40f;
    case CK_ZERO: return i % 2 ? -0.0f : 0.0f;
    default: return u;
    }
}

void ck_fill_floats(float *x, size_t n, ck_kind kind) {
    ck_kind now = kind;
    for (size_t i = 0; i < n; i++) {
        if (kind == CK_MIXED && i % 32 == 0) now = any_kind();
        x[i] = one_float(i, now);
    }
}

static void put_half(uint8_t *p, ck_kind kind) {
    uint16_t h;
    switch (kind) {
    case CK_UNIT: h = 0x3c00; break;                                             /* 1 */
    case CK_TINY: h = (uint16_t)(ck_below(0x3ff) | (ck_rand() & 0x8000)); break; /* denormal */
    case CK_SMALL: h = (uint16_t)(1 + ck_below(4)); break;                       /* smallest denormals */
    case CK_HUGE: h = 0x7bff; break;                                             /* 65504 */
    case CK_ZERO: h = ck_rand() & 1 ? 0x8000 : 0; break;
    default: h = (uint16_t)(0x2000 + ck_below(0x1000) + (ck_rand() & 0x8000)); break;
    }
    memcpy(p, &h, sizeof h);
}

/* Where the scales of sub-blocks are that are bytes of their own, and how many bytes. */
static const struct {
    uint8_t at, n;
} scales[QK_TYPE_N] = {
    [QK_Q2_K] = { 0, 16 }, [QK_Q3_K] = { 96, 12 },  [QK_Q4_K] = { 4, 12 },
    [QK_Q5_K] = { 4, 12 }, [QK_Q6_K] = { 192, 16 }, [QK_IQ4_XS] = { 2, 6 },
};

/* Sub-block scales so small that the sums of unit blocks are exact integers in a float. */
static void tame_scales(qk_type t, uint8_t *p) {
    if (t == QK_Q6_K)
        for (int i = 0; i < 16; i++) p[192 + i] = (uint8_t)((int)ck_below(7) - 3);
    if (t == QK_Q4_K || t == QK_Q5_K)
        for (int i = 0; i < 12; i++) p[4 + i] &= i < 8 ? 0x03 : 0x33;
    for (size_t g = 0; t >= QK_QSB2 && t <= QK_QSB4 && g < 16; g++) /* a group's scale becomes 0 or 1 */
        for (size_t i = 1; i < (t == QK_QSB2 ? 3u : t == QK_QSB3 ? 4u : 5u); i++)
            p[2 + (7 * g + i) / 8] &= (uint8_t) ~(1u << (7 * g + i) % 8);
    if (t == QK_IQ2_XXS || t == QK_IQ3_XXS) /* 0: the product with the unit of the format is 1 */
        for (int i = 0; i < 8; i++) p[t == QK_IQ2_XXS ? 9 + 8 * i : 69 + 4 * i] &= 15;
    if (t == QK_IQ2_XS || t == QK_IQ2_S || t == QK_IQ3_S)
        memset(p + (t == QK_IQ3_S ? 106 : qk_type_bytes(t) - 8), 0, t == QK_IQ3_S ? 4 : 8);
    if (t == QK_IQ4_XS) { /* -4 .. 3: the top two bits and the one below encode 32 + small or 31 - small */
        const int high = ck_rand() & 1;
        memset(p + 2, high ? 0xaa : 0x55, 2);
        for (int i = 0; i < 4; i++) p[4 + i] = high ? p[4 + i] & 0x33 : p[4 + i] | 0xcc;
    }
}

/* Sets the scales that are not stored as halves. */
static void put_scale(qk_type t, uint8_t *p, ck_kind kind) {
    if (t == QK_MXFP4)
        p[0] = (uint8_t)(kind == CK_UNIT   ? 128
                         : kind == CK_TINY ? ck_below(8)
                         : kind == CK_HUGE ? 152
                                           : 120 + ck_below(9));
    for (int i = 0; t == QK_NVFP4 && kind == CK_UNIT && i < 4; i++) p[i] = 64; /* 2 */
    if (t == QK_IQ1_M) {
        uint8_t d[2];
        put_half(d, kind);
        for (int i = 0; i < 4; i++)
            p[49 + 2 * i] = (uint8_t)((p[49 + 2 * i] & 15) | (d[i / 2] >> i % 2 * 4 & 15) << 4);
    }
}

static void fill_block(qk_type t, uint8_t *p, ck_kind kind) {
    const size_t bytes = qk_type_bytes(t);
    ck_fill_bytes(p, bytes);
    if (kind == CK_ALL_MIN || kind == CK_ALL_MAX) memset(p, kind == CK_ALL_MAX ? 0xff : 0, bytes);
    if (t == QK_Q8_0 && (kind == CK_ALL_MIN || kind == CK_ALL_MAX))
        memset(p, kind == CK_ALL_MAX ? 0x7f : 0x80, bytes);
    /* Otherwise the smallest weights would only be multiplied by the smallest scales, which may be 0. */
    if ((kind == CK_ALL_MIN || kind == CK_ALL_MAX) && (ck_rand() & 1))
        ck_fill_bytes(p + scales[t].at, scales[t].n);
    if (kind == CK_UNIT) tame_scales(t, p);
    put_scale(t, p, kind);
    if (halves[t].d) put_half(p + halves[t].d - 1, kind);
    if (halves[t].m) put_half(p + halves[t].m - 1, kind);
}

/* Any number; whole ones of up to 7 for sums that are exact. */
static void fill_f8(qk_type t, uint8_t *p, ck_kind kind) {
    static const uint8_t whole[2][8] = { { 0, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e },
                                         { 0, 0x3c, 0x40, 0x42, 0x44, 0x45, 0x46, 0x47 } };
    const uint8_t sign = (uint8_t)(ck_rand() & 0x80), largest = t == QK_F8_E4M3 ? 0x7e : 0x7b;
    switch (kind) {
    case CK_UNIT: *p = whole[t == QK_F8_E5M2][ck_below(8)] | sign; break;
    case CK_ALL_MIN: *p = largest | 0x80; break;
    case CK_ALL_MAX:
    case CK_HUGE: *p = largest; break;
    case CK_ZERO: *p = sign; break;
    case CK_TINY:
    case CK_SMALL: *p = (uint8_t)(ck_below(4) | sign); break;
    default: *p = (uint8_t)(0x20 + ck_below(0x20)) | sign; break;
    }
}

static void fill_float(qk_type t, uint8_t *p, ck_kind kind) {
    float f;
    uint16_t h;
    uint32_t bits;
    ck_fill_floats(&f, 1, kind == CK_UNIT ? CK_RANDOM : kind);
    f = kind == CK_UNIT ? (float)((int)ck_below(31) - 15) : f;
    if (kind == CK_ZERO && (ck_rand() & 1)) f = -f;
    memcpy(&bits, &f, sizeof bits);
    h = t == QK_F16 ? qk_f32_to_f16(kind == CK_HUGE ? f * 0x1p-28f : f) : (uint16_t)(bits >> 16);
    memcpy(p, t == QK_F32 ? (const void *)&f : (const void *)&h, qk_type_bytes(t));
}

void ck_fill_weights(qk_type t, uint8_t *p, size_t n_elems, ck_kind kind) {
    const size_t elems = qk_type_elems(t), bytes = qk_type_bytes(t);
    for (size_t i = 0; i < n_elems / elems; i++, p += bytes) {
        const ck_kind now = kind == CK_MIXED ? any_kind() : kind;
        if (elems > 1)
            fill_block(t, p, now);
        else if (bytes == 1)
            fill_f8(t, p, now);
        else
            fill_float(t, p, now);
    }
}

float ck_tensor_scale(ck_kind kind) {
    switch (kind) {
    case CK_UNIT: return 0.25f;
    case CK_TINY: return 0x1.8p-140f;
    case CK_HUGE: return 0x1.8p60f;
    case CK_ZERO: return -0.0f;
    default: return ck_normal();
    }
}
