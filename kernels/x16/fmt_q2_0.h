/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q2_0: x = d * (q - 1), pairs of bits in order. */
#ifndef QSF_KERNELS_X16_FMT_Q2_0_H
#define QSF_KERNELS_X16_FMT_Q2_0_H

#define FMT_COLD 1

#include "kernels/x16/planes.h"

enum {
    FMT_ELEMS = 64,
    FMT_PLANES = 4,
    FMT_HALVES = 1,
    FMT_MAX = 3,
    FMT_OFF = 1,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    return l_field(l_load(p + s / 4 * (int)QK_PLANE + v * L * 4), 2 * (s % 4), 2);
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at + offsetof(qk_q2_0, qs));
    for (int i = 0; i < 4 * ROW_VECTORS; i++) l_store(dst + i * L * 4, pairs_apart(l_load(dst + i * L * 4)));
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_q2_0, d);
}

#endif
