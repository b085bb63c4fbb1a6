/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Encoding with a BPE vocabulary, piece by piece. */
#include "src/token/bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/token/bytemap.h"

#define CHECK_EVERY 16384u /* bytes of a piece between two looks at the interrupt flag */

void qsf_bpe_init_bytes(QsfBpe *b, const QsfVocab *v, bool chars, int32_t unknown) {
    b->vocab = v;
    b->chars = chars;
    b->unknown = unknown;
    for (unsigned i = 0; i < 256; i++) {
        char byte = (char)i, text[8];
        size_t len = chars ? (size_t)snprintf(text, sizeof text, "<0x%02X>", i)
                           : qsf_bytemap_encode(&byte, 1, text);
        b->byte_id[i] = qsf_vocab_find_model(v, text, len);
        len = (size_t)snprintf(text, sizeof text, "<0x%02X>", i);
        b->fallback_id[i] = qsf_vocab_find_model(v, text, len);
    }
}

static bool join(const void *ctx, const QsfSymbol *left, const QsfSymbol *right, uint32_t *rank,
                 int32_t *id) {
    return qsf_ranks_find(ctx, left->id, right->id, rank, id);
}

typedef struct Piece {
    const QsfBpe *b;
    QsfMerger *merger;
    QsfIds *out;
} Piece;

/* The token that is exactly this piece, or -1. */
static int32_t whole_token(const QsfBpe *b, const char *piece, size_t len) {
    bool (*usable)(const QsfVocab *, int32_t) = b->trained ? qsf_vocab_plain : qsf_vocab_mergeable;
    char small[256], *text = small;
    if (len > b->vocab->max_len) return -1;
    if (b->chars || b->mapped) {
        int32_t id = qsf_vocab_find_model(b->vocab, piece, len);
        return usable(b->vocab, id) ? id : -1;
    }
    if (len > sizeof small / 2) text = malloc(2 * len);
    if (text == NULL) return -1; /* merging needs memory too and reports if it runs out */
    int32_t id = qsf_vocab_find_model(b->vocab, text, qsf_bytemap_encode(piece, len, text));
    if (text != small) free(text);
    return usable(b->vocab, id) ? id : -1;
}

/* The parts at the start of merging. */
static int add_parts(const QsfBpe *b, QsfMerger *merger, const char *piece, size_t len, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0, n = 1; i < len && rc == QSF_OK; i += n) {
        int32_t id = b->byte_id[(unsigned char)piece[i]];
        if (b->chars) {
            uint32_t cp;
            n = qsf_utf8_next(piece + i, len - i, &cp);
            id = qsf_vocab_find_model(b->vocab, piece + i, n);
            if (!qsf_vocab_mergeable(b->vocab, id)) id = -1;
        }
        rc = qsf_merger_add(merger, n, id, err);
        if (rc == QSF_OK && i % CHECK_EVERY == CHECK_EVERY - 1) rc = qsf_interrupt_check(err);
    }
    return rc;
}

/* --- parts of a piece by the rules of huggingface/tokenizers; pending: an unknown token is due --- */

static int flush_unknown(const QsfBpe *b, QsfMerger *merger, bool *pending, QsfErr *err) {
    if (!*pending) return QSF_OK;
    *pending = false;
    return qsf_merger_add(merger, 1, b->unknown, err);
}

static int add_fallback(const QsfBpe *b, QsfMerger *merger, const char *s, size_t len, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; i < len && rc == QSF_OK; i++)
        rc = qsf_merger_add(merger, 1, b->fallback_id[(unsigned char)s[i]], err);
    return rc;
}

static bool has_fallback(const QsfBpe *b, const char *s, size_t len) {
    for (size_t i = 0; b->fallback && i < len; i++)
        if (b->fallback_id[(unsigned char)s[i]] < 0) return false;
    return b->fallback;
}

/* A part that has no token: byte tokens, or an unknown one, or nothing. Byte tokens do not end a run of what
 * is unknown, as in the reference. */
static int add_unknown(const QsfBpe *b, QsfMerger *merger, bool *pending, const char *s, size_t len,
                       QsfErr *err) {
    if (has_fallback(b, s, len)) return add_fallback(b, merger, s, len, err);
    if (b->unknown < 0) return QSF_OK;
    int rc = b->fuse_unknown ? QSF_OK : flush_unknown(b, merger, pending, err);
    *pending = true;
    return rc;
}

