/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rearranges bits of dwords whose order in the file differs from the order the lanes need (table in
 * kernels/x16/x16.h). */
#ifndef QSF_KERNELS_X16_PLANES_H
#define QSF_KERNELS_X16_PLANES_H

enum { ROW_VECTORS = (int)QK_GROUP / L }; /* vectors of a plane */

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
