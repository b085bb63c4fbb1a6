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

/* Planes that are looked up together: with more of them, their masks would not stay in registers. */
enum { TOGETHER = 2, UPPER_BITS = GRID_BITS - 7 };

/* table[index] of 64 indices of each plane: 128 entries at a time, which all planes look up while they are in
 * registers; whenever two runs of a length are complete, the next bit chooses. The results are
 * two planes apart. */
QK_INLINE void points_of(uint8_t *dst, const uint8_t *table, const li low[TOGETHER],
                         const __mmask64 (*upper)[UPPER_BITS]) {
    li run[TOGETHER][UPPER_BITS + 1];
    QK_UNROLL for (int i = 0; i < 1 << UPPER_BITS; i++) {
        li first = l_load(table + 128 * i), second = l_load(table + 128 * i + 64);
        L_HOLD(first); /* or they are loaded again for each plane */
        L_HOLD(second);
        QK_UNROLL for (int n = 0; n < TOGETHER; n++) {
            li found = _mm512_permutex2var_epi8(first, low[n], second);
            int bit = 0;
            QK_UNROLL for (int b = 0; b < UPPER_BITS; b++) {
                if (b != bit || !(i >> b & 1)) continue;
                found = _mm512_mask_blend_epi8(upper[n][b], run[n][b], found);
                bit++;
            }
            run[n][bit] = found;
        }
    }
    QK_UNROLL for (int n = 0; n < TOGETHER; n++) l_store(dst + 2 * n * (int)QK_PLANE, run[n][UPPER_BITS]);
}

#ifdef GRID_STEPS
static const _Alignas(64) uint8_t steps_of_points[3][128] = { GRID_STEPS };

/* The same for the second halves where these are sorted, with two values at most in sixteen points: the
 * first, the last and the number of the first. */
QK_INLINE void steps_of(uint8_t *dst, const li low[TOGETHER], const li high[TOGETHER], int plane0) {
    li at[TOGETHER], of[3][TOGETHER];
    QK_UNROLL for (int n = 0; n < TOGETHER; n++) /* bit 7 does not matter */
        at[n] = _mm512_ternarylogic_epi32(
            l_bytes(15), l_shr(low[n], 4),
            GRID_HIGH_AT(plane0 + n) == 4 ? high[n] : l_shl(high[n], 4 - GRID_HIGH_AT(plane0 + n)), 0xca);
    QK_UNROLL for (int t = 0; t < 3; t++) {
        li lower = l_load(steps_of_points[t]), upper = l_load(steps_of_points[t] + 64);
        L_HOLD(lower);
        L_HOLD(upper);
        QK_UNROLL for (int n = 0; n < TOGETHER; n++) of[t][n] = _mm512_permutex2var_epi8(lower, at[n], upper);
    }
    QK_UNROLL for (int n = 0; n < TOGETHER; n++) {
        const __mmask64 last = _mm512_cmpge_epu8_mask(l_and(low[n], l_bytes(15)), of[2][n]);
        l_store(dst + 2 * n * (int)QK_PLANE, _mm512_mask_blend_epi8(last, of[0][n], of[1][n]));
    }
}
#endif

/* Two planes for each of indices: bytes of the first and of the second half of their points. */
QK_INLINE void put_codes(uint8_t *dst, const li low[INDEX_PLANES], const li high[INDEX_PLANES]) {
    QK_UNROLL for (int i = 0; i < INDEX_PLANES; i += TOGETHER, dst += 2 * TOGETHER * QK_PLANE) {
        __mmask64 upper[TOGETHER][UPPER_BITS];
        QK_UNROLL for (int n = 0; n < TOGETHER; n++) {
            upper[n][0] = _mm512_movepi8_mask(low[i + n]);
            QK_UNROLL for (int bit = 8; bit < GRID_BITS; bit++)
                upper[n][bit - 7] = _mm512_test_epi8_mask(high[i + n],
                                                          l_bytes(1 << (bit - 8 + GRID_HIGH_AT(i + n))));
        }
        points_of(dst, halves_of_points[0], low + i, upper);
#ifdef GRID_STEPS
        steps_of(dst + QK_PLANE, low + i, high + i, i);
#else
        points_of(dst + QK_PLANE, halves_of_points[1], low + i, upper);
#endif
    }
}

