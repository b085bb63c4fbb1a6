/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tool calls of earlier answers in a prompt. An answer shows a call by name and arguments (think_parts.c);
 * the prompt has it as the message that it was: a template would make it text of a final message.
 * openai/harmony specifies the form. */
#include <stdlib.h>
#include <string.h>

#include "src/chat/think_impl.h"

#include "src/base/ascii.h"

/* Stands for the content in the rendering. No template contains it. */
#define HELD  "Zqcallk"
#define LABEL "[tool call to="

/* No token of the format is made of these. */
static bool is_of_name(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || strchr("._-:/", c) != NULL;
}

/* The call at the start of the text, without its arguments; its text is what follows. */
static bool read_label(const char *text, size_t len, QsfCallPart *p) {
    const size_t at = strlen(LABEL);
    if (!qsf_begins_with(text, len, LABEL)) return false;
    const char *end = memmem(text + at, len - at, "] ", 2);
    if (end == NULL || end == text + at) return false;
    *p = (QsfCallPart){ text + at, (size_t)(end - text) - at, end + 2, len - (size_t)(end + 2 - text) };
    for (size_t i = 0; i < p->name_len; i++)
        if (!is_of_name(p->name[i])) return false;
    return true;
}

const char *qsf_call_next(const char *text, const char *end, QsfCallPart *p) {
    QsfCallPart other;
    if (text == NULL || text == end) return NULL;
    if (!read_label(text, (size_t)(end - text), p))
        *p = (QsfCallPart){ .text = text, .len = (size_t)(end - text) };
    for (const char *at = p->text;
         (at = memmem(at, (size_t)(end - at), "\n\n" LABEL, 2 + strlen(LABEL))) != NULL; at++) {
        if (!read_label(at + 2, (size_t)(end - at) - 2, &other)) continue;
        p->len = (size_t)(at - p->text);
        return at + 2;
    }
    return end;
}

/* Whether the message is an answer that calls a tool, in a format whose calls are messages. */
static bool calls(QsfThinkFormat f, const QsfMsg *m) {
    if ((f != QSF_THINK_HARMONY && f != QSF_THINK_SELF) || strcmp(m->role, "assistant") != 0) return false;
    QsfCallPart p;
    const char *at = m->content, *end = at + m->len;
    while (m->len > 0 && (at = qsf_call_next(at, end, &p)) != NULL)
        if (p.name != NULL) return true;
    return false;
}

const QsfMsg *qsf_think_hold_calls(const QsfThink *t, const QsfMsg *msgs, size_t n, QsfMsg **held,
                                   QsfErr *err) {
    bool any = false;
    *held = NULL;
    for (size_t i = 0; i < n; i++) any = any || calls(t->format, &msgs[i]);
    if (!any) return msgs;
    QsfMsg *copy = malloc(n * sizeof *copy);
    if (copy == NULL) {
        qsf_err_memory(err, "rendered messages");
        return NULL;
    }
    memcpy(copy, msgs, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        if (!calls(t->format, &msgs[i])) continue;
        copy[i].content = HELD;
        copy[i].len = strlen(HELD);
    }
    return *held = copy;
}

/* ---- putting them back ---- */

typedef struct Put {
    const QsfThink *t;
    const QsfThinkDialect *d;
    const QsfTokenizer *tok;
    QsfRendered out;
    const char *end; /* of a message that calls */
    QsfErr *err;
} Put;

static int own(Put *p, const char *text) {
    return qsf_rendered_add(&p->out, text, strlen(text), true, p->err);
}

static bool has(const Put *p, const char *token) {
    return qsf_tokenizer_find(p->tok, token, strlen(token)) >= 0;
}

