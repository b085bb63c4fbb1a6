/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks with codebooks: the layout of QSF's quant codes 10, 11 and 12 (2, 3 and 4 bits). 256
 * elements, 16 groups of 16:
 *
 *   2 bytes   d, half precision, little-endian
 *   14 bytes  a word of 7 bits for each group, a little-endian bit stream: starting at the lowest bit, the
 *             scale s (3, 4, 5 bits for codes of 2, 3, 4 bits), a sign bit, the group's codebook number (3,
 *             2, 1 bits)
 *   64, 96 or 128 bytes  codes q, a little-endian bit stream
 *
 *   x = d / 128 * s * codebook[q], negated if the sign bit is set
 *
 * That is 2.5, 3.5 and 4.5 bits per weight. A codebook number followed by a code always has five bits: an
 * index into one table of 32 levels. The levels of a codebook are not equally spaced, because weights are not
 * uniformly distributed, and they are skewed, as small groups of weights are by chance. They are the
 * centroids (S. Lloyd, "Least squares quantization in PCM"; Y. Linde, A. Buzo, R. Gray, "An algorithm for
 * vector quantizer design") of groups of 16, half of them normally distributed, a quarter Laplace's and a
 * quarter Student's with 5 degrees of freedom. */
#ifndef QSF_KERNELS_BOOKS_H
#define QSF_KERNELS_BOOKS_H

#include <stdint.h>

enum { QK_BOOK_GROUP = 16, QK_BOOK_WORD = 7, QK_BOOK_LEVELS = 32 };

/* d is stored 128 times larger than the unit of the levels, to use more of the range of half precision. */
#define QK_BOOK_UNIT 0x1p-7f

/* Levels of all codebooks of a layout, in 127ths of the largest; ascending inside a codebook:
 * number << bits | code. */
extern const int8_t qk_books2[QK_BOOK_LEVELS], qk_books3[QK_BOOK_LEVELS], qk_books4[QK_BOOK_LEVELS];

#endif
