/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NVFP4: sub-blocks of 16 with a scale of eight bits each; nibbles that choose one of sixteen values, in the
 * eight bytes of a sub-block those of elements i (low) and i + 8 (high). */
#ifndef QSF_KERNELS_X16_FMT_NVFP4_H
#define QSF_KERNELS_X16_FMT_NVFP4_H

#define FMT_COLD 1

#include "kernels/x16/planes.h"

enum {
    FMT_ELEMS = 64,
    FMT_PLANES = 9,
    FMT_HALVES = 0,
    FMT_MAX = 24,
    FMT_OFF = QK_FP4_MAX,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};
#define FMT_SUB    16
#define FMT_SCALES 4

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const int plane = 1 + s / 4 * 2 + s % 2;
    return fp4_level(l_load(p + plane * (int)QK_PLANE + v * L * 4), s / 2 % 2);
}

/* Exponent and fraction moved into a float's place are 2^120 too small, which one exact multiplication mends,
 * denormals included. Half of that, as the values are doubled. The code of a NaN counts as 0. */
#define FMT_OWN_SCALE(p, j, v) fmt_scale(p, j, v)
QK_INLINE lf fmt_scale(const uint8_t *p, int j, int v) {
    const li e = l_and(l_load(p + v * L * 4), l_bytes(0x7f)), nan = l_subs8(e, l_bytes(0x7e));
    const li number = l_sub8(e, l_sub(l_shl(nan, 7), nan));
    return l_mulf(l_float_of(l_shl(l_and(l_shr(number, 8 * j), l_set(0x7f)), 20)), l_setf(0x1p119f));
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at);
    l_planes4(dst + 4 * QK_PLANE, row, at + 16);
    for (unsigned r = 0; r < QK_GROUP; r++) memcpy(dst + 8 * QK_PLANE + r * 4, row[r] + at + 32, 4);
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return 0;
}

#endif
