/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SentencePiece BPE (google/sentencepiece src/bpe_model.cc): spaces become U+2581, characters are merged by
 * the score of the resulting token, characters without a token fall back to bytes. */
#ifndef QSF_TOKEN_SPM_H
#define QSF_TOKEN_SPM_H

#include "src/base/strbuf.h"
#include "src/token/merge.h"
#include "src/token/vocab.h"

#define QSF_SPM_SPACE     "\xE2\x96\x81" /* U+2581 */
#define QSF_SPM_SPACE_LEN 3

typedef struct QsfSpm {
    const QsfVocab *vocab;
    int32_t byte_id[256]; /* token of each byte: <0xXX>, else the byte itself, else unknown, else -1 */
    bool by_word;         /* no token continues after a space inside it: words may be merged separately */
} QsfSpm;

/* Whether no token that merging can make has U+2581 after another character. Then a text may be tokenized
 * word by word. */
bool qsf_spm_spaces_lead(const QsfVocab *v);
/* unknown: id for bytes without a token, or -1. */
void qsf_spm_init(QsfSpm *m, const QsfVocab *v, int32_t unknown);
/* Value of a byte token from its text ("<0x0A>"), or -1. */
int qsf_spm_byte_value(const char *text, size_t len);

/* Appends the ids of text[0..len), with a leading space if prefix is set. word is scratch. */
int qsf_spm_encode(const QsfSpm *m, QsfMerger *merger, QsfStrbuf *word, const char *text, size_t len,
                   bool prefix, QsfIds *out, QsfErr *err);

/* Returns an upper bound of the bytes that a word of the text takes, spaces written as U+2581. */
size_t qsf_spm_word_bytes(const QsfSpm *m, const char *text, size_t len);

#endif
