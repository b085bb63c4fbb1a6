/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a format is multiplied at a level: every constant that steers mm_block.h and mm_super.h, and which
 * combinations are legal. They follow from what the format (FMT_*, below) and the level (L_*, lanes.h)
 * define.
 *
 * Few columns are multiplied straight from the planes of groups of 16 rows. Many: a tile of rows is
 * unpacked once and multiplied with all columns, R vectors of rows with WIDTH columns at a time.
 *
 * A generated file includes the lanes of a level, a fmt_<format>.h and a core, which defines MM_SUPER (1 for
 * super-blocks with integer scales, 0 for blocks with a float scale) and includes this. The format defines,
 * for both:
 *
 *   FMT_PLANES, FMT_HALVES     dwords of a row's block that become planes; its 16-bit fields
 *   FMT_SUB                    elements of a sub-block: 16, 32 or 64; of blocks 32, if it is not defined
 *   FMT_MAX                    the largest byte of a step, when unsigned
 *   FMT_OFF                    the offset included in the bytes of a step
 *   FMT_SIGNED                 1: bytes of a step are signed, and come from l_biased
 *   li fmt_step(p, s, v)       bytes of elements 4s .. 4s + 3 of lanes [v * L, (v + 1) * L) of the block at p
 *
 * for blocks with a float scale, x = d * q + m:
 *
 *   FMT_ELEMS                  elements of a block: a multiple of 32
 *   FMT_MIN                    whether there is m; the halves are d, then m
 *   FMT_TENSOR_SCALE           1: there is no d, and the scale of the tensor multiplies the result
 *   fmt_pack(dst, row, at)     writes the planes of 16 blocks, that of row r at row[r] + at
 *   fmt_half_at(i)             byte offset of half i in a block of a row; of number FMT_HALVES: of the octet
 *   FMT_OCTETS                 optional: 1, a byte after the halves
 *   FMT_OWN_SCALE(p, j, v)     optional: d of sub-block j of a block, if it is not half 0
 *   FMT_SCALES                 optional: how many d a block has, 1 or one per sub-block
 *
 * for super-blocks of 256 elements, x = d * scale * q - dmin * minimum:
 *
 *   FMT_PLANE_AT, FMT_HALF_AT  the byte of the block where the planes begin, and the halves: d, then dmin
 *   FMT_SCALED                 whether a sub-block has a scale; a signed byte times its scale fits an int16
 *   FMT_MINS                   minimums: 8 or 16, or 0
 *   FMT_INT16                  1: the sum of a sub-block with FMT_OFF and FMT_CENTER subtracted from each q
 *                              fits an int16 for any column: |q| < 128
 *   FMT_CENTER                 of formats with minimums, otherwise 0
 *   li fmt_scale(p, j, v)      scale j, an int32
 *   li fmt_mins(p, i, v)       minimums 2i and 2i + 1, a pair of int16
 *   FMT_UNIT                   optional: a factor for d, a power of two
 *   FMT_PLACE(n)               optional: the place in a group of plane n of the block (x16.h)
 *   FMT_FIX(dst, row, at)      optional: rearranges bits of the group at dst, after its planes were copied
 *   FMT_FIX_ROW(w)             optional: rearranges the planes and halves of one row instead
 *                              (rearrange_grid.h)
 *   FMT_PREPARE(dst, p, part)  optional: writes PREPARED_BYTES for FMT_PART elements of the group at p to
 *                              dst, from which fmt_step makes its steps instead of the planes; returns their
 *                              address. The format defines both constants
 *   FMT_ROLLED                 optional, with FMT_PREPARE: 1, the parts of a super-block are a loop, of which
 *                              FMT_PART_SCALE(p, part, j, v) returns the scales
 *   FMT_DIRECT(group, p, x, t, j, v)  optional: the sum of sub-block j, the offset subtracted, with the
 *                              column of x, a pointer to columns, for one column, instead of fmt_step; p:
 *                              what FMT_PREPARE returned
 *   FMT_TURN(t, x)             optional: fills the struct turned at t with what FMT_DIRECT needs of a
 *                              super-block of x, or of a part where FMT_ROLLED
 *
 * and for both what says how fast it is, all optional:
 *
 *   FMT_SHIFT(s), li fmt_in_place(p, s, v)  bits of step s are this many too high in fmt_in_place
 *   FMT_AHEAD                  how far ahead to prefetch for one column, in bytes of a group
 *   FMT_COLD                   1 for a format that few decode several columns of
 *
 * s, j and i are compile-time constants wherever speed matters. */
