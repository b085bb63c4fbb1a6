/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing statements, and compiling a template as a whole. */
#include "src/jinja/parse.h"
#include "src/jinja/eval.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/plain_locale.h"

/* Statements up to one of the tags in ends (names, NULL-terminated), whose name is then the current token; up
 * to the end of the template if ends is NULL. *out is the first of them, 0 if there are none. */
static bool parse_body(QsfJParser *p, const char *const *ends, QsfJRef *out);

static const char *const end_if[] = { "elif", "else", "endif", NULL }, *const end_else[] = { "endif", NULL },
                         *const end_for[] = { "else", "endfor", NULL },
                         *const end_for_else[] = { "endfor", NULL }, *const end_set[] = { "endset", NULL },
                         *const end_macro[] = { "endmacro", NULL }, *const end_call[] = { "endcall", NULL },
                         *const end_filter[] = { "endfilter", NULL }, *const end_with[] = { "endwith", NULL },
                         *const end_block[] = { "endblock", NULL },
                         *const end_generation[] = { "endgeneration", NULL };

/* The end of a tag, the body after it and the name that ends the body. */
static bool block_body(QsfJParser *p, const char *const *ends, QsfJRef *out) {
    return qsf_j_expect(p, QSF_JT_BLOCK_END, NULL) && parse_body(p, ends, out) &&
           (ends[1] != NULL || qsf_j_advance(p));
}

/* --- assignment targets --- */

static QsfJRef target_name(QsfJParser *p, bool allow_attribute) {
    QsfJToken k = p->cur;
    if (!qsf_j_expect(p, QSF_JT_NAME, NULL)) return 0;
    uint32_t atom = qsf_j_atom(p, k.p, k.len);
    bool attribute = allow_attribute && qsf_j_peek(p, QSF_JT_OP, ".");
    QsfJRef r = atom == UINT32_MAX ? 0 : qsf_j_node(p, attribute ? QSF_JN_NSREF : QSF_JN_NAME, k.line);
    if (r == 0) return 0;
    qsf_j_at(p, r)->sym = atom;
    if (!attribute) return r;
    if (!qsf_j_advance(p)) return 0;
    k = p->cur;
    if (!qsf_j_expect(p, QSF_JT_NAME, NULL) || (atom = qsf_j_atom(p, k.p, k.len)) == UINT32_MAX) return 0;
    qsf_j_at(p, r)->a = atom;
    return r;
}

/* a | a.b | a, b | (a, (b, c)); stops before `end`. */
static QsfJRef parse_target(QsfJParser *p, bool allow_attribute) {
    QsfJChain l = { 0 };
    bool tuple = false;
    uint32_t line = p->cur.line;
    if (!qsf_j_enter(p)) return 0;
    for (;;) {
        QsfJRef item;
        if (qsf_j_peek(p, QSF_JT_OP, "(")) {
            item = qsf_j_advance(p) ? parse_target(p, false) : 0;
            if (item != 0 && !qsf_j_expect(p, QSF_JT_OP, ")")) return 0;
        } else {
            item = target_name(p, allow_attribute && l.n == 0);
        }
        if (!qsf_j_chain(p, &l, item)) return 0;
        if (!qsf_j_peek(p, QSF_JT_OP, ",")) break;
        tuple = true;
        if (!qsf_j_advance(p)) return 0;
        if (p->cur.type != QSF_JT_NAME && !qsf_j_peek(p, QSF_JT_OP, "(")) break;
    }
    p->depth--;
    if (!tuple) return l.first;
    if (qsf_j_at(p, l.first)->kind == QSF_JN_NSREF)
        return qsf_j_parse_error(p, "not supported: several targets with attributes");
    QsfJRef r = l.n > UINT16_MAX ? 0 : qsf_j_node(p, QSF_JN_ITEMS, line);
    if (r == 0) return qsf_j_parse_error(p, "too many targets");
    qsf_j_at(p, r)->a = l.first;
    qsf_j_at(p, r)->n = (uint16_t)l.n;
    return r;
}

