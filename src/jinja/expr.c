/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing expressions: the grammar of pallets/jinja src/jinja2/parser.py, loosest first: if-else, or, and,
 * not, comparisons, + -, ~, * / // %, **, unary + -, postfix, filters and tests. */
#include "src/jinja/eval.h"
#include "src/jinja/parse.h"

static QsfJRef parse_level(QsfJParser *p, unsigned level);
static QsfJRef parse_unary(QsfJParser *p, bool with_filters);

/* --- brackets --- */

/* Elements up to the closing bracket, which is consumed; pairs of a dictionary as key, value. */
static QsfJRef parse_items(QsfJParser *p, QsfJKind kind, const char *close) {
    QsfJChain l = { 0 };
    uint32_t line = p->cur.line;
    if (!qsf_j_advance(p)) return 0;
    while (!qsf_j_peek(p, QSF_JT_OP, close)) {
        if (l.n > 0 && !qsf_j_expect(p, QSF_JT_OP, ",")) return 0;
        if (qsf_j_peek(p, QSF_JT_OP, close)) break;
        if (!qsf_j_chain(p, &l, qsf_j_parse_expr(p, true))) return 0;
        if (kind != QSF_JN_DICT) continue;
        if (!qsf_j_expect(p, QSF_JT_OP, ":") || !qsf_j_chain(p, &l, qsf_j_parse_expr(p, true))) return 0;
    }
    if (l.n > UINT16_MAX) return qsf_j_parse_error(p, "too many elements in a literal");
    QsfJRef r = qsf_j_node(p, kind, line);
    if (r == 0 || !qsf_j_expect(p, QSF_JT_OP, close)) return 0;
    qsf_j_at(p, r)->a = l.first;
    qsf_j_at(p, r)->n = (uint16_t)l.n;
    qsf_j_at(p, r)->op = QSF_J_LIST;
    return r;
}

static bool tuple_ends(const QsfJParser *p, const char *end) {
    return p->cur.type == QSF_JT_VAR_END || p->cur.type == QSF_JT_BLOCK_END ||
           qsf_j_peek(p, QSF_JT_OP, ")") || (end != NULL && qsf_j_peek(p, QSF_JT_NAME, end));
}

static QsfJRef parse_tuple(QsfJParser *p, bool with_cond, const char *end, bool parenthesized) {
    QsfJChain l = { 0 };
    uint32_t line = p->cur.line;
    bool tuple = false;
    for (;;) {
        if (l.n > 0 && !qsf_j_expect(p, QSF_JT_OP, ",")) return 0;
        if (tuple_ends(p, end)) break;
        if (!qsf_j_chain(p, &l, qsf_j_parse_expr(p, with_cond))) return 0;
        if (!qsf_j_peek(p, QSF_JT_OP, ",")) break;
        tuple = true;
    }
    if (!tuple && l.n > 0) return l.first;
    if (l.n == 0 && !parenthesized) return qsf_j_parse_error(p, "expected an expression");
    QsfJRef r = l.n > UINT16_MAX ? qsf_j_parse_error(p, "too many elements")
                                 : qsf_j_node(p, QSF_JN_ITEMS, line);
    if (r == 0) return 0;
    qsf_j_at(p, r)->a = l.first;
    qsf_j_at(p, r)->n = (uint16_t)l.n;
    qsf_j_at(p, r)->op = QSF_J_TUPLE;
    return r;
}

QsfJRef qsf_j_parse_tuple(QsfJParser *p, bool with_cond, const char *end) {
    return parse_tuple(p, with_cond, end, false);
}

static QsfJRef parse_primary(QsfJParser *p) {
    if (p->cur.type == QSF_JT_NAME) return qsf_j_parse_name(p);
    if (p->cur.type == QSF_JT_STRING) return qsf_j_parse_string(p);
    if (p->cur.type == QSF_JT_INT || p->cur.type == QSF_JT_FLOAT) return qsf_j_parse_number(p);
    if (qsf_j_peek(p, QSF_JT_OP, "[")) return parse_items(p, QSF_JN_ITEMS, "]");
    if (qsf_j_peek(p, QSF_JT_OP, "{")) return parse_items(p, QSF_JN_DICT, "}");
    if (qsf_j_peek(p, QSF_JT_OP, "(")) {
        if (!qsf_j_advance(p)) return 0;
        QsfJRef r = parse_tuple(p, true, NULL, true);
        return r != 0 && qsf_j_expect(p, QSF_JT_OP, ")") ? r : 0;
    }
    bool shown = p->cur.type == QSF_JT_OP;
    return qsf_j_parse_error(p, "expected an expression, got '%.*s'", shown ? (int)p->cur.len : 14,
                             shown ? p->cur.p : "the end of it");
}

