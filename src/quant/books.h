/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The encoders of blocks with codebooks: the layout is in kernels/books.h. Inside of src/quant. Pure functions without
 * allocation, any thread. */
#ifndef QSF_QUANT_BOOKS_H
#define QSF_QUANT_BOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu.h"

enum {
    QSF_BOOK_BLOCK = 256,
    QSF_BOOK_GROUP = 16,
    QSF_BOOK_GROUPS = 16,
    QSF_BOOK_HEAD = 16,
    QSF_BOOK_LEVELS = 16,   /* of one book, at most */
    QSF_BOOKS_MAX = 8,
    QSF_BOOK_LARGEST = 127, /* level */
    QSF_BOOK_UNITS = 128    /* d of a block is so many times what a scale of one makes of a level of one */
};

/* One layout. Static storage. */
typedef struct QsfBooks {
    unsigned bits, scale_bits, book_bits; /* of a code; of a group's word, with 1 for the sign: 7 together */
    const int8_t *levels; /* (1 << book_bits, 1 << bits), those of a book ascending */
} QsfBooks;

extern const QsfBooks qsf_books_2bit, qsf_books_3bit, qsf_books_4bit;

/* A group's word, apart. */
typedef struct QsfBookWord {
    unsigned scale, negative, book;
} QsfBookWord;

/* A block before its bits are packed. */
typedef struct QsfBookParts {
    double d, error; /* sum of w (x - y)^2, nearly */
    QsfBookWord word[QSF_BOOK_GROUPS];
} QsfBookParts;

/* Sixteen values with their weights. */
typedef struct QsfBookValues {
    float x[QSF_BOOK_GROUP], w[QSF_BOOK_GROUP]; /* weights are at most 1: squares stay within single precision */
    float size, xx;                             /* largest |x| with a weight; sum of w x x */
} QsfBookValues;

/* What needs the speed: compiled for several instruction sets, each with the same results to the bit. */
typedef struct QsfBookCore {
    /* d and words of the least error that was found; d is 0 where no d of half precision is better than zeros. */
    void (*search)(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS], QsfBookParts *best);
    /* The best of all books and signs for the p->d and scales there are, and the error. */
    void (*books)(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS], QsfBookParts *p);
    /* The nearest codes. */
    void (*codes)(const QsfBooks *t, const QsfBookValues groups[QSF_BOOK_GROUPS], const QsfBookParts *p,
                  uint8_t codes[QSF_BOOK_BLOCK]);
} QsfBookCore;

/* The core for CPUs of a level: that of the highest one up to it. Static storage. */
const QsfBookCore *qsf_book_core(qk_level level);
/* Packs a block of 256 with that core; the others choose the one of this CPU. */
void qsf_book_encode(const QsfBooks *t, const QsfBookCore *core, const float *x, const float *w, uint8_t *out);

extern const QsfBookCore qsf_book_core_any, qsf_book_core_avx2, qsf_book_core_avx512;

#endif
