/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ids to text: the bytes of one token, and a stream of tokens as whole UTF-8 sequences. */
#include <string.h>

#include "src/base/utf8.h"
#include "src/token/chars.h"
#include "src/token/tokenizer_impl.h"

/* --- one token --- */

static size_t copy(const char *s, size_t len, char *dst, size_t cap) {
    if (cap > 0 && len > 0) memcpy(dst, s, len < cap ? len : cap);
    return len;
}

/* U+2581 becomes a space. */
static size_t unescape_spaces(const char *s, size_t len, char *dst, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < len; n++) {
        bool space = len - i >= QSF_SPM_SPACE_LEN && memcmp(s + i, QSF_SPM_SPACE, QSF_SPM_SPACE_LEN) == 0;
        if (n < cap) dst[n] = space ? ' ' : s[i];
        i += space ? QSF_SPM_SPACE_LEN : 1;
    }
    return n;
}

size_t qsf_tokenizer_piece(const QsfTokenizer *t, int32_t id, bool show_special, char *dst, size_t cap) {
    size_t len;
    const char *s = qsf_vocab_text(&t->vocab, id, &len);
    QsfTokenType type = qsf_vocab_type(&t->vocab, id);
    if (type == QSF_TOKEN_BYTE) {
        int value = qsf_spm_byte_value(s, len);
        char byte = (char)value;
        if (value >= 0) return copy(&byte, 1, dst, cap);
        type = QSF_TOKEN_NORMAL; /* a byte token by type, but written as text */
    }
    switch (type) {
    case QSF_TOKEN_USER: /* Gemma and Yi write runs of spaces with U+2581, which decoders of
                            huggingface/tokenizers replace in added tokens too; with bytes as
                            characters the text is not encoded */
        return t->unescape ? unescape_spaces(s, len, dst, cap) : copy(s, len, dst, cap);
    case QSF_TOKEN_NORMAL:
        if (t->unescape) return unescape_spaces(s, len, dst, cap);
        return t->bytes ? qsf_bytemap_decode(s, len, dst, cap) : copy(s, len, dst, cap);
    case QSF_TOKEN_CONTROL:
    case QSF_TOKEN_UNKNOWN: return show_special ? copy(s, len, dst, cap) : 0;
    case QSF_TOKEN_UNUSED:
    default: return 0;
    }
}

/* --- tidying spaces --- clean_up_tokenization_spaces (huggingface/transformers) drops the
 * space before "?!.,", the
 * spaces around a lone apostrophe, and the one before 's 'm 're 've. It suits English prose whose words were
 * separated by a tokenizer, and destroys code, so it must be asked for. ggml-org/llama.cpp does it in
 * three passes over the whole text; here they are three filters in a row, each holding back the few
 * bytes that are not decided yet. */

typedef struct Sink {
    char *dst;
    size_t n;
} Sink;

static void put(Sink *out, char c) { out->dst[out->n++] = c; }

enum { IDLE, SPACE, QUOTE, QUOTE_R, QUOTE_V }; /* held: nothing, " ", " '", " 'r", " 'v" */

static void flush_contraction(QsfDetok *d, Sink *out) {
    static const char *const HELD[] = { "", " ", " '", " 'r", " 'v" };
    for (const char *s = HELD[d->hold[2]]; *s != '\0'; s++) put(out, *s);
    d->hold[2] = IDLE;
}

/* Third pass: removes the space before 's 'm 're 've. */
static void contraction(QsfDetok *d, char c, Sink *out) {
    unsigned char h = d->hold[2];
    if (h == SPACE && c == '\'') {
        d->hold[2] = QUOTE;
        return;
    }
    if (h == QUOTE && (c == 'r' || c == 'v')) {
        d->hold[2] = c == 'r' ? QUOTE_R : QUOTE_V;
        return;
    }
    if ((h == QUOTE && (c == 's' || c == 'm')) || (h >= QUOTE_R && c == 'e')) {
        put(out, '\'');
        if (h >= QUOTE_R) put(out, h == QUOTE_R ? 'r' : 'v');
        put(out, c);
        d->hold[2] = IDLE;
        return;
    }
    flush_contraction(d, out);
    if (c == ' ') {
        d->hold[2] = SPACE;
    } else {
        put(out, c);
    }
}

