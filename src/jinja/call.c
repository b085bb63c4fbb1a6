/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls: builtins with their parameters by position or name, macros, loop(). */
#include <string.h>

#include "src/jinja/eval.h"

/* --- binding arguments to the parameters of a builtin --- */

/* Position of name among the names in params, or -1; *count is their number. */
static int param_index(const char *params, const QsfJStr *name, uint32_t *count) {
    int found = -1;
    *count = 0;
    while (*params != '\0') {
        size_t n = strcspn(params, " ");
        if (name != NULL && qsf_j_same_text(name, params, n)) found = (int)*count;
        ++*count;
        params += n;
        while (*params == ' ') params++;
    }
    return found;
}

static bool bind_args(QsfJCtx *c, const QsfJRow *row, QsfJArgs *a) {
    uint32_t count;
    param_index(row->params, NULL, &count);
    if (a->n > count)
        return qsf_j_fail(c, "'%s' takes at most %u arguments, not %u", row->name, (unsigned)count,
                          (unsigned)a->n);
    if (count == 0 && a->n_kw == 0) return true;
    QsfJVal *v = qsf_j_alloc(c->mem, (count + 1u) * sizeof *v); /* zeroed: QSF_J_MISSING */
    if (v == NULL) return qsf_j_ok(c);
    if (a->n > 0) memcpy(v, a->v, a->n * sizeof *v);
    for (uint32_t i = 0; i < a->n_kw; i++) {
        uint32_t total;
        int at = param_index(row->params, a->kw[i].name, &total);
        if (at < 0 || v[at].type != QSF_J_MISSING)
            return qsf_j_fail(c, "'%s' got an unexpected argument '%.*s'", row->name, (int)a->kw[i].name->len,
                              a->kw[i].name->p);
        v[at] = a->kw[i].v;
    }
    a->v = v;
    a->n = count;
    a->n_kw = 0;
    return true;
}

bool qsf_j_call_row(QsfJCtx *c, const QsfJRow *row, QsfJArgs *a, QsfJVal *out) {
    a->who = row->name;
    if (row->params[0] != '*' && !bind_args(c, row, a)) return false;
    return row->fn(c, a, out) && qsf_j_ok(c);
}

bool qsf_j_apply(QsfJCtx *c, bool test, const QsfJStr *name, QsfJVal v, const QsfJArgs *a, uint32_t skip,
                 QsfJVal *out) {
    const QsfJRow *row = test ? qsf_j_find_test(name) : qsf_j_find_filter(name);
    if (row == NULL)
        return qsf_j_fail(c, "not supported: there is no %s '%.*s'", test ? "test" : "filter", (int)name->len,
                          name->p);
    QsfJArgs inner = { .self = v, .n_kw = a->n_kw, .kw = a->kw };
    if (a->n > skip) {
        inner.v = a->v + skip;
        inner.n = a->n - skip;
    }
    if (!qsf_j_enter_level(c) || !qsf_j_call_row(c, row, &inner, out)) return false;
    c->depth--;
    return true;
}

bool qsf_j_arg_int(QsfJCtx *c, const QsfJArgs *a, uint32_t i, int64_t fallback, int64_t *out) {
    *out = fallback;
    if (!qsf_j_given(a, i)) return true;
    if (!qsf_j_is_whole(a->v[i]))
        return qsf_j_fail(c, "'%s' needs an integer, not %s", a->who, qsf_j_type_name(a->v[i]));
    *out = qsf_j_whole(a->v[i]);
    return true;
}

bool qsf_j_arg_str(QsfJCtx *c, const QsfJArgs *a, uint32_t i, QsfJVal *out) {
    if (a->v[i].type != QSF_J_STR)
        return qsf_j_fail(c, "'%s' needs a string, not %s", a->who, qsf_j_type_name(a->v[i]));
    *out = a->v[i];
    return true;
}

/* --- macros --- */

/* Keyword argument `name`, or NULL; marks it as used. */
static const QsfJVal *take_kw(QsfJArgs *a, const QsfJStr *name) {
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (a->kw[i].name != NULL && qsf_j_same_text(a->kw[i].name, name->p, name->len)) {
            a->kw[i].name = NULL;
            return &a->kw[i].v;
        }
    return NULL;
}

