/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prompts of models that reason: whether the template has opened a block or message already, and prompts that
 * continue an answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"
#include "src/chat/think_impl.h"

#include "src/base/ascii.h"

static bool blank(char c) { return qsf_think_blanks(&c, 1) == 1; }

/* Start of the tag at the end of the prompt, or its length. Only the template's own text counts. */
static size_t tag_at_end(const QsfThinkTag *t, const QsfRendered *r) {
    size_t end = r->text.len;
    if (t->len == 0 || r->n_segs == 0) return r->text.len;
    while (end > 0 && blank(r->text.data[end - 1])) end--;
    if (end < t->len || memcmp(r->text.data + end - t->len, t->text, t->len) != 0) return r->text.len;
    const QsfSegment *last = &r->segs[r->n_segs - 1];
    return last->trusted && last->off <= end - t->len ? end - t->len : r->text.len;
}

void qsf_think_cut(QsfRendered *r, size_t at) {
    while (r->n_segs > 0 && r->segs[r->n_segs - 1].off >= at) r->n_segs--;
    if (r->n_segs > 0) r->segs[r->n_segs - 1].len = at - r->segs[r->n_segs - 1].off;
    r->text.len = at;
}

/* ---- text of a format: its tokens are found in it ---- */

/* Length of the token of the format at the start of the text, 0 if there is none. */
static size_t token_at(const QsfThinkDialect *d, const char *text, size_t len) {
    for (const char *const *t = d->tokens; *t != NULL; t++)
        if (qsf_begins_with(text, len, *t)) return strlen(*t);
    return 0;
}

/* Appends the text as exact text. */
static void add_format(const QsfThinkDialect *d, QsfStrbuf *out, const char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        const size_t n = token_at(d, text + i, len - i);
        if (n > 0) qsf_strbuf_addc(out, QSF_EXACT_OPEN);
        qsf_strbuf_add(out, text + i, n > 0 ? n : 1);
        if (n > 0) qsf_strbuf_addc(out, QSF_EXACT_CLOSE);
        i += n > 0 ? n : 1;
    }
}

/* Appends ordinary text as exact text. */
static void add_text(QsfStrbuf *out, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (text[i] != QSF_EXACT_OPEN && text[i] != QSF_EXACT_CLOSE) qsf_strbuf_addc(out, text[i]);
}

/* Moves the split behind exact text that was emitted before. */
static void follow(QsfThinkSplit *s, const QsfTokenizer *tok, const char *exact, size_t len) {
    const char *end = exact + len;
    if (s->t->format == QSF_THINK_NONE) return;
    while (exact < end) {
        size_t n;
        bool token;
        const char *text = qsf_exact_next(exact, (size_t)(end - exact), &n, &token);
        const int32_t id = token ? qsf_tokenizer_find(tok, text, n) : -1;
        const bool hidden = id < 0 || qsf_tokenizer_type(tok, id) != QSF_TOKEN_USER;
        if (token)
            qsf_think_feed_token(s, text, n, hidden, NULL, NULL);
        else
            qsf_think_feed(s, text, n, NULL, NULL);
        exact = text + n + token;
    }
}

/* Appends exact text to the prompt: tokens as the template's own. */
static int append_exact(QsfRendered *r, const char *exact, size_t len, QsfErr *err) {
    const char *end = exact + len;
    int rc = QSF_OK;
    while (exact < end && rc == QSF_OK) {
        size_t n;
        bool token;
        const char *text = qsf_exact_next(exact, (size_t)(end - exact), &n, &token);
        rc = qsf_rendered_add(r, text, n, token, err);
        exact = text + n + token;
    }
    return rc;
}

/* ---- where the prompt ends ---- */

size_t qsf_think_last_message(const QsfThinkDialect *d, const QsfRendered *r) {
    if (r->n_segs == 0 || !r->segs[r->n_segs - 1].trusted) return r->text.len;
    const size_t from = r->segs[r->n_segs - 1].off, n = strlen(d->start);
    for (size_t at = r->text.len; at >= from + n; at--)
        if (memcmp(r->text.data + at - n, d->start, n) == 0) return at - n;
    return r->text.len;
}

