/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the form of tool calls in the rendering of one: implements call_form.h. */
#include "src/chat/call_form.h"

#include <stdio.h>
#include <string.h>

#include "src/base/jsonscan.h"
#include "src/chat/chat_impl.h"

/* No template contains these words. */
#define NAME  "zqcallk"
#define KEY   "zqkey"
#define VALUE "zqvaluek"

/* Marks before and after calls. */
static const char *const marks[][2] = { { "<tool_call>", "</tool_call>" },
                                        { "[TOOL_CALLS]", "" },
                                        { "<|tool_call|>", "" } };

/* A place in the rendering, which moves; ok: everything was found so far. */
typedef struct Place {
    const char *begin, *at, *end;
    bool ok;
} Place;

static bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static bool is_next(const Place *p, const char *word) {
    const size_t n = strlen(word);
    return (size_t)(p->end - p->at) >= n && memcmp(p->at, word, n) == 0;
}

static void expect(Place *p, const char *word) {
    p->ok = p->ok && is_next(p, word);
    if (p->ok) p->at += strlen(word);
}

/* Takes white space; gap (QSF_CALL_GAP) may be NULL. */
static void take_blanks(Place *p, char *gap) {
    const char *from = p->at;
    while (p->at < p->end && blank(*p->at)) p->at++;
    const size_t n = (size_t)(p->at - from);
    if (gap == NULL) return;
    p->ok = p->ok && n < QSF_CALL_GAP;
    (void)snprintf(gap, QSF_CALL_GAP, "%.*s", (int)n, from);
}

static void back_blanks(Place *p) {
    while (p->at > p->begin && blank(p->at[-1])) p->at--;
}

static bool back_over(Place *p, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(p->at - p->begin) < n || memcmp(p->at - n, word, n) != 0) return false;
    p->at -= n;
    return true;
}

static void expect_back(Place *p, const char *word) { p->ok = p->ok && back_over(p, word); }

static void copy(Place *p, char *dst, size_t cap, const char *from, const char *to) {
    const size_t n = (size_t)(to - from);
    p->ok = p->ok && n < cap;
    if (p->ok) (void)snprintf(dst, cap, "%.*s", (int)n, from);
}

/* ---- the parts ---- */

/* Moves back over the mark that ends at p, if there is one. */
static void find_mark(QsfCallForm *f, Place *p) {
    f->mark = f->close = "";
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (!back_over(p, marks[i][0])) continue;
        f->mark = marks[i][0];
        f->close = marks[i][1];
        return;
    }
}

/* From the call, which begins at p, back to the beginning of the answer. */
static void find_begin(QsfCallForm *f, Place *p) {
    Place gap = *p;
    back_blanks(p);
    gap.at = p->at;
    find_mark(f, p);
    take_blanks(&gap, f->after_mark);
    p->ok = p->ok && gap.ok;
}

static void find_end(QsfCallForm *f, Place *p) {
    take_blanks(p, f->before_close);
    if (*f->close != '\0') expect(p, f->close);
}

/* "NAME", "arguments": {...}, around the name at p; *begin: of the object. */
static void find_json(QsfCallForm *f, Place *p, Place *begin) {
    static const char *const keys[] = { "\"arguments\"", "\"parameters\"" };
    const char *name = p->at;
    QsfJsonScan scan;
    size_t from = 0, to = 0;
    *begin = *p;
    expect_back(begin, "\"");
    back_blanks(begin);
    expect_back(begin, ":");
    back_blanks(begin);
    expect_back(begin, "\"name\"");
    back_blanks(begin);
    expect_back(begin, "{");
    copy(begin, f->head, sizeof f->head, begin->at, name);
    expect(p, NAME "\"");
    take_blanks(p, NULL);
    expect(p, ",");
    take_blanks(p, NULL);
    expect(p, is_next(p, keys[0]) ? keys[0] : keys[1]);
    take_blanks(p, NULL);
    expect(p, ":");
    take_blanks(p, NULL);
    copy(p, f->middle, sizeof f->middle, name + strlen(NAME), p->at);
    qsf_jscan_init(&scan, p->at, (size_t)(p->end - p->at));
    p->ok = p->ok && begin->ok && is_next(p, "{") && qsf_jscan_skip(&scan, &from, &to, NULL) == QSF_OK &&
            memmem(p->at, to, "\"" VALUE "\"", strlen(VALUE) + 2) != NULL;
    p->at += p->ok ? to : 0;
}

/* The array around the object: Mistral's templates give the object of an earlier call an id, which answers do
 * not have. */
