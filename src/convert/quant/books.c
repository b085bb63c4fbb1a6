/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks with codebooks (kernels/books.h), as stored in a file. */
#include "src/convert/quant/books.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/books.h"
#include "src/base/half.h"
#include "src/convert/quant/blocks.h"
#include "src/convert/quant/fit.h"

enum { WORD_BITS = 7 };

/* Errors summed in single precision are treated as equal if they differ by less than this, relative to the
 * error and to the squares. */
#define BLUR_ERROR   0.02
#define BLUR_SQUARES 1e-5

const QsfBooks qsf_books_2bit = { 2, 3, 3, qk_books2 };
const QsfBooks qsf_books_3bit = { 3, 4, 2, qk_books3 };
const QsfBooks qsf_books_4bit = { 4, 5, 1, qk_books4 };

/* Four partial sums and maximums, so that compilers can vectorize in this order. */
static void group_of(const float *x, const float *w, float most, QsfBookValues *g) {
    enum { FOUR = 4 };
    float size[FOUR] = { 0 }, xx[FOUR] = { 0 };
    for (size_t i = 0; i < QSF_BOOK_GROUP; i += FOUR)
        for (size_t k = 0; k < FOUR; k++) {
            const float its = w[i + k] > 0 ? fabsf(x[i + k]) : 0;
            g->x[i + k] = x[i + k];
            g->w[i + k] = w[i + k] / most;
            xx[k] += g->w[i + k] * x[i + k] * x[i + k];
            size[k] = its > size[k] ? its : size[k];
        }
    g->xx = (xx[0] + xx[1]) + (xx[2] + xx[3]);
    g->size = fmaxf(fmaxf(size[0], size[1]), fmaxf(size[2], size[3]));
}

static void groups_of(const float *x, const float *w, QsfBookValues *groups) {
    float most = 0;
    for (size_t i = 0; i < QSF_BOOK_BLOCK; i++) most = w[i] > most ? w[i] : most;
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++)
        group_of(x + g * QSF_BOOK_GROUP, w + g * QSF_BOOK_GROUP, most, &groups[g]);
}

static void pack(const QsfBooks *t, const QsfBookCore *core, const QsfBookValues *groups,
                 const QsfBookParts *p, uint8_t *out) {
    uint8_t words[QSF_BOOK_GROUPS], codes[QSF_BOOK_BLOCK];
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++) {
        const QsfBookWord word = p->word[g];
        words[g] = (uint8_t)(word.scale | word.negative << t->scale_bits | word.book << (t->scale_bits + 1));
    }
    core->codes(t, groups, p, codes);
    qsf_half_put(out, qsf_half_bits(p->d));
    qsf_bits_put(out + 2, words, QSF_BOOK_GROUPS, WORD_BITS);
    qsf_bits_put(out + QSF_BOOK_HEAD, codes, QSF_BOOK_BLOCK, t->bits);
}

static void decode(const QsfBooks *t, const uint8_t *in, float *x) {
    uint8_t words[QSF_BOOK_GROUPS], codes[QSF_BOOK_BLOCK];
    const float d = qsf_half_get(in) / (float)QSF_BOOK_UNITS;
    qsf_bits_get(words, in + 2, QSF_BOOK_GROUPS, WORD_BITS);
    qsf_bits_get(codes, in + QSF_BOOK_HEAD, QSF_BOOK_BLOCK, t->bits);
    for (size_t i = 0; i < QSF_BOOK_BLOCK; i++) {
        const unsigned word = words[i / QSF_BOOK_GROUP];
        const int scale = (int)(word & ((1u << t->scale_bits) - 1)),
                  negative = (int)(word >> t->scale_bits & 1);
        const int level = t->levels[(word >> (t->scale_bits + 1) << t->bits) + codes[i]];
        x[i] = d * (float)((negative ? -scale : scale) * level);
    }
}

/* The specification has no minmax rule for this layout. Ours uses scales that reach the largest value of each
 * group, with the maximum scale for the largest group, and the best book. */
