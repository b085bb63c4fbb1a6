/* SPDX-License-Identifier: GPL-3.0-or-later */
/* x16: sixteen rows of packed weights interleaved, so that each lane of a vector is a row and no sum across a
 * vector is needed.
 *
 * A group is 16 rows x k elements, block by block. Each block is stored as the planes of all
 * rows, then the halves:
 *   plane: 16 little-endian dwords, one per row: 4 bytes of each row's block (64 bytes)
 *   half:  16 uint16, one per row: a float16 (or 16-bit) field of each row's block (32 bytes)
 * in the order of the table below, so a group has exactly the bytes of its rows. A group needs no alignment.
 * If the bytes of a format already hold four consecutive elements at the same bit position, a plane is
 * simply a dword of the block. The others are rearranged inside each row:
 *
 *   format  planes                                                              halves
 *   q4_0    qs[4]                                                               d
 *   q4_1    qs[4]                                                               d m
 *   q5_0    fifth bits, qs[4]                                                   d
 *   q5_1    fifth bits, qs[4]                                                   d m
 *           fifth bits: bit 8i + s is bit 4 of element 4s + i (s < 8, i < 4)
 *   q8_0    qs[8]                                                               d
 *   iq4_nl  qs[4]                                                               d
 *   q4_k    scales[3] qs[32]                                                    d dmin
 *   q5_k    scales[3] qh[8] qs[32]                                              d dmin
 *   q6_k    ql[32] qh[16] scales[4], in order of use (below)                    d
 *   q2_k    scales[4] qs[16]                                                    d dmin
 *   q3_k    hmask[8] qs[16] scales[3], in order of use (below)                  d
 *   iq4_xs  scales_l[1] qs[32]                                                  d scales_h
 *   tq1_0   qs[12] qh[1]                                                        d
 *   tq2_0   qs[16]                                                              d
 *   i2_s    qs[8]
 *   qsf2    pairs[4]: bits 8i + 2s of plane p are element 16p + 4s + i          d m
 *   qsf3    pairs[4] as qsf2 (low two bits), top[2]: bit 8i + s of plane p is
 *           bit 2 of element 32p + 4s + i                                       d m
 *   qsf4    nibbles[8]: bits 8i + 4s of plane p are element 8p + 4s + i         d m
 *   qsft    pairs[4] as qsf2, of codes 0 = -1, 1 = 0, 2 = +1                    d
 *           (the sign bit of a zero is dropped: unpacking gives it back as 0)
 *   mxfp4   qs[4]; after the planes 16 bytes, one per row: e
 *   nvfp4   d[1] qs[8]
 *   q1_0    bits[4]: bit 8i + 2j + h of plane p is element 32j + 16h + 4p + i   d
 *   q2_0    pairs[4] as qsf2                                                    d
 *   iq2_xxs index[8] signs[8]                                                   d
 *   iq2_xs  index[8]: the low bytes, signs[8] with the ninth bits, scales[2]    d
 *   iq2_s   index[8] signs[8] upper[2] scales[2]                                d
 *   iq3_xxs index[16] signs[8]                                                  d
 *   iq3_s   index[16] upper[2] signs[8] scales[1]                               d
 *   iq1_s   index[8] upper[4]                                                   d
 *   iq1_m   index[8] upper[4] scales[1]: bits 2j and up are the low two bits
 *           of scale j                                                          d, bit j: bit 2 of scale j
 *   i2_256  pairs[16] as qsf2
 *   i2_32   pairs[2] as qsf2 d index: byte l of plane n is index 4n + l signs: bit 8i + s of plane n is the
 *           sign of element 32n + 4s + i. Where the last of eight is not stored, the place of element 8l + 7
 *           has bit 0, 2, 1, 3 of the scale (l = 0 .. 3), or the ninth bit of index 4n + l upper: the bits of
 *           index 4n + l above its byte are in byte l, from bit 2 (n % 4) of plane n / 4 (iq2_s), bit n % 8
 *           of plane n / 8 (iq3_s), bit 4 (n % 2) of plane n / 2 (iq1); the fourth bit with iq1 is bit 12 + l
 *           of the word of 32 elements (iq1_s) or the sign of the index (iq1_m)
 */
#ifndef QSF_KERNELS_X16_X16_H
#define QSF_KERNELS_X16_X16_H

#define QK_GROUP 16u
#define QK_PLANE 64u /* bytes */
#define QK_HALF  32u /* bytes */

/* Formats whose blocks store the low bits of all elements, then their upper bits, then the scales. In that
 * order three places of a block are read at once, and hardware that follows one ascending stream prefetches
 * too little. The planes of a group are therefore in the order in which they are first used: each function
 * returns the place of the plane that is number n in the order of the block. man/qsf-format.5 has the same
 * order, as layout 2. */

/* The formats, as X(format, TYPE). */
#define QK_BY_USE(X) X(q6_k, Q6_K) X(q3_k, Q3_K)

/* Each half of the elements: two scales before what they multiply; the upper bits of a step next to its low
 * bits, which are used again, shifted, for two quarters; the low bits of the other quarters. */
static inline int qk_q6_k_place(int n) {
    enum { LOW = 0, TOP = 32, SCALES = 48, HALF = 26, SECOND = 17 };
    if (n >= SCALES) return (n - SCALES) / 2 * HALF + (n - SCALES) % 2 * SECOND;
    if (n >= TOP) return (n - TOP) / 8 * HALF + 1 + (n - TOP) % 8 * 2;
    return n / 16 * HALF + (n % 16 < 8 ? 2 + n % 8 * 2 : SECOND + 1 + n % 8);
}

/* The scales; the upper bits of all elements next to the low bits of the first half; the low
 * bits of the second half. */
static inline int qk_q3_k_place(int n) {
    enum { TOP = 0, LOW = 8, SCALES = 24 };
    if (n >= SCALES) return n - SCALES;
    if (n >= LOW) return n < LOW + 8 ? 4 + (n - LOW) * 2 : 3 + n;
    return 3 + n * 2;
}

#endif
