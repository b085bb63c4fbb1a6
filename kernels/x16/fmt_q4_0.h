/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_0: the planes are the nibbles, elements j (low) and j + 16 (high). */
#ifndef QSF_KERNELS_X16_FMT_Q4_0_H
#define QSF_KERNELS_X16_FMT_Q4_0_H

enum {
    FMT_ELEMS = 32,
    FMT_PLANES = 4,
    FMT_HALVES = 1,
    FMT_MAX = 15,
    FMT_OFF = 8,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_load(p + s % 4 * (int)QK_PLANE + v * L * 4);
    return l_field(q, s < 4 ? 0 : 4, 4);
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at + offsetof(qk_q4_0, qs));
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_q4_0, d);
}

#endif
