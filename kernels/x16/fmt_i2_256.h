/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_256: pairs of bits in order, for -2, -1, +1 and +2; no scale. */
#ifndef QSF_KERNELS_X16_FMT_I2_256_H
#define QSF_KERNELS_X16_FMT_I2_256_H

#include "kernels/x16/planes.h"

enum {
    FMT_ELEMS = 256,
    FMT_PLANES = 16,
    FMT_HALVES = 0,
    FMT_MAX = 4,
    FMT_OFF = 2,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};
#define FMT_OWN_SCALE(p, j, v) l_setf(1.0f)

/* q + q / 2 is 2 more than the value. */
QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_and(l_shr(l_load(p + s / 4 * (int)QK_PLANE + v * L * 4), 2 * (s % 4)), l_bytes(3));
    return l_add8(q, l_and(l_shr(q, 1), l_bytes(1)));
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (int p = 0; p < FMT_PLANES; p += 4) l_planes4(dst + p * (int)QK_PLANE, row, at + 4 * (size_t)p);
    for (int i = 0; i < FMT_PLANES * ROW_VECTORS; i++)
        l_store(dst + i * L * 4, pairs_apart(l_load(dst + i * L * 4)));
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return 0;
}

#endif
