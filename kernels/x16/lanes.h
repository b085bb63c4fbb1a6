/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lanes: the vectors that mm_block.h and mm_super.h are written in. A lane is 32 bits wide: four
 * bytes of one weight row, or an int32, or a float of it. A lanes_<isa>.h includes this file first
 * and then defines, all QK_INLINE:
 *
 *   enum { L }                      lanes of a vector: 4, 8 or 16
 *   enum { L_BIAS }                 what l_biased adds to signed bytes: 128 where the dot product wants
 *                                   unsigned ones, else 0
 *   li, lf                          vectors of integers, of floats
 *   li l_load(p), l_store(p, v)     L dwords, unaligned
 *   li l_dup(p)                     the unaligned dword at p in every lane
 *   li l_set(int32_t), l_bytes(int) every lane, every byte
 *   l_and l_or l_xor l_add l_sub l_mul           32-bit; l_mul keeps the low half
 *   l_shl(v, n) l_shr(v, n) l_sar(v, n)          of 32-bit lanes, n a constant
 *   l_field(v, n, bits)             bits n .. n + bits - 1 of every byte, n and bits constants
 *   l_add8 l_sub8 l_subs8 l_min8                 bytes; l_subs8 saturates at 0, both unsigned
 *   li l_lookup(table, i)           table[i] for 16 bytes at table and bytes i below 16
 *   li l_dot(acc, w, x)             acc + sum of four products; w unsigned up to 128, x signed and not -128
 *   li l_dot_dup(acc, w, p)         l_dot with l_dup(p), which may be one instruction; where there is L_RAW
 *   li l_biased(w)                  signed bytes as l_dot_signed wants them
 *   li l_dot_signed(acc, w, x)      w from l_biased; the result holds L_BIAS * (sum of x) too much
 *   li l_dot16(acc, a, b)           acc + sum of both products of int16
 *   L_APART, li l_apart(v), li l_dot_apart(acc, a, b)  1 where l_dot16 is slower than to move the low int16
 *                                   of all lanes before the high ones, once, and to multiply those (optional)
 *   L_WIDE                          1 where l_mul is not slower than l_dot16 (optional)
 *   L_SIGNED                        1 where the w of l_dot may be any signed byte (optional)
 *   L_LANES, li l_dot_lane(acc, w, x, i)  1 where l_dot can multiply all lanes with dword i, a constant,
 *                                         of x (optional)
 *   li l_dot_apart_lane(acc, a, x, i)  the same for l_dot_apart, with the pair in dword i, which is not
 *                                      apart; with L_LANES
 *   L_MATRIX                        1 where there are instructions for matrices (optional); with it
 *     li l_matrix(acc, w, x)        acc + (ac, ad, bc, bd): products of the eight bytes of rows a, b of w and
 *                                   c, d of x
 *     l_zip(v), l_unzip(v)          li v[2] to (a0 b0 a1 b1), (a2 b2 a3 b3) of each four dwords, and back
 *     l_zip2(v)                     to (a0 a1 b0 b1), (a2 a3 b2 b3)
 *     li l_dup2(p)                  the two unaligned dwords at p, twice
 *     li l_bits(f)                  the bits of floats
 *   L_PAIRS                         1 where l_dot is several instructions, so that it pays to add products as
 *                                   int16 first (optional). With it
 *     lp                            sums in int16, of which l_dot_pairs adds two or four to a lane
 *     lp l_pairs_of(w, x)           the products of one step; w as for l_dot
 *     lp l_pairs_signed(w, x)       the same, w as for l_dot_signed
 *     lp l_pairs(acc, w, x)         acc + the products; no sum of two products of each step may leave int16
 *     li l_dot_pairs(acc, p)        acc + the sums of each lane
 *     li l_dot_scaled(acc, p, s)    acc + the sums of each lane times its scale; s from l_pair_scale
 *     li l_pair_scale(s)            scales that fit int16, as l_dot_scaled wants them
 *     L_HOLD_PAIRS(p)               L_HOLD of an lp
 *   L_WORDS                         1 where signed bytes with integer scales are multiplied with many columns
 *                                   as int16 (optional). With it
 *     li l_low_words(v), l_high_words(v)  bytes 0 and 1, or 2 and 3, of each lane as int16
 *     li l_mul16(a, b)              the low halves of products of int16
 *   L_MARKS                         1 where signed bytes without such scales are multiplied with many columns
 *                                   as magnitudes, with the bytes of the columns negated by an XOR with marks
 *                                   (optional). With it
 *     li l_magnitudes(w), l_marks(w)  of signed bytes: |w|, unsigned; all bits of a byte that is negative,
 *                                     else 0
 *   L_NARROW                        1 where int32 are narrowed to int16 by a shuffle, and l_mul takes longer
 *                                   (optional). With it
 *     li l_narrow(a, b)             the dwords of both as int16, which they fit: after l_zip of vectors of
 *                                   rows, the two of a row are a pair, and the rows are in order
 *     l_zip(v), li l_dup2(p)        as with L_MATRIX
 *     li l_swap2(v)                 the dwords of each four in the order 2, 3, 0, 1
 *   L_RAW                           1 where the w of l_dot may be any unsigned byte (optional)
 *   L_COLS                          columns of a register block of a tile: 3, or 4 where registers allow it
 *                                   (optional)
 *   L_TWO                           1 where sums of two columns fit the registers although L is 4 (optional)
 *   L_HOLD(v)                       keeps a vector in a register (optional)
 *   lf l_float(v)  li l_int(f)      conversions; l_int of whole numbers only
 *   lf l_setf(a) l_zerof() l_addf l_subf l_mulf  each rounded by itself
 *   lf l_fma(a, b, c)               a * b + c where product and sum are exact: fused or not
 *   lf l_loadf(p) l_storef(p, v)    L floats, unaligned
 *   lf l_halves(p)                  L float16 at p, exact
 *   li l_words(p)                  L uint16 at p
 *   li l_octets(p)                 L uint8 at p
 *   lf l_float_of(v)               the bits of floats as floats
 *   li l_negate(v, marks, bit)      v with each byte negated whose byte of `marks` has the bit, a constant;
 *                                   no byte of v is -128
 *   li l_points4(grid, i)           without L_VBMI: lane r: the uint32_t of the grid whose index is the
 *                                   uint16_t at i + 4r
 *   l_points8(to, grid, i)          without L_VBMI: the same of uint64_t; li to[2]: their low dwords, their
 *                                   high dwords
 *   li l_mirror(v, marks, bit, twice)  with L_VBMI: the bytes of v, or `twice` minus them where `marks` have
 *                                      the bit
 *   l_planes4(dst, row, at)         16 bytes at row[r] + at of 16 rows -> 4 planes at dst
 *   l_prefetch(p)                   the line at p, to the nearest cache
 *   l_prefetch_far(p)               the same, to a larger one
 */
#ifndef QSF_KERNELS_X16_LANES_H
#define QSF_KERNELS_X16_LANES_H

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/unroll.h"
#include "kernels/x16/x16.h"

#define QK_INLINE static inline __attribute__((always_inline))

/* The compiler no longer knows what is at the address, and loads it from there. Otherwise dwords of a column
 * that several groups are multiplied with would stay in general registers, and need another instruction to be
 * broadcast; indices would be taken out of the vectors that they were stored from. */
#define L_HIDE(pointer) __asm__("" : "+r"(pointer))

#endif
