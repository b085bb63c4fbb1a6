/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which format each tensor gets: one for all, what its role and its error ask for, or what a target size has room for. */
#ifndef QSF_PACK_CHOOSE_H
#define QSF_PACK_CHOOSE_H

#include "src/base/strbuf.h"
#include "src/requantize/encode_rows.h"
#include "src/requantize/items.h"

typedef enum QsfPackHow { QSF_PACK_KEEP, QSF_PACK_ONE, QSF_PACK_MIXED } QsfPackHow;

typedef struct QsfPackType {
    QsfPackHow how;
    const QsfQuantFormat *format; /* of ONE */
    QsfQuantRule rule;
} QsfPackType;

/* "keep", "mixed", or a format of quant/formats.h that the engine computes with. QSF_E_USAGE names those there are. */
int qsf_pack_type_parse(QsfPackType *out, const char *word, QsfErr *err);
/* All words, separated by ", ". */
void qsf_pack_type_words(QsfStrbuf *b);

/* Chooses for all items. Matrices get the format; the embedding and the head no fewer bits than 4; what is stored in no
 * more bits already stays. A row that is no multiple of a block gets the next format that takes it.
 * mixed: bits by role, more where more than 1 % are outliers or the cosine is below 0.99, judged on a sample of rows.
 * Errors of reading, QSF_E_INTERRUPTED. */
int qsf_choose(QsfItems *l, const QsfPackType *type, QsfEncoder *e, QsfErr *err);

/* Chooses such that the file is no longer than `target` bytes and the error, judged on a sample of rows and weighted by
 * roles, as small as it gets. size_of: bytes of the whole file as the items are now. QSF_E_USAGE: even the smallest is
 * longer, which the message tells. */
int qsf_choose_for_size(QsfItems *l, const QsfPackType *type, uint64_t target,
                        int (*size_of)(void *arg, uint64_t *bytes, QsfErr *err), void *arg, QsfEncoder *e, QsfErr *err);

#endif