/* Calls of functions are commentary and have JSON; those of built-in tools are part of the analysis. */
static int put_head(Put *p, const QsfCallPart *call) {
    const bool harmony = p->t->format == QSF_THINK_HARMONY,
               function = qsf_begins_with(call->name, call->name_len, "functions.");
    int rc = own(p, p->d->next);
    if (rc == QSF_OK && harmony) rc = own(p, function ? "<|channel|>commentary" : "<|channel|>analysis");
    if (rc == QSF_OK) rc = own(p, " to=");
    if (rc == QSF_OK) rc = qsf_rendered_add(&p->out, call->name, call->name_len, true, p->err);
    if (rc == QSF_OK && harmony && function && qsf_begins_with(call->text, call->len, "{") &&
        has(p, "<|constrain|>"))
        rc = own(p, " <|constrain|>json");
    return rc == QSF_OK ? own(p, "<|message|>") : rc;
}

/* The parts of the answer, in place of the last message of the output, whose head is complete. */
static int put_parts(Put *p, const QsfMsg *m) {
    QsfCallPart part;
    const char *at = m->content, *end = at + m->len;
    bool text = false; /* the part before is text */
    int rc = QSF_OK;
    for (bool first = true; rc == QSF_OK && (at = qsf_call_next(at, end, &part)) != NULL; first = false) {
        if (part.name != NULL && first) qsf_think_cut(&p->out, qsf_think_last_message(p->d, &p->out));
        if (part.name != NULL && !first) rc = own(p, text ? p->d->end : p->end);
        if (rc == QSF_OK && part.name != NULL) rc = put_head(p, &part);
        if (rc == QSF_OK) rc = qsf_rendered_add(&p->out, part.text, part.len, false, p->err);
        text = part.name == NULL;
    }
    return rc;
}

/* Whether this segment is what stands for a call, in a message of the assistant. */
static bool is_held(const Put *p, const QsfRendered *r, size_t i) {
    const char *text = r->text.data + r->segs[i].off;
    const size_t len = r->segs[i].len, at = qsf_think_last_message(p->d, &p->out);
    return !r->segs[i].trusted && len == strlen(HELD) && memcmp(text, HELD, len) == 0 &&
           at < p->out.text.len && qsf_begins_with(p->out.text.data + at, p->out.text.len - at, p->d->next);
}

/* Length of the token at the start of the text that ends a message, 0 if there is none. */
static size_t ending(const Put *p, const char *text, size_t len) {
    static const char *const ends[] = { "<|end|>", "<|return|>", "<|call|>" };
    if (p->t->format != QSF_THINK_HARMONY || strcmp(p->end, "<|call|>") != 0) return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (qsf_begins_with(text, len, ends[i])) return strlen(ends[i]);
    return 0;
}

static const QsfMsg *next_call(const Put *p, const QsfMsg *msgs, size_t n, size_t *at) {
    while (*at < n && !calls(p->t->format, &msgs[*at])) ++*at;
    return *at < n ? &msgs[(*at)++] : NULL;
}

int qsf_think_put_calls(const QsfThink *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                        QsfRendered *r, QsfErr *err) {
    Put p = { .t = t, .d = qsf_think_dialect(t->format), .tok = tok, .err = err };
    size_t next = 0, skip = 0;
    int rc = QSF_OK;
    p.end = t->format == QSF_THINK_HARMONY && has(&p, "<|call|>") ? "<|call|>" : p.d->end;
    for (size_t i = 0; i < r->n_segs && rc == QSF_OK; i++) {
        const QsfSegment *s = &r->segs[i];
        const QsfMsg *m = is_held(&p, r, i) ? next_call(&p, msgs, n, &next) : NULL;
        if (m == NULL) {
            rc = qsf_rendered_add(&p.out, r->text.data + s->off + skip, s->len - skip, s->trusted, err);
            skip = 0;
            continue;
        }
        rc = put_parts(&p, m);
        if (i + 1 < r->n_segs) skip = ending(&p, r->text.data + s[1].off, s[1].len);
        if (rc == QSF_OK && skip > 0) rc = own(&p, p.end);
    }
    p.out.lost = r->lost;
    qsf_rendered_free(r);
    *r = p.out;
    return rc;
}