#ifndef QSF_KERNELS_X16_MM_PLAN_H
#define QSF_KERNELS_X16_MM_PLAN_H

#ifndef MM_SUPER
#error "mm_block.h or mm_super.h includes this"
#endif

#include "kernels/x16/lanes.h"
#include "kernels/x16/lanes_rest.h"
#include "kernels/x16/planes.h"

/* ---- what a format need not define ---- */

/* A byte of a block after its halves. */
#ifndef FMT_OCTETS
#define FMT_OCTETS 0
#endif

/* Two to five columns of such a format have no code of their own, which would be a third of the code of the
 * format. */
#ifndef FMT_COLD
#define FMT_COLD 0
#endif

/* How far ahead to prefetch for one column, in bytes of a group. */
#ifndef FMT_AHEAD
#define FMT_AHEAD 2048
#endif

/* Where l_dot takes any unsigned byte (L_RAW), bits need not be shifted to the low end of their byte: a
 * format whose steps of a sub-block are all FMT_SHIFT(s) bits too high returns them like that, and only the
 * sum is shifted. */
#ifdef FMT_SHIFT
enum { IN_PLACE = L_RAW };
#else
#define FMT_SHIFT(s) 0
enum { IN_PLACE = 0 };
QK_INLINE li fmt_in_place(const uint8_t *p, int s, int v) { return fmt_step(p, s, v); }
#endif

#if MM_SUPER

enum { FMT_ELEMS = QK_K, FMT_TENSOR_SCALE = 0 };

/* A tile pays off early where unpacking is slow; elsewhere the registers and the time to compile count. */
#if defined FMT_DIRECT || defined FMT_PREPARE
#define FMT_FEW 0
#else
#define FMT_FEW ((L_TWO || L >= 8) && !FMT_COLD)
#endif
/* Nothing is rearranged after the planes of a block were copied. */
#ifdef FMT_FIX
#define FMT_FIXED
#else
#define FMT_FIX(dst, row, at) (void)0
#endif
#ifndef FMT_UNIT
#define FMT_UNIT 1.0f
#endif
#ifndef FMT_PREPARE
/* Elements of a group before the next group's turn: the shorter, the more groups are on their
 * way from memory. */
#define FMT_PART (FMT_SUB > 32 ? FMT_SUB : 32)
enum { PREPARED_BYTES = 1 };
#define FMT_PREPARE(dst, p, part) ((void)(dst), (p))
#endif
/* The parts as a loop: what the steps of a part read is prepared where it is the same for each. */
#ifndef FMT_ROLLED
#define FMT_ROLLED                    0
#define FMT_PART_SCALE(p, part, j, v) fmt_scale(p, j, v)
#endif

#else

/* Without dot products of dwords, keeping unpacked weights for a second column takes longer than to unpack
 * them again. */
#define FMT_FEW ((L > 4 || (L_TWO && L_LANES)) && !FMT_COLD)
enum { FMT_SCALED = 0 }; /* no integers as scales */
#ifndef FMT_SUB
#define FMT_SUB 32
#endif
#ifndef FMT_SCALES
#define FMT_SCALES 1
#endif

#endif

/* ---- sizes ---- */

enum {
    UNIT = 256,                     /* elements of a row that are multiplied before the next row's */
    UNIT_BLOCKS = UNIT / FMT_ELEMS, /* blocks of a unit */
    NV = (int)QK_GROUP / L,         /* vectors that cover the rows of a group */
    BLOCK_BYTES = FMT_PLANES * 4 + FMT_HALVES * 2 + FMT_OCTETS, /* of one row */
    GROUP_BLOCK = BLOCK_BYTES * (int)QK_GROUP,                  /* bytes of a block of a group */
    HALVES = FMT_PLANES * (int)QK_PLANE,                        /* byte offset of the halves */
    OCTETS = HALVES + FMT_HALVES * (int)QK_HALF,                /* byte offset of the octets */
    SUBS = FMT_ELEMS / FMT_SUB                                  /* sub-blocks of a block */
};

/* ---- how weights lie in a tile, and how their sums are added ---- */