/* The token of the part of n bytes at s; if there is none, text is what the part is called in
 * vocabularies. */
static int32_t part_at(const QsfBpe *b, const char *s, size_t len, size_t *n, char *text, size_t *text_len) {
    uint32_t cp;
    *n = b->chars || b->mapped ? qsf_utf8_next(s, len, &cp) : 1;
    if (b->chars || b->mapped) {
        memcpy(text, s, *n);
        *text_len = *n;
        return qsf_vocab_find_model(b->vocab, s, *n); /* also a control token: one character is not markup */
    }
    const int32_t id = b->byte_id[(unsigned char)*s];
    *text_len = id < 0 ? qsf_bytemap_encode(s, 1, text) : 0;
    return id;
}

static int add_trained(const QsfBpe *b, QsfMerger *merger, const char *piece, size_t len, QsfErr *err) {
    bool pending = false;
    int rc = QSF_OK;
    for (size_t i = 0, n; i < len && rc == QSF_OK; i += n) {
        char text[8];
        size_t text_len;
        const int32_t id = part_at(b, piece + i, len - i, &n, text, &text_len);
        if (id < 0) {
            rc = add_unknown(b, merger, &pending, text, text_len, err);
        } else {
            if (pending) rc = flush_unknown(b, merger, &pending, err);
            if (rc == QSF_OK) rc = qsf_merger_add(merger, n, id, err);
        }
        if (rc == QSF_OK && i % CHECK_EVERY == CHECK_EVERY - 1) rc = qsf_interrupt_check(err);
    }
    return rc == QSF_OK ? flush_unknown(b, merger, &pending, err) : rc;
}

/* A character without a token: its bytes, if all of them have one. */
static int push_fallback(const QsfBpe *b, const char *s, size_t len, QsfIds *out, QsfErr *err) {
    size_t before = out->n;
    for (size_t i = 0; i < len; i++) {
        int32_t id = b->byte_id[(unsigned char)s[i]];
        int rc = id >= 0 ? qsf_ids_push(out, id, err) : QSF_OK;
        if (rc != QSF_OK) return rc;
        if (id >= 0) continue;
        out->n = before;
        return b->unknown >= 0 ? qsf_ids_push(out, b->unknown, err) : QSF_OK;
    }
    return QSF_OK;
}

static int push_symbol(const Piece *p, const QsfSymbol *sym, const char *piece, QsfErr *err) {
    if (sym->id >= 0) return qsf_ids_push(p->out, sym->id, err);
    return p->b->chars ? push_fallback(p->b, piece + sym->off, sym->len, p->out, err) : QSF_OK;
}

/* Runs of newlines are separate tokens if the vocabulary has them (Gemma): no merge produces them. */
static bool all_newlines(const char *s, size_t len) {
    while (len > 0 && s[len - 1] == '\n') len--;
    return len == 0;
}

static int encode_piece(void *ctx, const char *piece, size_t len, QsfErr *err) {
    const Piece *p = ctx;
    const QsfBpe *b = p->b;
    if (b->ignore_merges || (b->chars && !b->trained && all_newlines(piece, len))) {
        int32_t id = whole_token(b, piece, len);
        if (id >= 0) return qsf_ids_push(p->out, id, err);
    }
    qsf_merger_clear(p->merger);
    int rc = (b->trained ? add_trained : add_parts)(b, p->merger, piece, len, err);
    if (p->merger->n_syms == 0) return rc;
    if (rc == QSF_OK) rc = qsf_merger_run(p->merger, join, &b->ranks, err);
    for (int32_t i = 0; i >= 0 && rc == QSF_OK; i = p->merger->syms[i].next)
        rc = push_symbol(p, &p->merger->syms[i], piece, err);
    return rc;
}

int qsf_bpe_piece(const QsfBpe *b, QsfMerger *merger, const char *piece, size_t len, QsfIds *out,
                  QsfErr *err) {
    Piece p = { .b = b, .merger = merger, .out = out };
    return encode_piece(&p, piece, len, err);
}

int qsf_bpe_encode(const QsfBpe *b, QsfMerger *merger, QsfRegexScratch *scratch, const char *text, size_t len,
                   QsfIds *out, QsfErr *err) {
    Piece p = { .b = b, .merger = merger, .out = out };
    return qsf_pretok_split(&b->pretok, scratch, text, len, encode_piece, &p, err);
}
