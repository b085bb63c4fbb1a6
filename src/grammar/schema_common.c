/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON itself: any value, strings, numbers, and values written out. The white space is that of one line: a
 * blank after a colon and a comma, or none. */
#include <string.h>

#include "src/base/utf8.h"
#include "src/grammar/schema.h"

enum { ANY, TEXT, CHAR, COMMA, COLON, NUMBER, INTEGER, PAIR };

/* Returns the rule, and whether its body has to be made. */
static bool begin(QsfSchema *s, int which, uint32_t *rule) {
    const bool made = s->common[which] == 0;
    if (made) {
        const uint32_t r = qsf_rule_new(s->b, "", 0);
        s->common[which] = s->b->failed ? 0 : r + 1;
    }
    *rule = s->common[which] - 1;
    return made && !s->b->failed;
}

static uint32_t finish(QsfSchema *s, uint32_t rule, bool made, uint32_t body) {
    if (made && !s->b->failed) s->b->rules[rule].node = body;
    return qsf_node_rule(s->b, rule);
}

uint32_t qsf_schema_pair(QsfSchema *s, uint32_t a, uint32_t b) {
    const uint32_t list = qsf_node_list(s->b, QSF_NODE_SEQ);
    qsf_node_add(s->b, list, a);
    qsf_node_add(s->b, list, b);
    return list;
}

static uint32_t sign_and_blank(QsfSchema *s, int which, const char *sign) {
    uint32_t rule, body = 0;
    const bool made = begin(s, which, &rule);
    if (made)
        body = qsf_schema_pair(s, qsf_node_text(s->b, sign),
                               qsf_node_repeat(s->b, qsf_node_text(s->b, " "), 0, 1));
    return finish(s, rule, made, body);
}

uint32_t qsf_schema_comma(QsfSchema *s) { return sign_and_blank(s, COMMA, ","); }
uint32_t qsf_schema_colon(QsfSchema *s) { return sign_and_blank(s, COLON, ":"); }

/* A class as in GBNF, from pairs of characters. */
static uint32_t class_of(QsfSchema *s, const char *pairs) {
    QsfCharset set = { 0 };
    for (; pairs[0] != '\0' && pairs[1] != '\0'; pairs += 2)
        qsf_charset_add(&set, (unsigned char)pairs[0], (unsigned char)pairs[1]);
    const uint32_t node = qsf_node_set(s->b, &set);
    qsf_charset_free(&set);
    return node;
}

static uint32_t hex(QsfSchema *s) { return class_of(s, "09afAF"); }

static uint32_t list_of(QsfSchema *s, QsfNodeKind kind, const uint32_t *nodes, size_t n) {
    const uint32_t list = qsf_node_list(s->b, kind);
    for (size_t i = 0; i < n; i++) qsf_node_add(s->b, list, nodes[i]);
    return list;
}

/* n zeros, a digit from pairs, then the rest of four digits. */
static uint32_t four_digits(QsfSchema *s, unsigned zeros, const char *pairs) {
    const uint32_t list = qsf_node_list(s->b, QSF_NODE_SEQ);
    for (unsigned i = 0; i < 4; i++)
        qsf_node_add(s->b, list, class_of(s, i < zeros ? "00" : i == zeros ? pairs : "09afAF"));
    return list;
}

/* The escape of a code point by its number, as one or, above U+FFFF, as a surrogate pair: neither half a pair
 * nor NUL, which many programs cannot store. */
static uint32_t number_escape(QsfSchema *s) {
    QsfGrammarBuild *b = s->b;
    const uint32_t low[] = { class_of(s, "ddDD"), class_of(s, "07"), hex(s), hex(s) };
    const uint32_t pair[] = {
        class_of(s, "ddDD"), class_of(s, "89abAB"), hex(s), hex(s), qsf_node_text(b, "\\u"),
        class_of(s, "ddDD"), class_of(s, "cfCF"),   hex(s), hex(s)
    };
    const uint32_t ways[] = { four_digits(s, 0, "19acefACEF"),  four_digits(s, 1, "19afAF"),
                              four_digits(s, 2, "19afAF"),      four_digits(s, 3, "19afAF"),
                              list_of(s, QSF_NODE_SEQ, low, 4), list_of(s, QSF_NODE_SEQ, pair, 9) };
    return qsf_schema_pair(s, qsf_node_text(b, "u"), list_of(s, QSF_NODE_ALT, ways, 6));
}