/* --- statements; each parser starts after the name and stops at the end of the last tag --- */

static QsfJRef parse_if(QsfJParser *p, QsfJRef r) {
    QsfJChain arms = { 0 };
    bool last = false;
    p->soft++;
    while (!last) {
        bool otherwise = arms.n > 0 && qsf_j_peek(p, QSF_JT_NAME, "else");
        last = arms.n > 0 && qsf_j_peek(p, QSF_JT_NAME, "endif");
        if (arms.n > 0 && !qsf_j_advance(p)) return 0;
        if (last) break;
        QsfJRef arm = qsf_j_node(p, QSF_JN_ARM, p->cur.line), test = 0, body;
        if (arm == 0 || (!otherwise && (test = qsf_j_parse_tuple(p, false, NULL)) == 0)) return 0;
        if (!qsf_j_expect(p, QSF_JT_BLOCK_END, NULL) || !parse_body(p, otherwise ? end_else : end_if, &body))
            return 0;
        qsf_j_at(p, arm)->a = test;
        qsf_j_at(p, arm)->b = body;
        if (!qsf_j_chain(p, &arms, arm)) return 0;
    }
    p->soft--;
    qsf_j_at(p, r)->a = arms.first;
    return r;
}

static QsfJRef parse_for(QsfJParser *p, QsfJRef r) {
    QsfJRef target = parse_target(p, false), test = 0, body, otherwise = 0;
    if (target == 0 || !qsf_j_expect(p, QSF_JT_NAME, "in")) return 0;
    QsfJRef iterable = qsf_j_parse_tuple(p, false, "recursive");
    if (iterable == 0) return 0;
    if (qsf_j_peek(p, QSF_JT_NAME, "if") && (!qsf_j_advance(p) || (test = qsf_j_parse_expr(p, true)) == 0))
        return 0;
    bool recursive = qsf_j_peek(p, QSF_JT_NAME, "recursive");
    if (recursive && !qsf_j_advance(p)) return 0;
    p->loops++;
    if (!qsf_j_expect(p, QSF_JT_BLOCK_END, NULL) || !parse_body(p, end_for, &body)) return 0;
    p->loops--;
    bool has_else = qsf_j_peek(p, QSF_JT_NAME, "else");
    if (!qsf_j_advance(p) || (has_else && !block_body(p, end_for_else, &otherwise))) return 0;
    QsfJRef extra = qsf_j_node(p, QSF_JN_FORX, p->cur.line);
    if (extra == 0) return 0;
    qsf_j_at(p, extra)->a = test;
    qsf_j_at(p, extra)->b = otherwise;
    QsfJNode *node = qsf_j_at(p, r);
    node->a = target;
    node->b = iterable;
    node->c = body;
    node->d = extra;
    node->op = recursive;
    return r;
}

static QsfJRef parse_set(QsfJParser *p, QsfJRef r) {
    QsfJRef target = parse_target(p, true), value, body = 0;
    if (target == 0) return 0;
    if (qsf_j_peek(p, QSF_JT_OP, "=")) {
        value = qsf_j_advance(p) ? qsf_j_parse_tuple(p, true, NULL) : 0;
        if (value == 0) return 0;
    } else {
        value = qsf_j_parse_filters(p, qsf_j_node(p, QSF_JN_CAPTURED, p->cur.line), false);
        if (value == 0 || !block_body(p, end_set, &body)) return 0;
        qsf_j_at(p, r)->kind = QSF_JN_SETBLOCK;
    }
    qsf_j_at(p, r)->a = target;
    qsf_j_at(p, r)->b = value;
    qsf_j_at(p, r)->c = body;
    return r;
}

