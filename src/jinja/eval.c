/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Evaluating expressions: one function per kind of node. */
#include "src/jinja/eval.h"

#include <string.h>

static const QsfJNode *node_at(const QsfJCtx *c, QsfJRef r) { return &c->t->nodes[r]; }

static bool eval_const(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    *out = c->t->consts[n->sym];
    return true;
}

static bool eval_name(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    for (const QsfJScope *s = c->scope; s != NULL; s = s->up)
        for (uint32_t i = s->n; i-- > 0;)
            if (s->b[i].atom == n->sym) {
                *out = s->b[i].v;
                return true;
            }
    const QsfJAtom *atom = &c->t->atoms[n->sym];
    if (atom->global != NULL) {
        QsfJFunc *fn = qsf_j_alloc(c->mem, sizeof *fn);
        if (fn == NULL) return qsf_j_ok(c);
        fn->row = atom->global;
        *out = (QsfJVal){ .type = QSF_J_FUNC, .u.fn = fn };
        return true;
    }
    QsfJUndef *u = qsf_j_alloc(c->mem, sizeof *u);
    if (u == NULL) return qsf_j_ok(c);
    u->name = atom->name;
    *out = qsf_j_undef(u);
    return true;
}

static bool eval_items(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal list = qsf_j_list(c->mem, (QsfJType)n->op, n->n), v;
    for (QsfJRef r = n->a; r != 0 && qsf_j_ok(c); r = node_at(c, r)->next) {
        if (!qsf_j_eval(c, r, &v)) return false;
        qsf_j_append(c->mem, list.u.l, v);
    }
    *out = list;
    return qsf_j_ok(c);
}

static bool eval_dict(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal dict = qsf_j_dict(c->mem, QSF_J_DICT, n->n / 2u), key, v;
    for (QsfJRef r = n->a; r != 0 && qsf_j_ok(c); r = node_at(c, r)->next) {
        if (!qsf_j_eval(c, r, &key)) return false;
        r = node_at(c, r)->next;
        if (!qsf_j_eval(c, r, &v) || !qsf_j_dict_put(c, dict.u.d, key, v)) return false;
    }
    *out = dict;
    return qsf_j_ok(c);
}

static bool eval_logic(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    for (QsfJRef r = n->a; r != 0; r = node_at(c, r)->next) {
        if (!qsf_j_eval(c, r, out)) return false;
        if (qsf_j_truth(*out) == (n->op == QSF_J_OP_OR)) return true;
    }
    return true;
}

static bool eval_not(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal v;
    if (!qsf_j_eval(c, n->a, &v)) return false;
    *out = qsf_j_bool(!qsf_j_truth(v));
    return true;
}

static bool eval_sign(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal v;
    if (!qsf_j_eval(c, n->a, &v)) return false;
    if (!qsf_j_is_num(v)) return qsf_j_fail(c, "a sign before %s", qsf_j_type_name(v));
    if (v.type == QSF_J_FLOAT) {
        *out = qsf_j_float(n->op == QSF_J_OP_SUB ? -v.u.f : v.u.f);
        return true;
    }
    return qsf_j_arith(c, (QsfJOp)n->op, qsf_j_int(0), v, out);
}

/* a ~ b ~ c: one string of all. */
static bool eval_tilde(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal v;
    size_t mark = qsf_j_mark(c);
    if (!qsf_j_eval(c, n->a, &v) || !qsf_j_put_val(c, v)) return false;
    for (QsfJRef r = n->b; r != 0; r = node_at(c, r)->next)
        if (!qsf_j_eval(c, node_at(c, r)->a, &v) || !qsf_j_put_val(c, v)) return false;
    return qsf_j_cut(c, mark, out);
}

