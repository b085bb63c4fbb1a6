/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 2-bit with codebooks. A plane of codes is a group of 16; the codes of step s start at bit 2 (s % 4) of
 * each byte. */
#ifndef QSF_KERNELS_X16_FMT_QSB2_H
#define QSF_KERNELS_X16_FMT_QSB2_H

enum { BOOK_BITS = 2, BOOK_SCALE_BITS = 3, FMT_PLANES = 19 };
#define BOOKS qk_books2

#include "kernels/x16/books_x16.h"

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_field(plane(p, 3 + s / 4, v), 2 * (s % 4), 2);
    return book_level(q, p, s / 4, v);
}

QK_INLINE void fmt_fix(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (int i = 0; i < 16 * ROW_VECTORS; i++)
        l_store(dst + 3 * QK_PLANE + i * L * 4, pairs_apart(l_load(dst + 3 * QK_PLANE + i * L * 4)));
    (void)row, (void)at;
}

#endif