/* --- postfix --- */

/* name=value */
static bool parse_keyword(QsfJParser *p, QsfJChain *kw) {
    QsfJRef k = qsf_j_node(p, QSF_JN_KW, p->cur.line);
    uint32_t atom = k == 0 ? UINT32_MAX : qsf_j_atom(p, p->cur.p, p->cur.len);
    if (atom == UINT32_MAX || !qsf_j_advance(p) || !qsf_j_advance(p)) return false;
    QsfJRef v = qsf_j_parse_expr(p, true);
    if (v == 0 || !qsf_j_chain(p, kw, k)) return false;
    qsf_j_at(p, k)->sym = atom;
    qsf_j_at(p, k)->a = v;
    return true;
}

/* *values or **mapping */
static bool parse_star(QsfJParser *p, QsfJChain *into) {
    QsfJRef star = qsf_j_node(p, QSF_JN_STAR, p->cur.line);
    if (star == 0 || !qsf_j_advance(p)) return false;
    QsfJRef v = qsf_j_parse_expr(p, true);
    if (v == 0 || !qsf_j_chain(p, into, star)) return false;
    qsf_j_at(p, star)->a = v;
    return true;
}

/* Parses ( arguments ) into b, c and n of `into`. */
static bool parse_args(QsfJParser *p, QsfJRef into) {
    QsfJChain pos = { 0 }, kw = { 0 };
    bool ok = true;
    if (!qsf_j_expect(p, QSF_JT_OP, "(")) return false;
    while (ok && !qsf_j_peek(p, QSF_JT_OP, ")")) {
        if (pos.n + kw.n > 0 && !qsf_j_expect(p, QSF_JT_OP, ",")) return false;
        if (qsf_j_peek(p, QSF_JT_OP, ")")) break;
        if (qsf_j_peek(p, QSF_JT_OP, "**"))
            ok = parse_star(p, &kw);
        else if (p->cur.type == QSF_JT_NAME && qsf_j_peek_ahead(p, QSF_JT_OP, "="))
            ok = parse_keyword(p, &kw);
        else if (kw.n > 0)
            return qsf_j_parse_error(p, "a positional argument follows a keyword argument");
        else
            ok = qsf_j_peek(p, QSF_JT_OP, "*") ? parse_star(p, &pos)
                                               : qsf_j_chain(p, &pos, qsf_j_parse_expr(p, true));
    }
    if (!ok) return false;
    if (pos.n + kw.n > QSF_J_MAX_ARGS) return qsf_j_parse_error(p, "more than %d arguments", QSF_J_MAX_ARGS);
    qsf_j_at(p, into)->b = pos.first;
    qsf_j_at(p, into)->c = kw.first;
    qsf_j_at(p, into)->n = (uint16_t)(pos.n + kw.n);
    return qsf_j_expect(p, QSF_JT_OP, ")");
}

static QsfJRef parse_dot(QsfJParser *p, QsfJRef object) {
    QsfJToken k = p->ahead;
    if (!qsf_j_advance(p)) return 0;
    if (k.type == QSF_JT_INT) {
        QsfJRef key = qsf_j_parse_number(p), r = key == 0 ? 0 : qsf_j_node(p, QSF_JN_ITEM, k.line);
        if (r == 0) return 0;
        qsf_j_at(p, r)->a = object;
        qsf_j_at(p, r)->b = key;
        return r;
    }
    if (k.type != QSF_JT_NAME) return qsf_j_parse_error(p, "expected a name or a number after '.'");
    uint32_t atom = qsf_j_atom(p, k.p, k.len);
    QsfJRef r = atom == UINT32_MAX ? 0 : qsf_j_node(p, QSF_JN_ATTR, k.line);
    if (r == 0 || !qsf_j_advance(p)) return 0;
    qsf_j_at(p, r)->a = object;
    qsf_j_at(p, r)->sym = atom;
    return r;
}

/* One of start, stop, step; *out is 0 if it is omitted. */
static bool slice_part(QsfJParser *p, QsfJRef *out) {
    *out = 0;
    if (qsf_j_peek(p, QSF_JT_OP, ":") || qsf_j_peek(p, QSF_JT_OP, "]")) return true;
    return (*out = qsf_j_parse_expr(p, true)) != 0;
}

