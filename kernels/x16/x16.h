/* SPDX-License-Identifier: GPL-3.0-or-later */
/* x16: sixteen rows of packed weights interleaved, so that each lane of a vector is a row and no sum across a
 * vector is needed.
 *
 * A group is 16 rows x k elements, block by block. Each block is stored as the planes of all rows, then the halves:
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
 *   q6_k    ql[32] qh[16] scales[4]                                             d
 *   q2_k    scales[4] qs[16]                                                    d dmin
 *   q3_k    hmask[8] qs[16] scales[3]                                           d
 *   iq4_xs  scales_l[1] qs[32]                                                  d scales_h
 *   tq1_0   qs[12] qh[1]                                                        d
 *   tq2_0   qs[16]                                                              d
 *   i2_s    qs[8]
 *   qsf2    pairs[4]: bits 8i + 2s of plane p are element 16p + 4s + i          d m
 *   qsf3    pairs[4] as qsf2 (low two bits), top[2]: bit 8i + s of plane p is bit 2 of element 32p + 4s + i   d m
 *   qsf4    nibbles[8]: bits 8i + 4s of plane p are element 8p + 4s + i         d m
 *   qsft    pairs[4] as qsf2, of codes 0 = -1, 1 = 0, 2 = +1                    d
 *           (the sign bit of a zero is dropped: unpacking gives it back as 0) */
#ifndef QSF_KERNELS_X16_X16_H
#define QSF_KERNELS_X16_X16_H

#define QK_GROUP 16u
#define QK_PLANE 64u /* bytes */
#define QK_HALF  32u /* bytes */

#endif
