/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_32: pairs of bits in order, for -2, -1, +1 and +2, times d. */
#ifndef QSF_KERNELS_X16_FMT_I2_32_H
#define QSF_KERNELS_X16_FMT_I2_32_H

#define FMT_COLD 1

#include "kernels/x16/planes.h"

enum {
    FMT_ELEMS = 32,
    FMT_PLANES = 2,
    FMT_HALVES = 1,
    FMT_MAX = 4,
    FMT_OFF = 2,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};

/* q + q / 2 is 2 more than the value. */
QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_field(l_load(p + s / 4 * (int)QK_PLANE + v * L * 4), 2 * (s % 4), 2);
    return l_add8(q, l_and(l_shr(q, 1), l_bytes(1)));
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    plane1(dst, row, at);
    plane1(dst + QK_PLANE, row, at + 4);
    for (int i = 0; i < FMT_PLANES * ROW_VECTORS; i++)
        l_store(dst + i * L * 4, pairs_apart(l_load(dst + i * L * 4)));
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_i2_32, d);
}

#endif
