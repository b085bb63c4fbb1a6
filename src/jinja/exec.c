/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Executing statements: output, loops and assignments. */
#include "src/jinja/eval.h"

static const QsfJNode *node_at(const QsfJCtx *c, QsfJRef r) { return &c->t->nodes[r]; }
static QsfJFlow flow(bool ok) { return ok ? QSF_JF_NEXT : QSF_JF_FAIL; }

static QsfJFlow exec_text(QsfJCtx *c, const QsfJNode *n) {
    return flow(qsf_j_put_val(c, c->t->consts[n->sym]));
}

static QsfJFlow exec_print(QsfJCtx *c, const QsfJNode *n) {
    QsfJVal v;
    return flow(qsf_j_eval(c, n->a, &v) && qsf_j_put_val(c, v));
}

static QsfJFlow exec_if(QsfJCtx *c, const QsfJNode *n) {
    for (QsfJRef r = n->a; r != 0; r = node_at(c, r)->next) {
        const QsfJNode *arm = node_at(c, r);
        QsfJVal test = qsf_j_bool(true);
        if (arm->a != 0 && !qsf_j_eval(c, arm->a, &test)) return QSF_JF_FAIL;
        if (qsf_j_truth(test)) return qsf_j_exec(c, arm->b);
    }
    return QSF_JF_NEXT;
}

/* A body with its own scope. */
static QsfJFlow exec_scoped(QsfJCtx *c, QsfJRef body) {
    QsfJScope *before = c->scope;
    c->scope = qsf_j_scope(c, before);
    QsfJFlow f = c->scope == NULL ? QSF_JF_FAIL : qsf_j_exec(c, body);
    c->scope = before;
    return f;
}

/* The text produced by a body with its own scope. */
static bool capture(QsfJCtx *c, QsfJRef body, QsfJVal *out) {
    size_t mark = qsf_j_mark(c);
    return exec_scoped(c, body) != QSF_JF_FAIL && qsf_j_cut(c, mark, out);
}

/* --- assignments --- */

static bool assign(QsfJCtx *c, const QsfJNode *target, QsfJVal v);

static bool unpack(QsfJCtx *c, const QsfJNode *target, QsfJVal v) {
    const QsfJList *l;
    if (!qsf_j_iter(c, v, &l)) return false;
    if (l->n != target->n)
        return qsf_j_fail(c, "%u values for %u names", (unsigned)l->n, (unsigned)target->n);
    uint32_t i = 0;
    for (QsfJRef r = target->a; r != 0; r = node_at(c, r)->next)
        if (!assign(c, node_at(c, r), l->v[i++])) return false;
    return true;
}

static bool assign_attribute(QsfJCtx *c, const QsfJNode *target, QsfJVal v) {
    const QsfJAtom *name = &c->t->atoms[target->sym], *attr = &c->t->atoms[target->a];
    for (const QsfJScope *s = c->scope; s != NULL; s = s->up)
        for (uint32_t i = s->n; i-- > 0;) {
            if (s->b[i].atom != target->sym) continue;
            if (s->b[i].v.type == QSF_J_NS)
                return qsf_j_dict_put(c, s->b[i].v.u.d, (QsfJVal){ .type = QSF_J_STR, .u.s = attr->name }, v);
            return qsf_j_fail(c, "'%.*s' is not a namespace: its attributes cannot be set",
                              (int)name->name->len, name->name->p);
        }
    return qsf_j_fail(c, "'%.*s' is undefined", (int)name->name->len, name->name->p);
}

static bool assign(QsfJCtx *c, const QsfJNode *target, QsfJVal v) {
    if (target->kind == QSF_JN_NAME) return qsf_j_bind(c, target->sym, v);
    return target->kind == QSF_JN_ITEMS ? unpack(c, target, v) : assign_attribute(c, target, v);
}

static QsfJFlow exec_set(QsfJCtx *c, const QsfJNode *n) {
    QsfJVal v;
    return flow(qsf_j_eval(c, n->b, &v) && assign(c, node_at(c, n->a), v));
}

/* Applies the filters to a block's text. */
static bool filter_captured(QsfJCtx *c, QsfJRef filters, QsfJVal text, QsfJVal *out) {
    QsfJVal before = c->captured;
    c->captured = text;
    bool ok = qsf_j_eval(c, filters, out);
    c->captured = before;
    return ok;
}

