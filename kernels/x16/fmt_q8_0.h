/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q8_0: signed bytes in order. */
#ifndef QSF_KERNELS_X16_FMT_Q8_0_H
#define QSF_KERNELS_X16_FMT_Q8_0_H

enum {
    FMT_ELEMS = 32,
    FMT_PLANES = 8,
    FMT_HALVES = 1,
    FMT_MAX = 127,
    FMT_OFF = 0,
    FMT_MIN = 0,
    FMT_SIGNED = 1,
    FMT_TENSOR_SCALE = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    return l_biased(l_load(p + s * (int)QK_PLANE + v * L * 4));
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at + offsetof(qk_q8_0, qs));
    l_planes4(dst + 4 * QK_PLANE, row, at + offsetof(qk_q8_0, qs) + 16);
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_q8_0, d);
}

#endif
