/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grammar of answers that call a tool: the second half of call_form.h. */
#include <string.h>

#include "src/base/jsonscan.h"
#include "src/chat/call_form.h"

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

/* A schema, which has to be of an object. */
static void put_object_schema(QsfStrbuf *b, const QsfCallTool *tool) {
    const Span p = { tool->parameters, tool->parameters_len };
    size_t from = 1;
    if (p.at == NULL) {
        put_text(b, "{}");
        return;
    }
    qsf_strbuf_adds(b, " %json ");
    if (get(p, "type").at == NULL && *p.at == '{') {
        while (from < p.len && strchr(" \t\r\n", p.at[from]) != NULL) from++;
        qsf_strbuf_adds(b, p.at[from] == '}' ? "{\"type\": \"object\"" : "{\"type\": \"object\", ");
        qsf_strbuf_add(b, p.at + from, p.len - from);
    } else {
        qsf_strbuf_add(b, p.at, p.len);
    }
}

/* ---- {"name": ..., "arguments": ...} ---- */

static void put_json(QsfStrbuf *b, const QsfCallForm *f, const QsfCallTool *tool) {
    QsfStrbuf name = QSF_STRBUF_INIT;
    put_text(b, f->head);
    qsf_json_put_string(&name, qsf_strbuf_str(&tool->name), tool->name.len);
    if (name.len > 2) put_literal(b, name.data + 1, name.len - 2); /* its quotes are in head and middle */
    put_text(b, f->middle);
    put_object_schema(b, tool);
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

/* A schema inside another one, whose definitions it may refer to. */
static void put_inner_schema(QsfStrbuf *b, Span root, Span schema) {
    static const char *const keys[] = { "$schema", "$defs", "definitions" };
    qsf_strbuf_adds(b, " %json {");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const Span value = get(root, keys[i]);
        if (value.at == NULL) continue;
        qsf_strbuf_addf(b, "\"%s\": ", keys[i]);
        qsf_strbuf_add(b, value.at, value.len);
        qsf_strbuf_adds(b, ", ");
    }
    qsf_strbuf_adds(b, "\"allOf\": [");
    qsf_strbuf_add(b, schema.at, schema.len);
    qsf_strbuf_adds(b, "]}");
}

static bool is_required(Span root, const char *key) {
    const Span list = get(root, "required");
    QsfStrbuf name = QSF_STRBUF_INIT;
    Span value;
    size_t at = 0;
    bool found = false;
    while (!found && next_element(list, &at, &value)) {
        QsfJsonScan s;
        qsf_jscan_init(&s, value.at, value.len);
        found = qsf_jscan_string(&s, &name, NULL) == QSF_OK && strcmp(qsf_strbuf_str(&name), key) == 0;
    }
    qsf_strbuf_free(&name);
    return found;
}

/* A parameter and what its value has to be; at NULL: any. */
typedef struct Parameter {
    const QsfStrbuf *key;
    Span at;
    const QsfJson *root, *schema;
} Parameter;

static void put_value(QsfStrbuf *b, Span root, const Parameter *p) {
    const QsfCallValue kind = qsf_call_value(p->root, p->schema);
    const QsfJson *schema = qsf_call_schema(p->root, p->schema);
    if (kind == QSF_CALL_QUOTED || kind == QSF_CALL_VALUE)
        put_inner_schema(b, root, p->at);
    else if (qsf_json_get(schema, "enum") != NULL || qsf_json_get(schema, "const") != NULL)
        put_words(b, schema);
    else
        qsf_strbuf_adds(b, " text");
}

static void put_parameter(QsfStrbuf *b, const QsfCallForm *f, Span root, const Parameter *p, bool required) {
    qsf_strbuf_adds(b, " (");
    put_text(b, "<parameter=");
    put_literal(b, qsf_strbuf_str(p->key), p->key->len);
    put_text(b, ">");
    put_text(b, f->before_value);
    put_value(b, root, p);
    put_text(b, f->after_value);
    put_text(b, "</parameter>");
    put_text(b, f->after_parameter);
    qsf_strbuf_adds(b, required ? " )" : " )?");
}