static QsfJFlow exec_setblock(QsfJCtx *c, const QsfJNode *n) {
    QsfJVal v;
    return flow(capture(c, n->c, &v) && filter_captured(c, n->b, v, &v) && assign(c, node_at(c, n->a), v));
}

static QsfJFlow exec_filterblock(QsfJCtx *c, const QsfJNode *n) {
    QsfJVal v;
    return flow(capture(c, n->b, &v) && filter_captured(c, n->a, v, &v) && qsf_j_put_val(c, v));
}

static QsfJFlow exec_with(QsfJCtx *c, const QsfJNode *n) {
    QsfJScope *before = c->scope, *inner = qsf_j_scope(c, before);
    bool ok = inner != NULL;
    for (QsfJRef r = n->a; r != 0 && ok; r = node_at(c, r)->next) {
        QsfJVal v;
        ok = qsf_j_eval(c, node_at(c, r)->b, &v); /* sees the enclosing scopes, not its siblings */
        c->scope = inner;
        ok = ok && assign(c, node_at(c, node_at(c, r)->a), v);
        c->scope = before;
    }
    if (!ok) return QSF_JF_FAIL;
    c->scope = inner;
    QsfJFlow f = qsf_j_exec(c, n->b);
    c->scope = before;
    return f;
}

static QsfJFlow exec_scope(QsfJCtx *c, const QsfJNode *n) { return exec_scoped(c, n->b); }

/* --- macros --- */

static bool new_macro(QsfJCtx *c, const QsfJNode *n, QsfJVal *out) {
    QsfJMacro *m = qsf_j_alloc(c->mem, sizeof *m);
    if (m == NULL) return qsf_j_ok(c);
    *m = (QsfJMacro){ (QsfJRef)(n - c->t->nodes), c->scope };
    for (QsfJScope *s = c->scope; s != NULL && !s->kept; s = s->up) s->kept = true;
    *out = (QsfJVal){ .type = QSF_J_MACRO, .u.m = m };
    return true;
}

static QsfJFlow exec_macro(QsfJCtx *c, const QsfJNode *n) {
    QsfJVal m;
    return flow(new_macro(c, n, &m) && qsf_j_bind(c, n->sym, m));
}

static QsfJFlow exec_callblock(QsfJCtx *c, const QsfJNode *n) {
    const QsfJNode *call = node_at(c, n->a);
    QsfJVal callee, caller, v;
    QsfJArgs a = { 0 };
    if (!new_macro(c, node_at(c, n->b), &caller) || !qsf_j_eval(c, call->a, &callee) ||
        !qsf_j_eval_args(c, call, &a))
        return QSF_JF_FAIL;
    QsfJKw *kw = qsf_j_alloc(c->mem, (a.n_kw + 1u) * sizeof *kw);
    if (kw == NULL) return flow(qsf_j_ok(c));
    for (uint32_t i = 0; i < a.n_kw; i++) kw[i] = a.kw[i];
    kw[a.n_kw++] = (QsfJKw){ c->t->atoms[QSF_J_ATOM_CALLER].name, caller };
    a.kw = kw;
    return flow(qsf_j_call(c, callee, &a, &v) && qsf_j_put_val(c, v));
}

/* --- loops --- */

/* The elements for which the loop's own if is true. */
static bool filter_items(QsfJCtx *c, const QsfJNode *n, QsfJRef test, const QsfJList **items) {
    const QsfJList *all = *items;
    QsfJVal kept = qsf_j_list(c->mem, QSF_J_LIST, all->n), v;
    QsfJScope *before = c->scope;
    c->scope = qsf_j_scope(c, before);
    if (c->scope == NULL) return false;
    for (uint32_t i = 0; i < all->n && qsf_j_ok(c); i++) {
        if (!assign(c, node_at(c, n->a), all->v[i]) || !qsf_j_eval(c, test, &v)) return false;
        if (qsf_j_truth(v)) qsf_j_append(c->mem, kept.u.l, all->v[i]);
    }
    c->scope = before;
    if (!qsf_j_ok(c)) return false;
    *items = kept.u.l;
    return true;
}