/* The role in a head of the prompt is complete, and its own. */
static void settle_head(QsfThinkSplit *s) {
    size_t role = 0;
    s->started = false;
    while (role < s->head_len && (unsigned char)s->head[role] > ' ') role++;
    memmove(s->head, s->head + role, s->head_len - role);
    s->head_len -= role;
}

static int begin_parts(const QsfTokenizer *tok, const QsfRendered *r, QsfThinkPrompt *where, QsfErr *err) {
    QsfThinkSplit *s = &where->split;
    const QsfThinkDialect *d = qsf_think_dialect(s->t->format);
    const size_t at = qsf_think_last_message(d, r);
    QsfStrbuf exact = QSF_STRBUF_INIT;
    add_format(d, &exact, r->text.data + at, r->text.len - at);
    const bool ok = qsf_strbuf_ok(&exact);
    if (ok) follow(s, tok, qsf_strbuf_str(&exact), exact.len);
    qsf_strbuf_free(&exact);
    if (!ok) return qsf_err_memory(err, "rendered messages");
    s->ended = false;
    if (s->heading && s->t->format != QSF_THINK_ELEMENTS) settle_head(s);
    if (qsf_think_inside(s))
        snprintf(where->opened, sizeof where->opened, "%s",
                 qsf_think_reasoning_head(s->t->format, s->commentary));
    return QSF_OK;
}

/* The state after the prompt. */
static int begin(const QsfTokenizer *tok, const QsfRendered *r, QsfThinkPrompt *where, QsfErr *err) {
    QsfThinkSplit *s = &where->split;
    if (qsf_think_dialect(s->t->format) != NULL) return begin_parts(tok, r, where, err);
    if (s->t->format != QSF_THINK_TAGS) return QSF_OK;
    const size_t at = tag_at_end(&s->t->open, r);
    if (at < r->text.len) {
        s->state = QSF_THINK_INSIDE;
        snprintf(where->opened, sizeof where->opened, "%.*s", (int)(r->text.len - at), r->text.data + at);
    } else if (tag_at_end(&s->t->answer_open, r) < r->text.len) {
        s->state = QSF_THINK_OPENED;
        s->wrapped = true;
    }
    return QSF_OK;
}

/* ---- continuing without the exact text: tags ---- */

/* Length of the opening tag with the white space before it, 0 if the reasoning does not begin with it. */
static size_t opening(const QsfThinkTag *t, const QsfMsg *m) {
    const size_t at = qsf_think_blanks(m->reasoning, m->reasoning_len);
    bool there = m->reasoning_len - at >= t->len && memcmp(m->reasoning + at, t->text, t->len) == 0;
    return there ? at + t->len : 0;
}

/* Start of the closing tag at the end of the reasoning, or its length. */
static size_t closing(const QsfThinkTag *t, const QsfMsg *m) {
    size_t end = m->reasoning_len;
    while (end > 0 && blank(m->reasoning[end - 1])) end--;
    bool there = end >= t->len && memcmp(m->reasoning + end - t->len, t->text, t->len) == 0;
    return there ? end - t->len : m->reasoning_len;
}

/* The reasoning, whose tags are tokens, and the answer so far. */
static int append_block(const QsfMsg *m, QsfRendered *r, QsfThinkPrompt *where, QsfErr *err) {
    QsfThinkSplit *s = &where->split;
    const char *text = m->reasoning;
    const size_t from = opening(&s->t->open, m), to = closing(&s->t->close, m);
    if (from > 0) qsf_think_cut(r, tag_at_end(&s->t->open, r));
    int rc = qsf_rendered_add(r, text, from, true, err);
    if (rc == QSF_OK) rc = qsf_rendered_add(r, text + from, to - from, false, err);
    if (rc == QSF_OK) rc = qsf_rendered_add(r, text + to, m->reasoning_len - to, true, err);
    if (rc == QSF_OK) rc = qsf_rendered_add(r, m->content, m->len, false, err);
    s->state = to < m->reasoning_len ? QSF_THINK_AFTER : QSF_THINK_INSIDE;
    if (m->len > 0) qsf_think_tags_answered(s, m->content, m->len);
    if (s->state == QSF_THINK_INSIDE) qsf_think_feed(s, text + from, m->reasoning_len - from, NULL, NULL);
    return rc;
}

/* ---- continuing without the exact text: messages and elements ---- */

