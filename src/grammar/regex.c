/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads regular expressions. What cannot be honoured is refused by name: references to groups, looking ahead
 * and behind, word boundaries, properties of Unicode, flags. Lazy quantifiers match the same texts. */
#include "src/grammar/regex.h"

#include "src/base/utf8.h"
#include "src/grammar/reader.h"

static void add_digits(QsfCharset *s) { qsf_charset_add(s, '0', '9'); }

static void add_word(QsfCharset *s) {
    add_digits(s);
    qsf_charset_add(s, 'A', 'Z');
    qsf_charset_add(s, 'a', 'z');
    qsf_charset_add(s, '_', '_');
}

static void add_space(QsfCharset *s) {
    qsf_charset_add(s, '\t', '\r');
    qsf_charset_add(s, ' ', ' ');
}

/* Adds the class of a letter d w s D W S; false if it is another letter. */
static bool add_class(QsfCharset *s, uint32_t c) {
    QsfCharset one = { 0 };
    switch (c | 0x20) {
    case 'd': add_digits(&one); break;
    case 'w': add_word(&one); break;
    case 's': add_space(&one); break;
    default: return false;
    }
    if (c < 'a') qsf_charset_negate(&one);
    qsf_charset_add_all(s, one.r, one.n);
    s->failed = s->failed || one.failed;
    qsf_charset_free(&one);
    return true;
}

static uint32_t hex_in_braces(QsfReadText *r) {
    const size_t at = r->at++;
    uint32_t v = 0;
    while (!r->b->failed && qsf_read_peek(r) != '}' && v <= QSF_CODE_MAX)
        v = v << 4 | qsf_read_hex(r, 1, "\\u{}");
    if (v > QSF_CODE_MAX || !qsf_read_take(r, '}'))
        return qsf_read_fail(r, at, "the escape \\u{} is not a Unicode character");
    return v;
}

static uint32_t unicode(QsfReadText *r) {
    const size_t at = r->at;
    if (qsf_read_peek(r) == '{') return hex_in_braces(r);
    const uint32_t c = qsf_read_hex(r, 4, "\\u");
    if (c < 0xD800 || c > 0xDFFF) return c;
    if (c < 0xDC00 && qsf_read_take(r, '\\') && qsf_read_take(r, 'u')) {
        const uint32_t d = qsf_read_hex(r, 4, "\\u");
        if (d >= 0xDC00 && d <= 0xDFFF) return 0x10000 + ((c - 0xD800) << 10 | (d - 0xDC00));
    }
    return qsf_read_fail(r, at, "the escape \\u%04x is half a surrogate pair", c);
}

static uint32_t refuse_escape(QsfReadText *r, size_t at, uint32_t c) {
    if (c >= '1' && c <= '9') return qsf_read_fail(r, at, "the backreference \\%c is not supported", (char)c);
    if (c == 'k') return qsf_read_fail(r, at, "the backreference \\k is not supported");
    if (c == 'b' || c == 'B') return qsf_read_fail(r, at, "the word boundary \\%c is not supported", (char)c);
    if (c == 'p' || c == 'P')
        return qsf_read_fail(r, at, "the Unicode property \\%c is not supported", (char)c);
    return qsf_read_fail(r, at, "there is no escape \\%c", (char)c);
}