static QsfJFlow run_body(QsfJCtx *c, const QsfJNode *n, QsfJLoop *loop) {
    QsfJScope *before = c->scope, *inner = qsf_j_scope(c, before);
    QsfJFlow f = QSF_JF_NEXT;
    if (inner == NULL) return QSF_JF_FAIL;
    c->scope = inner;
    for (; loop->i < loop->n && f != QSF_JF_FAIL && f != QSF_JF_BREAK; loop->i++) {
        if (inner->kept && (c->scope = inner = qsf_j_scope(c, before)) == NULL) return QSF_JF_FAIL;
        inner->n = 0; /* each iteration starts with an empty scope */
        if (!qsf_j_bind(c, QSF_J_ATOM_LOOP, (QsfJVal){ .type = QSF_J_LOOP, .u.loop = loop }) ||
            !assign(c, node_at(c, n->a), loop->v[loop->i]))
            return QSF_JF_FAIL;
        f = qsf_j_exec(c, n->c);
    }
    c->scope = before;
    return f == QSF_JF_FAIL ? f : QSF_JF_NEXT;
}

static QsfJFlow for_items(QsfJCtx *c, const QsfJNode *n, QsfJVal v, uint32_t level) {
    const QsfJNode *extra = node_at(c, n->d);
    const QsfJList *items;
    if (!qsf_j_iter(c, v, &items) || (extra->a != 0 && !filter_items(c, n, extra->a, &items)))
        return QSF_JF_FAIL;
    if (items->n == 0) return extra->b == 0 ? QSF_JF_NEXT : exec_scoped(c, extra->b);
    QsfJLoop *loop = qsf_j_alloc(c->mem, sizeof *loop);
    if (loop == NULL) return flow(qsf_j_ok(c));
    *loop = (QsfJLoop){
        .node = (QsfJRef)(n - c->t->nodes), .scope = c->scope, .v = items->v, .n = items->n, .level = level
    };
    return run_body(c, n, loop);
}

static QsfJFlow exec_for(QsfJCtx *c, const QsfJNode *n) {
    QsfJVal v;
    return qsf_j_eval(c, n->b, &v) ? for_items(c, n, v, 0) : QSF_JF_FAIL;
}

bool qsf_j_run_loop(QsfJCtx *c, const QsfJLoop *outer, QsfJVal items, QsfJVal *out) {
    const QsfJNode *n = node_at(c, outer->node);
    if (n->op == 0) return qsf_j_fail(c, "loop() needs a loop that is marked 'recursive'");
    QsfJScope *before = c->scope;
    size_t mark = qsf_j_mark(c);
    if (!qsf_j_enter_level(c)) return false;
    c->scope = outer->scope;
    bool ok = for_items(c, n, items, outer->level + 1) != QSF_JF_FAIL && qsf_j_cut(c, mark, out);
    c->scope = before;
    c->depth--;
    return ok;
}

static QsfJFlow exec_break(QsfJCtx *c, const QsfJNode *n) {
    (void)c;
    return n->kind == QSF_JN_BREAK ? QSF_JF_BREAK : QSF_JF_CONTINUE;
}

typedef QsfJFlow (*ExecFn)(QsfJCtx *c, const QsfJNode *n);

QsfJFlow qsf_j_exec(QsfJCtx *c, QsfJRef list) {
    static const ExecFn by_kind[QSF_J_N_KINDS] = {
        [QSF_JN_TEXT] = exec_text,
        [QSF_JN_PRINT] = exec_print,
        [QSF_JN_IF] = exec_if,
        [QSF_JN_FOR] = exec_for,
        [QSF_JN_SET] = exec_set,
        [QSF_JN_SETBLOCK] = exec_setblock,
        [QSF_JN_MACRO] = exec_macro,
        [QSF_JN_CALLBLOCK] = exec_callblock,
        [QSF_JN_FILTERBLOCK] = exec_filterblock,
        [QSF_JN_WITH] = exec_with,
        [QSF_JN_SCOPE] = exec_scope,
        [QSF_JN_BREAK] = exec_break,
        [QSF_JN_CONTINUE] = exec_break,
    };
    QsfJFlow f = QSF_JF_NEXT;
    if (!qsf_j_enter_level(c)) return QSF_JF_FAIL;
    for (; list != 0 && f == QSF_JF_NEXT; list = node_at(c, list)->next) {
        const QsfJNode *n = node_at(c, list);
        c->line = n->line;
        f = !qsf_j_work(c, 1)          ? QSF_JF_FAIL
            : by_kind[n->kind] == NULL ? flow(qsf_j_fail(c, "not a statement"))
                                       : by_kind[n->kind](c, n);
    }
    c->depth--;
    return f;
}