/* Parses ( parameters ) of a macro or call block into a and n of r. */
static bool parse_params(QsfJParser *p, QsfJRef r) {
    QsfJChain l = { 0 };
    if (!qsf_j_expect(p, QSF_JT_OP, "(")) return false;
    while (!qsf_j_peek(p, QSF_JT_OP, ")")) {
        if (l.n > 0 && !qsf_j_expect(p, QSF_JT_OP, ",")) return false;
        QsfJRef param = target_name(p, false), value = 0;
        if (param == 0) return false;
        if (qsf_j_peek(p, QSF_JT_OP, "=") && (!qsf_j_advance(p) || (value = qsf_j_parse_expr(p, true)) == 0))
            return false;
        qsf_j_at(p, param)->kind = QSF_JN_PARAM;
        qsf_j_at(p, param)->a = value;
        if (!qsf_j_chain(p, &l, param)) return false;
    }
    if (l.n > QSF_J_MAX_ARGS) return qsf_j_parse_error(p, "more than %d parameters", QSF_J_MAX_ARGS);
    qsf_j_at(p, r)->a = l.first;
    qsf_j_at(p, r)->n = (uint16_t)l.n;
    return qsf_j_expect(p, QSF_JT_OP, ")");
}

/* The body of a macro: a separate function, so enclosing loops do not count. */
static bool macro_body(QsfJParser *p, QsfJRef r, const char *const *ends) {
    unsigned loops = p->loops;
    QsfJRef body;
    p->loops = 0;
    if (!block_body(p, ends, &body)) return false;
    p->loops = loops;
    qsf_j_at(p, r)->b = body;
    return true;
}

static QsfJRef parse_macro(QsfJParser *p, QsfJRef r) {
    QsfJToken k = p->cur;
    uint32_t atom = qsf_j_expect(p, QSF_JT_NAME, NULL) ? qsf_j_atom(p, k.p, k.len) : UINT32_MAX;
    if (atom == UINT32_MAX || !parse_params(p, r)) return 0;
    qsf_j_at(p, r)->sym = atom;
    return macro_body(p, r, end_macro) ? r : 0;
}

static QsfJRef parse_callblock(QsfJParser *p, QsfJRef r) {
    QsfJRef macro = qsf_j_node(p, QSF_JN_MACRO, p->cur.line);
    if (macro == 0 || (qsf_j_peek(p, QSF_JT_OP, "(") && !parse_params(p, macro))) return 0;
    qsf_j_at(p, macro)->sym = QSF_J_ATOM_CALLER;
    QsfJRef call = qsf_j_parse_expr(p, true);
    if (call == 0) return 0;
    if (qsf_j_at(p, call)->kind != QSF_JN_CALL) return qsf_j_parse_error(p, "expected a call after 'call'");
    if (!macro_body(p, macro, end_call)) return 0;
    qsf_j_at(p, r)->a = call;
    qsf_j_at(p, r)->b = macro;
    return r;
}

static QsfJRef parse_filterblock(QsfJParser *p, QsfJRef r) {
    QsfJRef body, value = qsf_j_parse_filters(p, qsf_j_node(p, QSF_JN_CAPTURED, p->cur.line), true);
    if (value == 0 || !block_body(p, end_filter, &body)) return 0;
    qsf_j_at(p, r)->a = value;
    qsf_j_at(p, r)->b = body;
    return r;
}

static QsfJRef parse_with(QsfJParser *p, QsfJRef r) {
    QsfJChain l = { 0 };
    QsfJRef body;
    while (p->cur.type != QSF_JT_BLOCK_END) {
        if (l.n > 0 && !qsf_j_expect(p, QSF_JT_OP, ",")) return 0;
        QsfJRef set = qsf_j_node(p, QSF_JN_SET, p->cur.line), target = target_name(p, false);
        if (set == 0 || target == 0 || !qsf_j_expect(p, QSF_JT_OP, "=")) return 0;
        QsfJRef value = qsf_j_parse_expr(p, true);
        if (value == 0 || !qsf_j_chain(p, &l, set)) return 0;
        qsf_j_at(p, set)->a = target;
        qsf_j_at(p, set)->b = value;
    }
    if (!block_body(p, end_with, &body)) return 0;
    qsf_j_at(p, r)->a = l.first;
    qsf_j_at(p, r)->b = body;
    return r;
}

