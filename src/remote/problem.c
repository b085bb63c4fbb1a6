/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/remote/delta.h"
#include "src/remote/url.h"

#define SAID_MAX 400 /* bytes of what the server says that are shown */

static const char *take_line(const char *at, const char *end, char *dst, size_t cap) {
    const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    const size_t len = newline ? (size_t)(newline - at) : 0;
    const bool fits = len < cap && !memchr(at, '\0', len);
    if (fits) memcpy(dst, at, len);
    dst[fits ? len : 0] = '\0';
    return newline ? newline + 1 : end;
}

void qsf_reply_head(QsfReplyHead *h, const char *lines, size_t len) {
    char status[16], after[24];
    const char *at = lines, *end = lines + len;
    at = take_line(at, end, status, sizeof status);
    at = take_line(at, end, h->type, sizeof h->type);
    at = take_line(at, end, after, sizeof after);
    at = take_line(at, end, h->location, sizeof h->location);
    (void)take_line(at, end, h->server, sizeof h->server);
    h->status = strtol(status, NULL, 10);
    h->retry_after = strtol(after, NULL, 10);
}

bool qsf_reply_is(const QsfReplyHead *h, const char *type) {
    const size_t n = strlen(type);
    return strncasecmp(h->type, type, n) == 0 && (!h->type[n] || h->type[n] == ';' || h->type[n] == ' ');
}

/* What a page says: its title, or the text without tags. */
static void page_text(const char *body, size_t len, QsfStrbuf *b) {
    static const char open[] = "<title>";
    const char *title = memmem(body, len, open, sizeof open - 1);
    bool tag = false, blank = true;
    if (title) {
        title += sizeof open - 1;
        len = (size_t)(body + len - title);
        const char *close = memchr(title, '<', len);
        if (close) len = (size_t)(close - title);
        body = title;
    }
    for (size_t i = 0; i < len && b->len < SAID_MAX; i++) {
        const char c = body[i];
        const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
        if (c == '<') tag = true;
        if (!tag && !(space && blank)) qsf_strbuf_addc(b, space ? ' ' : c);
        if (!tag) blank = space;
        if (c == '>') tag = false;
    }
    while (b->len > 0 && b->data[b->len - 1] == ' ') b->data[--b->len] = '\0';
}

static void said(const QsfReplyHead *h, const char *body, size_t len, QsfStrbuf *b, bool *full) {
    QsfDelta d = { 0 };
    QsfErr ignored = { 0 };
    if (len == 0) return;
    qsf_delta_begin(&d);
    if (!qsf_reply_is(h, "text/html") && qsf_delta_parse(&d, body, len, &ignored) == QSF_OK) {
        qsf_strbuf_add(b, qsf_strbuf_str(&d.error), d.error.len < SAID_MAX ? d.error.len : SAID_MAX);
        *full = d.context_full;
    } else {
        page_text(body, len, b);
    }
    qsf_delta_free(&d);
}

void qsf_reply_said(const QsfReplyHead *h, const char *body, size_t len, QsfStrbuf *b) {
    bool full;
    said(h, body, len, b, &full);
}

/* What each status means to the user, and what can be done. */
typedef struct Meaning {
    long first, last;
    int code;
    const char *means, *advice;
} Meaning;

static const Meaning meanings[] = {
    { 401, 401, QSF_E_RUNTIME, "the server wants a key, or another one",
      "--api-key-file FILE or OPENAI_API_KEY gives it" },
    { 402, 402, QSF_E_RUNTIME, "the server wants to be paid first", NULL },
    { 403, 403, QSF_E_RUNTIME, "this is not allowed, perhaps not with this key", NULL },
    { 404, 404, QSF_E_MODEL, "the server has no such model or path", "/models lists what the server has" },
    { 405, 405, QSF_E_RUNTIME, "the URL is not that of an OpenAI-compatible server", NULL },
    { 408, 408, QSF_E_RUNTIME, "the server has waited too long", NULL },
    { 413, 413, QSF_E_RUNTIME, "the conversation is too large for the server",
      "/forget removes old messages" },
    { 429, 429, QSF_E_RUNTIME, "too many requests, or a quota is used up", NULL },
    { 501, 501, QSF_E_RUNTIME, "the server cannot do this", NULL },
    /* llama.cpp while it loads a model, Ollama with a full queue, OpenRouter without a provider */
    { 503, 503, QSF_E_RUNTIME, "the server is not ready, or too busy", "/retry asks again" },
    { 500, 599, QSF_E_RUNTIME, "the server failed", NULL },
};

/* listing: the request was for the models of the server, where a path that is missing is that of the URL. */
static Meaning meaning(long status, bool listing) {
    if (listing && status == 404)
        return (Meaning){ .code = QSF_E_MODEL,
                          .means = "the URL is not that of an OpenAI-compatible server" };
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (status >= meanings[i].first && status <= meanings[i].last) return meanings[i];
    return (Meaning){ .code = QSF_E_RUNTIME };
}

static int redirect(const QsfReplyHead *h, const char *name, QsfErr *err) {
    char base[sizeof h->location];
    if (!h->location[0])
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: HTTP %ld, a redirect without a place", name, h->status);
    qsf_remote_url_base(h->location, base, sizeof base);
    return qsf_err_set(err, QSF_E_RUNTIME,
                       "%s: HTTP %ld: the server is at %.300s now; redirects are not followed, so that no "
                       "message or key reaches another host: connect to that",
                       name, h->status, base);
}

int qsf_problem(const QsfReplyHead *h, const char *name, const char *body, size_t len, QsfStrbuf *text,
                QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    bool full = false;
    if (h->status / 100 == 3) return redirect(h, name, err);
    const Meaning m = meaning(h->status, text == NULL);
    const char *means = m.means;
    int code = m.code;
    said(h, body, len, &b, &full);
    const char *says = qsf_strbuf_str(&b);
    if (text) qsf_strbuf_add(text, says, b.len);
    if (full) code = QSF_E_CONTEXT;
    if (h->status == 200) {
        qsf_err_set(err, code, "%s: not an answer of an OpenAI-compatible server, but %.60s%s%s", name,
                    h->type[0] ? h->type : "something else", *says ? ": " : "", says);
    } else if (h->retry_after > 0) {
        qsf_err_set(err, code, "%s: HTTP %ld: %s%s%s; try again in %ld s (/retry)", name, h->status,
                    means ? means : "refused", *says ? ": " : "", says, h->retry_after);
    } else {
        qsf_err_set(err, code, "%s: HTTP %ld: %s%s%s%s%s%s", name, h->status, means ? means : "",
                    means && *says ? ": " : "", says, means || *says ? "" : "no reason was given",
                    m.advice ? "; " : "", m.advice ? m.advice : "");
    }
    qsf_strbuf_free(&b);
    return code;
}
