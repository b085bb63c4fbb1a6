/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grids where a permutation of bytes chooses one of 128: a table of each half of a point's codes. */
#ifndef QSF_KERNELS_X16_GRID_VBMI_H
#define QSF_KERNELS_X16_GRID_VBMI_H

#define LOW_BYTES(a, b, c, d, e, f, g, h) \
    (a) & 255, (b)&255, (c)&255, (d)&255, (e)&255, (f)&255, (g)&255, (h)&255,
#define HIGH_BYTES(a, b, c, d, e, f, g, h) \
    (a) >> 8, (b) >> 8, (c) >> 8, (d) >> 8, (e) >> 8, (f) >> 8, (g) >> 8, (h) >> 8,

static const _Alignas(64) uint8_t halves_of_points[2][1 << GRID_BITS] = { { GRID_POINTS(LOW_BYTES) },
                                                                          { GRID_POINTS(HIGH_BYTES) } };

/* table[index] of 64 indices of each plane: 128 entries at a time, which all planes look up while they are in
 * registers; whenever two runs of a length are complete, the next bit chooses. The results are two planes apart. */
QK_INLINE void points_of(uint8_t *dst, const uint8_t *table, const li low[INDEX_PLANES],
                         const __mmask64 (*upper)[GRID_BITS - 7]) {
    li run[INDEX_PLANES][GRID_BITS - 6];
    QK_UNROLL for (int i = 0; i < 1 << (GRID_BITS - 7); i++) {
        li first = l_load(table + 128 * i), second = l_load(table + 128 * i + 64);
        L_HOLD(first); /* or they are loaded again for each plane */
        L_HOLD(second);
        QK_UNROLL for (int n = 0; n < INDEX_PLANES; n++) {
            li found = _mm512_permutex2var_epi8(first, low[n], second);
            int bit = 0;
            QK_UNROLL for (int b = 0; b < GRID_BITS - 7; b++) {
                if (b != bit || !(i >> b & 1)) continue;
                found = _mm512_mask_blend_epi8(upper[n][b], run[n][b], found);
                bit++;
            }
            run[n][bit] = found;
        }
    }
    QK_UNROLL for (int n = 0; n < INDEX_PLANES; n++)
        l_store(dst + 2 * n * (int)QK_PLANE, run[n][GRID_BITS - 7]);
}

#ifdef GRID_STEPS
static const _Alignas(64) uint8_t steps_of_points[3][128] = { GRID_STEPS };

/* The same for the second halves where these are sorted, with two values at most in sixteen points: the first, the last
 * and the number of the first. */
QK_INLINE void steps_of(uint8_t *dst, const li low[INDEX_PLANES], const li high[INDEX_PLANES]) {
    li at[INDEX_PLANES], of[3][INDEX_PLANES];
    QK_UNROLL for (int n = 0; n < INDEX_PLANES; n++)
        at[n] = l_or(l_and(l_shr(low[n], 4), l_bytes(15)), l_shl(high[n], 4));
    QK_UNROLL for (int t = 0; t < 3; t++) {
        li lower = l_load(steps_of_points[t]), upper = l_load(steps_of_points[t] + 64);
        L_HOLD(lower);
        L_HOLD(upper);
        QK_UNROLL for (int n = 0; n < INDEX_PLANES; n++)
            of[t][n] = _mm512_permutex2var_epi8(lower, at[n], upper);
    }
    QK_UNROLL for (int n = 0; n < INDEX_PLANES; n++) {
        const __mmask64 last = _mm512_cmpge_epu8_mask(l_and(low[n], l_bytes(15)), of[2][n]);
        l_store(dst + 2 * n * (int)QK_PLANE, _mm512_mask_blend_epi8(last, of[0][n], of[1][n]));
    }
}
#endif

/* Two planes for each of indices: bytes of the first and of the second half of their points. */
QK_INLINE void put_codes(uint8_t *dst, const li low[INDEX_PLANES], const li high[INDEX_PLANES]) {
    __mmask64 upper[INDEX_PLANES][GRID_BITS - 7];
    QK_UNROLL for (int n = 0; n < INDEX_PLANES; n++) {
        upper[n][0] = _mm512_movepi8_mask(low[n]);
        QK_UNROLL for (int bit = 8; bit < GRID_BITS; bit++)
            upper[n][bit - 7] = _mm512_test_epi8_mask(high[n], l_bytes(1 << (bit - 8)));
    }
    points_of(dst, halves_of_points[0], low, upper);
#ifdef GRID_STEPS
    steps_of(dst + QK_PLANE, low, high);
#else
    points_of(dst + QK_PLANE, halves_of_points[1], low, upper);
#endif
}

