/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Converts rows to groups of sixteen and back. In every format the dwords of the planes are contiguous in the
 * block, in the order of the planes (but for the two formats of x16.h), and so are the halves: a format is
 * described by two offsets and a rearrangement. */
#include "kernels/x16/pack.h"

#include "kernels/blocks.h"
#include "kernels/load.h"
#include "kernels/x16/rearrange.h"
#include "kernels/x16/rearrange_grid.h"
#include "kernels/x16/x16.h"

#define INLINE static inline __attribute__((always_inline))

enum { MAX_PLANES = 52 };

typedef struct form {
    size_t elems, bytes;                      /* of a block */
    unsigned plane_at, planes, half_at, rest; /* rest: bytes of the halves and of what follows them */
} form;

/* Planes, then halves, then a byte, of one row. */
typedef union words {
    uint32_t w[MAX_PLANES + 1];
    uint8_t b[4 * (MAX_PLANES + 1)];
} words;

typedef void (*rearrange)(uint32_t *w);

/* Always inlined, so that all of f is constant: the inner loop is one load and one store per dword. */
INLINE void pack(form f, rearrange fix, uint8_t *dst, const uint8_t *src, size_t row_bytes, size_t k) {
    for (size_t b = 0; b < k / f.elems; b++, dst += QK_GROUP * f.bytes)
        for (unsigned r = 0; r < QK_GROUP; r++) {
            const uint8_t *block = src + r * row_bytes + b * f.bytes;
            uint8_t *halves = dst + f.planes * QK_PLANE;
            words x;
            memcpy(x.w, block + f.plane_at, f.planes * 4);
            memcpy(x.w + f.planes, block + f.half_at, f.rest);
            fix(x.w);
            for (unsigned p = 0; p < f.planes; p++) memcpy(dst + p * QK_PLANE + r * 4, &x.w[p], 4);
            for (unsigned h = 0; h < f.rest / 2; h++)
                memcpy(halves + h * QK_HALF + r * 2, x.b + 4 * f.planes + 2 * h, 2);
            if (f.rest % 2) halves[f.rest / 2 * QK_HALF + r] = x.b[4 * f.planes + f.rest - 1];
        }
}

INLINE void unpack_row(form f, rearrange unfix, uint8_t *dst, const uint8_t *group, unsigned r, size_t k) {
    for (size_t b = 0; b < k / f.elems; b++, dst += f.bytes, group += QK_GROUP * f.bytes) {
        const uint8_t *halves = group + f.planes * QK_PLANE;
        words x;
        for (unsigned p = 0; p < f.planes; p++) x.w[p] = qk_load_u32(group + p * QK_PLANE + r * 4);
        for (unsigned h = 0; h < f.rest / 2; h++)
            memcpy(x.b + 4 * f.planes + 2 * h, halves + h * QK_HALF + r * 2, 2);
        if (f.rest % 2) x.b[4 * f.planes + f.rest - 1] = halves[f.rest / 2 * QK_HALF + r];
        unfix(x.w);
        memcpy(dst + f.plane_at, x.w, f.planes * 4);
        memcpy(dst + f.half_at, x.w + f.planes, f.rest);
    }
}

/* For a format with a row in kernels/formats.h: the offsets of the planes and the halves in a block. */
#define FORM(fmt, TYPE, plane_at, half_at, fix, unfix)                             \
    void qk_pack_##fmt(void *dst, const void *src, size_t row_bytes, size_t k) {   \
        pack(FORM_OF(TYPE, plane_at, half_at), fix, dst, src, row_bytes, k);       \
    }                                                                              \
    void qk_unpack_row_##fmt(void *dst, const void *group, unsigned r, size_t k) { \
        unpack_row(FORM_OF(TYPE, plane_at, half_at), unfix, dst, group, r, k);     \
    }
#define FORM_OF(TYPE, plane_at, half_at)                                       \
    (form) {                                                                   \
        QK_ELEMS_##TYPE, QK_BYTES_##TYPE, plane_at, QK_PLANES_##TYPE, half_at, \
            QK_BYTES_##TYPE - 4 * QK_PLANES_##TYPE                             \
    }

/* The formats of x16.h: the dwords of a row's block from its own order to that of use and back, and so the
 * planes of the blocks of a group. */
INLINE void reorder(form f, int (*place)(int), int back, uint8_t *group, size_t k) {
    uint8_t was[MAX_PLANES * QK_PLANE];
    for (size_t b = 0; b < k / f.elems; b++, group += QK_GROUP * f.bytes) {
        memcpy(was, group, f.planes * QK_PLANE);
        for (int n = 0; n < (int)f.planes; n++)
            memcpy(group + (back ? n : place(n)) * (int)QK_PLANE, was + (back ? place(n) : n) * (int)QK_PLANE,
                   QK_PLANE);
    }
}

