/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tests: x is name. */
#include "src/base/unicode.h"
#include "src/base/utf8.h"
#include "src/jinja/eval.h"

typedef QsfJArgs A;

static bool yes(QsfJVal *out, bool b) {
    *out = qsf_j_bool(b);
    return true;
}

static bool t_defined(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type != QSF_J_UNDEF);
}
static bool t_undefined(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_UNDEF);
}
static bool t_none(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_NONE);
}
static bool t_string(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_STR);
}
static bool t_mapping(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_DICT);
}
static bool t_number(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, qsf_j_is_num(a->self));
}
static bool t_integer(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_INT);
}
static bool t_float(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_FLOAT);
}
static bool t_boolean(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_BOOL);
}
static bool t_true(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_BOOL && a->self.u.b);
}
static bool t_false(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_BOOL && !a->self.u.b);
}
static bool t_iterable(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, qsf_j_iterable(a->self));
}
static bool t_escaped(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.markup);
}

static bool t_callable(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_FUNC || a->self.type == QSF_J_MACRO || a->self.type == QSF_J_LOOP ||
                      a->self.type == QSF_J_UNDEF);
}

static bool t_sequence(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    QsfJType t = (QsfJType)a->self.type;
    return yes(o, t == QSF_J_STR || t == QSF_J_LIST || t == QSF_J_TUPLE || t == QSF_J_DICT ||
                      t == QSF_J_RANGE || t == QSF_J_UNDEF);
}

static bool remainder_is(QsfJCtx *c, QsfJVal v, QsfJVal by, int64_t want, QsfJVal *o) {
    QsfJVal rest;
    bool same;
    if (!qsf_j_is_num(v)) return qsf_j_fail(c, "%s is not a number", qsf_j_type_name(v));
    return qsf_j_arith(c, QSF_J_OP_MOD, v, by, &rest) && qsf_j_equal(c, rest, qsf_j_int(want), &same) &&
           yes(o, same);
}

static bool t_even(QsfJCtx *c, A *a, QsfJVal *o) { return remainder_is(c, a->self, qsf_j_int(2), 0, o); }
static bool t_odd(QsfJCtx *c, A *a, QsfJVal *o) { return remainder_is(c, a->self, qsf_j_int(2), 1, o); }

static bool t_divisibleby(QsfJCtx *c, A *a, QsfJVal *o) {
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "'divisibleby' needs a number");
    return remainder_is(c, a->self, a->v[0], 0, o);
}

static bool compare(QsfJCtx *c, A *a, QsfJOp op, QsfJVal *o) {
    bool b;
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "test '%s' needs an argument", a->who);
    return qsf_j_compare(c, op, a->self, a->v[0], &b) && yes(o, b);
}

static bool t_eq(QsfJCtx *c, A *a, QsfJVal *o) { return compare(c, a, QSF_J_OP_EQ, o); }
static bool t_ne(QsfJCtx *c, A *a, QsfJVal *o) { return compare(c, a, QSF_J_OP_NE, o); }
static bool t_lt(QsfJCtx *c, A *a, QsfJVal *o) { return compare(c, a, QSF_J_OP_LT, o); }
static bool t_le(QsfJCtx *c, A *a, QsfJVal *o) { return compare(c, a, QSF_J_OP_LE, o); }
static bool t_gt(QsfJCtx *c, A *a, QsfJVal *o) { return compare(c, a, QSF_J_OP_GT, o); }
static bool t_ge(QsfJCtx *c, A *a, QsfJVal *o) { return compare(c, a, QSF_J_OP_GE, o); }
static bool t_in(QsfJCtx *c, A *a, QsfJVal *o) { return compare(c, a, QSF_J_OP_IN, o); }

static bool t_sameas(QsfJCtx *c, A *a, QsfJVal *o) {
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "test 'sameas' needs an argument");
    QsfJVal x = a->self, y = a->v[0];
    if (x.type != y.type) return yes(o, false);
    if (qsf_j_is_listy(x) || x.type == QSF_J_DICT) return yes(o, x.u.l == y.u.l);
    return compare(c, a, QSF_J_OP_EQ, o);
}

/* All letters have one case, and there is at least one. */
static bool one_case(QsfJCtx *c, A *a, const char *not_this, QsfJVal *o) {
    QsfJVal s;
    bool some = false;
    if (!qsf_j_to_str(c, a->self, &s) || !qsf_j_bytes(c, s.u.s->len)) return false;
    for (size_t i = 0; i < s.u.s->len;) {
        uint32_t cp;
        i += qsf_utf8_next(s.u.s->p + i, s.u.s->len - i, &cp);
        const char *cat = qsf_unicode_category(cp);
        if (cat[0] != 'L' || (cat[1] != 'u' && cat[1] != 'l' && cat[1] != 't')) continue;
        if (cat[1] == not_this[0] || cat[1] == 't') return yes(o, false);
        some = true;
    }
    return yes(o, some);
}

static bool t_lower(QsfJCtx *c, A *a, QsfJVal *o) { return one_case(c, a, "u", o); }
static bool t_upper(QsfJCtx *c, A *a, QsfJVal *o) { return one_case(c, a, "l", o); }

static bool t_filter(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_STR && qsf_j_find_filter(a->self.u.s) != NULL);
}

static bool t_test(QsfJCtx *c, A *a, QsfJVal *o) {
    (void)c;
    return yes(o, a->self.type == QSF_J_STR && qsf_j_find_test(a->self.u.s) != NULL);
}

const QsfJRow *qsf_j_find_test(const QsfJStr *name) {
    static const QsfJRow rows[] = {
        { "defined", t_defined, "" },
        { "undefined", t_undefined, "" },
        { "none", t_none, "" },
        { "string", t_string, "" },
        { "mapping", t_mapping, "" },
        { "iterable", t_iterable, "" },
        { "sequence", t_sequence, "" },
        { "number", t_number, "" },
        { "integer", t_integer, "" },
        { "float", t_float, "" },
        { "boolean", t_boolean, "" },
        { "true", t_true, "" },
        { "false", t_false, "" },
        { "callable", t_callable, "" },
        { "escaped", t_escaped, "" },
        { "even", t_even, "" },
        { "odd", t_odd, "" },
        { "divisibleby", t_divisibleby, "num" },
        { "eq", t_eq, "other" },
        { "equalto", t_eq, "other" },
        { "==", t_eq, "other" },
        { "ne", t_ne, "other" },
        { "!=", t_ne, "other" },
        { "lt", t_lt, "other" },
        { "lessthan", t_lt, "other" },
        { "<", t_lt, "other" },
        { "le", t_le, "other" },
        { "<=", t_le, "other" },
        { "gt", t_gt, "other" },
        { "greaterthan", t_gt, "other" },
        { ">", t_gt, "other" },
        { "ge", t_ge, "other" },
        { ">=", t_ge, "other" },
        { "in", t_in, "seq" },
        { "sameas", t_sameas, "other" },
        { "lower", t_lower, "" },
        { "upper", t_upper, "" },
        { "filter", t_filter, "" },
        { "test", t_test, "" },
        { 0 },
    };
    return qsf_j_find_row(rows, name);
}
