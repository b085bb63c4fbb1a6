/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tool calls: implements calls.h. */
#include "serve/calls.h"

#include <string.h>
#include <time.h>

#include "src/base/json.h"
#include "src/base/jsonscan.h"
#include "src/chat/call_params.h"

/* A call as it was found. */
typedef struct Call {
    QsfStrbuf name, arguments; /* arguments: JSON */
} Call;

typedef struct Found {
    QsfStrbuf *out;
    size_t n;
    bool only_one, indexed;
    bool bare; /* an object without a mark: it is a call only with arguments */
    const ServeCallTools *tools;
    QsfStrbuf schema_of; /* the tool whose parameters schema has; NULL = it has none */
    QsfJson *schema;
    QsfCallParams *params; /* of it; NULL = it cannot be taken apart */
} Found;

typedef struct Span {
    const char *at, *end;
} Span;

static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void skip_blanks(Span *s) {
    while (s->at < s->end && blank(*s->at)) s->at++;
}

static bool skip(Span *s, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

static const char *find(const Span *s, const char *word) {
    return memmem(s->at, (size_t)(s->end - s->at), word, strlen(word));
}

static void free_call(Call *c) {
    qsf_strbuf_free(&c->name);
    qsf_strbuf_free(&c->arguments);
}

/* Unique in a conversation: clients send it back. */
static void add(Found *f, const Call *c) {
    static const char function[] = "functions.";
    struct timespec now;
    const char *name = qsf_strbuf_str(&c->name);
    size_t len = c->name.len;
    if (len > sizeof function - 1 && memcmp(name, function, sizeof function - 1) == 0)
        name += sizeof function - 1, len -= sizeof function - 1;
    if (f->only_one && f->n > 0) return;
    clock_gettime(CLOCK_REALTIME, &now);
    qsf_strbuf_adds(f->out, "{");
    if (f->indexed) qsf_strbuf_addf(f->out, "\"index\": %zu, ", f->n);
    qsf_strbuf_addf(f->out,
                    "\"id\": \"call_%llx%08lx%zu\", \"type\": \"function\", \"function\": {\"name\": ",
                    (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec, f->n);
    qsf_json_put_string(f->out, name, len);
    qsf_strbuf_adds(f->out, ", \"arguments\": ");
    qsf_json_put_string(f->out, qsf_strbuf_str(&c->arguments), c->arguments.len);
    qsf_strbuf_adds(f->out, "}}, ");
    f->n++;
}

/* ---- JSON: {"name": ..., "arguments": {...}} ---- */

static bool read_arguments(QsfJsonScan *scan, QsfStrbuf *out) {
    size_t begin, end;
    qsf_strbuf_clear(out);
    if (qsf_jscan_peek(scan) == '"') return qsf_jscan_string(scan, out, NULL) == QSF_OK;
    if (qsf_jscan_skip(scan, &begin, &end, NULL) != QSF_OK) return false;
    qsf_strbuf_add(out, scan->text + begin, end - begin);
    return true;
}

static bool read_members(QsfJsonScan *scan, Call *c, QsfStrbuf *key, bool bare) {
    bool first = true, more = true;
    size_t begin, end;
    if (qsf_jscan_enter(scan, '{', NULL) != QSF_OK) return false;
    while (qsf_jscan_next(scan, '}', &first, &more, NULL) == QSF_OK && more) {
        if (qsf_jscan_key(scan, key, NULL) != QSF_OK) return false;
        const char *k = qsf_strbuf_str(key);
        bool ok = true;
        if (strcmp(k, "name") == 0)
            ok = qsf_jscan_string(scan, &c->name, NULL) == QSF_OK;
        else if (strcmp(k, "arguments") == 0 || strcmp(k, "parameters") == 0)
            ok = read_arguments(scan, &c->arguments);
        else
            ok = qsf_jscan_skip(scan, &begin, &end, NULL) == QSF_OK;
        if (!ok) return false;
    }
    if (c->arguments.len == 0 && bare) return false;
    if (c->arguments.len == 0) qsf_strbuf_adds(&c->arguments, "{}");
    return !more && c->name.len > 0;
}

/* Reads a call at s->at; s->at becomes the end of it. */
static bool read_object(Span *s, Found *f) {
    QsfJsonScan scan;
    QsfStrbuf key = QSF_STRBUF_INIT;
    Call c = { .name = QSF_STRBUF_INIT, .arguments = QSF_STRBUF_INIT };
    qsf_jscan_init(&scan, s->at, (size_t)(s->end - s->at));
    const bool ok = read_members(&scan, &c, &key, f->bare);
    if (ok) add(f, &c);
    if (ok) s->at += scan.at;
    free_call(&c);
    qsf_strbuf_free(&key);
    return ok;
}

/* A call, or an array of them. */
static bool read_json(Span *s, Found *f) {
    skip_blanks(s);
    if (!skip(s, "[")) return read_object(s, f);
    do {
        skip_blanks(s);
        if (!read_object(s, f)) return false;
        skip_blanks(s);
    } while (skip(s, ","));
    return skip(s, "]");
}

/* ---- <function=NAME> <parameter=KEY> VALUE </parameter> ... </function> ---- */

/* Returns the text up to word, without the line breaks around it; s->at becomes the end of word. */
static bool take_until(Span *s, const char *word, Span *out) {
    const char *at = find(s, word);
    if (at == NULL) return false;
    *out = (Span){ s->at, at };
    s->at = at + strlen(word);
    if (out->at < out->end && *out->at == '\n') out->at++;
    if (out->at < out->end && out->end[-1] == '\n') out->end--;
    return true;
}

/* Makes f->schema the parameters of a tool. */
static void find_schema(Found *f, const QsfStrbuf *name) {
    QsfCallTool tool = { .name = QSF_STRBUF_INIT };
    QsfErr none = { 0 };
    size_t at = 0;
    bool found = false;
    if (f->schema_of.len > 0 && strcmp(qsf_strbuf_str(&f->schema_of), qsf_strbuf_str(name)) == 0) return;
    qsf_call_params_free(f->params);
    qsf_json_free(f->schema);
    f->schema = NULL;
    f->params = NULL;
    qsf_strbuf_clear(&f->schema_of);
    qsf_strbuf_add(&f->schema_of, qsf_strbuf_str(name), name->len);
    while (!found && qsf_call_tool_next(f->tools->text, f->tools->len, &at, &tool))
        found = strcmp(qsf_strbuf_str(&tool.name), qsf_strbuf_str(name)) == 0;
    if (found && tool.parameters != NULL)
        f->schema = qsf_json_parse(tool.parameters, tool.parameters_len, &none);
    if (f->schema != NULL) (void)qsf_call_params_new(&f->params, f->schema, &none);
    qsf_strbuf_free(&tool.name);
}

static QsfCallValue kind_of(const Found *f, const Span *key) {
    QsfStrbuf name = QSF_STRBUF_INIT;
    if (f->params == NULL) return QSF_CALL_ANY;
    qsf_strbuf_add(&name, key->at, (size_t)(key->end - key->at));
    const QsfCallValue value = qsf_call_params_value(f->params, qsf_strbuf_str(&name));
    qsf_strbuf_free(&name);
    return value;
}

/* A value that is JSON may have "</parameter>" in a string. */
static bool take_json(Span *s, Span *out) {
    QsfJsonScan scan;
    size_t begin, end;
    qsf_jscan_init(&scan, s->at, (size_t)(s->end - s->at));
    if (qsf_jscan_skip(&scan, &begin, &end, NULL) != QSF_OK) return false;
    Span rest = { s->at + end, s->end };
    skip_blanks(&rest);
    if (!skip(&rest, "</parameter>")) return false;
    *out = (Span){ s->at + begin, s->at + end };
    s->at = rest.at;
    return true;
}

static bool take_value(Span *s, QsfCallValue kind, Span *out) {
    return ((kind == QSF_CALL_QUOTED || kind == QSF_CALL_VALUE) && take_json(s, out)) ||
           take_until(s, "</parameter>", out);
}

/* Text, or JSON that is of the right kind already. Where nothing is known, JSON strings are text. */
static void put_value(QsfStrbuf *b, QsfCallValue kind, const Span *v) {
    QsfErr e = { 0 };
    const size_t n = (size_t)(v->end - v->at);
    QsfJson *j = kind != QSF_CALL_TEXT ? qsf_json_parse(v->at, n, &e) : NULL;
    const bool string = qsf_json_type(j) == QSF_JSON_STRING;
    if (j != NULL && (kind == QSF_CALL_VALUE || string == (kind == QSF_CALL_QUOTED)))
        qsf_strbuf_add(b, v->at, n);
    else
        qsf_json_put_string(b, v->at, n);
    qsf_json_free(j);
}

static bool read_parameters(Span *s, const Found *f, QsfStrbuf *b) {
    Span key, value;
    const char *comma = "";
    qsf_strbuf_adds(b, "{");
    for (skip_blanks(s); skip(s, "<parameter="); skip_blanks(s)) {
        if (!take_until(s, ">", &key)) return false;
        const QsfCallValue kind = kind_of(f, &key);
        if (!take_value(s, kind, &value)) return false;
        qsf_strbuf_adds(b, comma);
        qsf_json_put_string(b, key.at, (size_t)(key.end - key.at));
        qsf_strbuf_adds(b, ": ");
        put_value(b, kind, &value);
        comma = ", ";
    }
    qsf_strbuf_adds(b, "}");
    return skip(s, "</function>");
}

static bool read_function(Span *s, Found *f) {
    Call c = { .name = QSF_STRBUF_INIT, .arguments = QSF_STRBUF_INIT };
    Span name;
    bool ok = take_until(s, ">", &name) && name.end > name.at;
    if (ok) qsf_strbuf_add(&c.name, name.at, (size_t)(name.end - name.at));
    if (ok) find_schema(f, &c.name);
    ok = ok && read_parameters(s, f, &c.arguments);
    if (ok) add(f, &c);
    free_call(&c);
    return ok;
}

/* ---- all of them ---- */

static bool read_tagged(Span *s, Found *f) {
    skip_blanks(s);
    const bool ok = skip(s, "<function=") ? read_function(s, f) : read_json(s, f);
    skip_blanks(s);
    (void)skip(s, "</tool_call>"); /* the token that ends the answer may replace it */
    return ok;
}

/* NAME] {...}, up to the next one or the end. */
static bool read_labelled(Span *s, Found *f) {
    Call c = { .name = QSF_STRBUF_INIT, .arguments = QSF_STRBUF_INIT };
    const char *close = find(s, "] ");
    if (close == NULL || close == s->at) return false;
    const Span rest = { close + 2, s->end };
    const char *next = find(&rest, "\n\n[tool call to=");
    const char *end = next != NULL ? next : s->end;
    qsf_strbuf_add(&c.name, s->at, (size_t)(close - s->at));
    qsf_strbuf_add(&c.arguments, rest.at, (size_t)(end - rest.at));
    add(f, &c);
    free_call(&c);
    s->at = end;
    return true;
}

static const struct {
    const char *word;
    bool (*read)(Span *s, Found *f);
} marks[] = {
    { "<tool_call>", read_tagged },      { "[TOOL_CALLS]", read_json },   { "<|tool_call|>", read_json },
    { "[tool call to=", read_labelled }, { "<function=", read_function },
};
#define MARKS (sizeof marks / sizeof *marks)

/* The first mark, or NULL; *which of them. */
static const char *first_mark(const Span *s, size_t *which) {
    const char *best = NULL;
    for (size_t i = 0; i < MARKS; i++) {
        const char *at = find(s, marks[i].word);
        if (at != NULL && (best == NULL || at < best)) best = at, *which = i;
    }
    return best;
}

/* Does all of the text look like a call? */
static bool is_bare(Span s) {
    skip_blanks(&s);
    return s.at < s.end && (*s.at == '{' || *s.at == '[');
}

/* Bytes at the end that may be the beginning of a mark. */
static size_t partial(const char *text, size_t len) {
    for (size_t n = len < 14 ? len : 14; n > 0; n--)
        for (size_t i = 0; i < MARKS; i++)
            if (n < strlen(marks[i].word) && memcmp(text + len - n, marks[i].word, n) == 0) return n;
    return 0;
}

size_t serve_calls_before(const char *text, size_t len) {
    const Span s = { text, text + len };
    size_t which;
    if (is_bare(s)) return 0;
    const char *at = first_mark(&s, &which);
    size_t n = at != NULL ? (size_t)(at - text) : len - partial(text, len);
    while (n > 0 && blank(text[n - 1])) n--; /* what separates a text from its calls */
    return n;
}

static void read_all(Span s, Found *f) {
    const char *at;
    size_t which;
    if (is_bare(s) && first_mark(&s, &which) == NULL) {
        skip_blanks(&s);
        f->bare = *s.at == '{';
        /* Several: the marks between them are tokens that are not text. */
        while (is_bare(s) && read_json(&s, f)) {
        }
        return;
    }
    while ((at = first_mark(&s, &which)) != NULL) {
        s.at = at + strlen(marks[which].word);
        if (!marks[which].read(&s, f)) break;
    }
}

size_t serve_calls_read(const char *text, size_t len, const ServeCallTools *tools, bool only_one,
                        bool indexed, size_t *before, QsfStrbuf *out) {
    Found f = { .out = out, .tools = tools, .only_one = only_one, .indexed = indexed };
    const Span s = { text, text + len };
    *before = is_bare(s) ? 0 : serve_calls_before(text, len);
    read_all(s, &f);
    qsf_call_params_free(f.params);
    qsf_json_free(f.schema);
    qsf_strbuf_free(&f.schema_of);
    return f.n;
}