static void plain(const QsfBooks *t, const QsfBookCore *core, const QsfBookValues *groups, QsfBookParts *p) {
    const unsigned limit = (1u << t->scale_bits) - 1;
    float size = 0;
    *p = (QsfBookParts){ 0, 0, { { 0, 0, 0 } } };
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++) size = groups[g].size > size ? groups[g].size : size;
    p->d = (double)qsf_half_round((double)size * QSF_BOOK_UNITS / (QSF_BOOK_LARGEST * (double)limit));
    for (size_t g = 0; g < QSF_BOOK_GROUPS && p->d > 0; g++) {
        const double wanted = ceil((double)groups[g].size * QSF_BOOK_UNITS / (QSF_BOOK_LARGEST * p->d) -
                                   1e-3);
        p->word[g].scale = wanted < limit ? (unsigned)wanted : limit;
    }
    core->books(t, groups, p);
}

const QsfBookCore *qsf_book_core(qk_level level) {
#if defined(QK_ARCH_X86)
    if (level >= QK_LEVEL_AVX512 && level <= QK_LEVEL_AVX512VBMI) return &qsf_book_core_avx512;
    if (level == QK_LEVEL_AVX2 || level == QK_LEVEL_AVXVNNI) return &qsf_book_core_avx2;
#endif
    (void)level;
    return &qsf_book_core_any;
}

static void encode_plain(const QsfBooks *t, const QsfBlockIn *b, uint8_t *out) {
    const QsfBookCore *core = qsf_book_core(qk_cpu_best());
    QsfBookValues groups[QSF_BOOK_GROUPS];
    QsfBookParts p;
    groups_of(b->x, b->w, groups);
    plain(t, core, groups, &p);
    pack(t, core, groups, &p, out);
}

static double cost(const QsfBooks *t, const float *x, const float *w, const uint8_t *block) {
    float y[QSF_BOOK_BLOCK];
    decode(t, block, y);
    return qsf_fit_error(x, w, y, QSF_BOOK_BLOCK);
}

/* Returns whether one may be better than another within the precision of their errors. */
static bool may_be_better(const QsfBookValues *groups, const QsfBookParts *one, const QsfBookParts *other) {
    double squares = 0;
    for (size_t g = 0; g < QSF_BOOK_GROUPS; g++) squares += (double)groups[g].xx;
    return !(one->error > other->error * (1 + BLUR_ERROR) + squares * BLUR_SQUARES);
}

void qsf_book_encode(const QsfBooks *t, const QsfBookCore *core, const float *x, const float *w,
                     uint8_t *out) {
    uint8_t block[QSF_BOOK_HEAD + QSF_BOOK_BLOCK / 2];
    QsfBookValues groups[QSF_BOOK_GROUPS];
    QsfBookParts found, simple;
    groups_of(x, w, groups);
    core->search(t, groups, &found);
    plain(t, core, groups, &simple);
    pack(t, core, groups, &found, out);
    if (!may_be_better(groups, &simple, &found)) return;
    pack(t, core, groups, &simple, block);
    if (cost(t, x, w, block) < cost(t, x, w, out))
        memcpy(out, block, QSF_BOOK_HEAD + QSF_BOOK_BLOCK * t->bits / 8);
}

static void encode(const QsfBooks *t, const QsfBlockIn *b, uint8_t *out) {
    qsf_book_encode(t, qsf_book_core(qk_cpu_best()), b->x, b->w, out);
}

#define OPS(name)                                                                                            \
    static void search_##name(const QsfBlockIn *b, uint8_t *out) { encode(&qsf_books_##name, b, out); }      \
    static void plain_##name(const QsfBlockIn *b, uint8_t *out) { encode_plain(&qsf_books_##name, b, out); } \
    static void decode_##name(const uint8_t *in, size_t n, float *x) {                                       \
        (void)n, decode(&qsf_books_##name, in, x);                                                           \
    }                                                                                                        \
    const QsfBlockOps qsf_block_##name##_book = { search_##name, plain_##name, decode_##name };
OPS(2bit)
OPS(3bit)
OPS(4bit)