static void find_list(QsfCallForm *f, Place *p, Place *begin) {
    const Place object = *begin;
    back_blanks(begin);
    f->list = back_over(begin, "[");
    if (!f->list) *begin = object;
    take_blanks(p, NULL);
    if (f->list && is_next(p, ",")) {
        const char *end = memchr(p->at, '}', (size_t)(p->end - p->at));
        if (end != NULL) p->at = end;
    }
    expect(p, "}");
    if (f->list) take_blanks(p, NULL);
    if (f->list) expect(p, "]");
}

/* <function=NAME> ... around the name at p. */
static void find_function(QsfCallForm *f, Place *p, Place *begin) {
    f->kind = QSF_CALL_FUNCTION;
    *begin = *p;
    expect_back(begin, "<function=");
    expect(p, NAME ">");
    take_blanks(p, f->after_name);
    expect(p, "<parameter=" KEY ">");
    take_blanks(p, f->before_value);
    expect(p, VALUE);
    take_blanks(p, f->after_value);
    expect(p, "</parameter>");
    take_blanks(p, f->after_parameter);
    expect(p, "</function>");
    p->ok = p->ok && begin->ok;
}

/* ---- the rendering ---- */

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"zqother\", \"description\": "
    "\"zq\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}}]";
/* Some templates take only ids of nine letters and digits. */
static const char calls[] =
    "[{\"id\": \"zqcallid1\", \"type\": \"function\", \"function\": {\"name\": \"" NAME
    "\", \"arguments\": {\"" KEY "\": \"" VALUE "\"}}}]";

static int render(const QsfChatTemplate *t, size_t n, unsigned flags, QsfRendered *out, QsfErr *err) {
    const QsfMsg talk[] = {
        { .role = "user", .content = "Hello", .len = 5, .tools = tools, .tools_len = sizeof tools - 1 },
        { .role = "assistant", .content = "", .calls = calls, .calls_len = sizeof calls - 1 }
    };
    return qsf_chat_render(t, talk, n, flags, out, err);
}

/* An answer that begins with its call begins where the prompt ends. */
static int check_bare(const QsfChatTemplate *t, const Place *call, bool *ok, QsfErr *err) {
    QsfRendered prompt = { 0 };
    int rc = render(t, 1, QSF_CHAT_GENERATE, &prompt, err);
    const char *text = qsf_strbuf_str(&prompt.text);
    size_t n = prompt.text.len, before = (size_t)(call->at - call->begin);
    while (n > 0 && blank(text[n - 1])) n--;
    while (before > 0 && blank(call->begin[before - 1])) before--;
    *ok = rc == QSF_OK && n == before && memcmp(text, call->begin, n) == 0;
    qsf_rendered_free(&prompt);
    return rc;
}

static int read_form(QsfCallForm *f, const QsfChatTemplate *t, const QsfRendered *r, bool *ok, QsfErr *err) {
    const char *text = qsf_strbuf_str(&r->text);
    Place p = { text, memmem(text, r->text.len, NAME, strlen(NAME)), text + r->text.len, true }, begin;
    *ok = false;
    if (p.at == NULL) return QSF_OK;
    begin = p;
    if (back_over(&begin, "<function="))
        find_function(f, &p, &begin);
    else
        find_json(f, &p, &begin);
    if (p.ok && f->kind == QSF_CALL_JSON) find_list(f, &p, &begin);
    if (!p.ok) return QSF_OK;
    find_begin(f, &begin);
    find_end(f, &p);
    *ok = p.ok && begin.ok;
    return *ok && *f->mark == '\0' ? check_bare(t, &begin, ok, err) : QSF_OK;
}

int qsf_call_form_find(QsfCallForm *f, const QsfChatTemplate *t, QsfErr *err) {
    QsfRendered r = { 0 };
    QsfErr e = { 0 };
    bool ok = false;
    *f = (QsfCallForm){ .mark = "", .close = "" };
    int rc = t != NULL ? render(t, 2, 0, &r, &e) : QSF_OK;
    if (rc == QSF_OK && t != NULL) rc = read_form(f, t, &r, &ok, &e);
    qsf_rendered_free(&r);
    if (ok) return QSF_OK;
    if (e.memory || e.code == QSF_E_INTERRUPTED) return qsf_err_pass(err, &e);
    return qsf_err_set(err, QSF_E_USAGE, "%s writes tool calls in a form that a grammar cannot enforce",
                       t != NULL ? qsf_chat_label(t).text : "a prompt without a chat template");
}