#define ORDER(fmt, TYPE)                                                            \
    INLINE void by_use_##fmt(uint32_t *w) {                                         \
        uint32_t out[QK_PLANES_##TYPE];                                             \
        for (int n = 0; n < QK_PLANES_##TYPE; n++) out[qk_##fmt##_place(n)] = w[n]; \
        memcpy(w, out, sizeof out);                                                 \
    }                                                                               \
    INLINE void by_block_##fmt(uint32_t *w) {                                       \
        uint32_t out[QK_PLANES_##TYPE];                                             \
        for (int n = 0; n < QK_PLANES_##TYPE; n++) out[n] = w[qk_##fmt##_place(n)]; \
        memcpy(w, out, sizeof out);                                                 \
    }                                                                               \
    void qk_by_use_##fmt(void *group, size_t k) {                                   \
        reorder(FORM_OF(TYPE, 0, 0), qk_##fmt##_place, 0, group, k);                \
    }                                                                               \
    void qk_by_block_##fmt(void *group, size_t k) {                                 \
        reorder(FORM_OF(TYPE, 0, 0), qk_##fmt##_place, 1, group, k);                \
    }
QK_BY_USE(ORDER)

FORM(q8_0, Q8_0, 2, 0, qk_fix_none, qk_fix_none)
FORM(q4_0, Q4_0, 2, 0, qk_fix_none, qk_fix_none)
FORM(q4_1, Q4_1, 4, 0, qk_fix_none, qk_fix_none)
FORM(q5_0, Q5_0, 2, 0, qk_fix_q5, qk_unfix_q5)
FORM(q5_1, Q5_1, 4, 0, qk_fix_q5, qk_unfix_q5)
FORM(iq4_nl, IQ4_NL, 2, 0, qk_fix_none, qk_fix_none)
FORM(q4_k, Q4_K, 4, 0, qk_fix_none, qk_fix_none)
FORM(q5_k, Q5_K, 4, 0, qk_fix_none, qk_fix_none)
FORM(q6_k, Q6_K, 0, 208, by_use_q6_k, by_block_q6_k)
FORM(q2_k, Q2_K, 0, 80, qk_fix_none, qk_fix_none)
FORM(q3_k, Q3_K, 0, 108, by_use_q3_k, by_block_q3_k)
FORM(iq4_xs, IQ4_XS, 4, 0, qk_fix_none, qk_fix_none)
FORM(tq1_0, TQ1_0, 0, 52, qk_fix_none, qk_fix_none)
FORM(tq2_0, TQ2_0, 0, 64, qk_fix_none, qk_fix_none)
FORM(i2_s, I2_S, 0, 0, qk_fix_none, qk_fix_none)
FORM(qsf2, QSF2, 4, 0, qk_fix_qsf2, qk_fix_qsf2)
FORM(qsf3, QSF3, 4, 0, qk_fix_qsf3, qk_unfix_qsf3)
FORM(qsf4, QSF4, 4, 0, qk_fix_qsf4, qk_unfix_qsf4)
FORM(qsft, QSFT, 2, 0, qk_fix_qsft, qk_unfix_qsft)
FORM(qsb2, QSB2, 4, 0, qk_fix_qsb2, qk_fix_qsb2)
FORM(qsb3, QSB3, 4, 0, qk_fix_qsb3, qk_unfix_qsb3)
FORM(qsb4, QSB4, 4, 0, qk_fix_qsb4, qk_unfix_qsb4)
FORM(mxfp4, MXFP4, 1, 0, qk_fix_none, qk_fix_none)
FORM(nvfp4, NVFP4, 0, 0, qk_fix_none, qk_fix_none)
FORM(q1_0, Q1_0, 2, 0, qk_fix_q1_0, qk_unfix_q1_0)
FORM(q2_0, Q2_0, 2, 0, qk_fix_qsf2, qk_fix_qsf2)
FORM(iq2_xxs, IQ2_XXS, 2, 0, qk_fix_iq2_xxs, qk_unfix_iq2_xxs)
FORM(iq2_xs, IQ2_XS, 2, 0, qk_fix_iq2_xs, qk_unfix_iq2_xs)
FORM(iq2_s, IQ2_S, 2, 0, qk_fix_iq2_s, qk_unfix_iq2_s)
FORM(iq3_xxs, IQ3_XXS, 2, 0, qk_fix_iq3_xxs, qk_unfix_iq3_xxs)
FORM(iq3_s, IQ3_S, 2, 0, qk_fix_iq3_s, qk_unfix_iq3_s)
FORM(iq1_s, IQ1_S, 2, 0, qk_fix_iq1_s, qk_unfix_iq1_s)
FORM(iq1_m, IQ1_M, 0, 52, qk_fix_iq1_m, qk_unfix_iq1_m)
FORM(i2_256, I2_256, 0, 0, qk_fix_i2_256, qk_fix_i2_256)
FORM(i2_32, I2_32, 0, 8, qk_fix_i2_32, qk_fix_i2_32)
