/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows to groups of sixteen and back. In every format the dwords of the planes lie together in the block, in the order
 * of the planes, and so do the halves: a format is four numbers and a rearrangement. */
#include "kernels/x16/pack.h"

#include "kernels/blocks.h"
#include "kernels/load.h"
#include "kernels/x16/rearrange.h"
#include "kernels/x16/x16.h"

#define INLINE static inline __attribute__((always_inline))

enum { MAX_PLANES = 52 };

typedef struct form {
    size_t elems, bytes;    /* of a block */
    unsigned plane_at, planes, half_at, halves;
} form;

typedef void (*rearrange)(uint32_t *w);

/* Always inlined, so that all of f is constants: the inner loop is one load and one store for a dword. */
INLINE void pack(form f, rearrange fix, uint8_t *dst, const uint8_t *src, size_t row_bytes, size_t k)
{
    for (size_t b = 0; b < k / f.elems; b++, dst += QK_GROUP * f.bytes)
        for (unsigned r = 0; r < QK_GROUP; r++) {
            const uint8_t *block = src + r * row_bytes + b * f.bytes;
            uint32_t w[MAX_PLANES];
            memcpy(w, block + f.plane_at, f.planes * sizeof *w);
            fix(w);
            for (unsigned p = 0; p < f.planes; p++)
                memcpy(dst + p * QK_PLANE + r * sizeof *w, &w[p], sizeof *w);
            for (unsigned h = 0; h < f.halves; h++)
                memcpy(dst + f.planes * QK_PLANE + h * QK_HALF + r * 2, block + f.half_at + 2 * h, 2);
        }
}

INLINE void unpack_row(form f, rearrange unfix, uint8_t *dst, const uint8_t *group, unsigned r, size_t k)
{
    for (size_t b = 0; b < k / f.elems; b++, dst += f.bytes, group += QK_GROUP * f.bytes) {
        uint32_t w[MAX_PLANES];
        for (unsigned p = 0; p < f.planes; p++)
            w[p] = qk_load_u32(group + p * QK_PLANE + r * sizeof *w);
        unfix(w);
        memcpy(dst + f.plane_at, w, f.planes * sizeof *w);
        for (unsigned h = 0; h < f.halves; h++)
            memcpy(dst + f.half_at + 2 * h, group + f.planes * QK_PLANE + h * QK_HALF + r * 2, 2);
    }
}

#define FORM(fmt, elems, plane_at, planes, half_at, halves, fix, unfix)                                         \
    _Static_assert((planes) * 4 + (halves) * 2 == sizeof(qk_##fmt), "a group has the bytes of its rows");       \
    void qk_pack_##fmt(void *dst, const void *src, size_t row_bytes, size_t k)                                  \
    {                                                                                                           \
        pack((form){ elems, sizeof(qk_##fmt), plane_at, planes, half_at, halves }, fix, dst, src, row_bytes, k); \
    }                                                                                                           \
    void qk_unpack_row_##fmt(void *dst, const void *group, unsigned r, size_t k)                                \
    {                                                                                                           \
        unpack_row((form){ elems, sizeof(qk_##fmt), plane_at, planes, half_at, halves }, unfix, dst, group, r, k); \
    }

FORM(q8_0, QK_BLOCK, 2, 8, 0, 1, qk_fix_none, qk_fix_none)
FORM(q4_0, QK_BLOCK, 2, 4, 0, 1, qk_fix_none, qk_fix_none)
FORM(q4_1, QK_BLOCK, 4, 4, 0, 2, qk_fix_none, qk_fix_none)
FORM(q5_0, QK_BLOCK, 2, 5, 0, 1, qk_fix_q5, qk_unfix_q5)
FORM(q5_1, QK_BLOCK, 4, 5, 0, 2, qk_fix_q5, qk_unfix_q5)
FORM(iq4_nl, QK_BLOCK, 2, 4, 0, 1, qk_fix_none, qk_fix_none)
FORM(q4_k, QK_K, 4, 35, 0, 2, qk_fix_none, qk_fix_none)
FORM(q5_k, QK_K, 4, 43, 0, 2, qk_fix_none, qk_fix_none)
FORM(q6_k, QK_K, 0, 52, 208, 1, qk_fix_none, qk_fix_none)
FORM(q2_k, QK_K, 0, 20, 80, 2, qk_fix_none, qk_fix_none)
FORM(q3_k, QK_K, 0, 27, 108, 1, qk_fix_none, qk_fix_none)
FORM(iq4_xs, QK_K, 4, 33, 0, 2, qk_fix_none, qk_fix_none)
FORM(tq1_0, QK_K, 0, 13, 52, 1, qk_fix_none, qk_fix_none)
FORM(tq2_0, QK_K, 0, 16, 64, 1, qk_fix_none, qk_fix_none)
FORM(i2_s, QK_I2S_BLOCK, 0, 8, 0, 0, qk_fix_none, qk_fix_none)
FORM(qsf2, QK_QSF_BLOCK, 4, 4, 0, 2, qk_fix_qsf2, qk_fix_qsf2)
FORM(qsf3, QK_QSF_BLOCK, 4, 6, 0, 2, qk_fix_qsf3, qk_unfix_qsf3)
FORM(qsf4, QK_QSF_BLOCK, 4, 8, 0, 2, qk_fix_qsf4, qk_unfix_qsf4)
FORM(qsft, QK_QSF_BLOCK, 2, 4, 0, 1, qk_fix_qsft, qk_unfix_qsft)
FORM(qsb2, QK_K, 4, 19, 0, 2, qk_fix_qsb2, qk_fix_qsb2)
FORM(qsb3, QK_K, 4, 27, 0, 2, qk_fix_qsb3, qk_unfix_qsb3)
FORM(qsb4, QK_K, 4, 35, 0, 2, qk_fix_qsb4, qk_unfix_qsb4)
