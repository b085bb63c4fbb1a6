/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grammar of answers that call a tool: the second half of call_form.h. */
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/jsonscan.h"
#include "src/chat/call_form.h"
#include "src/chat/call_params.h"

#define GRAMMAR_MOST (8u << 20) /* bytes: tools of 1 MB have less, unless many alternatives repeat much */

typedef struct Span {
    const char *at; /* NULL: there is none */
    size_t len;
} Span;

/* ---- JSON that was checked ---- */

/* Moves to the next member of an object; *at is 0 before the first one. */
static bool next_member(Span object, size_t *at, QsfStrbuf *key, Span *value) {
    QsfJsonScan s;
    bool first = *at == 0, more = false;
    size_t from, to;
    qsf_jscan_init(&s, object.at, object.len);
    if (first && qsf_jscan_enter(&s, '{', NULL) != QSF_OK) return false;
    if (!first) s.at = *at;
    if (qsf_jscan_next(&s, '}', &first, &more, NULL) != QSF_OK || !more) return false;
    if (qsf_jscan_key(&s, key, NULL) != QSF_OK || qsf_jscan_skip(&s, &from, &to, NULL) != QSF_OK)
        return false;
    *value = (Span){ object.at + from, to - from };
    *at = s.at;
    return true;
}

static bool is_json(Span s, const char *text) {
    return s.at != NULL && s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* The value of a member; null counts as absent. */
static Span get(Span object, const char *name) {
    QsfStrbuf key = QSF_STRBUF_INIT;
    Span value, found = { 0 };
    size_t at = 0;
    if (object.at == NULL || object.len == 0 || *object.at != '{') return found;
    while (next_member(object, &at, &key, &value))
        if (strcmp(qsf_strbuf_str(&key), name) == 0) found = value;
    qsf_strbuf_free(&key);
    return is_json(found, "null") ? (Span){ 0 } : found;
}

static bool get_string(Span object, const char *name, QsfStrbuf *out) {
    const Span value = get(object, name);
    QsfJsonScan s;
    qsf_strbuf_clear(out);
    if (value.at == NULL) return false;
    qsf_jscan_init(&s, value.at, value.len);
    return qsf_jscan_string(&s, out, NULL) == QSF_OK;
}

/* Moves to the next element of an array; *at is 0 before the first one. */
static bool next_element(Span array, size_t *at, Span *element) {
    QsfJsonScan s;
    bool first = *at == 0, more = false;
    size_t from, to;
    if (array.at == NULL) return false;
    qsf_jscan_init(&s, array.at, array.len);
    if (first && qsf_jscan_enter(&s, '[', NULL) != QSF_OK) return false;
    if (!first) s.at = *at;
    if (qsf_jscan_next(&s, ']', &first, &more, NULL) != QSF_OK || !more) return false;
    if (qsf_jscan_skip(&s, &from, &to, NULL) != QSF_OK) return false;
    *element = (Span){ array.at + from, to - from };
    *at = s.at;
    return true;
}

bool qsf_call_tool_next(const char *tools, size_t len, size_t *at, QsfCallTool *tool) {
    Span element;
    if (!next_element((Span){ tools, len }, at, &element)) return false;
    const Span function = get(element, "function"), parameters = get(function, "parameters");
    tool->parameters = parameters.at;
    tool->parameters_len = parameters.len;
    return get_string(function, "name", &tool->name);
}

/* ---- GBNF ---- */

static void put_char(QsfStrbuf *b, unsigned char c) {
    if (c == '"' || c == '\\')
        qsf_strbuf_addf(b, "\\%c", c);
    else if (c < 0x20)
        qsf_strbuf_addf(b, "\\x%02X", c);
    else
        qsf_strbuf_addc(b, (char)c);
}

static void put_literal(QsfStrbuf *b, const char *text, size_t len) {
    if (len == 0) return;
    qsf_strbuf_adds(b, " \"");
    for (size_t i = 0; i < len; i++) put_char(b, (unsigned char)text[i]);
    qsf_strbuf_addc(b, '"');
}

static void put_text(QsfStrbuf *b, const char *text) { put_literal(b, text, strlen(text)); }

static void put_optional(QsfStrbuf *b, const char *text) {
    put_text(b, text);
    if (*text != '\0') qsf_strbuf_addc(b, '?');
}

/* A mark: the token of the vocabulary, or its text. */
static void put_mark(QsfStrbuf *b, const QsfTokenizer *tok, const char *mark) {
    const int32_t id = *mark != '\0' ? qsf_tokenizer_find(tok, mark, strlen(mark)) : -1;
    if (id >= 0)
        qsf_strbuf_addf(b, " <[%d]>", (int)id);
    else
        put_text(b, mark);
}

/* ---- {"name": ..., "arguments": ...} ---- */

static void put_json(QsfStrbuf *b, const QsfCallForm *f, const QsfCallTool *tool, uint32_t number) {
    QsfStrbuf name = QSF_STRBUF_INIT;
    put_text(b, f->head);
    qsf_json_put_string(&name, qsf_strbuf_str(&tool->name), tool->name.len);
    if (name.len > 2) put_literal(b, name.data + 1, name.len - 2); /* its quotes are in head and middle */
    put_text(b, f->middle);
    if (tool->parameters != NULL)
        qsf_strbuf_addf(b, " %%json tool-%u {\"allOf\": [{\"type\": \"object\"}, {\"$ref\": \"#\"}]}",
                        number);
    else
        put_text(b, "{}");
    put_text(b, "}");
    qsf_strbuf_free(&name);
}

/* ---- <function=NAME> <parameter=KEY> VALUE </parameter> </function> ---- */

/* The strings of an enum or a const, without quotes. */
static void put_words(QsfStrbuf *b, const QsfJson *schema) {
    const QsfJson *list = qsf_json_get(schema, "enum"), *one = qsf_json_get(schema, "const");
    const size_t n = one != NULL ? 1 : qsf_json_size(list);
    qsf_strbuf_adds(b, " (");
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *word = qsf_json_string(one != NULL ? one : qsf_json_at(list, i), &len);
        qsf_strbuf_adds(b, i > 0 ? " |" : "");
        put_literal(b, word, len);
    }
    qsf_strbuf_adds(b, " )");
}