uint32_t qsf_schema_char(QsfSchema *s) {
    uint32_t rule, body = 0;
    const bool made = begin(s, CHAR, &rule);
    if (made) {
        QsfCharset plain = { 0 };
        qsf_charset_add(&plain, 0, 0x1F);
        qsf_charset_add(&plain, '"', '"');
        qsf_charset_add(&plain, '\\', '\\');
        qsf_charset_negate(&plain);
        const uint32_t escapes[] = { class_of(s, "\"\"\\\\//bbffnnrrtt"), number_escape(s) };
        const uint32_t ways[] = { qsf_node_set(s->b, &plain),
                                  qsf_schema_pair(s, qsf_node_text(s->b, "\\"),
                                                  list_of(s, QSF_NODE_ALT, escapes, 2)) };
        body = list_of(s, QSF_NODE_ALT, ways, 2);
        qsf_charset_free(&plain);
    }
    return finish(s, rule, made, body);
}

uint32_t qsf_schema_text(QsfSchema *s) {
    uint32_t rule, body = 0;
    const bool made = begin(s, TEXT, &rule);
    if (made) {
        const uint32_t parts[] = { qsf_node_text(s->b, "\""),
                                   qsf_node_repeat(s->b, qsf_schema_char(s), 0, QSF_NO_LIMIT),
                                   qsf_node_text(s->b, "\"") };
        body = list_of(s, QSF_NODE_SEQ, parts, 3);
    }
    return finish(s, rule, made, body);
}

static uint32_t digits(QsfSchema *s, uint32_t min) {
    return qsf_node_repeat(s->b, class_of(s, "09"), min, QSF_NO_LIMIT);
}

uint32_t qsf_schema_any_number(QsfSchema *s, bool integers) {
    QsfGrammarBuild *b = s->b;
    uint32_t rule, body = 0;
    const bool made = begin(s, integers ? INTEGER : NUMBER, &rule);
    if (made) {
        const uint32_t whole[] = { qsf_node_text(b, "0"),
                                   qsf_schema_pair(s, class_of(s, "19"), digits(s, 0)) };
        const uint32_t sign = qsf_node_repeat(b, qsf_node_text(b, "-"), 0, 1);
        body = qsf_schema_pair(s, sign, list_of(s, QSF_NODE_ALT, whole, 2));
        if (!integers) {
            const uint32_t power[] = { class_of(s, "EEee"), qsf_node_repeat(b, class_of(s, "++--"), 0, 1),
                                       digits(s, 1) };
            const uint32_t all[] = {
                body, qsf_node_repeat(b, qsf_schema_pair(s, qsf_node_text(b, "."), digits(s, 1)), 0, 1),
                qsf_node_repeat(b, list_of(s, QSF_NODE_SEQ, power, 3), 0, 1)
            };
            body = list_of(s, QSF_NODE_SEQ, all, 3);
        }
    }
    return finish(s, rule, made, body);
}

/* open (element (comma element)*)? close */
static uint32_t series(QsfSchema *s, const char *open, uint32_t first, uint32_t again, const char *close) {
    const uint32_t more = qsf_node_repeat(s->b, qsf_schema_pair(s, qsf_schema_comma(s), again), 0,
                                          QSF_NO_LIMIT);
    const uint32_t parts[] = { qsf_node_text(s->b, open),
                               qsf_node_repeat(s->b, qsf_schema_pair(s, first, more), 0, 1),
                               qsf_node_text(s->b, close) };
    return list_of(s, QSF_NODE_SEQ, parts, 3);
}

static uint32_t any_pair(QsfSchema *s) {
    uint32_t rule, body = 0;
    const bool made = begin(s, PAIR, &rule);
    if (made) {
        const uint32_t parts[] = { qsf_schema_text(s), qsf_schema_colon(s), qsf_schema_any(s) };
        body = list_of(s, QSF_NODE_SEQ, parts, 3);
    }
    return finish(s, rule, made, body);
}

