/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the formats with codebooks share (kernels/books.h). The including file has defined
 * BOOK_BITS, BOOK_SCALE_BITS, FMT_PLANES and BOOKS. Planes 0 to 2 and the second half are the
 * words; the planes of the codes follow. */
#ifndef QSF_KERNELS_X16_BOOKS_X16_H
#define QSF_KERNELS_X16_BOOKS_X16_H

#define FMT_COLD 1

#include "kernels/books.h"
#include "kernels/x16/planes.h"

/* 16 * 127 * 127 * 31, one sum times its scale, stays below 2^24. */
enum { FMT_PLANE_AT = 4, FMT_HALVES = 2, FMT_HALF_AT = 0 };
enum {
    FMT_SUB = 16,
    FMT_SCALED = 1,
    FMT_MAX = 127,
    FMT_OFF = 0,
    FMT_SIGNED = 1,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};
#define FMT_UNIT              QK_BOOK_UNIT
#define FMT_FIX(dst, row, at) fmt_fix(dst, row, at)

/* The word of group j in the low bits; higher bits are undefined. The first two bytes of the words are the
 * second half. */
QK_INLINE li book_word(const uint8_t *p, int j, int v) {
    const int at = QK_BOOK_WORD * j, in = at - 16;
    const li half = l_words(p + FMT_PLANES * QK_PLANE + QK_HALF + v * L * 2);
    if (in <= -QK_BOOK_WORD) return l_shr(half, at % 32);
    if (in < 0) return l_or(l_shr(half, at % 32), l_shl(plane(p, 0, v), -in));
    const li w = l_shr(plane(p, in / 32, v), in % 32);
    return in % 32 > 32 - QK_BOOK_WORD ? l_or(w, l_shl(plane(p, in / 32 + 1, v), 32 - in % 32)) : w;
}

/* All ones in the lanes whose word has the bit set. */
QK_INLINE li word_bit(li word, int bit) { return l_sar(l_shl(word, 31 - bit), 31); }

/* The levels for codes q of group j. The top bit of the codebook number selects the half of the table, its
 * other bits go above the code. */
QK_INLINE li book_level(li q, const uint8_t *p, int j, int v) {
    const li word = book_word(p, j, v);
    const li upper = word_bit(word, QK_BOOK_WORD - 1);
    QK_UNROLL for (int i = BOOK_BITS; i < 4; i++)
        q = l_or(q, l_and(word_bit(word, BOOK_SCALE_BITS + 1 + i - BOOK_BITS), l_bytes(1 << i)));
    const li low = l_lookup(BOOKS, q), high = l_lookup(BOOKS + 16, q);
    return l_biased(l_xor(low, l_and(l_xor(low, high), upper)));
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    const li word = book_word(p, j, v), minus = word_bit(word, BOOK_SCALE_BITS);
    return l_sub(l_xor(l_and(word, l_set((1 << BOOK_SCALE_BITS) - 1)), minus), minus);
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    (void)p, (void)i, (void)v;
    return nothing();
}

#endif
