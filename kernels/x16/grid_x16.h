/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the formats with grids share (kernels/grids.h). For 64 or 128 elements at a time the indices of all
 * rows are looked up, which leaves their levels (with VBMI the codes of these) and planes of marks, one bit
 * per element: its sign, or for IQ1 the sign of the 1 that is added. The steps are made from those. The
 * fmt_<format>.h has included planes.h and defined
 *
 *   GRID_WIDTH                      elements of an index: 8 or 4
 *   GRID_BITS                       of an index: 8 to 11
 *   GRID                            the levels of its points
 *   GRID_POINTS, GRID_LEVELS        the list of their codes, the levels of codes: with VBMI
 *   GRID_STEPS                      optional: the upper halves of the points as three lists (grid_vbmi.h)
 *   GRID_CENTER                     what makes signed levels unsigned, which is FMT_OFF; 0 for IQ1
 *   li grid_high(p, part, n, v)     of a part of FMT_PART elements, run n of 4 * GRID_WIDTH: the upper
 *                                   bits of its four indices, from bit GRID_HIGH_AT(n) of each byte; more
 *                                   bits may follow. Their low bytes are plane n of the part
 *   li grid_marks(p, part, n, v)    bit 8i + s: the mark of element 4s + i of 32 elements n of the part
 *   li grid_scale(p, part, j, v)    the scale of sub-block j of the part
 *
 * n and j are compile-time constants wherever speed matters, the part is not: it is in addresses and few
 * shifts. */
#ifndef QSF_KERNELS_X16_GRID_X16_H
#define QSF_KERNELS_X16_GRID_X16_H

#include "kernels/grids.h"
#include "kernels/x16/lanes_rest.h"
#include "kernels/x16/planes.h"

#define FMT_PART (16 * GRID_WIDTH)
#ifndef L_VBMI
#define FMT_ROLLED                    1
#define FMT_PART_SCALE(p, part, j, v) grid_scale(p, part, j, v)
#endif
enum {
    INDEX_PLANES = 4, /* of a part */
    PART_STEPS = FMT_PART / 4,
    MARK_PLANES = FMT_PART / 32,
    POINT_PLANES = 8, /* of what is prepared: indices (with VBMI codes), then the marks */
    PREPARED_BYTES = (POINT_PLANES + MARK_PLANES) * (int)QK_PLANE
};

/* Marks with the eighth of eight, which is odd where the others are odd in number; what lies
 * in its place goes. */
QK_INLINE li even_marks(li v) {
    v = keep(v, 0x55ffffffu);
    li odd = l_xor(v, l_shr(v, 16));
    odd = l_xor(odd, l_shr(odd, 8));
    odd = l_xor(odd, l_shl(odd, 1));
    return l_or(v, keep(l_shl(odd, 24), 0xaa000000u));
}

/* 2n + 1 */
QK_INLINE li odd_scale(li n) { return l_or(l_add(n, n), l_set(1)); }

/* The four bits in the places of the eighth marks: as 0, 2, 1, 3 they are a number n, of which this is the
 * scale, in order a bit of each byte. */
QK_INLINE li marks_scale(li v) {
    v = keep(l_shr(v, 24), 0xaau);
    return l_or(keep(l_or(v, l_shr(v, 3)), 30), l_set(1));
}

QK_INLINE li marks_bits(li v) { return keep(l_mul(keep(l_shr(v, 25), 0x55u), l_set(0x41041)), 0x01010101u); }

#ifdef L_VBMI
#include "kernels/x16/grid_vbmi.h"
#else

/* The four indices of each plane of a part, of the rows at dst: a plane of pairs of 16 bits of the first and
 * the third, then one of the others. */
QK_INLINE void put_indices(uint8_t *dst, const li low[INDEX_PLANES], const li high[INDEX_PLANES]) {
    QK_UNROLL for (int n = 0; n < INDEX_PLANES; n++, dst += 2 * QK_PLANE) {
        const li upper = l_and(l_shr(high[n], GRID_HIGH_AT(n)), l_bytes((1 << (GRID_BITS - 8)) - 1));
        l_store(dst, l_or(keep(low[n], 0x00ff00ffu), l_shl(keep(upper, 0x00ff00ffu), 8)));
        l_store(dst + QK_PLANE, l_or(keep(l_shr(low[n], 8), 0x00ff00ffu), keep(upper, 0xff00ff00u)));
    }
}