uint32_t qsf_schema_any(QsfSchema *s) {
    uint32_t rule, body = 0;
    const bool made = begin(s, ANY, &rule);
    if (made) {
        const uint32_t ways[] = { series(s, "{", any_pair(s), any_pair(s), "}"),
                                  series(s, "[", qsf_schema_any(s), qsf_schema_any(s), "]"),
                                  qsf_schema_text(s),
                                  qsf_schema_any_number(s, false),
                                  qsf_node_text(s->b, "true"),
                                  qsf_node_text(s->b, "false"),
                                  qsf_node_text(s->b, "null") };
        body = list_of(s, QSF_NODE_ALT, ways, 7);
    }
    return finish(s, rule, made, body);
}

/* --- values --- */

uint32_t qsf_schema_literal(QsfSchema *s, const char *text, size_t len) {
    static const char letter[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r' };
    QsfStrbuf out = QSF_STRBUF_INIT;
    qsf_strbuf_addc(&out, '"');
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            qsf_strbuf_addf(&out, "\\%c", c);
        else if (c < sizeof letter && letter[c] != 0)
            qsf_strbuf_addf(&out, "\\%c", letter[c]);
        else if (c < 0x20)
            qsf_strbuf_addf(&out, "\\u%04x", c);
        else
            qsf_strbuf_addc(&out, (char)c);
    }
    qsf_strbuf_addc(&out, '"');
    if (!qsf_strbuf_ok(&out)) qsf_gbuild_fail(s->b, QSF_E_RUNTIME, "out of memory: the schema");
    const uint32_t node = s->b->failed ? 0 : qsf_node_bytes(s->b, qsf_strbuf_str(&out), out.len);
    qsf_strbuf_free(&out);
    return node;
}

static uint32_t number_value(QsfSchema *s, const QsfJson *v) {
    QsfStrbuf out = QSF_STRBUF_INIT;
    size_t len;
    const char *exact = qsf_schema_exact(s, v, &len);
    if (exact != NULL) return qsf_node_bytes(s->b, exact, len);
    if (qsf_json_type(v) == QSF_JSON_INT)
        qsf_strbuf_addf(&out, "%lld", (long long)qsf_json_int(v, 0));
    else
        qsf_json_put_real(&out, qsf_json_real(v, 0));
    const uint32_t node = qsf_node_bytes(s->b, qsf_strbuf_str(&out), out.len);
    qsf_strbuf_free(&out);
    return node;
}

static uint32_t list_value(QsfSchema *s, const QsfJson *v) {
    const bool object = qsf_json_type(v) == QSF_JSON_OBJECT;
    const uint32_t list = qsf_node_list(s->b, QSF_NODE_SEQ);
    const void *it = NULL;
    qsf_node_add(s->b, list, qsf_node_text(s->b, object ? "{" : "["));
    for (size_t i = 0; i < qsf_json_size(v) && !s->b->failed; i++) {
        const QsfJson *item = object ? NULL : qsf_json_at(v, i);
        const char *key;
        if (i > 0) qsf_node_add(s->b, list, qsf_schema_comma(s));
        if (object) {
            it = qsf_json_next(v, it, &key, &item);
            qsf_node_add(s->b, list, qsf_schema_literal(s, key, strlen(key)));
            qsf_node_add(s->b, list, qsf_schema_colon(s));
        }
        qsf_node_add(s->b, list, qsf_schema_value(s, item));
    }
    qsf_node_add(s->b, list, qsf_node_text(s->b, object ? "}" : "]"));
    return list;
}

uint32_t qsf_schema_value(QsfSchema *s, const QsfJson *v) {
    size_t len;
    uint32_t node;
    switch (qsf_json_type(v)) {
    case QSF_JSON_NULL: return qsf_node_text(s->b, "null");
    case QSF_JSON_BOOL: return qsf_node_text(s->b, qsf_json_bool(v, false) ? "true" : "false");
    case QSF_JSON_STRING:
        return qsf_json_string(v, &len) != NULL ? qsf_schema_literal(s, qsf_json_string(v, &len), len) : 0;
    case QSF_JSON_INT:
    case QSF_JSON_REAL: return number_value(s, v);
    default: break;
    }
    if (++s->depth > QSF_GBUILD_DEPTH) return qsf_schema_fail(s, 0, "a value is nested too deep");
    node = list_value(s, v);
    s->depth--;
    return node;
}
