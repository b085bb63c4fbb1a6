/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF ternary: bit pairs as in QSF 2-bit, x = d * (q - 1); in the file eight bytes of signs, then eight of
 * zeros. */
#ifndef QSF_KERNELS_X16_FMT_QSFT_H
#define QSF_KERNELS_X16_FMT_QSFT_H

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
    pack_trits(dst, row, at + offsetof(qk_qsft, sign), at + offsetof(qk_qsft, zero));
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_qsft, d);
}

#endif
