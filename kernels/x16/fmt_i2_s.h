/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_S: element j of a block at bits 6 - 2 * (j / 32) of byte j % 32; one scale for the whole tensor. */
#ifndef QSF_KERNELS_X16_FMT_I2_S_H
#define QSF_KERNELS_X16_FMT_I2_S_H

#define FMT_COLD 1

enum {
    FMT_ELEMS = 128,
    FMT_PLANES = 8,
    FMT_HALVES = 0,
    FMT_MAX = 3,
    FMT_OFF = 1,
    FMT_MIN = 0,
    FMT_SIGNED = 0,
    FMT_TENSOR_SCALE = 1
};

#define FMT_SHIFT(s) (6 - 2 * ((s) / 8))

QK_INLINE li fmt_in_place(const uint8_t *p, int s, int v) {
    return l_and(l_load(p + s % 8 * (int)QK_PLANE + v * L * 4), l_bytes(3 << FMT_SHIFT(s)));
}

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_load(p + s % 8 * (int)QK_PLANE + v * L * 4);
    return l_field(q, FMT_SHIFT(s), 2);
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at);
    l_planes4(dst + 4 * QK_PLANE, row, at + 16);
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return 0;
}

#endif
