/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text to token ids and back, exactly as the model was trained. Built once from a model file,
 * immutable afterwards: any thread may use it. Its tables are compact (one blob of bytes, 32-bit
 * offsets) because they count in the RAM budget. */
#ifndef QSF_TOKEN_TOKENIZER_H
#define QSF_TOKEN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/ledger.h"
#include "src/file/source.h"

/* Token attributes, numbered as tokenizer.ggml.token_type. */
typedef enum QsfTokenType {
    QSF_TOKEN_NORMAL = 1,
    QSF_TOKEN_UNKNOWN,
    QSF_TOKEN_CONTROL,
    QSF_TOKEN_USER,
    QSF_TOKEN_UNUSED,
    QSF_TOKEN_BYTE
} QsfTokenType;

typedef struct QsfTokenizer QsfTokenizer;

/* Growable list of token ids (heap.h). With a ledger they are charged to it as QSF_MEM_TRANSCRIPT, and so is
 * the memory that the tokenizer needs to make them; functions that append then fail with QSF_E_BUDGET too. */
typedef struct QsfIds {
    int32_t *data;
    size_t n, cap;
    QsfLedger *ledger; /* NULL, or set while the list is empty */
} QsfIds;
int qsf_ids_push(QsfIds *ids, int32_t id, QsfErr *err); /* QSF_E_RUNTIME without memory */
/* Appends n ids; QSF_E_RUNTIME without memory, QSF_E_BUDGET with a ledger. */
int qsf_ids_append(QsfIds *ids, const int32_t *src, size_t n, QsfErr *err);
/* Frees the list and releases its charge; it is empty and can be used again. */
void qsf_ids_free(QsfIds *ids);

/* Upper bound of the bytes that opening will charge to QSF_MEM_TOKENIZER, computed from the metadata
 * alone. */
uint64_t qsf_tokenizer_estimate(const QsfSource *src);

/* Builds the tokenizer of src (tokenizer.ggml.model llama, gpt2, gemma4 or t5). Unknown pre-tokenizer names
 * cause a warning (see qsf_tokenizer_warning) and use the default. QSF_E_MODEL names the key; QSF_E_BUDGET.
 * src may be closed afterwards. */
int qsf_tokenizer_open(QsfTokenizer **out, const QsfSource *src, QsfLedger *ledger, QsfErr *err);
/* Frees it with its tables. NULL is allowed. */
void qsf_tokenizer_close(QsfTokenizer *t);
/* One sentence about guesses, or NULL. */
const char *qsf_tokenizer_warning(const QsfTokenizer *t);

enum {
    QSF_TOK_BOS = 1,      /* add BOS if the vocabulary requires it */
    QSF_TOK_EOS = 2,      /* add EOS if the vocabulary requires it */
    QSF_TOK_SPECIAL = 4,  /* parse control and user-defined tokens in the text */
    QSF_TOK_NO_PREFIX = 8 /* this text continues earlier text: no space prefix in SentencePiece */
};

/* Appends the ids of text[0..len). Never fails on content: ill-formed UTF-8 is tokenized byte by
 * byte. QSF_E_RUNTIME without memory, QSF_E_BUDGET (see QsfIds). */
int qsf_tokenizer_encode(const QsfTokenizer *t, const char *text, size_t len, unsigned flags, QsfIds *out,
                         QsfErr *err);

/* The same for a rendered prompt: trusted (len) is 1 for the bytes of the template itself. Special tokens are
 * found only there; apart from that the text is tokenized as a whole, across boundaries. */
int qsf_tokenizer_encode_marked(const QsfTokenizer *t, const char *text, size_t len, const uint8_t *trusted,
                                unsigned flags, QsfIds *out, QsfErr *err);

/* Returns a number of tokens that text[0..len) has at least, without tokenizing it: from the length of the
 * longest token. text NULL: unknown. 0 where the vocabulary may drop text, or make one token of any amount of
 * it. */
size_t qsf_tokenizer_least(const QsfTokenizer *t, const char *text, size_t len);