/* inside: the prompt has the head of the first message. */
static void add_reasoning(const QsfThinkDialect *d, QsfThinkFormat f, const QsfMsg *m, bool inside,
                          QsfStrbuf *out) {
    QsfThinkBlock b = { 0 };
    size_t at = 0;
    bool first = true;
    for (; qsf_think_block(m->reasoning, m->reasoning_len, &at, &b) || first; first = false) {
        const char *head = qsf_think_reasoning_head(f, b.commentary);
        if (!first) add_format(d, out, d->end, strlen(d->end));
        if (!first) add_format(d, out, d->next, strlen(d->next));
        if (!first || !inside) add_format(d, out, head, strlen(head));
        add_text(out, b.text, b.len);
        b = (QsfThinkBlock){ 0 };
    }
}

/* What the model wrote, as far as its reasoning and its answer tell. */
static void restore(const QsfMsg *m, const QsfThinkSplit *s, QsfStrbuf *out) {
    const QsfThinkDialect *d = qsf_think_dialect(s->t->format);
    const bool inside = qsf_think_inside(s), answering = s->part == QSF_PART_ANSWER && !s->heading;
    const bool closed = m->reasoning_len > 1 && memcmp(m->reasoning + m->reasoning_len - 2, "\n\n", 2) == 0;
    if (m->reasoning_len > 0) add_reasoning(d, s->t->format, m, inside, out);
    if ((inside || m->reasoning_len > 0) && (m->len > 0 || closed)) {
        add_format(d, out, d->end, strlen(d->end));
        add_format(d, out, d->next, strlen(d->next));
        add_format(d, out, d->answer, strlen(d->answer));
    } else if (m->len > 0 && !answering) {
        add_format(d, out, d->answer, strlen(d->answer));
    }
    add_text(out, m->content, m->len);
}

static int append_parts(const QsfTokenizer *tok, const QsfMsg *m, QsfRendered *r, QsfThinkPrompt *where,
                        QsfErr *err) {
    QsfStrbuf exact = QSF_STRBUF_INIT;
    restore(m, &where->split, &exact);
    int rc = qsf_strbuf_ok(&exact) ? append_exact(r, qsf_strbuf_str(&exact), exact.len, err)
                                   : qsf_err_memory(err, "rendered messages");
    if (rc == QSF_OK) follow(&where->split, tok, qsf_strbuf_str(&exact), exact.len);
    qsf_strbuf_free(&exact);
    return rc;
}

/* ---- reasoning without marks ---- */

/* Puts the marks of the format around reasoning that has none; a format without reasoning drops it. Returns
 * m, or *copy, whose reasoning is in text; NULL when memory runs out. */
static const QsfMsg *mark(const QsfThink *t, const QsfMsg *m, QsfMsg *copy, QsfStrbuf *text, QsfErr *err) {
    const bool tags = t->format == QSF_THINK_TAGS && t->open.len > 0;
    const bool closed = m->thought == QSF_THOUGHT_CLOSED;
    if (m->thought == QSF_THOUGHT_MARKED || m->reasoning_len == 0) return m;
    *copy = *m;
    copy->reasoning_len = 0;
    if (!tags && qsf_think_dialect(t->format) == NULL) return copy;
    if (tags) qsf_strbuf_addf(text, "%.*s\n", (int)t->open.len, t->open.text);
    qsf_strbuf_add(text, m->reasoning, m->reasoning_len);
    if (tags && closed) qsf_strbuf_addf(text, "\n%.*s", (int)t->close.len, t->close.text);
    if (closed) qsf_strbuf_adds(text, "\n\n");
    copy->reasoning = qsf_strbuf_str(text);
    copy->reasoning_len = text->len;
    if (qsf_strbuf_ok(text)) return copy;
    (void)qsf_err_memory(err, "rendered messages");
    return NULL;
}

/* ---- all of them ---- */

static int append_last(const QsfTokenizer *tok, const QsfMsg *m, QsfRendered *r, QsfThinkPrompt *where,
                       QsfErr *err) {
    QsfThinkSplit *s = &where->split;
    where->opened[0] = '\0'; /* the reasoning has begun already */
    if (where->exact) {
        follow(s, tok, m->exact, m->exact_len);
        return append_exact(r, m->exact, m->exact_len, err);
    }
    if (qsf_think_dialect(s->t->format) != NULL) return append_parts(tok, m, r, where, err);
    if (s->t->format == QSF_THINK_TAGS && m->reasoning_len > 0) return append_block(m, r, where, err);
    qsf_think_tags_answered(s, m->content, m->len);
    return qsf_rendered_add(r, m->content, m->len, false, err);
}

