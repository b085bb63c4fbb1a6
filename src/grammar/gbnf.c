/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads GBNF, the grammars of ggml-org/llama.cpp: rules NAME ::= ..., alternatives |, groups, literals,
 * classes, repetition * + ? {m} {m,} {m,n}, # comments, tokens <[ID]> and !<[ID]>; and %json SCHEMA, as in
 * the grammars of guidance-ai/llguidance, with %schema NAME SCHEMA for what several refer to. A rule ends at
 * the end of its line, unless that follows ::= or | or is inside parentheses. */
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/jsonscan.h"
#include "src/base/utf8.h"
#include "src/grammar/reader.h"

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void skip_comment(QsfReadText *r) {
    while (!qsf_read_ended(r) && qsf_read_peek(r) != '\n' && qsf_read_peek(r) != '\r') r->at++;
}

/* Blanks and comments; line ends too if the rule continues after them. */
static void skip(QsfReadText *r, bool lines) {
    for (;;) {
        const char c = qsf_read_peek(r);
        if (c == '#')
            skip_comment(r);
        else if (!qsf_read_ended(r) && (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))))
            r->at++;
        else
            return;
    }
}

static uint32_t escape(QsfReadText *r) {
    const size_t at = r->at - 1;
    if (qsf_read_ended(r)) return qsf_read_fail(r, at, "the escape at the end is not complete");
    const uint32_t c = qsf_read_code(r);
    uint32_t code;
    switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '\\':
    case '"':
    case '[':
    case ']': return c;
    case 'x': return qsf_read_hex(r, 2, "\\x");
    case 'u':
    case 'U':
        code = qsf_read_hex(r, c == 'u' ? 4 : 8, c == 'u' ? "\\u" : "\\U");
        if (code <= QSF_CODE_MAX && (code < 0xD800 || code > 0xDFFF)) return code;
        return qsf_read_fail(r, at, "the escape \\%c%0*X is not a Unicode character", (char)c,
                             c == 'u' ? 4 : 8, code);
    default: return qsf_read_fail(r, at, "there is no escape \\%c", c < 0x7F && c > 0x20 ? (char)c : '?');
    }
}

/* One character of a literal or class. */
static uint32_t character(QsfReadText *r) { return qsf_read_take(r, '\\') ? escape(r) : qsf_read_code(r); }

static uint32_t literal(QsfReadText *r) {
    const size_t at = r->at++;
    QsfStrbuf s = QSF_STRBUF_INIT;
    while (!r->b->failed && !qsf_read_ended(r) && qsf_read_peek(r) != '"')
        qsf_strbuf_add_utf8(&s, character(r));
    if (!qsf_read_take(r, '"')) qsf_read_fail(r, at, "the literal is not closed: \" is missing");
    if (!qsf_strbuf_ok(&s)) qsf_gbuild_fail(r->b, QSF_E_RUNTIME, "out of memory: the grammar");
    const uint32_t node = r->b->failed ? 0 : qsf_node_bytes(r->b, qsf_strbuf_str(&s), s.len);
    qsf_strbuf_free(&s);
    return node;
}

static void class_item(QsfReadText *r, QsfCharset *s) {
    const size_t at = r->at;
    const uint32_t lo = character(r);
    uint32_t hi = lo;
    if (r->at + 1 < r->len && r->text[r->at] == '-' && r->text[r->at + 1] != ']') {
        r->at++;
        hi = character(r);
    }
    if (hi < lo) qsf_read_fail(r, at, "the range of characters is reversed");
    qsf_charset_add(s, lo, hi);
}

/* <[ID]>, after an optional !. */
static uint32_t token(QsfReadText *r, bool other) {
    const size_t at = r->at++;
    uint32_t id;
    if (!qsf_read_take(r, '['))
        return qsf_read_fail(r, at, "a token is named by its number: <[ID]> is expected");
    if (!qsf_read_number(r, &id)) return qsf_read_fail(r, r->at, "the number of a token is expected");
    if (!qsf_read_take(r, ']') || !qsf_read_take(r, '>'))
        return qsf_read_fail(r, at, "the token is not closed: ]> is expected");
    return qsf_node_new(r->b, QSF_NODE_TOKEN, id, other, 0);
}