static QsfJRef parse_generation(QsfJParser *p, QsfJRef r) {
    QsfJRef body;
    if (!block_body(p, end_generation, &body)) return 0;
    qsf_j_at(p, r)->b = body;
    return r;
}

static QsfJRef parse_block(QsfJParser *p, QsfJRef r) {
    QsfJRef body;
    if (!qsf_j_expect(p, QSF_JT_NAME, NULL) || !block_body(p, end_block, &body)) return 0;
    if (p->cur.type == QSF_JT_NAME && !qsf_j_advance(p)) return 0; /* endblock name */
    qsf_j_at(p, r)->b = body;
    return r;
}

static QsfJRef parse_jump(QsfJParser *p, QsfJRef r) {
    bool stops = qsf_j_at(p, r)->kind == QSF_JN_BREAK;
    if (p->loops == 0) return qsf_j_parse_error(p, "'%s' outside of a loop", stops ? "break" : "continue");
    return r;
}

static QsfJRef parse_print(QsfJParser *p, QsfJRef r) {
    QsfJRef value = qsf_j_parse_tuple(p, true, NULL);
    if (value == 0) return 0;
    qsf_j_at(p, r)->a = value;
    return r;
}

typedef struct Tag {
    const char *name;
    QsfJKind kind;
    QsfJRef (*parse)(QsfJParser *p, QsfJRef r);
} Tag;

static const Tag tags[] = {
    { "if", QSF_JN_IF, parse_if },
    { "for", QSF_JN_FOR, parse_for },
    { "set", QSF_JN_SET, parse_set },
    { "macro", QSF_JN_MACRO, parse_macro },
    { "call", QSF_JN_CALLBLOCK, parse_callblock },
    { "filter", QSF_JN_FILTERBLOCK, parse_filterblock },
    { "with", QSF_JN_WITH, parse_with },
    { "generation", QSF_JN_SCOPE, parse_generation },
    { "block", QSF_JN_SCOPE, parse_block },
    { "break", QSF_JN_BREAK, parse_jump },
    { "continue", QSF_JN_CONTINUE, parse_jump },
    { "print", QSF_JN_PRINT, parse_print },
};

static QsfJRef parse_statement(QsfJParser *p) {
    QsfJToken k = p->cur;
    if (k.type != QSF_JT_NAME) return qsf_j_parse_error(p, "expected the name of a tag");
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!qsf_j_peek(p, QSF_JT_NAME, tags[i].name)) continue;
        QsfJRef r = qsf_j_node(p, tags[i].kind, k.line);
        if (r == 0 || !qsf_j_enter(p) || !qsf_j_advance(p)) return 0;
        r = tags[i].parse(p, r);
        p->depth--;
        return r != 0 && qsf_j_expect(p, QSF_JT_BLOCK_END, NULL) ? r : 0;
    }
    bool ends = k.len > 3 && memcmp(k.p, "end", 3) == 0;
    return qsf_j_parse_error(p, ends || k.len == 4 ? "unexpected tag '%.*s'" : "not supported: tag '%.*s'",
                             (int)(k.len > 40 ? 40 : k.len), k.p);
}

static QsfJRef parse_text(QsfJParser *p) {
    QsfJToken k = p->cur;
    QsfJRef r = qsf_j_const_node(p, qsf_j_str(&p->t->mem, k.p, k.len, QSF_J_TEXT), k.line);
    if (r == 0 || !qsf_j_advance(p)) return 0;
    qsf_j_at(p, r)->kind = QSF_JN_TEXT;
    return r;
}

static QsfJRef parse_output(QsfJParser *p) {
    QsfJRef r = qsf_j_node(p, QSF_JN_PRINT, p->cur.line);
    if (r == 0 || !qsf_j_advance(p)) return 0;
    r = parse_print(p, r);
    return r != 0 && qsf_j_expect(p, QSF_JT_VAR_END, NULL) ? r : 0;
}

