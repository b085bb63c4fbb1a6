/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Encoders of blocks with codebooks; the layout is in kernels/books.h. Private to src/convert/quant. Pure
 * functions without allocation, any thread. */
#ifndef QSF_CONVERT_QUANT_BOOKS_H
#define QSF_CONVERT_QUANT_BOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu.h"

enum {
    QSF_BOOK_BLOCK = 256,
    QSF_BOOK_GROUP = 16,
    QSF_BOOK_GROUPS = 16,
    QSF_BOOK_HEAD = 16,
    QSF_BOOK_LEVELS = 16, /* maximum levels of a book */
    QSF_BOOKS_MAX = 8,
    QSF_BOOK_LARGEST = 127, /* largest level */
    QSF_BOOK_UNITS = 128    /* d of a block divided by the value of level 1 with scale 1 */
};

/* One layout. Static storage. */
typedef struct QsfBooks {
    unsigned bits, scale_bits, book_bits; /* of a code; of a group's word: 7 with the sign */
    const int8_t *levels;                 /* (1 << book_bits, 1 << bits), ascending in each book */
} QsfBooks;

extern const QsfBooks qsf_books_2bit, qsf_books_3bit, qsf_books_4bit;

/* The unpacked word of a group. */
typedef struct QsfBookWord {
    unsigned scale, negative, book;
} QsfBookWord;

/* A block before its bits are packed. */
typedef struct QsfBookParts {
    double d, error; /* error: approximate sum of w (x - y)^2 */
    QsfBookWord word[QSF_BOOK_GROUPS];
} QsfBookParts;

/* 16 values and their weights. */
typedef struct QsfBookValues {
    /* weights are at most 1: squares stay within single precision */
    float x[QSF_BOOK_GROUP], w[QSF_BOOK_GROUP];
    float size, xx; /* largest |x| with a weight; sum of w x x */
} QsfBookValues;

/* The performance-critical part, compiled for several instruction sets with bit-identical results. */
typedef struct QsfBookCore {
    /* Finds d and words with a small error; d is 0 if no half precision d is better than zeros. */
    void (*search)(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS], QsfBookParts *best);
    /* Finds the best books and signs for the given p->d and scales, and the error. */
    void (*books)(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS], QsfBookParts *p);
    /* Finds the nearest codes. */
    void (*codes)(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS], const QsfBookParts *p,
                  uint8_t codes[QSF_BOOK_BLOCK]);
} QsfBookCore;

/* Returns the core for a CPU level: that of the highest supported level up to it. Static storage. */
const QsfBookCore *qsf_book_core(qk_level level);
/* Packs a block of 256 with the given core; other encoders use the core for this CPU. */
void qsf_book_encode(const QsfBooks *t, const QsfBookCore *core, const float *x, const float *w,
                     uint8_t *out);

extern const QsfBookCore qsf_book_core_any, qsf_book_core_avx2, qsf_book_core_avx512;

#endif
