/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_1: nibbles as in Q4_0. */
#ifndef QSF_KERNELS_X16_FMT_Q4_1_H
#define QSF_KERNELS_X16_FMT_Q4_1_H

enum {
    FMT_ELEMS = 32,
    FMT_PLANES = 4,
    FMT_HALVES = 2,
    FMT_MAX = 15,
    FMT_OFF = 0,
    FMT_MIN = 1,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_load(p + s % 4 * (int)QK_PLANE + v * L * 4);
    return l_field(q, s < 4 ? 0 : 4, 4);
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at + offsetof(qk_q4_1, qs));
}

QK_INLINE size_t fmt_half_at(int i) { return i == 0 ? offsetof(qk_q4_1, d) : offsetof(qk_q4_1, m); }

#endif
