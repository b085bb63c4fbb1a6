/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The planes of a group of sixteen rows (table in kernels/x16/x16.h): how a fmt_<format>.h takes the bytes of
 * its lanes out of them, and how it rearranges the bits of dwords whose order in the file is another. The
 * lanes must be included first. */
#ifndef QSF_KERNELS_X16_PLANES_H
#define QSF_KERNELS_X16_PLANES_H

#include "kernels/x16/lanes.h"

enum { ROW_VECTORS = (int)QK_GROUP / L }; /* vectors of a plane */

/* ---- bytes of lanes ---- */

/* Vector v of plane n of the block at p. */
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

/* ---- values that formats share ---- */

/* Of Q4_K and Q5_K, planes 0 to 2: 6-bit scales and minimums as in kernels/kscale.h, one row per lane. Four
 * bytes of scales (which = 0) or minimums (1), numbers 0-3 or 4-7. */
QK_INLINE li kscale_bytes(const uint8_t *p, int upper, int which, int v) {
    const li top = plane(p, which, v);
    if (!upper) return l_and(top, l_bytes(0x3f));
    return l_or(l_and(l_shr(plane(p, 2, v), 4 * which), l_bytes(0x0f)), l_and(l_shr(top, 2), l_bytes(0x30)));
}

QK_INLINE li kscale_scale(const uint8_t *p, int j, int v) {
    return byte_of(kscale_bytes(p, j / 4, 0, v), j % 4);
}

QK_INLINE li kscale_mins(const uint8_t *p, int i, int v) {
    return pair_of(kscale_bytes(p, i / 2, 1, v), i % 2);
}

/* Of MXFP4 and NVFP4: the values of the low (upper = 0) or upper nibbles, made unsigned by adding the
 * largest. */
enum { QK_FP4_MAX = 12 };

QK_INLINE li fp4_level(li q, int upper) {
    return l_add8(l_lookup(qk_fp4_values, l_field(q, 4 * upper, 4)), l_bytes(QK_FP4_MAX));
}

/* ---- packing ---- */

/* 16 bits of each of 16 rows. */
QK_INLINE void pack_halves(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    QK_UNROLL for (size_t r = 0; r < QK_GROUP; r++) memcpy(dst + 2 * r, row[r] + at, 2);
}

/* One dword of each of 16 rows. */
QK_INLINE void plane1(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (unsigned r = 0; r < QK_GROUP; r++) memcpy(dst + r * 4, row[r] + at, 4);
}

QK_INLINE li keep(li v, uint32_t mask) { return l_and(v, l_set((int32_t)mask)); }

/* Swaps the bits of mask with those n places above them. */
QK_INLINE li swap_bits(li v, int n, uint32_t mask) {
    const li t = keep(l_xor(l_shr(v, n), v), mask);
    return l_xor(v, l_xor(t, l_shl(t, n)));
}

/* Bit 4s + i -> bit 8i + s. */
QK_INLINE li fifth_bits(li v) {
    li all = l_set(0);
    for (int i = 0; i < 4; i++) {
        li b = keep(l_shr(v, i), 0x11111111u);
        b = keep(l_or(b, l_shr(b, 3)), 0x03030303u);
        b = keep(l_or(b, l_shr(b, 6)), 0x000f000fu);
        b = keep(l_or(b, l_shr(b, 12)), 0x000000ffu);
        all = l_or(all, l_shl(b, 8 * i));
    }
    return all;
}

/* 16 in the bytes of step s whose element has the bit. */
QK_INLINE li fifth_bits_of(li plane, int s) {
    return l_and(s < 4 ? l_shl(plane, 4 - s) : l_shr(plane, s - 4), l_bytes(16));
}

QK_INLINE void pack_fifth_bits(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    plane1(dst, row, at);
    for (int v = 0; v < ROW_VECTORS; v++) l_store(dst + v * L * 4, fifth_bits(l_load(dst + v * L * 4)));
}

