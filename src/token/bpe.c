/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of merges, and encoding with a BPE vocabulary, piece by piece. */
#include "src/token/bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/token/chars.h"

/* ---- merges ---- */

#define KEY_MERGES "tokenizer.ggml.merges"
#define EMPTY      UINT32_MAX
#define ID_BITS    21
#define ID_MASK    ((1u << ID_BITS) - 1)
#define LOW_BITS   (32 - ID_BITS)
#define MAX_MERGES (1u << 24)

static uint32_t slots_for(uint32_t n) { return n + n / 2 + 8; }

uint64_t qsf_ranks_bytes(uint32_t n) { return (uint64_t)slots_for(n) * sizeof(QsfRank) + 16; }

int qsf_ranks_count(const QsfSource *src, uint32_t *n, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(src, KEY_MERGES, QSF_META_STRING, &a, &present, err);
    if (rc != QSF_OK) return rc;
    const char *path = qsf_source_path(src);
    if (!present) return qsf_err_set(err, QSF_E_MODEL, "%s: byte-level BPE without %s", path, KEY_MERGES);
    uint64_t count = a.count;
    qsf_meta_array_close(&a);
    if (count > MAX_MERGES) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: %s has %llu merges, more than the limit of %u", path,
                           KEY_MERGES, (unsigned long long)count, MAX_MERGES);
    }
    *n = (uint32_t)count;
    return QSF_OK;
}

/* First slot to check: a keyed multiplicative hash, scaled to the table without a division. */
static uint32_t home(const QsfRanks *r, uint32_t left, uint32_t right) {
    uint64_t x = ((uint64_t)left << ID_BITS | right) ^ r->key;
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 29) * (r->key | 1);
    return (uint32_t)((x >> 32) * r->n_slots >> 32);
}

/* Slot of the pair, or the empty slot for it. */
static QsfRank *find_slot(const QsfRanks *r, uint32_t left, uint32_t right) {
    uint32_t i = home(r, left, right);
    while (r->slot[i].rank != EMPTY &&
           ((r->slot[i].a & ID_MASK) != left || (r->slot[i].b & ID_MASK) != right)) {
        if (++i == r->n_slots) i = 0;
    }
    return &r->slot[i];
}

/* False if the two do not merge. */
static bool ranks_find(const QsfRanks *r, int32_t left, int32_t right, uint32_t *rank, int32_t *merged) {
    if (left < 0 || right < 0) return false;
    const QsfRank *s = find_slot(r, (uint32_t)left, (uint32_t)right);
    if (s->rank == EMPTY) return false;
    *rank = s->rank;
    *merged = (int32_t)(s->a >> ID_BITS | s->b >> ID_BITS << LOW_BITS);
    return true;
}

/* One merge: the separator is the first space after the first character. */
static void add_merge(QsfRanks *r, const QsfVocab *v, const char *s, size_t len, uint32_t rank) {
    const char *space = len < 3 || len - 1 > v->max_len ? NULL : memchr(s + 1, ' ', len - 1);
    r->n_lost++; /* until all three are found */
    if (space == NULL) return;
    size_t n_left = (size_t)(space - s), n_right = len - n_left - 1;
    char joined[QSF_TOKEN_TEXT_MAX];
    memcpy(joined, s, n_left);
    memcpy(joined + n_left, space + 1, n_right);
    int32_t merged = qsf_vocab_find_model(v, joined, len - 1);
    int32_t left = qsf_vocab_find_model(v, s, n_left), right = qsf_vocab_find_model(v, space + 1, n_right);
    if (merged < 0 || left < 0 || right < 0) return;
    r->n_lost--;
    if (!(r->trained ? qsf_vocab_plain : qsf_vocab_mergeable)(v, merged)) return;
    QsfRank *slot = find_slot(r, (uint32_t)left, (uint32_t)right);
    if (slot->rank != EMPTY && !r->trained) return; /* listed twice */
    uint32_t m = (uint32_t)merged;
    slot->a = (uint32_t)left | m << ID_BITS;
    slot->b = (uint32_t)right | m >> LOW_BITS << ID_BITS;
    r->n += slot->rank == EMPTY;
    slot->rank = rank;
}

int qsf_ranks_load(QsfRanks *r, const QsfSource *src, const QsfVocab *v, uint32_t n, QsfArena *arena,
                   QsfErr *err) {
    *r = (QsfRanks){ .n_slots = slots_for(n),
                     .trained = r->trained,
                     .key = qsf_hash_bytes(KEY_MERGES, sizeof KEY_MERGES) };
    r->slot = qsf_arena_alloc(arena, (size_t)r->n_slots * sizeof *r->slot, sizeof(uint32_t), err);
    if (r->slot == NULL) return err->code;
    memset(r->slot, 0xFF, (size_t)r->n_slots * sizeof *r->slot);
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(src, KEY_MERGES, QSF_META_STRING, &a, &present, err);
    if (rc != QSF_OK) return rc;
    for (uint32_t i = 0; i < n && rc == QSF_OK; i++) {
        const char *s;
        size_t len;
        rc = qsf_meta_array_str(&a, &s, &len, err);
        if (rc == QSF_OK) add_merge(r, v, s, len, i);
        if (rc == QSF_OK && i % 1024 == 0) rc = qsf_interrupt_check(err);
    }
    qsf_meta_array_close(&a);
    return rc;
}

/* ---- pieces ---- */

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
    return ranks_find(ctx, left->id, right->id, rank, id);
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
