/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Splitting at tags: reasoning between two of them, and the answer, which may have tags of its own and, where
 * tags are tokens, more reasoning inside. */
#include <string.h>

#include "src/chat/think_impl.h"

typedef enum Match { MATCH_NO, MATCH_PART, MATCH_WHOLE } Match;

/* Whether the tag is at `at`, or its beginning at the end of the text. */
static Match match(const QsfThinkSplit *s, size_t at, const QsfThinkTag *t) {
    if (t->len == 0) return MATCH_NO;
    for (size_t i = 0; i < t->len; i++) {
        if (at + i == s->len) return MATCH_PART;
        uint8_t mark = s->mark[at + i];
        bool fits = t->mark[i] == QSF_MARK_TEXT ? !(mark & QSF_MARK_HIDDEN)
                                                : (mark & QSF_MARK_BYTE) == t->mark[i];
        if (!fits || s->buf[at + i] != t->text[i]) return MATCH_NO;
    }
    size_t end = at + t->len; /* tokens are fed whole */
    bool longer = t->mark[t->len - 1] != QSF_MARK_TEXT && end < s->len &&
                  (s->mark[end] & QSF_MARK_BYTE) == QSF_MARK_REST;
    return longer ? MATCH_NO : MATCH_WHOLE;
}

/* Emits bytes [from, to) that are shown. */
static void emit(const QsfThinkSplit *s, bool reasoning, bool hidden, size_t from, size_t to, QsfThinkPut put,
                 void *arg) {
    if (put == NULL) return;
    while (from < to) {
        size_t end = from;
        bool skip = !hidden && (s->mark[from] & QSF_MARK_HIDDEN);
        while (end < to && (!hidden && (s->mark[end] & QSF_MARK_HIDDEN)) == skip) end++;
        if (!skip) put(arg, reasoning, s->buf + from, end - from);
        from = end;
    }
}

void qsf_think_tags_answered(QsfThinkSplit *s, const char *text, size_t len) {
    s->state = QSF_THINK_ANSWER;
    if (len == 0) return;
    s->answered = true;
    s->spaced = qsf_think_blanks(text + len - 1, 1) == 1;
}

/* Removes the first n bytes, without those already emitted. hidden: hidden tokens are shown too. */
static void put_out(QsfThinkSplit *s, bool reasoning, bool hidden, size_t n, QsfThinkPut put, void *arg) {
    size_t said = n < s->said ? n : s->said;
    if (n > 0 && !reasoning && s->state == QSF_THINK_ANSWER) qsf_think_tags_answered(s, s->buf, n);
    emit(s, reasoning, hidden, said, n, put, arg);
    s->said -= said;
    memmove(s->buf, s->buf + n, s->len - n);
    memmove(s->mark, s->mark + n, s->len - n);
    s->len -= n;
}

static void drop(QsfThinkSplit *s, size_t n) { put_out(s, false, false, n, NULL, NULL); }

static bool has_token(const QsfThinkTag *t) { return memchr(t->mark, QSF_MARK_FIRST, t->len) != NULL; }

/* Whether an opening tag inside an answer opens a block: it does where tags are tokens.
 * Characters may mention a tag. */
static bool reopens(const QsfThink *t) { return has_token(&t->open) && has_token(&t->close); }

/* Outside a block: white space, then perhaps a tag. false: more text is needed. */
static bool look_for_open(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    size_t blank = qsf_think_blanks(s->buf, s->len);
    if (s->state == QSF_THINK_AFTER) {
        put_out(s, true, false, blank, put, arg);
        blank = 0;
    }
    Match open = match(s, blank, &s->t->open), wrap = match(s, blank, &s->t->answer_open);
    if (open == MATCH_WHOLE) {
        put_out(s, true, true, blank + s->t->open.len, put, arg);
        s->state = QSF_THINK_INSIDE;
    } else if (wrap == MATCH_WHOLE) {
        drop(s, blank + s->t->answer_open.len);
        s->state = QSF_THINK_OPENED;
        s->wrapped = true;
    } else if (blank > QSF_THINK_BLANKS || (open == MATCH_NO && wrap == MATCH_NO)) {
        s->state = QSF_THINK_ANSWER;
    } else {
        return false;
    }
    return true;
}