enum {
    /* What is subtracted from each byte of a step. */
    OFFSET = FMT_OFF + (FMT_SIGNED ? L_BIAS : 0),
    /* The same of a tile: what was not subtracted when it was unpacked. */
    TILE_OFFSET = L_SIGNED ? 0 : OFFSET,
    /* The largest magnitude of a weight: with the offset subtracted, and as it is in a tile. */
    MOST = FMT_OFF > FMT_MAX - FMT_OFF ? FMT_OFF : FMT_MAX - FMT_OFF,
    TILE_MAX = L_SIGNED ? MOST : FMT_MAX,
    /* A tile has weights times their scales as int16, and is multiplied with columns of int16. */
    WORDS = L_WORDS && FMT_SIGNED && FMT_SCALED,
    /* A tile has magnitudes and marks of weights. */
    MARKS = L_MARKS && FMT_SIGNED && !FMT_SCALED,
    /* Dwords of a step of a tile. */
    SPLIT = WORDS || MARKS ? 2 : 1,
    /* A step is a byte or a nibble of one plane: it needs few registers. */
    PLAIN = FMT_SIGNED || FMT_MAX == 15,
    /* The same, and nothing is looked up. */
    EASY = FMT_SIGNED ? FMT_PLANES * 4 == FMT_ELEMS : FMT_MAX == 15,
#if MM_SUPER
    /* Sums of pairs times scales, before they are joined. Where a scale multiplies dwords, this takes
     * longer than adding first if no two steps fit. */
    BY_PARTS = FMT_SCALED && L_PAIRS && !WORDS && (!L_WIDE || 2 * 2 * 127 * TILE_MAX < 32768),
    /* Sums of sub-blocks as int16 times scales, two in an instruction, unless the column is wide
     * (qk_mm.wide). */
    IN_PAIRS = FMT_SCALED && FMT_INT16 && !BY_PARTS && !L_WIDE,
    /* Sums of half a sub-block as int16 times scales (mm_super.h). */
    NARROW = L_NARROW && FMT_SCALED && FMT_SUB == 16 && !FMT_INT16 && !FMT_MINS && 8 * 127 * MOST < 32768,
    /* Subtracted from each weight, so that the sum of a sub-block fits an int16. */
    CENTER = IN_PAIRS ? FMT_CENTER : 0,
    /* Whether columns with larger sums need the way without pairs, too. */
    CAN_BE_WIDE = IN_PAIRS && CENTER > 0,
    /* What is added, times the scales, for a whole super-block, and its number of pairs. */
    CORRECTION = BY_PARTS ? -(int)TILE_OFFSET : CENTER,
    CORRECTION_PAIRS = CORRECTION == 0 ? 1
                       : BY_PARTS      ? SUBS / 2
                                       : FMT_MINS / 2,
    /* Pairs of minimums of a row. */
    PAIRS = FMT_MINS ? FMT_MINS / 2 : 1,
#else
    CAN_BE_WIDE = 0,
    /* Sub-blocks of a unit whose negative weights have a sum of their own. */
    MARKED_SUBS = MARKS ? UNIT / FMT_SUB : 1,
#endif
};

/* ---- steps: four elements of each row ---- */

enum {
#if MM_SUPER
    STEPS = QK_K / 4,                    /* of a super-block */
    SUB_STEPS = FMT_SUB / 4,             /* of a sub-block */
    RUN = SUB_STEPS < 8 ? SUB_STEPS : 8, /* that share FMT_SHIFT */
    PART_SUBS = FMT_PART / FMT_SUB,      /* consecutive sub-blocks of one group, before the next group */
    PARTS = SUBS / PART_SUBS,            /* of a super-block */
    /* Bytes of a group that are prefetched with a part; the last takes what is left, unless it has the same
     * instructions. */
    PART_BYTES = (GROUP_BLOCK / PARTS + (FMT_ROLLED ? 63 : 0)) / 64 * 64,
    /* One column of Q6_K, too, takes the parts of a super-block as functions. */
    ONE_APART = FMT_MAX == 63,
#else
    SUB = FMT_SUB,              /* elements of a sub-block */
    STEPS = SUB / 4,            /* of a sub-block */
    BLOCK_STEPS = FMT_ELEMS / 4 /* of a block */
#endif
};

/* ---- columns and rows at a time ---- */