static bool bind_params(QsfJCtx *c, const QsfJNode *macro, QsfJArgs *a) {
    uint32_t i = 0;
    for (QsfJRef r = macro->a; r != 0; r = c->t->nodes[r].next, i++) {
        const QsfJNode *param = &c->t->nodes[r];
        const QsfJVal *kw = i < a->n ? NULL : take_kw(a, c->t->atoms[param->sym].name);
        QsfJVal v = i < a->n ? a->v[i] : kw != NULL ? *kw : qsf_j_undef(NULL);
        if (i >= a->n && kw == NULL && param->a != 0 && !qsf_j_eval(c, param->a, &v)) return false;
        if (!qsf_j_bind(c, param->sym, v)) return false;
    }
    return true;
}

/* Arguments without a parameter: caller, varargs and kwargs, or an error. */
static bool bind_rest(QsfJCtx *c, const QsfJNode *macro, QsfJArgs *a) {
    const QsfJStr *name = c->t->atoms[macro->sym].name;
    const QsfJVal *caller = take_kw(a, c->t->atoms[QSF_J_ATOM_CALLER].name);
    if (!qsf_j_bind(c, QSF_J_ATOM_CALLER, caller == NULL ? qsf_j_undef(NULL) : *caller)) return false;
    if (a->n > macro->n && !c->t->varargs)
        return qsf_j_fail(c, "macro '%.*s' takes at most %u arguments", (int)name->len, name->p,
                          (unsigned)macro->n);
    QsfJVal rest = qsf_j_list(c->mem, QSF_J_TUPLE, 0), kwargs = qsf_j_dict(c->mem, QSF_J_DICT, 0);
    for (uint32_t i = macro->n; i < a->n && qsf_j_ok(c); i++) qsf_j_append(c->mem, rest.u.l, a->v[i]);
    for (uint32_t i = 0; i < a->n_kw && qsf_j_ok(c); i++) {
        if (a->kw[i].name == NULL) continue;
        if (!c->t->kwargs)
            return qsf_j_fail(c, "macro '%.*s' takes no argument '%.*s'", (int)name->len, name->p,
                              (int)a->kw[i].name->len, a->kw[i].name->p);
        qsf_j_dict_add(c->mem, kwargs.u.d, (QsfJVal){ .type = QSF_J_STR, .u.s = a->kw[i].name }, a->kw[i].v);
    }
    return qsf_j_ok(c) && qsf_j_bind(c, QSF_J_ATOM_VARARGS, rest) && qsf_j_bind(c, QSF_J_ATOM_KWARGS, kwargs);
}

static bool call_macro(QsfJCtx *c, const QsfJMacro *m, QsfJArgs *a, QsfJVal *out) {
    const QsfJNode *macro = &c->t->nodes[m->node];
    QsfJScope *before = c->scope;
    uint32_t line = c->line;
    QsfJScope *inner = qsf_j_scope(c, m->scope);
    if (inner == NULL || !qsf_j_enter_level(c)) return false;
    c->scope = inner;
    if (!bind_params(c, macro, a) || !bind_rest(c, macro, a)) return false;
    size_t mark = qsf_j_mark(c);
    if (qsf_j_exec(c, macro->b) == QSF_JF_FAIL || !qsf_j_cut(c, mark, out)) return false;
    c->scope = before;
    c->line = line;
    c->depth--;
    return true;
}

bool qsf_j_call(QsfJCtx *c, QsfJVal callee, QsfJArgs *a, QsfJVal *out) {
    if (callee.type == QSF_J_MACRO) return call_macro(c, callee.u.m, a, out);
    if (callee.type == QSF_J_FUNC) {
        a->self = callee.u.fn->self;
        return qsf_j_call_row(c, callee.u.fn->row, a, out);
    }
    if (callee.type == QSF_J_LOOP) {
        if (a->n != 1 || a->n_kw > 0) return qsf_j_fail(c, "loop() takes one argument");
        return qsf_j_run_loop(c, callee.u.loop, a->v[0], out);
    }
    const QsfJUndef *u = callee.type == QSF_J_UNDEF ? callee.u.u : NULL;
    if (u == NULL || u->name == NULL) return qsf_j_fail(c, "%s cannot be called", qsf_j_type_name(callee));
    int n = u->name->len > 60 ? 60 : (int)u->name->len;
    if (u->of == NULL) return qsf_j_fail(c, "'%.*s' is undefined and cannot be called", n, u->name->p);
    return qsf_j_fail(c, "%s has no method '%.*s' that a template may call", u->of, n, u->name->p);
}
