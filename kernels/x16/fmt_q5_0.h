/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_0: plane 0 has the fifth bits, element 4s + i at bit 8i + s; then nibbles as in Q4_0. */
#ifndef QSF_KERNELS_X16_FMT_Q5_0_H
#define QSF_KERNELS_X16_FMT_Q5_0_H

#include "kernels/x16/planes.h"

enum {
    FMT_ELEMS = 32,
    FMT_PLANES = 5,
    FMT_HALVES = 1,
    FMT_MAX = 31,
    FMT_OFF = 16,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_load(p + (1 + s % 4) * (int)QK_PLANE + v * L * 4);
    const li top = fifth_bits_of(l_load(p + v * L * 4), s);
    return l_or(l_field(q, s < 4 ? 0 : 4, 4), top);
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    pack_fifth_bits(dst, row, at + offsetof(qk_q5_0, qh));
    l_planes4(dst + QK_PLANE, row, at + offsetof(qk_q5_0, qs));
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_q5_0, d);
}

#endif