static void flush_apostrophe(QsfDetok *d, Sink *out) {
    if (d->hold[1] >= SPACE) contraction(d, ' ', out);
    if (d->hold[1] >= QUOTE) contraction(d, '\'', out);
    d->hold[1] = IDLE;
}

/* Second pass: removes both spaces around a lone apostrophe. */
static void apostrophe(QsfDetok *d, char c, Sink *out) {
    if (d->hold[1] == SPACE && c == '\'') {
        d->hold[1] = QUOTE;
        return;
    }
    if (d->hold[1] == QUOTE && c == ' ') {
        contraction(d, '\'', out);
        d->hold[1] = IDLE;
        return;
    }
    flush_apostrophe(d, out);
    if (c == ' ') {
        d->hold[1] = SPACE;
    } else {
        contraction(d, c, out);
    }
}

/* First pass: removes a space before ?!.,. */
static void punctuation(QsfDetok *d, char c, Sink *out) {
    bool drops = c == '?' || c == '!' || c == '.' || c == ',';
    if (d->hold[0] == SPACE && !drops) apostrophe(d, ' ', out);
    d->hold[0] = c == ' ' ? SPACE : IDLE;
    if (c != ' ') apostrophe(d, c, out);
}

/* --- the stream --- */

void qsf_detok_init(QsfDetok *d, const QsfTokenizer *t, bool show_special, bool continues) {
    *d = (QsfDetok){ .t = t, .show_special = show_special };
    d->at_start = !continues;
}

bool qsf_detok_drops_space(const QsfDetok *d) { return d->at_start && d->t->add_space_prefix; }

void qsf_detok_clean(QsfDetok *d, bool always) {
    d->clean = always || (d->t->clean_spaces && d->t->kind->algorithm != QSF_ALG_BPE);
}

/* Bytes that dst may receive now; their incomplete end moves to the tail. */
static size_t hold_tail(QsfDetok *d, const char *dst, size_t n) {
    d->n_tail = (unsigned)qsf_utf8_incomplete_tail(dst, n);
    memcpy(d->tail, dst + n - d->n_tail, d->n_tail);
    return n - d->n_tail;
}

size_t qsf_detok_feed(QsfDetok *d, int32_t id, char *dst, size_t cap) {
    /* The piece is stored after space for everything that may be held back (3 bytes of a character, 6 of the
     * filters), so that the output never overtakes the input. */
    enum { ROOM = 12 };
    if (cap < ROOM) return 0;
    char *piece = dst + ROOM;
    size_t len = qsf_tokenizer_piece(d->t, id, d->show_special, piece, cap - ROOM);
    if (len > cap - ROOM) len = cap - ROOM;
    if (d->at_start && d->t->add_space_prefix && len > 0 && *piece == ' ') {
        piece++;
        len--;
    }
    d->at_start = false;
    Sink out = { .dst = dst };
    for (unsigned i = 0; i < d->n_tail; i++) put(&out, d->tail[i]);
    if (d->clean) {
        for (size_t i = 0; i < len; i++) punctuation(d, piece[i], &out);
    } else {
        memmove(dst + out.n, piece, len);
        out.n += len;
    }
    return hold_tail(d, dst, out.n);
}

size_t qsf_detok_flush(QsfDetok *d, char *dst, size_t cap) {
    char held[sizeof d->tail + 8];
    Sink out = { .dst = held };
    for (unsigned i = 0; i < d->n_tail; i++) put(&out, d->tail[i]);
    if (d->hold[0] == SPACE) apostrophe(d, ' ', &out);
    flush_apostrophe(d, &out);
    flush_contraction(d, &out);
    d->hold[0] = IDLE;
    d->n_tail = 0;
    return copy(held, out.n, dst, cap) < cap ? out.n : cap;
}
