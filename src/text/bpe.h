/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Byte-level BPE (openai/gpt-2 src/encoder.py): the pre-tokenizer cuts pieces, the bytes of a piece are
 * merged by rank. */
#ifndef QSF_TEXT_BPE_H
#define QSF_TEXT_BPE_H

#include "src/text/merge.h"
#include "src/text/pretok.h"
#include "src/text/ranks.h"

typedef struct QsfBpe {
    const QsfVocab *vocab;
    QsfRanks ranks;
    QsfPretok pretok;
    bool ignore_merges;    /* a piece that is a token is used whole */
    int32_t byte_id[256];  /* token of each byte, -1 when the vocabulary lacks it */
} QsfBpe;

/* Fills byte_id; the other members are the caller's. */
void qsf_bpe_init_bytes(QsfBpe *b, const QsfVocab *v);

/* Appends the ids of text[0..len). Bytes without a token give nothing, as in the reference. */
int qsf_bpe_encode(const QsfBpe *b, QsfMerger *merger, QsfRegexScratch *scratch, const char *text, size_t len,
                   QsfIds *out, QsfErr *err);

#endif