static uint32_t alternatives(QsfReadText *r, bool group);

static uint32_t group(QsfReadText *r) {
    const size_t at = r->at++;
    if (++r->depth > QSF_GBUILD_DEPTH)
        return qsf_read_fail(r, at, "groups are nested more than %u deep", QSF_GBUILD_DEPTH);
    const uint32_t node = alternatives(r, true);
    r->depth--;
    if (!qsf_read_take(r, ')')) return qsf_read_fail(r, at, "the group is not closed: ) is missing");
    return node;
}

static uint32_t reference(QsfReadText *r) {
    const size_t at = r->at;
    while (!qsf_read_ended(r) && is_name(qsf_read_peek(r))) r->at++;
    const uint32_t rule = qsf_rule_named(r->b, r->text + at, r->at - at);
    if (r->b->failed) return 0;
    if (r->b->rules[rule].line == 0) qsf_read_place(r, at, &r->b->rules[rule].line, &r->b->rules[rule].col);
    return qsf_node_rule(r->b, rule);
}

/* {m}, {m,} or {m,n} after its brace. */
static bool counts(QsfReadText *r, uint32_t *min, uint32_t *max) {
    const size_t at = r->at++;
    skip(r, true);
    if (!qsf_read_number(r, min))
        return qsf_read_fail(r, r->at, "a number is expected in the repetition {m,n}") != 0;
    *max = *min;
    skip(r, true);
    if (qsf_read_take(r, ',')) {
        skip(r, true);
        if (!qsf_read_number(r, max)) *max = QSF_NO_LIMIT;
        skip(r, true);
    }
    if (!qsf_read_take(r, '}'))
        return qsf_read_fail(r, r->at, "} is expected after the numbers of the repetition") != 0;
    if (*max < *min)
        return qsf_read_fail(r, at, "the repetition {%u,%u} has its limits reversed", *min, *max) != 0;
    if (*min > QSF_REPEAT_MAX || (*max > QSF_REPEAT_MAX && *max != QSF_NO_LIMIT))
        return qsf_read_fail(r, at, "a repetition count is above the limit of %u", QSF_REPEAT_MAX) != 0;
    return true;
}

/* Each repetition of a repetition is one more level of nodes. */
#define REPEATED_MOST 8u

static uint32_t repeated(QsfReadText *r, uint32_t node, bool in_group) {
    for (unsigned n = 0;; n++) {
        uint32_t min = 0, max = QSF_NO_LIMIT;
        skip(r, in_group);
        const char c = qsf_read_peek(r);
        if (r->b->failed || (c != '*' && c != '+' && c != '?' && c != '{')) return node;
        if (n == REPEATED_MOST)
            return qsf_read_fail(r, r->at, "one item is repeated by more than %u operators", REPEATED_MOST);
        if (c == '{') {
            if (!counts(r, &min, &max)) return 0;
        } else {
            r->at++;
            min = c == '+';
            max = c == '?' ? 1 : QSF_NO_LIMIT;
        }
        node = qsf_node_repeat(r->b, node, min, max);
    }
}

/* --- schemas --- */

typedef struct Text {
    const char *at;
    size_t len;
} Text;