/* Returns the number of tokens: ids are below it. */
uint32_t qsf_tokenizer_n_vocab(const QsfTokenizer *t);
/* Special ids, -1 if the vocabulary has none. */
int32_t qsf_tokenizer_bos(const QsfTokenizer *t);
int32_t qsf_tokenizer_eos(const QsfTokenizer *t);
/* Does QSF_TOK_BOS add a token? */
bool qsf_tokenizer_adds_bos(const QsfTokenizer *t);
/* Whether this id ends a generation (EOS, EOT, <|im_end|>, <end_of_turn>, ...). */
bool qsf_tokenizer_is_eog(const QsfTokenizer *t, int32_t id);
/* Whether this id ends a message, but not the generation (<|end|> of gpt-oss). */
bool qsf_tokenizer_is_eom(const QsfTokenizer *t, int32_t id);
/* Returns the type; QSF_TOKEN_UNUSED for ids outside the vocabulary. */
QsfTokenType qsf_tokenizer_type(const QsfTokenizer *t, int32_t id);
/* Finds the longest word of a text that comes in pieces: a run of white space, or of other
 * bytes. Zeroed at its start. */
typedef struct QsfWords {
    size_t longest, run; /* bytes; run: at the end of the last piece */
    bool blank;          /* that run is white space */
} QsfWords;
/* Counts the next len bytes of a text; *w is zeroed before the first. */
void qsf_words_feed(QsfWords *w, const char *text, size_t len);
/* Returns an estimate, rather too high, of the bytes that tokenizing a text of len bytes
 * charges, with its ids. */
uint64_t qsf_tokenizer_need(const QsfTokenizer *t, size_t len, size_t longest_word);
/* Id of a token by its exact stored text, -1 if absent. */
int32_t qsf_tokenizer_find(const QsfTokenizer *t, const char *text, size_t len);

/* Stored (raw) text of the token, not NUL-terminated; valid as long as t. */
const char *qsf_tokenizer_raw(const QsfTokenizer *t, int32_t id, size_t *len);
/* The bytes of the token in text, at most cap of them, to dst; returns their full number. SentencePiece's
 * U+2581 becomes a space, byte-level BPE is mapped back, byte tokens give their byte. Control tokens give
 * nothing unless show_special. Ids outside the vocabulary give nothing. */
size_t qsf_tokenizer_piece(const QsfTokenizer *t, int32_t id, bool show_special, char *dst, size_t cap);
#define QSF_PIECE_MAX 65536 /* maximum length of a token's piece; opening refuses longer ones */

/* Streaming detokenizer: emits only whole UTF-8 sequences, holding back an incomplete tail. The space that a
 * SentencePiece vocabulary puts before the first word is removed at the start of a text, as the reference
 * does. Ill-formed sequences are emitted unchanged once they can no longer be completed. */
typedef struct QsfDetok {
    const QsfTokenizer *t;
    bool show_special;
    bool at_start; /* the next piece is at the start of the text */
    char tail[8];  /* held-back bytes */
    unsigned n_tail;
    bool clean;            /* clean up spaces before punctuation (see init) */
    unsigned char hold[3]; /* bytes held back by each of its filters */
} QsfDetok;

/* continues: the text follows earlier text (the answer after a prompt), so its first space is kept. */
void qsf_detok_init(QsfDetok *d, const QsfTokenizer *t, bool show_special, bool continues);
/* Is a space at the beginning of the next piece dropped? */
bool qsf_detok_drops_space(const QsfDetok *d);
/* Also drops spaces before ?!., and contractions: always, or only if the vocabulary has
 * clean_up_tokenization_spaces and is not BPE. Never for answers: they may be code. Call it
 * before the first token. */
void qsf_detok_clean(QsfDetok *d, bool always);
/* Text completed by this id, to dst (cap >= QSF_PIECE_MAX + 8); returns its bytes. */
size_t qsf_detok_feed(QsfDetok *d, int32_t id, char *dst, size_t cap);
/* The text still held back at the end; returns its bytes. */
size_t qsf_detok_flush(QsfDetok *d, char *dst, size_t cap);

#endif