enum {
    /* Do two and three columns, as passes with drafts have, have code of their own? Otherwise they take as
     * long as four. */
    EACH_FEW = FMT_FEW && L > 4,
    COLS = 4, /* most columns that share the weights of a group, without a tile */
    FEW_COLS = !FMT_FEW ? 1
               : L == 4 ? 2
                        : COLS,       /* columns for which a group is read once, without a tile */
    MV_GROUPS = 8,                    /* groups of rows that may be read together for few columns */
    SHARE = L > 4 || L_LANES,         /* the vectors of a group share each dword of a column: more code */
    TILE_ROWS = QK_TILE_ROWS / SPLIT, /* rows that share a pass over the columns */
    R = L == 16 ? 4 : 2,              /* a register block of a tile: vectors of a step of rows, */
    WIDTH = L_COLS,                   /* and columns: sums and totals fit the registers */
    /* The fewest columns for which unpacking a tile pays off. */
    TILE_FROM_COLS = FEW_COLS < COLS ? (L_TWO && EASY && !MM_SUPER && !FMT_COLD ? 7 : 3)
                     : L == 8 && (FMT_SUB == 16 || (L_PAIRS && (!FMT_SIGNED || WORDS))) ? 6
                                                                                        : QK_TILE_COLS,
    PART_COLS = 256 /* columns of a pass: their results are contiguous, wherever the columns of y are */
};

/* Steps whose sums fit an int16, n at most: of a group as it is, and of a tile, where offsets may have been
 * subtracted. */
QK_INLINE int direct_pairs(int n) { return steps_of_pairs(FMT_MAX, n); }
QK_INLINE int tile_pairs(int n) { return steps_of_pairs(TILE_MAX, n); }

/* ---- what is legal ---- */

_Static_assert(L == 4 || L == 8 || L == 16, "a group of 16 rows is 4, 2 or 1 vectors");
_Static_assert(UNIT % FMT_ELEMS == 0 && FMT_ELEMS % FMT_SUB == 0,
               "a unit has whole blocks, a block whole sub-blocks");
_Static_assert(FMT_SUB == 16 || FMT_SUB == 32 || FMT_SUB == 64, "columns have sums of 16 and 32 elements");
_Static_assert(FMT_MAX <= 255 && MOST <= 255, "a weight is a byte");
_Static_assert(WIDTH <= COLS, "a register block is at most as wide as the arrays of its sums");
_Static_assert(!(WORDS && MARKS), "a tile has one form");
_Static_assert(!FMT_COLD || FEW_COLS == 1, "rare formats take columns one by one until a tile pays off");
_Static_assert(!FMT_SIGNED || FMT_OFF == 0, "a byte is signed or has an offset");
_Static_assert(FMT_OFF <= FMT_MAX, "an offset is one of the values of a step");
_Static_assert(!L_MATRIX || (L_SIGNED && L_COLS % 2 == 0), "matrices of signed bytes, pairs of columns");
_Static_assert(!L_MATRIX || L_PAIRS + L_WORDS + L_MARKS + L_NARROW == 0,
               "matrices leave no other way of a tile");
#if MM_SUPER
_Static_assert(PARTS *PART_SUBS == SUBS && PARTS <= 8, "parts are whole sub-blocks, two for each function");
_Static_assert(BY_PARTS + NARROW + WORDS <= 1 && BY_PARTS + IN_PAIRS <= 1, "sums are added in one way");
_Static_assert(CENTER == 0 || FMT_MINS > 0, "the correction is multiplied like the minimums");
_Static_assert(FMT_MINS == 0 || FMT_MINS == 8 || FMT_MINS == 16, "columns have sums for 8 and 16 minimums");
_Static_assert(FMT_MINS == 0 || FMT_HALVES == 2, "minimums have a scale, dmin");
_Static_assert(!FMT_SIGNED || FMT_MINS == 0, "a tile of words has no minimums");
_Static_assert(FMT_CENTER == 0 || FMT_INT16, "what is subtracted makes sums fit an int16");
_Static_assert(FMT_SCALED || !FMT_INT16, "sums without scales are not multiplied");
_Static_assert(!FMT_ROLLED || PREPARED_BYTES > 1, "parts of a loop are prepared");
#if defined FMT_FIX_ROW && (defined FMT_FIXED || defined FMT_PLACE)
#error "a format is rearranged in one way: FMT_FIX_ROW, or FMT_PLACE and FMT_FIX"
#endif
#if defined FMT_TURN && !defined FMT_DIRECT
#error "FMT_TURN is for FMT_DIRECT"
#endif
#else
_Static_assert(FMT_SCALES == 1 || FMT_SCALES == SUBS, "a d for the block or for each sub-block");
_Static_assert(!FMT_TENSOR_SCALE || !FMT_MIN, "the scale of the tensor would multiply m");
#ifndef FMT_OWN_SCALE
_Static_assert(FMT_HALVES == !FMT_TENSOR_SCALE + FMT_MIN, "the halves are d and m");
_Static_assert(FMT_SCALES == 1, "one half has one d");
#endif
#endif

#endif
