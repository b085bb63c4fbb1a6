/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses the format of each tensor: one for all, by role and error, or by target size. */
#ifndef QSF_CONVERT_PACK_CHOOSE_H
#define QSF_CONVERT_PACK_CHOOSE_H

#include "src/base/strbuf.h"
#include "src/convert/pack/encode_rows.h"
#include "src/convert/pack/items.h"

typedef enum QsfPackHow { QSF_PACK_KEEP, QSF_PACK_ONE, QSF_PACK_MIXED } QsfPackHow;

typedef struct QsfPackType {
    QsfPackHow how;
    const QsfQuantFormat *format; /* for QSF_PACK_ONE */
    QsfQuantRule rule;
} QsfPackType;

/* Parses "keep", "mixed", or a format of quant/formats.h that the engine supports. QSF_E_USAGE lists the
 * valid words. */
int qsf_pack_type_parse(QsfPackType *out, const char *word, QsfErr *err);

/* Writes these words to dst, with `between` between them; "" without memory. */
void qsf_pack_type_words(const char *between, char *dst, size_t cap);

/* Chooses for all items. Matrices get the format; the embedding and the head get at least 4 bits; tensors
 * that already have as few bits are kept. If a row is not a multiple of the block, the next suitable format
 * is used. mixed: bits by role, more if more than 1 % are outliers or the cosine is below 0.99, measured on a
 * sample of rows. Read errors, QSF_E_INTERRUPTED. */
int qsf_choose(QsfItems *l, const QsfPackType *type, QsfEncoder *e, QsfErr *err);

/* Sets *code to the format of the ladder with the most bits below those that the item has now; false: there
 * is none, or the item is a vector. */
bool qsf_choose_lower(const QsfItem *i, uint8_t *code);

/* Chooses formats so that the file has at most `target` bytes and the error, measured on a sample of rows and
 * weighted by role, is as small as possible. size_of returns the file size for the current items.
 * QSF_E_USAGE, with the smallest size: the target is too small. */
int qsf_choose_for_size(QsfItems *l, const QsfPackType *type, uint64_t target,
                        int (*size_of)(void *arg, uint64_t *bytes, QsfErr *err), void *arg, QsfEncoder *e,
                        QsfErr *err);

#endif
