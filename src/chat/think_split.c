/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Splitting output by the format of the model, and the exact text of an answer. */
#include <string.h>

#include "src/chat/think_impl.h"

#define SLICE 512u /* bytes passed on at a time; less than the buffer without what may be held back */

void qsf_think_start(QsfThinkSplit *s, const QsfThink *t) {
    memset(s, 0, sizeof *s);
    s->t = t;
    s->part = QSF_PART_ANSWER;
}

void qsf_think_feed(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg) {
    if (s->t->format != QSF_THINK_TAGS) {
        qsf_think_parts_text(s, text, len, put, arg);
        return;
    }
    for (size_t n; len > 0; text += n, len -= n) {
        n = len < SLICE ? len : SLICE;
        for (int k = 0; n < len && k < 3 && ((unsigned char)text[n] & 0xC0) == 0x80; k++) n--;
        qsf_think_tags_feed(s, text, n, QSF_MARK_TEXT, put, arg);
    }
}

void qsf_think_feed_token(QsfThinkSplit *s, const char *text, size_t len, bool hidden, QsfThinkPut put,
                          void *arg) {
    if (s->t->format != QSF_THINK_TAGS)
        qsf_think_parts_token(s, text, len, hidden, put, arg);
    else if (len <= SLICE)
        qsf_think_tags_feed(s, text, len, QSF_MARK_FIRST | (hidden ? QSF_MARK_HIDDEN : 0), put, arg);
    else if (!hidden)
        qsf_think_feed(s, text, len, put, arg);
}

void qsf_think_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    if (s->t->format == QSF_THINK_TAGS)
        qsf_think_tags_flush(s, put, arg);
    else if (s->t->format != QSF_THINK_NONE)
        qsf_think_parts_flush(s, put, arg);
}

bool qsf_think_inside(const QsfThinkSplit *s) {
    if (s->t->format == QSF_THINK_TAGS) return s->state == QSF_THINK_INSIDE;
    return !s->heading && s->part == QSF_PART_REASONING;
}

void qsf_think_answer(QsfThinkSplit *s) {
    if (s->t->format == QSF_THINK_TAGS) qsf_think_tags_answered(s, NULL, 0);
}

size_t qsf_think_rest(const QsfThinkSplit *s, const char *text, size_t len) {
    QsfThinkSplit copy = *s;
    size_t n = 0;
    while (n < len && qsf_think_inside(&copy)) qsf_think_feed(&copy, text + n++, 1, NULL, NULL);
    return n;
}

size_t qsf_think_piece_max(size_t piece_max) { return piece_max > QSF_THINK_BUF ? piece_max : QSF_THINK_BUF; }

/* ---- exact text ---- */

/* Whether the token must be marked. White space that is a user-defined token is found in any text. */
static bool is_marked(const QsfTokenizer *tok, int32_t id, const char **text, size_t *len) {
    const QsfTokenType type = qsf_tokenizer_type(tok, id);
    *text = qsf_tokenizer_raw(tok, id, len);
    if (type == QSF_TOKEN_USER)
        return *len > 2 && memchr(*text, ' ', *len) == NULL && memmem(*text, *len, "\xE2\x96\x81", 3) == NULL;
    return (type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_UNKNOWN) && *len > 0;
}

static bool has_mark(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (text[i] == QSF_EXACT_OPEN || text[i] == QSF_EXACT_CLOSE || text[i] == '\0') return true;
    return false;
}

static bool add(QsfStrbuf *out, const char *text, size_t len) {
    if (has_mark(text, len)) return false;
    if (len > 0) qsf_strbuf_add(out, text, len);
    return qsf_strbuf_ok(out);
}

bool qsf_exact_add(const QsfTokenizer *tok, const int32_t *ids, size_t n, bool continues, char *scratch,
                   size_t scratch_cap, QsfStrbuf *out, bool *special) {
    QsfDetok d;
    bool ok = true;
    *special = false;
    qsf_detok_init(&d, tok, false, continues);
    for (size_t i = 0; i < n && ok; i++) {
        const char *text;
        size_t len;
        if (is_marked(tok, ids[i], &text, &len)) {
            ok = add(out, scratch, qsf_detok_flush(&d, scratch, scratch_cap));
            d.at_start = false;
            qsf_strbuf_addc(out, QSF_EXACT_OPEN);
            ok = ok && add(out, text, len);
            qsf_strbuf_addc(out, QSF_EXACT_CLOSE);
            *special = true;
        } else {
            ok = add(out, scratch, qsf_detok_feed(&d, ids[i], scratch, scratch_cap));
        }
    }
    return ok && add(out, scratch, qsf_detok_flush(&d, scratch, scratch_cap));
}

const char *qsf_exact_next(const char *exact, size_t len, size_t *n, bool *token) {
    const char *end = NULL;
    *token = len > 0 && *exact == QSF_EXACT_OPEN;
    if (*token) {
        exact++;
        len--;
        end = memchr(exact, QSF_EXACT_CLOSE, len);
    } else if (len > 0) {
        end = memchr(exact, QSF_EXACT_OPEN, len);
    }
    *n = end != NULL ? (size_t)(end - exact) : len;
    return exact;
}

bool qsf_exact_fits(const QsfTokenizer *tok, const char *exact, size_t len) {
    const char *end = exact + len;
    while (exact < end) {
        size_t n;
        bool token;
        const char *text = qsf_exact_next(exact, (size_t)(end - exact), &n, &token), *other;
        const int32_t id = token ? qsf_tokenizer_find(tok, text, n) : -1;
        if (token ? id < 0 || !is_marked(tok, id, &other, &n) : has_mark(text, n)) return false;
        exact = text + n + token;
    }
    return exact == end;
}