/* Left to right; a sequence of plain strings is joined once, not pair by pair. */
static bool eval_chain(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal acc, v;
    size_t mark = 0;
    bool joining = false;
    if (n->op == QSF_J_OP_CONCAT) return eval_tilde(c, n, out);
    if (!qsf_j_eval(c, n->a, &acc)) return false;
    for (QsfJRef r = n->b; r != 0; r = node_at(c, r)->next) {
        QsfJOp op = (QsfJOp)node_at(c, r)->op;
        bool opens = !joining && op == QSF_J_OP_ADD && acc.type == QSF_J_STR && !acc.markup;
        if (opens) {
            joining = true;
            mark = qsf_j_mark(c);
            if (!qsf_j_put_val(c, acc)) return false;
        }
        if (!qsf_j_eval(c, node_at(c, r)->a, &v)) return false;
        if (joining && op == QSF_J_OP_ADD && v.type == QSF_J_STR && !v.markup) {
            if (!qsf_j_put_val(c, v)) return false;
            continue;
        }
        if (joining && !qsf_j_cut(c, mark, &acc)) return false;
        joining = false;
        if (!qsf_j_arith(c, op, acc, v, &acc)) return false;
    }
    if (joining) return qsf_j_cut(c, mark, out);
    *out = acc;
    return true;
}

static bool eval_compare(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal left, right;
    bool holds = true;
    if (!qsf_j_eval(c, n->a, &left)) return false;
    for (QsfJRef r = n->b; r != 0 && holds; r = node_at(c, r)->next) {
        if (!qsf_j_eval(c, node_at(c, r)->a, &right)) return false;
        if (!qsf_j_compare(c, (QsfJOp)node_at(c, r)->op, left, right, &holds)) return false;
        left = right;
    }
    *out = qsf_j_bool(holds);
    return true;
}

static bool eval_cond(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal test;
    if (!qsf_j_eval(c, n->a, &test)) return false;
    if (qsf_j_truth(test)) return qsf_j_eval(c, n->b, out);
    *out = qsf_j_undef(NULL);
    return n->c == 0 || qsf_j_eval(c, n->c, out);
}

static bool eval_attr(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal obj;
    return qsf_j_eval(c, n->a, &obj) && qsf_j_attr(c, obj, c->t->atoms[n->sym].name, out);
}

static bool eval_item(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal obj, key;
    return qsf_j_eval(c, n->a, &obj) && qsf_j_eval(c, n->b, &key) && qsf_j_item(c, obj, key, out);
}

static bool eval_slice(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal obj, part[3] = { { 0 }, { 0 }, { 0 } };
    const QsfJRef refs[3] = { n->b, n->c, n->d };
    if (!qsf_j_eval(c, n->a, &obj)) return false;
    for (int i = 0; i < 3; i++)
        if (refs[i] != 0 && !qsf_j_eval(c, refs[i], &part[i])) return false;
    return qsf_j_slice(c, obj, part[0], part[1], part[2], out);
}

/* The elements of values as positional arguments. */
static bool add_star(QsfJCtx *c, QsfJVal values, QsfJArgs *a) {
    const QsfJList *l;
    if (!qsf_j_iter(c, values, &l)) return false;
    if (l->n > QSF_J_MAX_ARGS - a->n) return qsf_j_fail(c, "more than %d arguments", QSF_J_MAX_ARGS);
    for (uint32_t i = 0; i < l->n; i++) a->v[a->n++] = l->v[i];
    return true;
}

/* The pairs of mapping as keyword arguments. */
static bool add_star_star(QsfJCtx *c, QsfJVal mapping, QsfJArgs *a) {
    if (mapping.type != QSF_J_DICT)
        return qsf_j_fail(c, "'**' needs a mapping, not %s", qsf_j_type_name(mapping));
    const QsfJDict *d = mapping.u.d;
    if (d->n > QSF_J_MAX_ARGS - a->n_kw) return qsf_j_fail(c, "more than %d arguments", QSF_J_MAX_ARGS);
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->kv[2 * i].type != QSF_J_STR) return qsf_j_fail(c, "'**' needs keys that are strings");
        a->kw[a->n_kw++] = (QsfJKw){ d->kv[2 * i].u.s, d->kv[2 * i + 1] };
    }
    return true;
}

/* Whether the call has * or ** arguments, and so possibly more than are visible. */
static bool has_star(const QsfJCtx *c, const QsfJNode *n) {
    for (QsfJRef r = n->b; r != 0; r = node_at(c, r)->next)
        if (node_at(c, r)->kind == QSF_JN_STAR) return true;
    for (QsfJRef r = n->c; r != 0; r = node_at(c, r)->next)
        if (node_at(c, r)->kind == QSF_JN_STAR) return true;
    return false;
}