static QsfJRef parse_subscript(QsfJParser *p, QsfJRef object) {
    QsfJRef part[3] = { 0, 0, 0 };
    unsigned n = 0;
    uint32_t line = p->cur.line;
    if (!qsf_j_advance(p) || !slice_part(p, &part[0])) return 0;
    while (qsf_j_peek(p, QSF_JT_OP, ":") && ++n < 3)
        if (!qsf_j_advance(p) || !slice_part(p, &part[n])) return 0;
    if (n == 0 && part[0] == 0) return qsf_j_parse_error(p, "expected an expression in [ ]");
    if (qsf_j_peek(p, QSF_JT_OP, ",")) return qsf_j_parse_error(p, "not supported: a comma in [ ]");
    QsfJRef r = qsf_j_node(p, n == 0 ? QSF_JN_ITEM : QSF_JN_SLICE, line);
    if (r == 0 || !qsf_j_expect(p, QSF_JT_OP, "]")) return 0;
    QsfJNode *node = qsf_j_at(p, r);
    node->a = object;
    node->b = part[0];
    node->c = part[1];
    node->d = part[2];
    return r;
}

static QsfJRef parse_call(QsfJParser *p, QsfJRef callee) {
    QsfJRef r = qsf_j_node(p, QSF_JN_CALL, p->cur.line);
    if (r == 0 || !parse_args(p, r)) return 0;
    qsf_j_at(p, r)->a = callee;
    return r;
}

/* Postfix operators .a [b] (c) after node. */
static QsfJRef parse_postfix(QsfJParser *p, QsfJRef node) {
    for (unsigned n = 0; node != 0; n++) {
        bool dot = qsf_j_peek(p, QSF_JT_OP, "."), item = qsf_j_peek(p, QSF_JT_OP, "[");
        if (!dot && !item && !qsf_j_peek(p, QSF_JT_OP, "(")) return node;
        if (n == QSF_J_NESTING) return qsf_j_parse_error(p, "more than %d postfix operators", QSF_J_NESTING);
        node = dot ? parse_dot(p, node) : item ? parse_subscript(p, node) : parse_call(p, node);
    }
    return 0;
}

/* The name of a filter or test, including dots, as an atom. */
static uint32_t dotted_name(QsfJParser *p) {
    if (p->cur.type != QSF_JT_NAME) {
        qsf_j_expect(p, QSF_JT_NAME, NULL);
        return UINT32_MAX;
    }
    uint32_t atom = qsf_j_atom(p, p->cur.p, p->cur.len);
    return atom != UINT32_MAX && qsf_j_advance(p) ? atom : UINT32_MAX;
}

static QsfJRef parse_filter(QsfJParser *p, QsfJRef subject) {
    QsfJRef r = qsf_j_node(p, QSF_JN_FILTER, p->cur.line);
    QsfJToken name = p->cur;
    uint32_t atom = r == 0 ? UINT32_MAX : dotted_name(p);
    if (atom == UINT32_MAX) return 0;
    if (p->t->atoms[atom].filter == NULL && p->soft == 0)
        return qsf_j_parse_error(p, "not supported: there is no filter '%.*s'", (int)name.len, name.p);
    if (qsf_j_peek(p, QSF_JT_OP, "(") && !parse_args(p, r)) return 0;
    qsf_j_at(p, r)->a = subject;
    qsf_j_at(p, r)->sym = atom;
    return r;
}

/* The argument of a test without parentheses: x is divisibleby 3. */
static bool bare_argument(const QsfJParser *p) {
    if (p->cur.type == QSF_JT_NAME)
        return !qsf_j_peek(p, QSF_JT_NAME, "else") && !qsf_j_peek(p, QSF_JT_NAME, "or") &&
               !qsf_j_peek(p, QSF_JT_NAME, "and");
    return p->cur.type == QSF_JT_STRING || p->cur.type == QSF_JT_INT || p->cur.type == QSF_JT_FLOAT ||
           qsf_j_peek(p, QSF_JT_OP, "[") || qsf_j_peek(p, QSF_JT_OP, "{");
}

