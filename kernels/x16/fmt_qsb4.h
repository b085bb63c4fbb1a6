/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 4-bit with codebooks. A plane holds the codes of two steps. */
#ifndef QSF_KERNELS_X16_FMT_QSB4_H
#define QSF_KERNELS_X16_FMT_QSB4_H

enum { BOOK_BITS = 4, BOOK_SCALE_BITS = 5, FMT_PLANES = 35 };
#define BOOKS qk_books4

#include "kernels/x16/books_x16.h"

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = l_field(plane(p, 3 + s / 2, v), 4 * (s % 2), 4);
    return book_level(q, p, s / 4, v);
}

QK_INLINE void fmt_fix(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (int i = 0; i < 32 * ROW_VECTORS; i++)
        l_store(dst + 3 * QK_PLANE + i * L * 4, nibbles_apart(l_load(dst + 3 * QK_PLANE + i * L * 4)));
    (void)row, (void)at;
}

#endif