/* Bits a, b, c and d and those above them to the bytes of each lane. */
#define BITS_TO_BYTES(a, b, c, d)                                                            \
    _mm512_set1_epi64((long long)((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | \
                                  (uint64_t)(d) << 24 | (uint64_t)((a) + 32) << 32 |         \
                                  (uint64_t)((b) + 32) << 40 | (uint64_t)((c) + 32) << 48 |  \
                                  (uint64_t)((d) + 32) << 56))

/* The levels of step s of a part, plus GRID_CENTER. The permutation that looks levels up takes six bits, of
 * which those above a code do not matter: the table repeats. */
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

/* ---- one column ----
 *
 * A step is one element of each of four points, so that their codes need not be brought together, times the
 * same elements of the column, which are put side by side once for all groups. */

enum { PAIRED = GRID_WIDTH == 8 && FMT_SUB == 16 }; /* the steps of a sub-block: both halves of two points */

typedef struct turned {
    _Alignas(64) char q[QK_K]; /* as the steps take it */
    int32_t start[16];         /* of each sub-block */
    _Alignas(64) int32_t
        marked[QK_K / 4]; /* IQ1_S: what marks add; IQ1_M: what signs add, every fourth, a pair of int16 */
    _Alignas(64) char level[3][64]; /* IQ2: the level, plus GRID_CENTER, of a code and its sign in a byte */
} turned;

/* A step broadcasts four bytes from memory: from a register it would take two permutations. */
#define KEEP_IN_MEMORY(object) __asm__("" : "+m"(object))

QK_INLINE void turn_bytes(turned *t, const char *q) {
    const li points4 = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400),
             pairs8 = _mm512_set4_epi32(0x0f070b03, 0x0e060a02, 0x0d050901, 0x0c040800);
    const __m256i points8 = _mm256_set_epi32(0x1f170f07, 0x1e160e06, 0x1d150d05, 0x1c140c04, 0x1b130b03,
                                             0x1a120a02, 0x19110901, 0x18100800);
    QK_UNROLL for (int i = 0; i < QK_K; i += 64) {
        const li x = l_load(q + i);
        if (GRID_WIDTH == 4 || PAIRED) {
            l_store(t->q + i, _mm512_shuffle_epi8(x, PAIRED ? pairs8 : points4));
            continue;
        }
        const li both = _mm512_inserti64x4(_mm512_castsi256_si512(points8),
                                           _mm256_add_epi8(points8, _mm256_set1_epi8(32)), 1);
        l_store(t->q + i, _mm512_permutexvar_epi8(both, x));
    }
}

/* Minus twice the sums of eight elements, two of a sub-block as a pair of int16. */
QK_INLINE void turn_marks(turned *t, const char *q) {
    QK_UNROLL for (int i = 0; i < QK_K / 64; i++) {
        const li four = l_sub(l_set(0), l_dot(l_set(0), l_bytes(2), l_load(q + 64 * i))),
                 eight = l_add(four, _mm512_shuffle_epi32(four, _MM_PERM_CDAB)),
                 next = _mm512_shuffle_epi32(eight, _MM_PERM_BADC);
        l_store(&t->marked[16 * i], _mm512_mask_blend_epi16(0xaaaaaaaa, eight, l_shl(next, 16)));
    }
}

/* Byte i: the level of code i % 8, plus GRID_CENTER, and with bit 3 the opposite level. */
QK_INLINE li signed_levels(void) {
    const li level = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)GRID_LEVELS));
    const li center = l_bytes(GRID_CENTER);
    return _mm512_mask_sub_epi8(l_add8(center, level), 0xff00ff00ff00ff00u, center, level);
}