/* Inside: up to the closing tag, or to what may be the start of one. */
static bool look_for_close(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    Match m = MATCH_NO;
    size_t at = 0;
    while (at < s->len && (m = match(s, at, &s->t->close)) == MATCH_NO) at++;
    put_out(s, true, false, at, put, arg);
    if (m != MATCH_WHOLE) return false;
    put_out(s, true, true, s->t->close.len, put, arg);
    /* White space after a block belongs to the answer if it separates two parts of it. */
    s->state = s->answered && !s->spaced ? QSF_THINK_ANSWER : QSF_THINK_AFTER;
    return true;
}

/* Whether the text from `at` may be the end of the answer: white space, its closing tag, white space. *whole:
 * the tag is complete. */
static bool may_end(const QsfThinkSplit *s, size_t at, bool *whole) {
    size_t tag = at + qsf_think_blanks(s->buf + at, s->len - at);
    Match m = match(s, tag, &s->t->answer_close);
    *whole = m == MATCH_WHOLE;
    if (m != MATCH_WHOLE) return m == MATCH_PART;
    size_t end = tag + s->t->answer_close.len;
    return end + qsf_think_blanks(s->buf + end, s->len - end) == s->len;
}

/* The answer: all of it, or up to what may be its end or another block. */
static bool look_for_end(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    size_t at = 0;
    Match open = MATCH_NO;
    bool whole;
    for (; at < s->len; at++) {
        if (reopens(s->t) && (open = match(s, at, &s->t->open)) != MATCH_NO) break;
        if (s->wrapped && s->len - at <= 2 * QSF_THINK_BLANKS && may_end(s, at, &whole)) break;
    }
    put_out(s, false, false, at, put, arg);
    if (open != MATCH_WHOLE) return false;
    put_out(s, true, true, s->t->open.len, put, arg);
    s->state = QSF_THINK_INSIDE;
    return true;
}

static bool after_open(QsfThinkSplit *s) {
    drop(s, qsf_think_blanks(s->buf, s->len));
    if (s->len > 0) s->state = QSF_THINK_ANSWER;
    return s->len > 0;
}

/* Whether what is held back is not text if nothing follows: the beginning of a tag whose first token is
 * hidden, or the tag after the answer. */
static bool is_dropped(const QsfThinkSplit *s) {
    bool whole = false;
    const size_t blank = qsf_think_blanks(s->buf, s->len);
    if (s->state == QSF_THINK_ANSWER && s->wrapped && s->len > 0) (void)may_end(s, 0, &whole);
    const bool outside = s->state == QSF_THINK_START || s->state == QSF_THINK_AFTER ||
                         (s->state == QSF_THINK_ANSWER && reopens(s->t));
    return whole || (outside && blank < s->len && (s->mark[blank] & QSF_MARK_HIDDEN));
}

static void decide(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    for (bool more = true; more && s->len > 0;) {
        switch (s->state) {
        case QSF_THINK_INSIDE: more = look_for_close(s, put, arg); break;
        case QSF_THINK_OPENED: more = after_open(s); break;
        case QSF_THINK_ANSWER: more = look_for_end(s, put, arg); break;
        case QSF_THINK_START:
        case QSF_THINK_AFTER: more = look_for_open(s, put, arg); break;
        }
    }
    if (put == NULL) s->said = is_dropped(s) ? 0 : s->len;
}

/* A hidden token is of interest only as a part of a tag. */
static bool is_part(const QsfThink *t, const char *text, size_t len) {
    const QsfThinkTag *all[] = { &t->open, &t->close, &t->answer_open, &t->answer_close };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->len >= len && memmem(all[i]->text, all[i]->len, text, len) != NULL) return true;
    return false;
}

void qsf_think_tags_feed(QsfThinkSplit *s, const char *text, size_t len, unsigned mark, QsfThinkPut put,
                         void *arg) {
    if (len == 0 || ((mark & QSF_MARK_HIDDEN) && !is_part(s->t, text, len))) return;
    if (len > sizeof s->buf - s->len) len = sizeof s->buf - s->len; /* cannot happen: little is held back */
    memcpy(s->buf + s->len, text, len);
    memset(s->mark + s->len, (int)mark, len);
    if ((mark & QSF_MARK_BYTE) == QSF_MARK_FIRST && len > 1)
        memset(s->mark + s->len + 1, (int)(QSF_MARK_REST | (mark & QSF_MARK_HIDDEN)), len - 1);
    s->len += len;
    decide(s, put, arg);
}

void qsf_think_tags_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg) {
    if (is_dropped(s)) drop(s, s->len);
    put_out(s, s->state == QSF_THINK_INSIDE, false, s->len, put, arg);
}
