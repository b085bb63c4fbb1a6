/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Helpers for the formats of mm_super.h: planes of a group's super-block and the bytes of their lanes. The
 * lanes must be included first. A fmt_<format>.h defines
 *   FMT_PLANES, FMT_PLANE_AT  dwords of a row's super-block that become planes; the byte where they begin in
 *                             the file
 *   FMT_HALVES, FMT_HALF_AT   16-bit fields and where they begin; the first is d, the second dmin
 *   FMT_SUB                   elements of a sub-block: 16, 32 or 64
 *   FMT_SCALED                whether a sub-block has a scale
 *   FMT_MAX                   the largest byte of a step, when unsigned
 *   FMT_OFF                   the offset included in each q
 *   FMT_SIGNED                1: bytes of a step are signed, and come from l_biased; times a scale they fit
 *                             an int16
 *   FMT_MINS                  minimums: 8 or 16, or 0
 *   FMT_INT16                 1: the sum of a sub-block with FMT_OFF and FMT_CENTER subtracted from each q
 *                             fits an int16 for any column: |q| < 128
 *   FMT_CENTER                for formats with 8 scales and 8 minimums, otherwise 0
 *   li fmt_step(p, s, v)      elements 4s..4s+3 of lanes [v * L, (v + 1) * L), unsigned below 64 (or
 *                             l_biased)
 *   FMT_SHIFT(s), li fmt_in_place(p, s, v)  optional (mm_plan.h)
 *   FMT_PLACE(n)              optional: the place in a group of plane n of the block (order.h)
 *   FMT_FIX(dst, row, at)     optional: rearranges bits of the group at dst, after its planes were copied
 *   FMT_FIX_ROW(w)            optional: rearranges the planes and halves of one row instead
 *                             (rearrange_grid.h)
 *   FMT_PREPARE(dst, p, part) optional: writes PREPARED_BYTES for FMT_PART elements of the group at p to dst,
 *                             from which fmt_step makes its steps instead of the planes; returns their
 *                             address
 *   FMT_DIRECT(group, p, x, t, j, v)  optional: the sum of sub-block j, the offset subtracted, with the
 *                             column of x, a pointer to columns, for one column, instead of fmt_step; p: what
 *                             FMT_PREPARE returned
 *   FMT_TURN(t, x)            optional: fills the struct turned at t with what FMT_DIRECT needs of a
 *                             super-block of x, or of a part where FMT_ROLLED
 *   FMT_UNIT                  optional: a factor for d, a power of two
 *   FMT_COLD                  optional: 1 for a format that few decode several columns of (mm_plan.h)
 *   li fmt_scale(p, j, v)     scale j, an int32
 *   li fmt_mins(p, i, v)      minimums 2i and 2i+1, a pair of int16
 * for a super-block at p. s, j and i are compile-time constants wherever speed matters. */
#ifndef QSF_KERNELS_X16_SUPER_H
#define QSF_KERNELS_X16_SUPER_H

#include "kernels/x16/lanes.h"

enum { FMT_ELEMS = QK_K, FMT_TENSOR_SCALE = 0 };

QK_INLINE li plane(const uint8_t *p, int n, int v) {
    return l_load(p + (size_t)n * QK_PLANE + (size_t)(v * L * 4));
}

/* Byte n of every lane. */
QK_INLINE li byte_of(li x, int n) { return l_and(l_shr(x, 8 * n), l_set(255)); }

QK_INLINE li signed_byte_of(li x, int n) { return l_sar(l_shl(x, 24 - 8 * n), 24); }

/* Bytes 0 and 1 (upper = 0) or 2 and 3 of every lane as a pair of int16. */
QK_INLINE li pair_of(li x, int upper) {
    const li low = upper ? l_shr(x, 16) : l_and(x, l_set(255));
    const li high = upper ? l_shr(x, 8) : l_shl(x, 8);
    return l_or(l_and(low, l_set(255)), l_and(high, l_set(255 << 16)));
}

/* Bit `from` of every byte to bit `to`, alone. */
QK_INLINE li bit_to(li x, int from, int to) {
    return l_and(from < to ? l_shl(x, to - from) : l_shr(x, from - to), l_bytes(1 << to));
}

/* Elements of two bits: byte l of each 32 holds elements l, 32 + l, 64 + l and 96 + l. Which of their planes
 * holds step s, at which bit of each byte, and the step, given that plane. */
QK_INLINE int two_bits_plane(int s) { return s / 32 * 8 + s % 8; }

QK_INLINE int two_bits_shift(int s) { return s / 8 % 4 * 2; }

QK_INLINE li two_bits_in_place(li plane, int s) { return l_and(plane, l_bytes(3 << two_bits_shift(s))); }

QK_INLINE li two_bits(li plane, int s) { return l_field(plane, two_bits_shift(s), 2); }

/* A placeholder for what a format does not have. */
QK_INLINE li nothing(void) { return l_set(0); }

#endif
