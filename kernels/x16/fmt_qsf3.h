/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 3-bit: four planes of the low two bits as in QSF 2-bit, two of the top bits; a bit stream in the
 * file. */
#ifndef QSF_KERNELS_X16_FMT_QSF3_H
#define QSF_KERNELS_X16_FMT_QSF3_H

#define FMT_COLD 1

#include "kernels/x16/planes.h"

enum {
    FMT_ELEMS = 64,
    FMT_PLANES = 6,
    FMT_HALVES = 2,
    FMT_MAX = 7,
    FMT_OFF = 0,
    FMT_MIN = 1,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li low = l_field(l_load(p + s / 4 * (int)QK_PLANE + v * L * 4), 2 * (s % 4), 2);
    const li top = l_load(p + (4 + s / 8) * (int)QK_PLANE + v * L * 4);
    return l_or(low, l_shl(l_and(l_shr(top, s % 8), l_bytes(1)), 2));
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    pack_triples(dst, row, at + offsetof(qk_qsf3, qs));
}

QK_INLINE size_t fmt_half_at(int i) { return i == 0 ? offsetof(qk_qsf3, d) : offsetof(qk_qsf3, m); }

#endif