/* Without a template; more: what follows is added by the caller. */
static int render_plain(const QsfMsg *msgs, size_t n, bool more, QsfRendered *r, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; i < n && rc == QSF_OK; i++) {
        rc = qsf_rendered_add(r, msgs[i].content, msgs[i].len, false, err);
        if (rc == QSF_OK && (more || i + 1 < n) && qsf_chat_breaks_line(msgs, i + 1))
            rc = qsf_rendered_add(r, "\n", 1, false, err);
    }
    return rc;
}

/* With the template; tool calls of earlier answers are messages of their own, or a part of the answer that
 * the template renders. */
static int render(const QsfThink *think, const QsfChatTemplate *t, const QsfTokenizer *tok,
                  const QsfMsg *msgs, size_t n, unsigned flags, QsfRendered *r, QsfErr *err) {
    QsfMsg *held;
    const QsfMsg *shown = qsf_think_hold_calls(think, msgs, n, &held, err);
    if (shown == NULL) return err != NULL ? err->code : QSF_E_RUNTIME;
    if (think->format == QSF_THINK_BLOCKS || think->format == QSF_THINK_ELEMENTS) flags |= QSF_CHAT_CALLS;
    int rc = qsf_chat_render(t, shown, n, flags, r, err);
    if (rc == QSF_OK && held != NULL) rc = qsf_think_put_calls(think, tok, msgs, n, r, err);
    free(held);
    return rc;
}

/* last: the message that is continued, or NULL. */
static int encode(const QsfThink *think, const QsfChatTemplate *t, const QsfTokenizer *tok,
                  const QsfMsg *msgs, size_t n, const QsfMsg *last, unsigned flags, QsfIds *out,
                  QsfThinkPrompt *where, QsfErr *err) {
    const bool parts = qsf_think_dialect(think->format) != NULL;
    QsfRendered r = { 0 };
    *where = (QsfThinkPrompt){ 0 };
    qsf_think_start(&where->split, think);
    where->exact = last != NULL && last->exact_len > 0 && qsf_exact_fits(tok, last->exact, last->exact_len);
    const bool separate = where->exact || (last != NULL && (parts || last->reasoning_len > 0));
    if ((t == NULL && !separate) || (last != NULL && !separate)) {
        if (last != NULL) qsf_think_tags_answered(&where->split, last->content, last->len);
        return qsf_chat_encode_checked(t, tok, msgs, n, flags, out, &where->lost, err);
    }
    const size_t before = last != NULL ? n - 1 : n;
    unsigned turn = (flags & ~(unsigned)QSF_CHAT_CONTINUE) | QSF_CHAT_GENERATE;
    int rc = t != NULL ? render(think, t, tok, msgs, before, turn, &r, err)
                       : render_plain(msgs, before, last != NULL, &r, err);
    where->lost = r.lost;
    if (rc == QSF_OK) rc = begin(tok, &r, where, err);
    if (rc == QSF_OK && last != NULL) rc = append_last(tok, last, &r, where, err);
    if (rc == QSF_OK) rc = qsf_chat_encode_rendered(tok, &r, flags & QSF_CHAT_ALLOW_SPECIAL, out, err);
    qsf_rendered_free(&r);
    return rc;
}

int qsf_think_encode(const QsfThink *think, const QsfChatTemplate *t, const QsfTokenizer *tok,
                     const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *out, QsfThinkPrompt *where,
                     QsfErr *err) {
    const bool continues = (flags & QSF_CHAT_CONTINUE) && n > 0;
    QsfMsg copy;
    QsfStrbuf text = QSF_STRBUF_INIT;
    const QsfMsg *last = continues ? mark(think, &msgs[n - 1], &copy, &text, err) : NULL;
    const int rc = continues && last == NULL ? QSF_E_RUNTIME
                                             : encode(think, t, tok, msgs, n, last, flags, out, where, err);
    qsf_strbuf_free(&text);
    return rc;
}
