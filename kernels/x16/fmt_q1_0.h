/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q1_0: x = d or -d. A step is a bit of the planes; d * (q - 1) with q = 0 or 2. */
#ifndef QSF_KERNELS_X16_FMT_Q1_0_H
#define QSF_KERNELS_X16_FMT_Q1_0_H

#define FMT_AHEAD 1024
#define FMT_COLD  1

#include "kernels/x16/planes.h"

enum {
    FMT_ELEMS = 128,
    FMT_PLANES = 4,
    FMT_HALVES = 1,
    FMT_MAX = 2,
    FMT_OFF = 1,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};

/* Bits 2j (the first four steps) and 2j + 1 of sub-block j. */
#define FMT_SHIFT(s) (2 * ((s) / 8))

QK_INLINE li fmt_in_place(const uint8_t *p, int s, int v) {
    const li q = l_load(p + s % 4 * (int)QK_PLANE + v * L * 4);
    return l_and(s % 8 < 4 ? l_shl(q, 1) : q, l_bytes(2 << FMT_SHIFT(s)));
}

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_load(p + s % 4 * (int)QK_PLANE + v * L * 4);
    const int bit = FMT_SHIFT(s) + s % 8 / 4;
    return l_and(bit ? l_shr(q, bit - 1) : l_shl(q, 1), l_bytes(2));
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at + offsetof(qk_q1_0, qs));
    for (int v = 0; v < ROW_VECTORS; v++, dst += L * 4) {
        li out[4] = { l_set(0), l_set(0), l_set(0), l_set(0) };
        for (int j = 0; j < 4; j++) {
            const li bits = fifth_bits(l_load(dst + j * (int)QK_PLANE));
            for (int s = 0; s < 8; s++)
                out[s % 4] = l_or(out[s % 4], l_shl(l_and(l_shr(bits, s), l_bytes(1)), 2 * j + s / 4));
        }
        for (int p = 0; p < 4; p++) l_store(dst + p * (int)QK_PLANE, out[p]);
    }
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_q1_0, d);
}

#endif