/* One alternative of a call as it is written. */
typedef struct Function {
    QsfStrbuf *b;
    const QsfCallForm *f;
    const QsfCallParams *params;
    uint32_t alternative, tool; /* tool: number of its schema */
} Function;

static void put_value(const Function *w, const QsfCallParam *p) {
    const QsfJson *schema = qsf_call_schema(qsf_call_params_root(w->params), p->schema);
    if (p->value == QSF_CALL_QUOTED || p->value == QSF_CALL_VALUE) {
        qsf_strbuf_addf(w->b, " %%json tool-%u ", w->tool);
        qsf_call_params_put_schema(w->params, w->alternative, p->key, w->b);
    } else if (qsf_json_get(schema, "enum") != NULL || qsf_json_get(schema, "const") != NULL) {
        put_words(w->b, schema);
    } else {
        qsf_strbuf_adds(w->b, " text");
    }
}

/* A name ends at its '>', and line breaks around it are not read. */
static int check_name(const char *what, const char *name, size_t len, QsfErr *err) {
    if (len > 0 && memchr(name, '>', len) == NULL && name[0] != '\n' && name[len - 1] != '\n') return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "the %s '%.64s' cannot be written as <%s=...>", what, name, what);
}

static int put_parameter(void *arg, const QsfCallParam *p, QsfErr *err) {
    const Function *w = arg;
    const int rc = check_name("parameter", p->key, strlen(p->key), err);
    if (rc != QSF_OK || (w->b->len > GRAMMAR_MOST && !w->b->failed))
        return rc != QSF_OK ? rc : qsf_err_set(err, QSF_E_USAGE, "the grammar of the calls is too large");
    qsf_strbuf_adds(w->b, " (");
    put_text(w->b, "<parameter=");
    put_literal(w->b, p->key, strlen(p->key));
    put_text(w->b, ">");
    put_text(w->b, w->f->before_value);
    put_value(w, p);
    put_text(w->b, w->f->after_value);
    put_text(w->b, "</parameter>");
    put_text(w->b, w->f->after_parameter);
    qsf_strbuf_adds(w->b, p->required ? " )" : " )?");
    return qsf_interrupt_check(err);
}

static int put_function(QsfStrbuf *b, const QsfCallForm *f, const QsfCallTool *tool, uint32_t number,
                        QsfErr *err) {
    QsfJson *root = tool->parameters != NULL ? qsf_json_parse(tool->parameters, tool->parameters_len, err)
                                             : NULL;
    Function w = { .b = b, .f = f, .tool = number };
    QsfCallParams *params = NULL;
    if (tool->parameters != NULL && root == NULL) return err->code;
    int rc = check_name("function", qsf_strbuf_str(&tool->name), tool->name.len, err);
    if (rc == QSF_OK) rc = qsf_call_params_new(&params, root, err);
    if (rc == QSF_OK) rc = qsf_call_params_check(params, err);
    if (rc == QSF_E_USAGE) qsf_err_prefix(err, "the parameters of '%.64s'", qsf_strbuf_str(&tool->name));
    w.params = params;
    put_text(b, "<function=");
    put_literal(b, qsf_strbuf_str(&tool->name), tool->name.len);
    put_text(b, ">");
    put_text(b, f->after_name);
    qsf_strbuf_adds(b, " (");
    for (uint32_t i = 0; rc == QSF_OK && i < qsf_call_params_n(params); i++) {
        w.alternative = i;
        qsf_strbuf_adds(b, i > 0 ? " |\n \"\"" : " \"\"");
        rc = qsf_call_params_each(params, i, put_parameter, &w, err);
    }
    qsf_strbuf_adds(b, " )");
    put_text(b, "</function>");
    qsf_call_params_free(params);
    qsf_json_free(root);
    return rc;
}