/* Bits a, b, c and d and those above them to the bytes of each lane. */
#define BITS_TO_BYTES(a, b, c, d)                                                            \
    _mm512_set1_epi64((long long)((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | \
                                  (uint64_t)(d) << 24 | (uint64_t)((a) + 32) << 32 |         \
                                  (uint64_t)((b) + 32) << 40 | (uint64_t)((c) + 32) << 48 |  \
                                  (uint64_t)((d) + 32) << 56))

/* The levels of step s of a part, plus GRID_CENTER. The permutation that looks levels up takes six bits, of which those above a code do not
 * matter: the table repeats. */
QK_INLINE li level_of(const uint8_t *p, int s, int v) {
    const li levels = l_add8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)GRID_LEVELS)),
                             l_bytes(GRID_CENTER));
    if (GRID_WIDTH == 8) {
        const int at = s % 8 / 2 * 8;
        const li codes = plane(p, s / 8 * 2 + s % 2, v);
        return _mm512_permutexvar_epi8(
            _mm512_multishift_epi64_epi8(BITS_TO_BYTES(at, at + 2, at + 4, at + 6), codes), levels);
    }
    /* The two bytes of a point side by side first. */
    const int l = s % 4;
    const li lanes = l_mul(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           l_set(0x04040404));
    const li which = l_add8(lanes, l_set((int32_t)(0x40400000u + 0x01010101u * (unsigned)l)));
    const li codes = _mm512_permutex2var_epi8(plane(p, s / 4 * 2, v), which, plane(p, s / 4 * 2 + 1, v));
    return _mm512_permutexvar_epi8(_mm512_multishift_epi64_epi8(BITS_TO_BYTES(0, 12, 16, 28), codes), levels);
}

/* One column, where an index has four elements: a step is one element of each of four points, so that their codes need
 * not be brought together, times the same elements of the column. A lookup of a code with its sign makes the level. */
#define FMT_DIRECT(start, p, x, j, v)                                                     \
    (GRID_WIDTH == 4 ? direct_points(start, p, (x)->q[0] + 32 * (j), 8 * (j), v)          \
     : !GRID_CENTER && FMT_SUB == 32                                                      \
         ? direct_ones(start, start_of(x, 0, j, -2), p, (x)->q[0] + 32 * (j), 8 * (j), v) \
         : direct_vector(start, p, (x)->q[0] + FMT_SUB * (j), FMT_SUB / 4 * (j),          \
                         FMT_SUB < 32 ? FMT_SUB / 4 : 8, v))

/* A step broadcasts four bytes from memory: from a register it would take two permutations. */
#define KEEP_IN_MEMORY(array) __asm__("" : "+m"(array))

/* Byte i: the level of code i % 8, plus GRID_CENTER, and with bit 3 the opposite level. */
QK_INLINE li signed_levels(void) {
    const li level = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)GRID_LEVELS));
    const li center = l_bytes(GRID_CENTER);
    return _mm512_mask_sub_epi8(l_add8(center, level), 0xff00ff00ff00ff00u, center, level);
}

/* Bit 3 of byte l of a lane: the mark of element e of point l of half h of 32. */
QK_INLINE li point_marks(li marks, int h, int e) {
    const int at = 8 * e + 4 * h + 61;
    const uint64_t lane = (uint64_t)(at % 64) | (uint64_t)((at + 1) % 64) << 8 |
                          (uint64_t)((at + 2) % 64) << 16 | (uint64_t)((at + 3) % 64) << 24;
    return _mm512_multishift_epi64_epi8(
        _mm512_set1_epi64((long long)((lane | lane << 32) ^ 0x2020202000000000u)), marks);
}

QK_INLINE li direct_points(li start, const uint8_t *p, const char *x, int s0, int v) {
    _Alignas(32) char turned[32];
    const __m256i turn = _mm256_broadcastsi128_si256(
        _mm_set_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400));
    _mm256_store_si256((void *)turned, _mm256_shuffle_epi8(_mm256_loadu_si256((const void *)x), turn));
    KEEP_IN_MEMORY(turned);
    const li table = signed_levels(), marks = plane(p, CODE_PLANES + s0 % PART_STEPS / 8, v);
    QK_UNROLL for (int i = 0; i < 8; i++) {
        const int h = i / 4, e = i % 4;
        const li codes = plane(p, s0 % PART_STEPS / 4 * 2 + h * 2 + e / 2, v);
        const li at = _mm512_ternarylogic_epi32(e % 2 ? l_shr(codes, 4) : codes, point_marks(marks, h, e),
                                                l_bytes(8), 0xd8);
        start = l_dot(start, _mm512_permutexvar_epi8(at, table), l_dup(turned + 4 * i));
    }
    return start;
}

/* The same where the levels are 0, 8 and 16, and the marks of a sub-block, of which each adds 2, are one: the codes are
 * multiplied where they are in their bytes, the upper ones first. twice: 2 * the sum of x. */
QK_INLINE li direct_ones(li start, li twice, const uint8_t *p, const char *x, int s0, int v) {
    _Alignas(32) char turned[32];
    const __m256i turn = _mm256_set_epi32(0x1f170f07, 0x1e160e06, 0x1d150d05, 0x1c140c04, 0x1b130b03,
                                          0x1a120a02, 0x19110901, 0x18100800);
    _mm256_store_si256((void *)turned, _mm256_permutexvar_epi8(turn, _mm256_loadu_si256((const void *)x)));
    KEEP_IN_MEMORY(turned);
    const int at = s0 % PART_STEPS;
    li sum = l_set(0);
    QK_UNROLL for (int e = 3; e >= 0; e--) {
        if (e < 3) sum = l_sar(sum, 2);
        QK_UNROLL for (int h = 0; h < 2; h++)
            sum = l_dot(sum, l_and(plane(p, at / 4 + h, v), l_bytes(3 << 2 * e)),
                        l_dup(turned + 16 * h + 4 * e));
    }
    return l_add(l_add(start, l_and(plane(p, CODE_PLANES + at / 8, v), twice)), l_shl(sum, 3));
}

#endif