/* Bit pair 4s + i -> bit pair 4i + s. */
QK_INLINE li pairs_apart(li v) { return swap_bits(swap_bits(v, 6, 0x00cc00ccu), 12, 0x0000f0f0u); }

/* Nibble 4s + i -> nibble 2i + s. */
QK_INLINE li nibbles_apart(li v) {
    li low = keep(v, 0xffffu), high = l_shr(v, 16);
    low = keep(l_or(low, l_shl(low, 8)), 0x00ff00ffu);
    high = keep(l_or(high, l_shl(high, 8)), 0x00ff00ffu);
    low = keep(l_or(low, l_shl(low, 4)), 0x0f0f0f0fu);
    high = keep(l_or(high, l_shl(high, 4)), 0x0f0f0f0fu);
    return l_or(low, l_shl(high, 4));
}

/* Three bits of a stream of dwords, starting at bit `bit`. */
QK_INLINE li triple_at(const li w[6], int bit) {
    const int d = bit / 32, o = bit % 32;
    li v = l_shr(w[d], o);
    if (o > 29) v = l_or(v, l_shl(w[d + 1], 32 - o));
    return v;
}

/* 24 bytes of triples -> four planes of their low pairs, two of their top bits. */
QK_INLINE void pack_triples(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    l_planes4(dst, row, at);
    plane1(dst + 4 * QK_PLANE, row, at + 16);
    plane1(dst + 5 * QK_PLANE, row, at + 20);
    for (int v = 0; v < ROW_VECTORS; v++, dst += L * 4) {
        li w[6], out[6];
        for (int p = 0; p < 6; p++) {
            w[p] = l_load(dst + p * (int)QK_PLANE);
            out[p] = l_set(0);
        }
        for (int e = 0; e < 64; e++) {
            const li q = triple_at(w, 3 * e);
            const int low = e / 16, top = 4 + e / 32;
            out[low] = l_or(out[low], l_shl(keep(q, 3), 8 * (e % 4) + 2 * (e % 16 / 4)));
            out[top] = l_or(out[top], l_shl(keep(l_shr(q, 2), 1), 8 * (e % 4) + e % 32 / 4));
        }
        for (int p = 0; p < 6; p++) l_store(dst + p * (int)QK_PLANE, out[p]);
    }
}

/* 16 bits -> the lower bits of 16 pairs. */
QK_INLINE li spread_bits(li v) {
    v = keep(v, 0xffffu);
    v = keep(l_or(v, l_shl(v, 8)), 0x00ff00ffu);
    v = keep(l_or(v, l_shl(v, 4)), 0x0f0f0f0fu);
    v = keep(l_or(v, l_shl(v, 2)), 0x33333333u);
    return keep(l_or(v, l_shl(v, 1)), 0x55555555u);
}

/* Eight bytes of signs and eight of zeros -> four planes of pairs: 0 = -1, 1 = 0, 2 = +1. */
QK_INLINE void pack_trits(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t sign, size_t zero) {
    for (int d = 0; d < 2; d++) {
        plane1(dst + d * (int)QK_PLANE, row, sign + (size_t)d * 4);
        plane1(dst + (2 + d) * (int)QK_PLANE, row, zero + (size_t)d * 4);
    }
    for (int v = 0; v < ROW_VECTORS; v++, dst += L * 4) {
        li s[2], z[2];
        for (int d = 0; d < 2; d++) {
            s[d] = l_load(dst + d * (int)QK_PLANE);
            z[d] = l_load(dst + (2 + d) * (int)QK_PLANE);
        }
        for (int p = 0; p < 4; p++) {
            const li zeros = l_shr(z[p / 2], 16 * (p % 2)), signs = l_shr(s[p / 2], 16 * (p % 2));
            const li plus = l_xor(l_or(zeros, signs), l_set(-1));
            l_store(dst + p * (int)QK_PLANE,
                    pairs_apart(l_or(spread_bits(zeros), l_shl(spread_bits(plus), 1))));
        }
    }
}

#endif