bool qsf_j_eval_args(QsfJCtx *c, const QsfJNode *n, QsfJArgs *a) {
    if (n->n == 0) return true;
    bool stars = has_star(c, n);
    size_t room = stars ? QSF_J_MAX_ARGS + 1 : n->n;
    a->v = qsf_j_alloc(c->mem, room * sizeof *a->v);
    a->kw = qsf_j_alloc(c->mem, room * sizeof *a->kw);
    if (a->v == NULL || a->kw == NULL) return qsf_j_ok(c);
    for (QsfJRef r = n->b; r != 0; r = node_at(c, r)->next) {
        bool star = node_at(c, r)->kind == QSF_JN_STAR;
        QsfJVal v;
        if (a->n >= room) return qsf_j_fail(c, "more than %d arguments", QSF_J_MAX_ARGS);
        if (!qsf_j_eval(c, star ? node_at(c, r)->a : r, &v)) return false;
        if (star && !add_star(c, v, a)) return false;
        if (!star) a->v[a->n++] = v;
    }
    for (QsfJRef r = n->c; r != 0; r = node_at(c, r)->next) {
        bool star = node_at(c, r)->kind == QSF_JN_STAR;
        QsfJVal v;
        if (a->n_kw >= room) return qsf_j_fail(c, "more than %d arguments", QSF_J_MAX_ARGS);
        if (!qsf_j_eval(c, node_at(c, r)->a, &v)) return false;
        if (star && !add_star_star(c, v, a)) return false;
        if (!star) a->kw[a->n_kw++] = (QsfJKw){ c->t->atoms[node_at(c, r)->sym].name, v };
    }
    return true;
}

static bool eval_call(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJVal callee;
    QsfJArgs a = { 0 };
    if (!qsf_j_eval(c, n->a, &callee) || !qsf_j_eval_args(c, n, &a)) return false;
    c->line = n->line;
    return qsf_j_call(c, callee, &a, out);
}

static bool eval_filter(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    const QsfJAtom *atom = &c->t->atoms[n->sym];
    QsfJArgs a = { 0 };
    bool test = n->kind == QSF_JN_TEST;
    const QsfJRow *row = test ? atom->test : atom->filter;
    if (row == NULL)
        return qsf_j_fail(c, "not supported: there is no %s '%.*s'", test ? "test" : "filter",
                          (int)atom->name->len, atom->name->p);
    if (!qsf_j_eval(c, n->a, &a.self) || !qsf_j_eval_args(c, n, &a)) return false;
    c->line = n->line;
    if (!qsf_j_call_row(c, row, &a, out)) return false;
    if (test) *out = qsf_j_bool(qsf_j_truth(*out) != (n->op != 0));
    return true;
}

static bool eval_captured(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    (void)n;
    *out = c->captured;
    return true;
}

typedef bool (*EvalFn)(QsfJCtx *c, const QsfJNode *n, QsfJVal *out);

bool qsf_j_eval(QsfJCtx *c, QsfJRef r, QsfJVal *out) {
    static const EvalFn by_kind[QSF_J_N_KINDS] = {
        [QSF_JN_CONST] = eval_const, [QSF_JN_NAME] = eval_name,         [QSF_JN_ITEMS] = eval_items,
        [QSF_JN_DICT] = eval_dict,   [QSF_JN_LOGIC] = eval_logic,       [QSF_JN_NOT] = eval_not,
        [QSF_JN_SIGN] = eval_sign,   [QSF_JN_CHAIN] = eval_chain,       [QSF_JN_COMPARE] = eval_compare,
        [QSF_JN_COND] = eval_cond,   [QSF_JN_ATTR] = eval_attr,         [QSF_JN_ITEM] = eval_item,
        [QSF_JN_SLICE] = eval_slice, [QSF_JN_CALL] = eval_call,         [QSF_JN_FILTER] = eval_filter,
        [QSF_JN_TEST] = eval_filter, [QSF_JN_CAPTURED] = eval_captured,
    };
    const QsfJNode *n = node_at(c, r);
    EvalFn fn = by_kind[n->kind];
    c->line = n->line;
    if (fn == NULL) return qsf_j_fail(c, "not an expression");
    if (!qsf_j_work(c, 1) || !qsf_j_enter_level(c)) return false;
    bool ok = fn(c, n, out);
    c->depth--;
    return ok;
}
