/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_256: pairs of bits in order, for -2, -1, +1 and +2; no scale. */
#ifndef QSF_KERNELS_X16_FMT_I2_256_H
#define QSF_KERNELS_X16_FMT_I2_256_H

#define FMT_COLD 1

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
/* A turn reads a whole block: with less, the next one would not have arrived. */
#define FMT_AHEAD              6144
#define FMT_OWN_SCALE(p, j, v) l_setf(1.0f)

/* q + q / 2 is 2 more than the value: that of the lower and of the upper pair of four bits. */
static const uint8_t i2_lower[16] = { 0, 1, 3, 4, 0, 1, 3, 4, 0, 1, 3, 4, 0, 1, 3, 4 };
static const uint8_t i2_upper[16] = { 0, 0, 0, 0, 1, 1, 1, 1, 3, 3, 3, 3, 4, 4, 4, 4 };

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_load(p + s / 4 * (int)QK_PLANE + v * L * 4);
    return l_lookup(s % 2 ? i2_upper : i2_lower, l_field(q, s % 4 < 2 ? 0 : 4, 4));
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