static QsfJRef parse_test(QsfJParser *p, QsfJRef subject) {
    QsfJRef r = qsf_j_node(p, QSF_JN_TEST, p->cur.line);
    if (r == 0 || !qsf_j_advance(p)) return 0;
    bool negated = qsf_j_peek(p, QSF_JT_NAME, "not");
    if (negated && !qsf_j_advance(p)) return 0;
    QsfJToken name = p->cur;
    uint32_t atom = dotted_name(p);
    if (atom == UINT32_MAX) return 0;
    if (p->t->atoms[atom].test == NULL && p->soft == 0)
        return qsf_j_parse_error(p, "not supported: there is no test '%.*s'", (int)name.len, name.p);
    if (qsf_j_peek(p, QSF_JT_OP, "(")) {
        if (!parse_args(p, r)) return 0;
    } else if (bare_argument(p)) {
        if (qsf_j_peek(p, QSF_JT_NAME, "is"))
            return qsf_j_parse_error(p, "tests cannot be chained with 'is'");
        QsfJRef arg = parse_primary(p);
        arg = arg == 0 ? 0 : parse_postfix(p, arg);
        if (arg == 0) return 0;
        qsf_j_at(p, r)->b = arg;
        qsf_j_at(p, r)->n = 1;
    }
    qsf_j_at(p, r)->a = subject;
    qsf_j_at(p, r)->sym = atom;
    qsf_j_at(p, r)->op = negated;
    return r;
}

QsfJRef qsf_j_parse_filters(QsfJParser *p, QsfJRef subject, bool bare) {
    if (bare) subject = parse_filter(p, subject);
    for (unsigned n = 0; subject != 0; n++) {
        if (n == QSF_J_NESTING) return qsf_j_parse_error(p, "more than %d filters", QSF_J_NESTING);
        if (qsf_j_peek(p, QSF_JT_OP, "|"))
            subject = qsf_j_advance(p) ? parse_filter(p, subject) : 0;
        else if (qsf_j_peek(p, QSF_JT_NAME, "is"))
            subject = parse_test(p, subject);
        else if (qsf_j_peek(p, QSF_JT_OP, "("))
            subject = parse_call(p, subject);
        else
            return subject;
    }
    return 0;
}

/* --- operators --- */

static QsfJRef parse_prefix(QsfJParser *p, QsfJKind kind, QsfJOp op) {
    QsfJRef r = qsf_j_node(p, kind, p->cur.line);
    if (r == 0 || !qsf_j_enter(p) || !qsf_j_advance(p)) return 0;
    QsfJRef a = kind == QSF_JN_NOT ? parse_level(p, 2) : parse_unary(p, false);
    p->depth--;
    if (a == 0) return 0;
    qsf_j_at(p, r)->a = a;
    qsf_j_at(p, r)->op = (uint8_t)op;
    return r;
}

static QsfJRef parse_unary(QsfJParser *p, bool with_filters) {
    QsfJRef r;
    if (qsf_j_peek(p, QSF_JT_OP, "-"))
        r = parse_prefix(p, QSF_JN_SIGN, QSF_J_OP_SUB);
    else if (qsf_j_peek(p, QSF_JT_OP, "+"))
        r = parse_prefix(p, QSF_JN_SIGN, QSF_J_OP_ADD);
    else
        r = parse_primary(p);
    if (r != 0) r = parse_postfix(p, r);
    return r != 0 && with_filters ? qsf_j_parse_filters(p, r, false) : r;
}

typedef struct Operator {
    const char *text;
    uint8_t token, op, level;
} Operator;

static const Operator operators[] = {
    { "or", QSF_JT_NAME, QSF_J_OP_OR, 0 },  { "and", QSF_JT_NAME, QSF_J_OP_AND, 1 },
    { "==", QSF_JT_OP, QSF_J_OP_EQ, 3 },    { "!=", QSF_JT_OP, QSF_J_OP_NE, 3 },
    { "<", QSF_JT_OP, QSF_J_OP_LT, 3 },     { "<=", QSF_JT_OP, QSF_J_OP_LE, 3 },
    { ">", QSF_JT_OP, QSF_J_OP_GT, 3 },     { ">=", QSF_JT_OP, QSF_J_OP_GE, 3 },
    { "in", QSF_JT_NAME, QSF_J_OP_IN, 3 },  { "not", QSF_JT_NAME, QSF_J_OP_NOTIN, 3 },
    { "+", QSF_JT_OP, QSF_J_OP_ADD, 4 },    { "-", QSF_JT_OP, QSF_J_OP_SUB, 4 },
    { "~", QSF_JT_OP, QSF_J_OP_CONCAT, 5 }, { "*", QSF_JT_OP, QSF_J_OP_MUL, 6 },
    { "/", QSF_JT_OP, QSF_J_OP_DIV, 6 },    { "//", QSF_JT_OP, QSF_J_OP_FLOORDIV, 6 },
    { "%", QSF_JT_OP, QSF_J_OP_MOD, 6 },    { "**", QSF_JT_OP, QSF_J_OP_POW, 7 },
};
enum { LEVEL_NOT = 2, LEVEL_COMPARE = 3, LEVEL_UNARY = 8 };