static bool ends_here(const QsfJParser *p, const char *const *ends) {
    for (; ends != NULL && *ends != NULL; ends++)
        if (qsf_j_peek(p, QSF_JT_NAME, *ends)) return true;
    return false;
}

static bool parse_body(QsfJParser *p, const char *const *ends, QsfJRef *out) {
    QsfJChain l = { 0 };
    for (;;) {
        QsfJRef r;
        if (p->cur.type == QSF_JT_EOF) {
            if (ends != NULL) return qsf_j_parse_error(p, "the template ends where '%s' is missing", *ends);
            break;
        }
        if (p->cur.type == QSF_JT_DATA) {
            r = parse_text(p);
        } else if (p->cur.type == QSF_JT_VAR_BEGIN) {
            r = parse_output(p);
        } else {
            if (!qsf_j_expect(p, QSF_JT_BLOCK_BEGIN, NULL)) return false;
            if (ends_here(p, ends)) break;
            r = parse_statement(p);
        }
        if (!qsf_j_chain(p, &l, r)) return false;
    }
    *out = l.first;
    return true;
}

/* --- the template --- */

/* Newlines become \n, a final one is dropped (as in Jinja without keep_trailing_newline). */
static bool copy_source(QsfJinja *t, const char *s, size_t len) {
    t->source = qsf_j_alloc(&t->mem, len + 1);
    if (t->source == NULL) return false;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bool cr = s[i] == '\r';
        if (cr && i + 1 < len && s[i + 1] == '\n') i++;
        t->source[n++] = cr ? '\n' : s[i];
    }
    if (n > 0 && t->source[n - 1] == '\n') n--;
    t->source[n] = '\0';
    t->source_len = n;
    return true;
}

static bool parse_template(QsfJParser *p) {
    static const char *const fixed[QSF_J_N_FIXED_ATOMS] = { "loop", "caller", "varargs", "kwargs" };
    for (int i = 0; i < QSF_J_N_FIXED_ATOMS; i++)
        if (qsf_j_atom(p, fixed[i], strlen(fixed[i])) == UINT32_MAX) return false;
    p->ahead.line = 1;
    qsf_j_node(p, QSF_J_NIL, 0);
    return qsf_j_lex_next(&p->lx, &p->ahead, p->err) == QSF_OK && qsf_j_advance(p) &&
           parse_body(p, NULL, &p->t->body);
}

int qsf_jinja_compile(QsfJinja **out, const char *source, size_t len, const QsfJinjaLimits *limits,
                      QsfErr *err) {
    QsfErr local = { 0 };
    *out = NULL;
    QsfJinja *t = calloc(1, sizeof *t);
    if (t == NULL) return qsf_err_memory(err, "template");
    t->limits = limits == NULL ? qsf_jinja_limits : *limits;
    qsf_j_mem_init(&t->mem, t->limits.memory);
    QsfJParser p = { .t = t, .err = &local };
    /* Numbers are written with a point in every locale. */
    QsfPlainLocale plain;
    qsf_plain_locale_begin(&plain);
    if (!copy_source(t, source, len) && t->mem.starved)
        qsf_err_memory(&local, "template");
    else if (t->source == NULL)
        qsf_err_set(&local, QSF_E_MODEL, "the template of %zu bytes is larger than the limit of %zu", len,
                    t->limits.memory);
    else
        qsf_j_lex_init(&p.lx, t->source, t->source_len);
    if (local.code == QSF_OK) parse_template(&p);
    qsf_plain_locale_end(&plain);
    if (local.code == QSF_OK) {
        *out = t;
        return QSF_OK;
    }
    qsf_jinja_free(t);
    return qsf_err_pass(err, &local);
}

void qsf_jinja_free(QsfJinja *t) {
    if (t == NULL) return;
    qsf_j_mem_destroy(&t->mem);
    free(t->nodes);
    free(t->atoms);
    free(t->consts);
    free(t);
}
