/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ4_NL: nibbles as in Q4_0, each an index into sixteen values. */
#ifndef QSF_KERNELS_X16_FMT_IQ4_NL_H
#define QSF_KERNELS_X16_FMT_IQ4_NL_H

enum {
    FMT_ELEMS = 32,
    FMT_PLANES = 4,
    FMT_HALVES = 1,
    FMT_MAX = 127,
    FMT_OFF = 0,
    FMT_MIN = 0,
    FMT_SIGNED = 1,
    FMT_TENSOR_SCALE = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_load(p + s % 4 * (int)QK_PLANE + v * L * 4);
    return l_biased(l_lookup(qk_iq4_values, l_field(q, s < 4 ? 0 : 4, 4)));
}

QK_INLINE void fmt_pack(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at + offsetof(qk_iq4_nl, qs));
}

QK_INLINE size_t fmt_half_at(int i) {
    (void)i;
    return offsetof(qk_iq4_nl, d);
}

#endif
