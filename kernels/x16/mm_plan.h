/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a format is multiplied at a level: every constant that steers mm_block.h and mm_super.h, from what
 * the format (FMT_*, listed there and in super.h) and the level (L_*, lanes.h) define, and which
 * combinations are legal.
 *
 * Few columns are multiplied straight from the planes of groups of 16 rows. Many: a tile of rows is
 * unpacked once and multiplied with all columns, R vectors of rows with WIDTH columns at a time. The core
 * that includes this has defined MM_SUPER: 1 for super-blocks with integer scales, 0 for blocks with a
 * float scale. */
#ifndef QSF_KERNELS_X16_MM_PLAN_H
#define QSF_KERNELS_X16_MM_PLAN_H

#include "kernels/x16/lanes.h"
#include "kernels/x16/lanes_rest.h"
#include "kernels/x16/pairs.h"
#if MM_SUPER
#include "kernels/x16/super.h"
#endif

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

/* A tile pays off early where unpacking is slow; elsewhere the registers and the time to compile count. */
#if defined FMT_DIRECT || defined FMT_PREPARE
#define FMT_FEW 0
#else
#define FMT_FEW (L >= 8 && !FMT_COLD)
#endif
/* Nothing is rearranged after the planes of a block were copied. */
#ifndef FMT_FIX
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

#define FMT_FEW (L > 4 && !FMT_COLD)
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
#if MM_SUPER
    /* Sums of pairs times scales, before they are joined. Where a scale multiplies dwords, this takes
     * longer than adding first if no two steps fit. */
    BY_PARTS = FMT_SCALED && L_PAIRS && !WORDS && (!L_WIDE || 2 * 2 * 127 * TILE_MAX < 32768),
    /* Sums of sub-blocks as int16 times scales, two in an instruction, unless the column is wide
     * (qk_mm.wide). */
    IN_PAIRS = FMT_SCALED && FMT_INT16 && !BY_PARTS && !L_WIDE,
    /* Sums of half a sub-block as int16 times scales (mm_super_narrow.h). */
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
    COLS = 4,                         /* columns that share the weights of a group, without a tile */
    FEW_COLS = FMT_FEW ? COLS : 1,    /* columns for which a group is read once, without a tile */
    MV_GROUPS = 8,                    /* groups of rows that may be read together for few columns */
    SHARE = L > 4 || L_LANES,         /* the vectors of a group share each dword of a column: more code */
    TILE_ROWS = QK_TILE_ROWS / SPLIT, /* rows that share a pass over the columns */
    R = L == 16 ? 4 : 2,              /* a register block of a tile: vectors of a step of rows, */
    WIDTH = L_COLS,                   /* and columns: sums and totals fit the registers */
    /* The fewest columns for which unpacking a tile pays off. */
    TILE_FROM_COLS = FEW_COLS == 1                                                      ? 3
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
#if MM_SUPER
_Static_assert(PARTS *PART_SUBS == SUBS && PARTS <= 8, "parts are whole sub-blocks, two for each function");
_Static_assert(BY_PARTS + NARROW + WORDS <= 1 && BY_PARTS + IN_PAIRS <= 1, "sums are added in one way");
_Static_assert(CENTER == 0 || FMT_MINS > 0, "the correction is multiplied like the minimums");
#endif

#endif
