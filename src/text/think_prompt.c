/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prompts of reasoning models: whether the template has opened a block already, and prompts that continue
 * after existing reasoning. */
#include <stdio.h>
#include <string.h>

#include "src/text/chat_impl.h"
#include "src/text/think.h"

static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Start of the opening tag at the end of the prompt, or its length. Only the template's own text counts. */
static size_t opened_at(const QsfThink *think, const QsfRendered *r) {
    size_t tag = strlen(think->tags->open), end = r->text.len;
    while (end > 0 && blank(r->text.data[end - 1])) end--;
    if (end < tag || memcmp(r->text.data + end - tag, think->tags->open, tag) != 0) return r->text.len;
    const QsfSegment *last = &r->segs[r->n_segs - 1];
    return last->trusted && last->off <= end - tag ? end - tag : r->text.len;
}

/* Removes everything after `at`. */
static void cut(QsfRendered *r, size_t at) {
    while (r->n_segs > 0 && r->segs[r->n_segs - 1].off >= at) r->n_segs--;
    if (r->n_segs > 0) r->segs[r->n_segs - 1].len = at - r->segs[r->n_segs - 1].off;
    r->text.len = at;
}

/* Length of the opening tag with the white space before it, 0 if the reasoning does not begin with it. */
static size_t opening(const QsfThink *think, const QsfMsg *m) {
    size_t tag = strlen(think->tags->open), at = 0;
    while (at < m->reasoning_len && blank(m->reasoning[at])) at++;
    bool there = m->reasoning_len - at >= tag && memcmp(m->reasoning + at, think->tags->open, tag) == 0;
    return there ? at + tag : 0;
}

/* Start of the closing tag at the end of the reasoning, or its length. */
static size_t closing(const QsfThink *think, const QsfMsg *m) {
    size_t tag = strlen(think->tags->close), end = m->reasoning_len;
    while (end > 0 && blank(m->reasoning[end - 1])) end--;
    bool there = end >= tag && memcmp(m->reasoning + end - tag, think->tags->close, tag) == 0;
    return there ? end - tag : m->reasoning_len;
}

/* The reasoning, whose tags are tokens, and the answer so far. */
static int append_block(const QsfThink *think, const QsfMsg *m, QsfRendered *out, QsfErr *err) {
    const char *text = m->reasoning;
    size_t from = opening(think, m), to = closing(think, m);
    int rc = qsf_rendered_add(out, text, from, true, err);
    if (rc == QSF_OK) rc = qsf_rendered_add(out, text + from, to - from, false, err);
    if (rc == QSF_OK) rc = qsf_rendered_add(out, text + to, m->reasoning_len - to, true, err);
    if (rc == QSF_OK) rc = qsf_rendered_add(out, m->content, m->len, false, err);
    return rc;
}

/* Length of a partial closing tag at the end of the reasoning. */
static size_t begun(const QsfThink *think, const QsfMsg *m) {
    size_t n = strlen(think->tags->close) - 1, room = m->reasoning_len - opening(think, m);
    if (n > room) n = room;
    while (n > 0 && memcmp(m->reasoning + m->reasoning_len - n, think->tags->close, n) != 0) n--;
    return n;
}

/* Start of an answer after continued reasoning. */
static QsfThinkPrompt behind_reasoning(const QsfThink *think, const QsfMsg *m) {
    if (m->len > 0) return (QsfThinkPrompt){ .state = QSF_THINK_ANSWER };
    if (closing(think, m) < m->reasoning_len) return (QsfThinkPrompt){ .state = QSF_THINK_AFTER };
    return (QsfThinkPrompt){ .state = QSF_THINK_INSIDE, .begun = begun(think, m) };
}

int qsf_think_encode(const QsfThink *think, const QsfChatTemplate *t, const QsfTokenizer *tok,
                     const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *out, QsfThinkPrompt *where,
                     QsfErr *err) {
    bool continue_last = flags & QSF_CHAT_CONTINUE;
    bool behind = continue_last && n > 0 && msgs[n - 1].reasoning_len > 0;
    *where = (QsfThinkPrompt){ .state = continue_last ? QSF_THINK_ANSWER : QSF_THINK_START };
    if (t == NULL || think->tags == NULL || (continue_last && !behind))
        return qsf_chat_encode_checked(t, tok, msgs, n, flags, out, &where->lost, err);
    QsfRendered r = { 0 };
    unsigned turn = (flags & ~(unsigned)QSF_CHAT_CONTINUE) | QSF_CHAT_GENERATE;
    int rc = qsf_chat_render(t, msgs, behind ? n - 1 : n, turn, &r, err);
    size_t at = rc == QSF_OK && r.n_segs > 0 ? opened_at(think, &r) : r.text.len;
    if (rc == QSF_OK && behind) {
        if (opening(think, &msgs[n - 1]) > 0) cut(&r, at);
        *where = behind_reasoning(think, &msgs[n - 1]);
        rc = append_block(think, &msgs[n - 1], &r, err);
    } else if (rc == QSF_OK && at < r.text.len) {
        where->state = QSF_THINK_INSIDE;
        snprintf(where->opened, sizeof where->opened, "%.*s", (int)(r.text.len - at), r.text.data + at);
    }
    where->lost = r.lost;
    if (rc == QSF_OK) rc = qsf_chat_encode_rendered(tok, &r, flags & QSF_CHAT_ALLOW_SPECIAL, out, err);
    qsf_rendered_free(&r);
    return rc;
}