/* Text in which "</" is not followed by "parameter": rule tN has read N bytes of "</p". */
static const char text_rules[] = "text ::= ([^<] | \"<\" t1)*\n"
                                 "t1 ::= [^</] | \"<\" t1 | \"/\" t2\n"
                                 "t2 ::= [^<p] | \"<\" t1\n";

/* ---- all tools ---- */

static bool is_wanted(const QsfCallWish *wish, const QsfCallTool *tool) {
    return wish->name == NULL || *wish->name == '\0' || strcmp(qsf_strbuf_str(&tool->name), wish->name) == 0;
}

/* The schemas of parameters, which the rules of calls refer to. */
static void put_schemas(QsfStrbuf *b, const QsfCallWish *wish) {
    QsfCallTool tool = { .name = QSF_STRBUF_INIT };
    size_t at = 0;
    for (uint32_t i = 0; qsf_call_tool_next(wish->tools, wish->tools_len, &at, &tool); i++) {
        if (tool.parameters == NULL || !is_wanted(wish, &tool)) continue;
        qsf_strbuf_addf(b, "%%schema tool-%u ", i);
        qsf_strbuf_add(b, tool.parameters, tool.parameters_len);
        qsf_strbuf_adds(b, "\n");
    }
    qsf_strbuf_free(&tool.name);
}

/* The rule "call", with *n tools. */
static int put_calls(QsfStrbuf *b, const QsfCallForm *f, const QsfCallWish *wish, size_t *n, QsfErr *err) {
    QsfCallTool tool = { .name = QSF_STRBUF_INIT };
    size_t at = 0;
    int rc = QSF_OK;
    *n = 0;
    qsf_strbuf_adds(b, "call ::=");
    for (uint32_t i = 0; rc == QSF_OK && qsf_call_tool_next(wish->tools, wish->tools_len, &at, &tool); i++) {
        if (!is_wanted(wish, &tool)) continue;
        qsf_strbuf_adds(b, (*n)++ > 0 ? " |\n" : "");
        if (f->kind == QSF_CALL_JSON)
            put_json(b, f, &tool, i);
        else
            rc = put_function(b, f, &tool, i, err);
    }
    qsf_strbuf_adds(b, "\n");
    qsf_strbuf_free(&tool.name);
    return rc;
}

/* The end mark may be missing where an answer ends, so that a limit of tokens can be kept. */
static void put_root(QsfStrbuf *b, const QsfCallForm *f, const QsfTokenizer *tok, const QsfCallWish *wish) {
    const bool several = !wish->one && (f->list || *f->mark != '\0');
    qsf_strbuf_adds(b, "root ::= calls");
    if (wish->schema != NULL) qsf_strbuf_adds(b, " | %json ");
    if (wish->schema != NULL) qsf_strbuf_add(b, wish->schema, wish->schema_len);
    qsf_strbuf_adds(b, "\ncalls ::=");
    put_mark(b, tok, f->mark);
    put_optional(b, f->after_mark);
    if (f->list) put_text(b, "[");
    qsf_strbuf_adds(b, " call");
    if (several && f->list) qsf_strbuf_adds(b, " (\", \" call)*");
    if (several && !f->list) qsf_strbuf_adds(b, " more*");
    if (f->list) put_text(b, "]");
    if (*f->close != '\0') qsf_strbuf_adds(b, " close?");
    qsf_strbuf_adds(b, "\n");
    if (*f->close != '\0') {
        qsf_strbuf_adds(b, "close ::=");
        put_text(b, f->before_close);
        put_mark(b, tok, f->close);
        qsf_strbuf_adds(b, "\n");
    }
    if (!several || f->list) return;
    qsf_strbuf_adds(b, *f->close != '\0' ? "more ::= close \"\\n\"?" : "more ::=");
    put_mark(b, tok, f->mark);
    put_optional(b, f->after_mark);
    qsf_strbuf_adds(b, " call\n");
}

int qsf_call_form_grammar(const QsfCallForm *f, const QsfTokenizer *tok, const QsfCallWish *wish,
                          QsfStrbuf *out, QsfErr *err) {
    size_t n;
    put_root(out, f, tok, wish);
    put_schemas(out, wish);
    const int rc = put_calls(out, f, wish, &n, err);
    if (rc != QSF_OK) return rc;
    if (f->kind == QSF_CALL_FUNCTION) qsf_strbuf_adds(out, text_rules);
    if (!qsf_strbuf_ok(out)) return qsf_err_memory(err, "the grammar of tool calls");
    if (n > 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "there is no tool '%.64s'", wish->name != NULL ? wish->name : "");
}