#define FMT_TURN(t, x) turn(t, (x)->q[0], (x)->q[0] + (x)->sums)
QK_INLINE void turn(turned *t, const char *q, const char *sums) {
    const li sum = _mm512_cvtepi16_epi32(FMT_SUB == 16
                                             ? _mm256_loadu_si256((const void *)sums)
                                             : _mm256_zextsi128_si256(_mm_loadu_si128((const void *)sums)));
    turn_bytes(t, q);
    l_store(t->start, l_mul(sum, l_set(!GRID_CENTER && PAIRED ? 2 - FMT_OFF : -FMT_OFF)));
    if (!GRID_CENTER && PAIRED) turn_marks(t, q);
    if (!GRID_CENTER && !PAIRED) l_store(t->marked, l_add(sum, sum));
    if (GRID_CENTER != 0 && GRID_WIDTH == 8) {
        /* A code in bits 0, 2 or 4, its sign in bit 5, 5 or 0. */
        const li table = signed_levels(),
                 at = l_add8(l_mul(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                   l_set(0x04040404)),
                             l_set(0x03020100));
        l_store(t->level[0], _mm512_permutexvar_epi8(l_or(l_and(at, l_bytes(3)), bit_to(at, 5, 3)), table));
        l_store(t->level[1],
                _mm512_permutexvar_epi8(l_or(l_and(l_shr(at, 2), l_bytes(3)), bit_to(at, 5, 3)), table));
        l_store(t->level[2],
                _mm512_permutexvar_epi8(l_or(l_and(l_shr(at, 4), l_bytes(3)), bit_to(at, 0, 3)), table));
    }
    KEEP_IN_MEMORY(*t);
}

#define FMT_DIRECT(group, p, x, t, j, v)                \
    (GRID_WIDTH == 4 ? direct_points(p, t, j, v)        \
     : GRID_CENTER   ? direct_signed(p, t, j, v)        \
     : PAIRED        ? direct_marked(group, p, t, j, v) \
                     : direct_ones(p, t, j, v))

/* Of the plane with sub-block j of a part, the codes of its steps: of the first and of the second halves of
 * four points, or in `first` both halves of two points. */
typedef struct codes {
    li first, second;
} codes;
QK_INLINE codes codes_of(const uint8_t *p, int j, int v) {
    const int n = (PAIRED ? j / 2 : j) % INDEX_PLANES;
    const li low = plane(p, 2 * n, v), high = plane(p, 2 * n + 1, v);
    if (!PAIRED) return (codes){ low, high };
    return (codes){ _mm512_mask_blend_epi16(0xaaaaaaaa, j % 2 ? l_shr(low, 16) : low,
                                            j % 2 ? high : l_shl(high, 16)),
                    l_set(0) };
}

/* Bit `to` of byte l of a lane: its bit at[l]. */
QK_INLINE li bits_at(li marks, int a, int b, int c, int d, int to) {
    const int up = 64 - to;
    const uint64_t lane = (uint64_t)((a + up) % 64) | (uint64_t)((b + up) % 64) << 8 |
                          (uint64_t)((c + up) % 64) << 16 | (uint64_t)((d + up) % 64) << 24;
    return _mm512_multishift_epi64_epi8(
        _mm512_set1_epi64((long long)((lane | lane << 32) ^ 0x2020202000000000u)), marks);
}

/* Points of four elements: a lookup of a code with its sign makes the level. */
QK_INLINE li direct_points(const uint8_t *p, const turned *t, int j, int v) {
    const li table = signed_levels();
    const int n = j % MARK_PLANES;
    const li marks = plane(p, POINT_PLANES + n, v);
    li sum = l_dup(&t->start[j]);
    QK_UNROLL for (int i = 0; i < 8; i++) {
        const int h = i / 4, e = i % 4, bit = 8 * e + 4 * h;
        const li code = plane(p, 4 * n + h * 2 + e / 2, v);
        const li at = _mm512_ternarylogic_epi32(e % 2 ? l_shr(code, 4) : code,
                                                bits_at(marks, bit, bit + 1, bit + 2, bit + 3, 3), l_bytes(8),
                                                0xd8);
        sum = l_dot_dup(sum, _mm512_permutexvar_epi8(at, table), t->q + 32 * j + 4 * i);
    }
    return sum;
}