static bool take_word(QsfReadText *r, const char *word) {
    const size_t n = strlen(word);
    if (r->len - r->at < n || memcmp(r->text + r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

/* The name of a schema, if the next word is one and not JSON. */
static bool take_name(QsfReadText *r, Text *name) {
    static const char *const json[] = { "true", "false", "null" };
    const size_t at = r->at;
    const char c = qsf_read_peek(r);
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
    while (!qsf_read_ended(r) && is_name(qsf_read_peek(r))) r->at++;
    *name = (Text){ r->text + at, r->at - at };
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        if (name->len != strlen(json[i]) || memcmp(name->at, json[i], name->len) != 0) continue;
        r->at = at;
        return false;
    }
    return true;
}

static bool take_json(QsfReadText *r, Text *json) {
    size_t from, to;
    QsfJsonScan scan;
    QsfErr e = { 0 };
    qsf_jscan_init(&scan, r->text + r->at, r->len - r->at);
    const bool ok = qsf_jscan_skip(&scan, &from, &to, &e) == QSF_OK;
    qsf_err_clear(&e);
    if (!ok) return false;
    *json = (Text){ r->text + r->at + from, to - from };
    r->at += to;
    return true;
}

/* Says where the schema is that was refused. */
static void add_place(QsfReadText *r, size_t at, const char *word) {
    uint32_t line, col;
    if (!r->b->failed || r->b->err->code != QSF_E_USAGE) return;
    qsf_read_place(r, at, &line, &col);
    qsf_err_prefix(r->b->err, "line %u, column %u: %s", line, col, word);
}

/* %json and a schema, whose references may lead into another one with a name. */
static uint32_t schema(QsfReadText *r) {
    const size_t at = r->at;
    Text name = { 0 }, json;
    if (!take_word(r, "%json"))
        return qsf_read_fail(r, at, "after %% only json and a schema are known: %%json {...}");
    skip(r, false);
    const bool named = take_name(r, &name);
    if (!take_json(r, &json)) return qsf_read_fail(r, at, "%%json: the schema is not JSON");
    const uint32_t node = named ? qsf_node_schema_within(r->b, name.at, name.len, json.at, json.len)
                                : qsf_node_schema(r->b, json.at, json.len);
    add_place(r, at, "%json");
    return node;
}

/* %schema, a name and a schema: not a rule, but what others refer to. */
static void named_schema(QsfReadText *r) {
    const size_t at = r->at;
    Text name = { 0 }, json;
    if (!take_word(r, "%schema")) {
        qsf_read_fail(r, at, "the name of a rule is expected, or %%schema NAME {...}");
        return;
    }
    skip(r, false);
    if (!take_name(r, &name)) {
        qsf_read_fail(r, r->at, "%%schema: a name is expected, which begins with a letter");
    } else if (!take_json(r, &json)) {
        qsf_read_fail(r, at, "%%schema: the schema is not JSON");
    } else {
        (void)qsf_named_schema_add(r->b, name.at, name.len, json.at, json.len);
        add_place(r, at, "%schema");
    }
}

static uint32_t item(QsfReadText *r) {
    const char c = qsf_read_peek(r);
    if (c == '"') return literal(r);
    if (c == '[') return qsf_read_class(r, true, class_item);
    if (c == '(') return group(r);
    if (c == '<') return token(r, false);
    if (c == '%') return schema(r);
    if (c == '!' && r->at + 1 < r->len && r->text[r->at + 1] == '<') {
        r->at++;
        return token(r, true);
    }
    if (c == '.') {
        r->at++;
        return qsf_node_range(r->b, 0, QSF_CODE_MAX);
    }
    if (is_name(c)) return reference(r);
    if (c == '*' || c == '+' || c == '?' || c == '{')
        return qsf_read_fail(r, r->at, "there is nothing before %c that it could repeat", c);
    return qsf_read_fail(r, r->at, "unexpected character '%c'", (unsigned char)c < 0x80 ? c : '?');
}

/* Does another rule begin here? */
static bool at_rule(const QsfReadText *r) {
    size_t i = r->at;
    while (i < r->len && is_name(r->text[i])) i++;
    if (i == r->at) return false;
    while (i < r->len && (r->text[i] == ' ' || r->text[i] == '\t')) i++;
    return i + 2 < r->len && memcmp(r->text + i, "::=", 3) == 0;
}

static bool ends_sequence(const QsfReadText *r) {
    const char c = qsf_read_peek(r);
    return qsf_read_ended(r) || c == '|' || c == ')' || c == '\n' || c == '\r';
}

static uint32_t sequence(QsfReadText *r, bool in_group) {
    const uint32_t seq = qsf_node_list(r->b, QSF_NODE_SEQ);
    for (;;) {
        skip(r, in_group);
        if (r->b->failed || ends_sequence(r)) return seq;
        if (at_rule(r)) return qsf_read_fail(r, r->at, "unexpected ::= : a rule begins on a line of its own");
        const uint32_t node = item(r);
        if (!r->b->failed) qsf_node_add(r->b, seq, repeated(r, node, in_group));
    }
}

static uint32_t alternatives(QsfReadText *r, bool in_group) {
    const uint32_t alt = qsf_node_list(r->b, QSF_NODE_ALT);
    do {
        skip(r, true);
        /* After ::= or | the rule may continue on the next lines, up to the next rule. */
        if (!in_group && at_rule(r))
            qsf_node_add(r->b, alt, qsf_node_empty(r->b));
        else
            qsf_node_add(r->b, alt, sequence(r, in_group));
    } while (!r->b->failed && qsf_read_take(r, '|'));
    return alt;
}

static void read_rule(QsfReadText *r) {
    const size_t at = r->at;
    while (!qsf_read_ended(r) && is_name(qsf_read_peek(r))) r->at++;
    const size_t len = r->at - at;
    if (len == 0) {
        qsf_read_fail(r, at, "the name of a rule is expected");
        return;
    }
    skip(r, false);
    if (r->at + 3 > r->len || memcmp(r->text + r->at, "::=", 3) != 0) {
        qsf_read_fail(r, r->at, "::= is expected after the name of the rule");
        return;
    }
    r->at += 3;
    const uint32_t rule = qsf_rule_named(r->b, r->text + at, len);
    if (r->b->failed) return;
    QsfRule *u = &r->b->rules[rule];
    if (u->node != QSF_NO_RULE_BODY) {
        qsf_read_fail(r, at, "the rule \"%.*s\" is defined twice", (int)(len < 100 ? len : 100),
                      r->text + at);
        return;
    }
    qsf_read_place(r, at, &u->line, &u->col);
    const uint32_t body = alternatives(r, false);
    if (r->b->failed) return;
    r->b->rules[rule].node = body;
    if (qsf_read_peek(r) == ')') qsf_read_fail(r, r->at, "unexpected ')': no group is open");
}

static void check_rules(QsfGrammarBuild *b) {
    for (uint32_t i = 0; i < b->n_rules && !b->failed; i++) {
        const QsfRule *u = &b->rules[i];
        if (u->node == QSF_NO_RULE_BODY)
            qsf_gbuild_fail(b, QSF_E_USAGE, "line %u, column %u: the rule \"%.*s\" is not defined", u->line,
                            u->col, (int)(u->name_len < 100 ? u->name_len : 100), b->text.data + u->name);
    }
}

int qsf_read_gbnf(QsfGrammarBuild *b, const char *text, size_t len) {
    QsfReadText r = { .b = b, .text = text, .len = len, .at = qsf_utf8_bom(text, len), .lines = true };
    for (skip(&r, true); !b->failed && !qsf_read_ended(&r); skip(&r, true)) {
        if (qsf_read_peek(&r) == '%')
            named_schema(&r);
        else
            read_rule(&r);
        if (qsf_interrupted()) qsf_gbuild_fail(b, QSF_E_INTERRUPTED, "interrupted");
    }
    if (!b->failed && b->n_rules == 0)
        qsf_gbuild_fail(b, QSF_E_USAGE, "the grammar is empty: there is no rule \"root\"");
    check_rules(b);
    if (b->failed) return b->err->code;
    b->root = qsf_rule_named(b, "root", 4);
    if (!b->failed && b->rules[b->root].node == QSF_NO_RULE_BODY)
        qsf_gbuild_fail(b, QSF_E_USAGE, "there is no rule \"root\", where a text begins");
    return b->failed ? b->err->code : QSF_OK;
}
