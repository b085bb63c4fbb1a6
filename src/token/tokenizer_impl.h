/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of QsfTokenizer, for the files that implement tokenizer.h. */
#ifndef QSF_TOKEN_TOKENIZER_IMPL_H
#define QSF_TOKEN_TOKENIZER_IMPL_H

#include "src/base/arena.h"
#include "src/token/bpe.h"
#include "src/token/charsmap.h"
#include "src/token/greedy.h"
#include "src/token/plamo.h"
#include "src/token/special.h"
#include "src/token/spm.h"
#include "src/token/steps.h"
#include "src/token/token_roles.h"
#include "src/token/unigram.h"

typedef enum QsfAlgorithm {
    QSF_ALG_SPM,
    QSF_ALG_BPE,
    QSF_ALG_UNIGRAM,
    QSF_ALG_GREEDY,
    QSF_ALG_PLAMO
} QsfAlgorithm;

/* Properties of a value of tokenizer.ggml.model, which the file may override. */
typedef struct QsfTokenizerKind {
    const char *model;
    QsfAlgorithm algorithm;
    const char *pre; /* default tokenizer.ggml.pre, or NULL */
    bool add_bos, add_eos, space_prefix;
    int32_t fallback[3]; /* ids of BOS, EOS and the unknown token */
} QsfTokenizerKind;

struct QsfTokenizer {
    QsfArena arena;         /* holds this struct and all its tables */
    uint64_t pattern_bytes; /* charged for compiled expressions, which live on the libc heap */
    QsfVocab vocab;
    QsfSpecials specials,
        normalized; /* normalized: found after normalization, with steps; vocab is NULL without any */
    QsfRoles roles;
    const QsfTokenizerKind *kind;
    QsfSpm spm;            /* QSF_ALG_SPM */
    QsfBpe bpe;            /* QSF_ALG_BPE */
    QsfUnigram unigram;    /* QSF_ALG_UNIGRAM */
    QsfGreedy greedy;      /* QSF_ALG_GREEDY */
    QsfPlamo plamo;        /* QSF_ALG_PLAMO */
    QsfCharsmap charsmap;  /* the two SentencePiece kinds; may change nothing */
    QsfTextSteps steps;    /* present: text is tokenized as by huggingface/tokenizers */
    int32_t model_unknown; /* with steps: id for text without a token, or -1 */
    int normal_form;       /* QsfNormalForm applied to text first, -1 = none */
    bool bytes;            /* tokens are bytes written as characters */
    bool unescape;         /* U+2581 in tokens is a space */
    bool escape;           /* BPE: spaces become U+2581 first */
    bool bpe_prefix;       /* BPE: the space prefix is also added to text, not only removed */
    bool prefix_first;     /* the prefix is added at the start of the text only, not after special tokens */
    bool prefix_missing;   /* ... and not before a space */
    bool add_bos, add_eos;
    bool add_space_prefix; /* add a space before a text and after special tokens */
    bool prefix_user;      /* not after user-defined ones, but before one at the start of a text */
    bool clean_spaces;     /* the file asks for cleaning up spaces before punctuation; BPE needs
                              the user to ask */
    char warning[256];
};

/* --- open.c --- */
/* Chooses the pre-tokenizer and compiles it; sets its other properties. QSF_E_MODEL for expressions of the
 * file that do not compile. */
int qsf_tokenizer_open_pretok(QsfTokenizer *t, const QsfSource *src, QsfErr *err);

/* Opens the steps and the special tokens of a vocabulary with steps. QSF_E_MODEL,
 * QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_tokenizer_open_steps(QsfTokenizer *t, const QsfSource *src, QsfErr *err);

/* --- encode_steps.c --- */
/* qsf_tokenizer_encode_marked for a vocabulary with steps, without BOS and EOS; len > 0. */
int qsf_tokenizer_encode_steps(const QsfTokenizer *t, const char *text, size_t len, const uint8_t *trusted,
                               unsigned flags, QsfIds *out, QsfErr *err);

#endif