/* Points of eight elements: the same, where the code is in its byte. */
QK_INLINE li direct_signed(const uint8_t *p, const turned *t, int j, int v) {
    const codes c = codes_of(p, j, v);
    const li marks = plane(p, POINT_PLANES + (PAIRED ? j / 2 : j) % MARK_PLANES, v);
    li sum = l_dup(&t->start[j]);
    QK_UNROLL for (int h = 0; h < (PAIRED ? 1 : 2); h++) QK_UNROLL for (int e = 0; e < 4; e++) {
        const int to = e == 2 ? 0 : 5, l = PAIRED ? 4 * (j % 2) : 0, bit = 8 * e + l + h;
        const li code = h ? c.second : c.first;
        const li signs = PAIRED ? bits_at(marks, bit, bit + 2, bit + 1, bit + 3, to)
                                : bits_at(marks, bit, bit + 2, bit + 4, bit + 6, to);
        const li at = _mm512_ternarylogic_epi32(e == 3 ? l_shr(code, 6) : code, signs, l_bytes(1 << to),
                                                0xd8);
        sum = l_dot_dup(sum, _mm512_permutexvar_epi8(at, l_load(t->level[e % 3])),
                        t->q + FMT_SUB * j + 16 * h + 4 * e);
    }
    return sum;
}

/* The sum of codes times x, the codes where they are in their bytes. Two sums, so that the
 * next needs not wait. */
QK_INLINE li codes_dot(codes c, const char *q) {
    li half[2];
    QK_UNROLL for (int i = 0; i < 2; i++) {
        const int e = 3 - 2 * i;
        li sum = l_set(0);
        QK_UNROLL for (int k = 0; k < 2; k++) {
            const li code = l_bytes(3 << 2 * (e - k));
            if (k) sum = l_sar(sum, 2);
            sum = l_dot_dup(sum, l_and(c.first, code), q + 4 * (e - k));
            if (!PAIRED) sum = l_dot_dup(sum, l_and(c.second, code), q + 16 + 4 * (e - k));
        }
        half[i] = sum;
    }
    return l_add(l_sar(half[0], 4), half[1]);
}

/* Levels 0, 8 and 16, and 2 where there is a mark, which is the same for all of a sub-block. */
QK_INLINE li direct_ones(const uint8_t *p, const turned *t, int j, int v) {
    const li sum = l_add(l_shl(codes_dot(codes_of(p, j, v), t->q + FMT_SUB * j), 3), l_dup(&t->start[j]));
    return l_add(sum, l_and(plane(p, POINT_PLANES + j % MARK_PLANES, v), l_dup(&t->marked[j])));
}

/* The same with a mark of each point that has no sign in the group. */
QK_INLINE li direct_marked(const uint8_t *group, const uint8_t *p, const turned *t, int j, int v) {
    const li sum = l_add(l_shl(codes_dot(codes_of(p, j, v), t->q + FMT_SUB * j), 3), l_dup(&t->start[j]));
    const int n = j / 2;
    const li high = grid_high(group, (size_t)(n / INDEX_PLANES), n % INDEX_PLANES, v);
    const li signs = l_and(l_shr(high, GRID_HIGH_AT(n % INDEX_PLANES) + 3), l_bytes(1));
    const li two = _mm512_add_epi8(l_set(j % 2 ? (int32_t)0x80038002u : (int32_t)0x80018000u),
                                   _mm512_set4_epi32(0x000c000c, 0x00080008, 0x00040004, 0));
    return l_dot16(sum, _mm512_shuffle_epi8(signs, two), l_dup(&t->marked[4 * j]));
}

#endif
