/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small vocabularies for tests: add tokens and merges, then open a tokenizer of them. */
#ifndef QSF_TESTS_TINY_VOCAB_H
#define QSF_TESTS_TINY_VOCAB_H

#include "src/token/tokenizer.h"
#include "tests/harness/gguf_build.h"

#define QSF_TV_MAX 1024

/* Zero-initialise. Texts of tokens and merges are borrowed. */
typedef struct QsfTestVocab {
    QsfGgufBuild gb; /* more metadata may be added before opening */
    const char *tokens[QSF_TV_MAX], *merges[QSF_TV_MAX];
    float scores[QSF_TV_MAX];
    int32_t types[QSF_TV_MAX];
    uint32_t n, n_merges;
    char bytes[256][8]; /* texts of the byte tokens */
} QsfTestVocab;

/* Returns the id. */
int32_t qsf_tv_add(QsfTestVocab *v, const char *text, float score, QsfTokenType type);
void qsf_tv_merge(QsfTestVocab *v, const char *merge);
/* <unk> <s> </s> (ids 0 1 2), then <0x00> .. <0xFF> (ids 3 .. 258). */
void qsf_tv_spm(QsfTestVocab *v);
/* The 256 characters of byte-level BPE: ids 0 .. 255 are the bytes. */
void qsf_tv_bpe(QsfTestVocab *v);
/* Writes the file and opens it. model: "llama" or "gpt2" (then merges are written). NULL on failure. */
QsfTokenizer *qsf_tv_open(QsfTestVocab *v, const char *model, QsfLedger *ledger, QsfErr *err);
/* The same as a source; the caller closes it. */
QsfSource *qsf_tv_source(QsfTestVocab *v, const char *model, QsfLedger *ledger, QsfErr *err);
void qsf_tv_free(QsfTestVocab *v);

/* Fails the test unless text gives exactly the ids, ended by -1. */
void qsf_tv_expect(const QsfTokenizer *t, const char *text, unsigned flags, const int32_t *ids);
#define QSF_TV_EXPECT(t, text, flags, ...) qsf_tv_expect(t, text, flags, (const int32_t[]){ __VA_ARGS__, -1 })

/* Ids as text through the streaming detokenizer; the caller frees it. The clean one drops
 * spaces before punctuation. */
char *qsf_tv_detok_clean(const QsfTokenizer *t, const int32_t *ids, size_t n, size_t *len);
char *qsf_tv_detok(const QsfTokenizer *t, const int32_t *ids, size_t n, bool show_special, bool continues,
                   size_t *len);

#endif
