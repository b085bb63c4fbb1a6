/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/inline_think.h"

#include <string.h>

static const char open_tag[] = "<think>", close_tag[] = "</think>";

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static size_t blanks(const QsfStrbuf *b) {
    size_t n = 0;
    while (n < b->len && is_blank(b->data[n])) n++;
    return n;
}

static void pass(QsfInlineThink *t, QsfStrbuf *to) {
    qsf_strbuf_add(to, qsf_strbuf_str(&t->held), t->held.len);
    qsf_strbuf_clear(&t->held);
}

/* The first bytes that are not blank decide. */
static void start(QsfInlineThink *t, char c, QsfStrbuf *answer) {
    qsf_strbuf_addc(&t->held, c);
    const size_t at = blanks(&t->held), n = t->held.len - at;
    if (n > 0 && memcmp(t->held.data + at, open_tag, n) != 0) {
        t->state = QSF_INLINE_ANSWER;
        pass(t, answer);
    } else if (n == sizeof open_tag - 1) {
        t->state = QSF_INLINE_INSIDE;
        qsf_strbuf_clear(&t->held);
    }
}

/* The tag has '<' at its beginning only: after another byte no earlier one can begin it. */
static void inside(QsfInlineThink *t, char c, QsfStrbuf *reasoning) {
    if (c != close_tag[t->held.len]) {
        pass(t, reasoning);
        if (c == close_tag[0])
            qsf_strbuf_addc(&t->held, c);
        else
            qsf_strbuf_addc(reasoning, c);
        return;
    }
    qsf_strbuf_addc(&t->held, c);
    if (t->held.len < sizeof close_tag - 1) return;
    qsf_strbuf_clear(&t->held);
    t->state = QSF_INLINE_ANSWER;
}

void qsf_inline_think_add(QsfInlineThink *t, const char *text, size_t len, QsfStrbuf *reasoning,
                          QsfStrbuf *answer) {
    size_t i = 0;
    for (; i < len && t->state != QSF_INLINE_ANSWER; i++) {
        if (t->state == QSF_INLINE_START)
            start(t, text[i], answer);
        else
            inside(t, text[i], reasoning);
    }
    qsf_strbuf_add(answer, text + i, len - i);
}

void qsf_inline_think_end(QsfInlineThink *t, QsfStrbuf *reasoning, QsfStrbuf *answer) {
    pass(t, t->state == QSF_INLINE_INSIDE ? reasoning : answer);
}

void qsf_inline_think_free(QsfInlineThink *t) {
    qsf_strbuf_free(&t->held);
    *t = (QsfInlineThink){ 0 };
}
