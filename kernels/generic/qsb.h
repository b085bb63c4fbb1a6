/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The QSF formats with codebooks, kernels/books.h. The including file has defined
 *   qsb_block          the struct of a block
 *   QSB_BITS, QSB_SCALE_BITS  of a code, of a group's scale
 *   QSB_BOOKS          the levels */
#ifndef QSF_KERNELS_GENERIC_QSB_H
#define QSF_KERNELS_GENERIC_QSB_H

enum {
    QSB_BYTES = sizeof(qsb_block),
    QSB_CODES_AT = offsetof(qsb_block, qs),
    QSB_WORDS_AT = offsetof(qsb_block, words)
};

/* A block, followed by a byte that may be read. */
typedef struct block_copy {
    uint8_t b[QSB_BYTES + 1];
} block_copy;

static block_copy block_at(const uint8_t *w, size_t b) {
    block_copy c = { { 0 } };
    memcpy(c.b, w + b * QSB_BYTES, QSB_BYTES);
    return c;
}

/* n <= 8 bits of the stream at p, starting at bit `at`. */
static int bits_of(const uint8_t *p, size_t at, int n) {
    return ((p[at / 8] | p[at / 8 + 1] << 8) >> at % 8) & ((1 << n) - 1);
}

static int word_of(const block_copy *c, size_t group) {
    return bits_of(c->b + QSB_WORDS_AT, QK_BOOK_WORD * group, QK_BOOK_WORD);
}

/* Includes the sign of the group. */
static int scale_of(int word) {
    const int s = word & ((1 << QSB_SCALE_BITS) - 1);
    return word >> QSB_SCALE_BITS & 1 ? -s : s;
}

static int level_of(const block_copy *c, int word, size_t i) {
    return QSB_BOOKS[word >> (QSB_SCALE_BITS + 1) << QSB_BITS |
                     bits_of(c->b + QSB_CODES_AT, QSB_BITS * i, QSB_BITS)];
}

static float d_of(const block_copy *c) {
    return qk_f16_to_f32((uint16_t)(c->b[0] | c->b[1] << 8)) * QK_BOOK_UNIT;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k x = qk_col_q8k_at(col, k);
    const block_copy c = block_at(w, 0);
    int isum = 0;
    for (size_t g = 0; g < QK_K / QK_BOOK_GROUP; g++) {
        const int word = word_of(&c, g);
        int sub = 0;
        for (size_t i = g * QK_BOOK_GROUP; i < (g + 1) * QK_BOOK_GROUP; i++)
            sub += level_of(&c, word, i) * x.q[b * QK_K + i];
        isum += sub * scale_of(word);
    }
    return acc + d_of(&c) * x.d[b] * (float)isum;
}

/* Exact: 11 bits of d, 5 of the scale, 7 of the level. */
static void dequant(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const block_copy c = block_at(w, b);
        for (size_t i = 0; i < QK_K; i++) {
            const int word = word_of(&c, i / QK_BOOK_GROUP);
            *dst++ = d_of(&c) * (float)scale_of(word) * (float)level_of(&c, word, i);
        }
    }
}

#endif
