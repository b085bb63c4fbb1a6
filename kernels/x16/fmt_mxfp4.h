/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MXFP4: nibbles as in Q4_0 that choose one of sixteen values, and a power of two. */
#ifndef QSF_KERNELS_X16_FMT_MXFP4_H
#define QSF_KERNELS_X16_FMT_MXFP4_H

#include "kernels/x16/planes.h"

enum {
    FMT_ELEMS = 32,
    FMT_PLANES = 4,
    FMT_HALVES = 0,
    FMT_MAX = 24,
    FMT_OFF = QK_FP4_MAX,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};
#define FMT_OCTETS 1

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    return fp4_level(l_load(p + s % 4 * (int)QK_PLANE + v * L * 4), s / 4);
}

/* 2^(e - 128), as the product of two normal numbers: exact where it is none itself. */
#define FMT_OWN_SCALE(p, j, v) fmt_scale(p, v)
QK_INLINE lf fmt_scale(const uint8_t *p, int v) {
    const li e = l_octets(p + FMT_PLANES * (int)QK_PLANE + v * L), half = l_shr(e, 1), bias = l_set(63);
    return l_mulf(l_float_of(l_shl(l_add(half, bias), 23)),
                  l_float_of(l_shl(l_add(l_sub(e, half), bias), 23)));
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at + offsetof(qk_mxfp4, qs));
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_mxfp4, e);
}

#endif