/* The levels of step s of a part. */
QK_INLINE li level_of(const uint8_t *p, int s, int v) {
    const int n = s / (GRID_WIDTH / 4); /* of its index */
    const uint8_t *i = p + (n / 4 * 2 + n % 2) * (int)QK_PLANE + v * L * 4 + n % 4 / 2 * 2;
    li level[2];
    if (GRID_WIDTH == 4) return l_points4((const void *)GRID, i);
    l_points8(level, (const void *)GRID, i);
    return level[s % 2];
}

/* ---- one column: its signs are changed instead of those of the levels ---- */

/* Of IQ1: where the sums of a part start, for all groups. */
typedef struct turned {
    li start[FMT_PART / FMT_SUB];
} turned;
#define FMT_TURN(t, x)                                                        \
    QK_UNROLL for (int sub_i = 0; sub_i < FMT_PART / FMT_SUB; sub_i++) {      \
        (t)->start[sub_i] = start_of(x, 0, sub_i, GRID_CENTER ? 0 : FMT_OFF); \
    }
#define FMT_DIRECT(group, p, x, t, j, v) \
    direct_points(GRID_CENTER ? l_set(0) : (t)->start[j], p, (x)->q[0], j, v)

/* Step s of a super-block: levels and the four bytes of the column, q, that they are multiplied with. */
typedef struct factors {
    li level, x;
} factors;
QK_INLINE factors factors_of(const uint8_t *p, const char *q, int s, int v) {
    const int at = s & (PART_STEPS - 1);
    const li marks = plane(p, POINT_PLANES + at / 8, v), level = level_of(p, at, v), x = l_dup(q + 4 * s);
    if (GRID_CENTER == 0) return (factors){ l_or(level, bit_to(marks, at % 8, 1)), x };
    return (factors){ level, l_negate(x, marks, at % 8) };
}

/* Adds sub-block j times the column at q to sum. */
QK_INLINE li direct_points(li sum, const uint8_t *p, const char *q, int j, int v) {
    const int fit = steps_of_pairs(GRID_CENTER ? GRID_CENTER : FMT_MAX, FMT_SUB / 4),
              many = fit > 0 ? fit : 1;
    QK_UNROLL for (int s = 0; s < FMT_SUB / 4; s += many) {
        const int first = j * (FMT_SUB / 4) + s;
        factors f = factors_of(p, q, first, v);
        if (!L_PAIRS) {
            sum = l_dot(sum, f.level, f.x);
            continue;
        }
        lp pairs = l_pairs_of(f.level, f.x);
        QK_UNROLL for (int i = 1; i < many; i++) {
            f = factors_of(p, q, first + i, v);
            pairs = l_pairs(pairs, f.level, f.x);
        }
        sum = l_dot_pairs(sum, pairs);
    }
    return sum;
}

#endif

/* Part `part` of a super-block of the group at p. */
#define FMT_PREPARE(dst, p, part) fmt_prepare(dst, p, part)
QK_INLINE const uint8_t *fmt_prepare(uint8_t *dst, const uint8_t *p, size_t part) {
    for (int v = 0; v < (int)QK_GROUP / L; v++) {
        uint8_t *at = dst + v * L * 4;
        li low[INDEX_PLANES], high[INDEX_PLANES];
        QK_UNROLL for (int i = 0; i < INDEX_PLANES; i++) {
            low[i] = plane(p + part * INDEX_PLANES * QK_PLANE, i, v);
            high[i] = grid_high(p, part, i, v);
        }
#ifdef L_VBMI
        put_codes(at, low, high);
#else
        put_indices(at, low, high);
#endif
        QK_UNROLL for (int i = 0; i < MARK_PLANES; i++)
            l_store(at + (POINT_PLANES + i) * (int)QK_PLANE, grid_marks(p, part, i, v));
    }
#ifndef L_VBMI
    __asm__("" : "+m"(*(uint8_t(*)[PREPARED_BYTES])dst)); /* indices are loaded */
#endif
    return dst;
}

/* Step s, from what fmt_prepare left of its part. */
QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const int at = s & (PART_STEPS - 1);
    const li level = level_of(p, at, v), marks = plane(p, POINT_PLANES + at / 8, v);
    if (GRID_CENTER == 0) return l_or(level, bit_to(marks, at % 8, 1));
#ifdef L_VBMI
    return l_mirror(level, marks, at % 8, 2 * GRID_CENTER);
#else
    return l_add8(l_negate(level, marks, at % 8), l_bytes(GRID_CENTER));
#endif
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    enum { SUBS_OF_PART = FMT_PART / FMT_SUB };
    return grid_scale(p, (size_t)(j / SUBS_OF_PART), j % SUBS_OF_PART, v);
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    (void)p, (void)i, (void)v;
    return nothing();
}

#endif
