/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 3-bit with codebooks. Codes of 64 elements have four planes of low bit pairs and two of top bits, as in
 * QSF 3-bit. */
#ifndef QSF_KERNELS_X16_FMT_QSB3_H
#define QSF_KERNELS_X16_FMT_QSB3_H

enum { BOOK_BITS = 3, BOOK_SCALE_BITS = 4, FMT_PLANES = 27 };
#define BOOKS qk_books3

#include "kernels/x16/books_x16.h"

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const int first = 3 + s / 16 * 6, at = s % 16;
    const li low = l_field(plane(p, first + at / 4, v), 2 * (at % 4), 2);
    const li top = l_and(l_shr(plane(p, first + 4 + at / 8, v), at % 8), l_bytes(1));
    return book_level(l_or(low, l_shl(top, 2)), p, s / 4, v);
}

QK_INLINE void fmt_fix(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (size_t i = 0; i < 4; i++)
        pack_triples(dst + (3 + 6 * i) * QK_PLANE, row, at + offsetof(qk_qsb3, qs) + 24 * i);
}

#endif
