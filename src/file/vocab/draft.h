/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A vocabulary being converted from a tokenizer.json or SentencePiece model to the metadata of a source. The
 * readers fill it; qsf_draft_finish writes GGUF's tokenizer.ggml.* keys (and the keys of vocab/keys.h). */
#ifndef QSF_FILE_VOCAB_DRAFT_H
#define QSF_FILE_VOCAB_DRAFT_H

#include "src/base/json.h"
#include "src/file/source_impl.h"

#define QSF_DRAFT_MAX ((1u << 21) - 1) /* maximum number of tokens, that of a tokenizer */

/* As QsfTokenType; 0 = no token has this id yet. */
enum {
    QSF_DRAFT_NORMAL = 1,
    QSF_DRAFT_UNKNOWN,
    QSF_DRAFT_CONTROL,
    QSF_DRAFT_USER,
    QSF_DRAFT_UNUSED,
    QSF_DRAFT_BYTE
};

typedef struct QsfDraftToken {
    uint32_t off, len; /* of its text */
    float score;
    uint8_t type;
    bool added, added_only, lstrip, rstrip, single_word, normalized; /* of an added token */
} QsfDraftToken;

typedef struct QsfVocabDraft {
    QsfSource *s;
    QsfDraftToken *tok; /* (n) by id */
    uint32_t n, cap;
    QsfStrbuf text;
    QsfStrbuf merges, steps; /* encoded as elements of arrays */
    uint64_t n_merges, n_steps;
    bool has_steps;             /* a tokenizer.json: its rules apply, also without any step */
    uint64_t charged;           /* bytes of all these, to QSF_MEM_META until it is freed */
    QsfStrbuf charsmap;         /* precompiled normalizer of SentencePiece; empty = none */
    const char *model;          /* tokenizer.ggml.model */
    int32_t bos, eos, unk, pad; /* -1 = not set */
    int32_t model_unk;    /* of a tokenizer.json: what its model uses; unk may be a name that nothing uses */
    int add_bos, add_eos; /* -1 = not set */
    bool scores;          /* write scores */
    bool bpe, bytes, escape, ignore_merges, byte_fallback, fuse_unk;
    bool space_prefix, prefix_user, suffix; /* prefix_user: vocab/keys.h, QSF_KEY_PREFIX_USER */
    bool remove_extra;                      /* remove leading, trailing and repeated white space */
    int clean_spaces;                       /* -1 = not set */
} QsfVocabDraft;

/* An empty vocabulary for s; what it takes is charged to s->ledger. */
void qsf_draft_init(QsfVocabDraft *d, QsfSource *s);
/* Frees it and releases the charge. */
void qsf_draft_free(QsfVocabDraft *d);
/* Sets the text of a token. QSF_E_MODEL: the id is too high, or a different token has it. */
int qsf_draft_set(QsfVocabDraft *d, uint64_t id, const char *text, size_t len, float score, int type,
                  QsfErr *err);
/* Returns the lowest id with this text, or -1; searches linearly. */
int32_t qsf_draft_find(const QsfVocabDraft *d, const char *text, size_t len);
/* Charges what the lists and texts have grown by. QSF_E_BUDGET. */
int qsf_draft_charge(QsfVocabDraft *d, QsfErr *err);
/* Extends the vocabulary to n tokens; the new ones have no text and are UNUSED (unused rows of the
 * embedding). Added tokens beyond n are dropped. QSF_E_MODEL if it still has more. */
int qsf_draft_extend(QsfVocabDraft *d, uint32_t n, QsfErr *err);
int qsf_draft_finish(QsfVocabDraft *d, QsfErr *err);

/* --- vocab/steps.c: null is allowed. QSF_E_MODEL names what is not supported --- */
int qsf_hf_normalizer(QsfVocabDraft *d, const QsfJson *v, QsfErr *err);
int qsf_hf_pre_tokenizer(QsfVocabDraft *d, const QsfJson *v, QsfErr *err);
/* Accepts the decoders whose text is what QSF writes; adds nothing. */
int qsf_hf_decoder(QsfVocabDraft *d, const QsfJson *v, QsfErr *err);

/* --- vocab/added.c --- */
/* Adds an object of added_tokens or added_tokens_decoder. */
int qsf_hf_added_token(QsfVocabDraft *d, uint64_t id, const QsfJson *v, QsfErr *err);
/* Reads the tokens that a post-processor adds around a text. Call it after all tokens are known. */
void qsf_hf_post_processor(QsfVocabDraft *d, const QsfJson *v);
/* Reads tokenizer_config.json: named tokens, flags, tokens added later, chat templates. */
int qsf_hf_config(QsfVocabDraft *d, const QsfJson *v, QsfErr *err);

/* --- vocab/templates.c --- */
/* Most named templates of a model. */
#define QSF_NAMED_TEMPLATES 32u
/* Reads a member chat_template: a string, or named ones as a list or an object; NULL is allowed. */
int qsf_hf_templates(QsfSource *s, const QsfJson *v, QsfErr *err);
/* Reads the templates next to s->files[0] that are files, and, afterwards, those that are members of the JSON
 * files of a processor. QSF_E_MODEL: too many or too large, or not JSON. */
int qsf_vocab_template_files(QsfSource *s, QsfErr *err);
int qsf_vocab_template_members(QsfSource *s, QsfErr *err);

/* --- vocab/open.c --- */
struct QsfWhole;
/* Opens and reads the file `name` next to s->files[0], of at most max bytes; succeeds without
 * text if it does not exist. */
int qsf_read_beside(QsfSource *s, const char *name, uint64_t max, struct QsfWhole *w, QsfErr *err);

/* The readers: text[0..len) is the whole file. */
int qsf_hf_tokenizer_read(QsfVocabDraft *d, const char *text, size_t len, QsfErr *err);
int qsf_spm_model_read(QsfVocabDraft *d, const char *bytes, size_t len, QsfErr *err);

#endif