/* The operator of this level at the current token, or NULL. */
static const Operator *operator_here(const QsfJParser *p, unsigned level) {
    if (p->cur.type != QSF_JT_OP && p->cur.type != QSF_JT_NAME) return NULL;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const Operator *o = &operators[i];
        if (o->level != level || !qsf_j_peek(p, (QsfJTok)o->token, o->text)) continue;
        if (o->op == QSF_J_OP_NOTIN && !qsf_j_peek_ahead(p, QSF_JT_NAME, "in")) return NULL;
        return o;
    }
    return NULL;
}

/* Parses first op operand op operand ... as one node. */
static QsfJRef parse_chain(QsfJParser *p, QsfJRef first, unsigned level) {
    QsfJKind kind = level < LEVEL_NOT ? QSF_JN_LOGIC : level == LEVEL_COMPARE ? QSF_JN_COMPARE : QSF_JN_CHAIN;
    const Operator *o = operator_here(p, level);
    QsfJChain l = { 0 };
    QsfJRef r = qsf_j_node(p, kind, p->cur.line);
    if (r == 0) return 0;
    qsf_j_at(p, r)->op = o->op;
    if (kind == QSF_JN_LOGIC) qsf_j_chain(p, &l, first);
    for (; o != NULL; o = operator_here(p, level)) {
        QsfJRef operand = kind == QSF_JN_LOGIC ? 0 : qsf_j_node(p, QSF_JN_OPERAND, p->cur.line);
        if (!qsf_j_advance(p) || (o->op == QSF_J_OP_NOTIN && !qsf_j_advance(p))) return 0;
        QsfJRef a = parse_level(p, level + 1);
        if (a == 0 || !qsf_j_chain(p, &l, operand == 0 ? a : operand)) return 0;
        if (operand == 0) continue;
        qsf_j_at(p, operand)->a = a;
        qsf_j_at(p, operand)->op = o->op;
    }
    qsf_j_at(p, r)->a = kind == QSF_JN_LOGIC ? l.first : first;
    qsf_j_at(p, r)->b = l.first;
    return r;
}

static QsfJRef parse_level(QsfJParser *p, unsigned level) {
    if (level == LEVEL_UNARY) return parse_unary(p, true);
    if (level == LEVEL_NOT) {
        if (qsf_j_peek(p, QSF_JT_NAME, "not")) return parse_prefix(p, QSF_JN_NOT, QSF_J_OP_NONE);
        return parse_level(p, LEVEL_COMPARE);
    }
    QsfJRef first = parse_level(p, level + 1);
    if (first == 0 || operator_here(p, level) == NULL) return first;
    return parse_chain(p, first, level);
}

static QsfJRef parse_cond(QsfJParser *p, QsfJRef then) {
    for (unsigned n = 0; then != 0 && qsf_j_peek(p, QSF_JT_NAME, "if"); n++) {
        QsfJRef r = qsf_j_node(p, QSF_JN_COND, p->cur.line), otherwise = 0;
        if (r == 0 || !qsf_j_advance(p)) return 0;
        if (n == QSF_J_NESTING) return qsf_j_parse_error(p, "nested deeper than %d levels", QSF_J_NESTING);
        p->soft++;
        QsfJRef test = parse_level(p, 0);
        if (test != 0 && qsf_j_peek(p, QSF_JT_NAME, "else")) {
            if (!qsf_j_advance(p)) return 0;
            otherwise = qsf_j_parse_expr(p, true);
            if (otherwise == 0) return 0;
        }
        p->soft--;
        if (test == 0) return 0;
        qsf_j_at(p, r)->a = test;
        qsf_j_at(p, r)->b = then;
        qsf_j_at(p, r)->c = otherwise;
        then = r;
    }
    return then;
}

QsfJRef qsf_j_parse_expr(QsfJParser *p, bool with_cond) {
    if (!qsf_j_enter(p)) return 0;
    QsfJRef r = parse_level(p, 0);
    if (r != 0 && with_cond) r = parse_cond(p, r);
    p->depth--;
    return r;
}
