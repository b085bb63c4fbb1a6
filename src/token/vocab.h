/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vocabulary: token id <-> stored text, with type and score. One blob and 32-bit offsets. */
#ifndef QSF_TOKEN_VOCAB_H
#define QSF_TOKEN_VOCAB_H

#include "src/base/hashmap.h"
#include "src/token/tokenizer.h"

/* Maximum stored text; leaves the detokenizer space for the bytes it holds back. */
#define QSF_TOKEN_TEXT_MAX (QSF_PIECE_MAX - 16)
/* Longer tokens are searched for in another way (QsfMatcher in trie.h): their length costs no time. */
#define QSF_TOKEN_LONG 64
/* Merges pack three ids into 63 bits. */
#define QSF_VOCAB_MAX ((1u << 21) - 1)

/* Flags next to the type in QsfVocab.attr. */
enum {
    QSF_ATTR_TYPE = 0x07,      /* mask of QsfTokenType */
    QSF_ATTR_EOG = 0x08,       /* ends a generation */
    QSF_ATTR_LSTRIP = 0x10,    /* white space before the token belongs to it */
    QSF_ATTR_RSTRIP = 0x20,    /* white space after it */
    QSF_ATTR_SINGLE = 0x40,    /* found only as a separate word */
    QSF_ATTR_ADDED_ONLY = 0x80 /* not known to the model that tokenizes text, only found as a special token */
};

/* Sizes given by the metadata, before anything is allocated. */
typedef struct QsfVocabShape {
    uint32_t n;                         /* tokens */
    uint64_t text_bytes;                /* of all stored texts together */
    uint32_t n_special;                 /* tokens of type unknown, control or user-defined */
    uint32_t n_long;                    /* tokens of more than QSF_TOKEN_LONG bytes (as written) */
    uint64_t special_bytes, long_bytes; /* of their texts */
    bool scores;                        /* there is an array of scores */
    bool escaped;                       /* texts are written with escapes; set by the caller */
} QsfVocabShape;

typedef struct QsfVocab {
    uint32_t n, max_len; /* tokens; longest stored text */
    char *blob;
    uint32_t *off;  /* (n + 1) into blob */
    uint8_t *attr;  /* (n) */
    float *score;   /* (n), or NULL */
    QsfHashmap map; /* stored text -> id; does not contain the empty text */
} QsfVocab;

/* QSF_E_MODEL: no tokens, too many, arrays of different lengths or wrong types. */
int qsf_vocab_shape(QsfVocabShape *shape, const QsfSource *src, bool scores, QsfErr *err);
/* Upper bound of the memory that qsf_vocab_load takes from the arena. */
uint64_t qsf_vocab_bytes(const QsfVocabShape *shape);
/* v must not move afterwards. QSF_E_MODEL, QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_vocab_load(QsfVocab *v, const QsfSource *src, const QsfVocabShape *shape, QsfArena *arena,
                   QsfErr *err);

/* Any id: -1 and ids beyond the end have an empty text. */
const char *qsf_vocab_text(const QsfVocab *v, int32_t id, size_t *len);
/* -1 if absent. */
int32_t qsf_vocab_find(const QsfVocab *v, const char *text, size_t len);
/* The same without QSF_ATTR_ADDED_ONLY. */
int32_t qsf_vocab_find_model(const QsfVocab *v, const char *text, size_t len);
/* QSF_TOKEN_UNUSED for ids out of range. */
QsfTokenType qsf_vocab_type(const QsfVocab *v, int32_t id);
/* Sets the type of a token of the vocabulary. */
void qsf_vocab_set_type(QsfVocab *v, int32_t id, QsfTokenType type);

/* Whether merging plain text may result in this token. Control, unknown and byte tokens are excluded: typed
 * text never becomes one by merging (google/sentencepiece src/model_interface.cc keeps them apart too). */
bool qsf_vocab_mergeable(const QsfVocab *v, int32_t id);
/* The same for vocabularies of huggingface/tokenizers, whose models know no types: excluded are added tokens
 * that the model does not know, and control tokens that are chat markup, which typed text must not become. */
bool qsf_vocab_plain(const QsfVocab *v, int32_t id);

#endif