static void put_properties(QsfStrbuf *b, const QsfCallForm *f, Span root, const QsfJson *tree) {
    const Span properties = get(root, "properties");
    QsfStrbuf key = QSF_STRBUF_INIT;
    Parameter p = { .key = &key, .root = tree };
    size_t at = 0;
    while (properties.at != NULL && *properties.at == '{' && next_member(properties, &at, &key, &p.at)) {
        p.schema = qsf_json_get(qsf_json_get(tree, "properties"), qsf_strbuf_str(&key));
        put_parameter(b, f, root, &p, is_required(root, qsf_strbuf_str(&key)));
    }
    qsf_strbuf_free(&key);
}

/* Parameters that are required without being among the properties. */
static void put_unnamed(QsfStrbuf *b, const QsfCallForm *f, Span root, const QsfJson *tree) {
    const QsfJson *required = qsf_json_get(tree, "required"), *properties = qsf_json_get(tree, "properties");
    QsfStrbuf key = QSF_STRBUF_INIT;
    const Parameter p = { .key = &key };
    for (size_t i = 0; i < qsf_json_size(required); i++) {
        const char *name = qsf_json_string(qsf_json_at(required, i), NULL);
        if (name == NULL || qsf_json_get(properties, name) != NULL) continue;
        qsf_strbuf_clear(&key);
        qsf_strbuf_adds(&key, name);
        put_parameter(b, f, root, &p, true);
    }
    qsf_strbuf_free(&key);
}

static int put_function(QsfStrbuf *b, const QsfCallForm *f, const QsfCallTool *tool, QsfErr *err) {
    const Span root = { tool->parameters, tool->parameters_len };
    QsfJson *tree = root.at != NULL ? qsf_json_parse(root.at, root.len, err) : NULL;
    if (root.at != NULL && tree == NULL) return err->code;
    put_text(b, "<function=");
    put_literal(b, qsf_strbuf_str(&tool->name), tool->name.len);
    put_text(b, ">");
    put_text(b, f->after_name);
    put_properties(b, f, root, tree);
    put_unnamed(b, f, root, tree);
    put_text(b, "</function>");
    qsf_json_free(tree);
    return QSF_OK;
}

/* Text in which "</" is not followed by "parameter": rule tN has read N bytes of "</p". */
static const char text_rules[] = "text ::= ([^<] | \"<\" t1)*\n"
                                 "t1 ::= [^</] | \"<\" t1 | \"/\" t2\n"
                                 "t2 ::= [^<p] | \"<\" t1\n";

/* ---- all tools ---- */

/* The rule "call", with *n tools. */
static int put_calls(QsfStrbuf *b, const QsfCallForm *f, const QsfCallWish *wish, size_t *n, QsfErr *err) {
    QsfCallTool tool = { .name = QSF_STRBUF_INIT };
    size_t at = 0;
    int rc = QSF_OK;
    *n = 0;
    qsf_strbuf_adds(b, "call ::=");
    while (rc == QSF_OK && qsf_call_tool_next(wish->tools, wish->tools_len, &at, &tool)) {
        if (wish->name != NULL && *wish->name != '\0' && strcmp(qsf_strbuf_str(&tool.name), wish->name) != 0)
            continue;
        qsf_strbuf_adds(b, (*n)++ > 0 ? " |\n" : "");
        if (f->kind == QSF_CALL_JSON)
            put_json(b, f, &tool);
        else
            rc = put_function(b, f, &tool, err);
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
    const int rc = put_calls(out, f, wish, &n, err);
    if (rc != QSF_OK) return rc;
    if (f->kind == QSF_CALL_FUNCTION) qsf_strbuf_adds(out, text_rules);
    if (!qsf_strbuf_ok(out)) return qsf_err_memory(err, "the grammar of tool calls");
    if (n > 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "there is no tool '%.64s'", wish->name != NULL ? wish->name : "");
}