/* The character of an escape after its backslash and letter c. */
static uint32_t escape(QsfReadText *r, size_t at, uint32_t c, bool in_class) {
    uint32_t letter;
    switch (c) {
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'x': return qsf_read_hex(r, 2, "\\x");
    case 'u': return unicode(r);
    case 'b':
        if (in_class) return '\b';
        break;
    case '0':
        if (qsf_read_peek(r) < '0' || qsf_read_peek(r) > '9') return 0;
        return qsf_read_fail(r, at, "octal escapes are not supported");
    case 'c':
        letter = (uint32_t)(unsigned char)qsf_read_peek(r);
        if ((letter | 0x20) < 'a' || (letter | 0x20) > 'z') break;
        r->at++;
        return letter & 31;
    default:
        if (c >= 0x80 || !((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')))
            return c;
    }
    return refuse_escape(r, at, c);
}

/* One character of a class, or a class in it: then *set is true and it was added. */
static uint32_t class_atom(QsfReadText *r, QsfCharset *s, bool *set) {
    const size_t at = r->at;
    *set = false;
    if (!qsf_read_take(r, '\\')) return qsf_read_code(r);
    if (qsf_read_ended(r)) return qsf_read_fail(r, at, "the class is not closed: it ends with a backslash");
    const uint32_t c = qsf_read_code(r);
    *set = add_class(s, c);
    return *set ? 0 : escape(r, at, c, true);
}

static void class_item(QsfReadText *r, QsfCharset *s) {
    const size_t at = r->at;
    bool set, end_set;
    const uint32_t lo = class_atom(r, s, &set);
    if (r->at + 1 >= r->len || r->text[r->at] != '-' || r->text[r->at + 1] == ']') {
        if (!set) qsf_charset_add(s, lo, lo);
        return;
    }
    r->at++;
    const uint32_t hi = class_atom(r, s, &end_set);
    if (set || end_set) { /* [\w-.]: the dash is itself */
        qsf_charset_add(s, '-', '-');
        if (!set) qsf_charset_add(s, lo, lo);
        if (!end_set) qsf_charset_add(s, hi, hi);
        return;
    }
    if (hi < lo) qsf_read_fail(r, at, "the range of characters is reversed");
    qsf_charset_add(s, lo, hi);
}

static uint32_t alternatives(QsfReadText *r);

/* (?...) other than (?: and (?<name>; at the character after the question mark. */
static uint32_t refuse_group(QsfReadText *r, size_t at) {
    const char c = qsf_read_peek(r);
    const char next = r->at + 1 < r->len ? r->text[r->at + 1] : '\0';
    if (c == '=' || c == '!') return qsf_read_fail(r, at, "the lookahead (?%c is not supported", c);
    if (c == '<' && (next == '=' || next == '!'))
        return qsf_read_fail(r, at, "the lookbehind (?<%c is not supported", next);
    return qsf_read_fail(r, at, "the group (?%c is not supported", c > 0x20 && c < 0x7F ? c : '?');
}

/* Takes what follows ( of a group that only groups; false if it is another one. */
static bool group_head(QsfReadText *r, size_t at) {
    if (!qsf_read_take(r, '?')) return true;
    if (qsf_read_take(r, ':')) return true;
    const char next = r->at + 1 < r->len ? r->text[r->at + 1] : '\0';
    if (qsf_read_peek(r) != '<' || next == '=' || next == '!') return refuse_group(r, at) != 0;
    while (!qsf_read_ended(r) && qsf_read_peek(r) != '>') r->at++;
    if (qsf_read_take(r, '>')) return true;
    return qsf_read_fail(r, at, "the name of the group is not closed: > is missing") != 0;
}

static uint32_t group(QsfReadText *r) {
    const size_t at = r->at++;
    if (++r->depth > QSF_GBUILD_DEPTH)
        return qsf_read_fail(r, at, "groups are nested more than %u deep", QSF_GBUILD_DEPTH);
    if (!group_head(r, at)) return 0;
    const uint32_t node = alternatives(r);
    r->depth--;
    if (!qsf_read_take(r, ')')) return qsf_read_fail(r, at, "the group is not closed: ) is missing");
    return node;
}

static uint32_t one_code(QsfReadText *r, uint32_t c) { return qsf_node_range(r->b, c, c); }

static uint32_t escaped(QsfReadText *r) {
    const size_t at = r->at++;
    QsfCharset s = { 0 };
    if (qsf_read_ended(r)) return qsf_read_fail(r, at, "the expression ends with a backslash");
    const uint32_t c = qsf_read_code(r);
    if (!add_class(&s, c)) return one_code(r, escape(r, at, c, false));
    const uint32_t node = qsf_node_set(r->b, &s);
    qsf_charset_free(&s);
    return node;
}

static uint32_t any_but_newline(QsfReadText *r) {
    QsfCharset s = { 0 };
    qsf_charset_add(&s, 0, '\n' - 1);
    qsf_charset_add(&s, '\n' + 1, QSF_CODE_MAX);
    const uint32_t node = qsf_node_set(r->b, &s);
    qsf_charset_free(&s);
    return node;
}

/* {m}, {m,} or {m,n}; other braces are characters. Does not take anything if it is not a count. */
static bool counts(QsfReadText *r, uint32_t *min, uint32_t *max) {
    const size_t at = r->at++;
    bool ok = qsf_read_number(r, min);
    *max = *min;
    if (ok && qsf_read_take(r, ',') && !qsf_read_number(r, max)) *max = QSF_NO_LIMIT;
    ok = ok && qsf_read_take(r, '}');
    if (!ok) r->at = at;
    return ok;
}

static uint32_t atom(QsfReadText *r) {
    uint32_t min, max;
    const size_t at = r->at;
    switch (qsf_read_peek(r)) {
    case '(': return group(r);
    case '[': return qsf_read_class(r, false, class_item);
    case '\\': return escaped(r);
    case '.': r->at++; return any_but_newline(r);
    case '^': r->at++; return qsf_node_new(r->b, QSF_NODE_BEGIN, 0, 0, 0);
    case '$': r->at++; return qsf_node_new(r->b, QSF_NODE_END, 0, 0, 0);
    case '*':
    case '+':
    case '?': return qsf_read_fail(r, at, "there is nothing before %c to repeat", r->text[at]);
    case '{':
        if (counts(r, &min, &max)) return qsf_read_fail(r, at, "there is nothing before { to repeat");
        r->at++;
        return one_code(r, '{');
    default: return one_code(r, qsf_read_code(r));
    }
}

static uint32_t quantified(QsfReadText *r, uint32_t node, size_t from) {
    uint32_t min = 0, max = QSF_NO_LIMIT;
    const size_t at = r->at;
    const char c = qsf_read_peek(r);
    if (c == '{' ? !counts(r, &min, &max) : c != '*' && c != '+' && c != '?') return node;
    if (c != '{') {
        r->at++;
        min = c == '+';
        max = c == '?' ? 1 : QSF_NO_LIMIT;
    }
    if (max < min) return qsf_read_fail(r, at, "the count {%u,%u} has its limits reversed", min, max);
    if (min > QSF_REGEX_REPEAT_MAX || (max > QSF_REGEX_REPEAT_MAX && max != QSF_NO_LIMIT))
        return qsf_read_fail(r, at, "a repetition count is above the limit of %u", QSF_REGEX_REPEAT_MAX);
    if (r->text[from] == '^' || r->text[from] == '$')
        return qsf_read_fail(r, from, "%c cannot be repeated", r->text[from]);
    (void)qsf_read_take(r, '?'); /* lazy */
    const char more = qsf_read_peek(r);
    if (more == '*' || more == '+' || more == '?')
        return qsf_read_fail(r, r->at, "%c follows another quantifier", more);
    return qsf_node_repeat(r->b, node, min, max);
}

static uint32_t alternatives(QsfReadText *r) {
    const uint32_t alt = qsf_node_list(r->b, QSF_NODE_ALT);
    do {
        const uint32_t seq = qsf_node_list(r->b, QSF_NODE_SEQ);
        while (!r->b->failed && !qsf_read_ended(r) && qsf_read_peek(r) != '|' && qsf_read_peek(r) != ')') {
            const size_t from = r->at;
            const uint32_t node = atom(r);
            if (!r->b->failed) qsf_node_add(r->b, seq, quantified(r, node, from));
        }
        qsf_node_add(r->b, alt, seq);
    } while (!r->b->failed && qsf_read_take(r, '|'));
    return alt;
}

uint32_t qsf_regex_parse(QsfGrammarBuild *b, const char *text, size_t len) {
    QsfReadText r = { .b = b, .text = text, .len = len };
    const uint32_t node = alternatives(&r);
    if (!b->failed && !qsf_read_ended(&r)) qsf_read_fail(&r, r.at, "unbalanced ): no group is open");
    return b->failed ? 0 : node;
}

int qsf_read_regex(QsfGrammarBuild *b, const char *text, size_t len) {
    b->root = qsf_rule_new(b, "", 0);
    const uint32_t node = qsf_regex_parse(b, text, len);
    QsfGraph *g = b->failed ? NULL : qsf_regex_graph(b, node, false);
    if (g != NULL) b->rules[b->root].node = qsf_node_graph(b, g, false);
    return b->failed ? b->err->code : QSF_OK;
}
