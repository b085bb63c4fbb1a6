/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filters that apply other filters and tests, and default. Also the lookup of filters by name. */
#include "src/jinja/eval.h"

typedef QsfJArgs A;

static const QsfJVal *kwarg(const A *a, const char *name) {
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (qsf_j_is(a->kw[i].name, name)) return &a->kw[i].v;
    return NULL;
}

/* map(attribute="a.b", default=x) */
static bool map_attribute(QsfJCtx *c, const QsfJList *in, QsfJVal path, const QsfJVal *otherwise,
                          QsfJList *out) {
    for (uint32_t i = 0; i < in->n; i++) {
        QsfJVal v;
        v = in->v[i];
        if (path.type != QSF_J_NONE && !qsf_j_path(c, v, path, otherwise, &v)) return false;
        if (!qsf_j_append(c->mem, out, v)) return qsf_j_ok(c);
    }
    return true;
}

/* False values (including none) count as empty, as in Jinja. */
static bool walk(QsfJCtx *c, QsfJVal v, const QsfJList **in) {
    return qsf_j_iter(c, qsf_j_truth(v) ? v : qsf_j_undef(NULL), in);
}

static bool f_map(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJVal *attribute = kwarg(a, "attribute");
    const QsfJList *in;
    QsfJVal name;
    if (!walk(c, a->self, &in)) return false;
    *out = qsf_j_list(c->mem, QSF_J_GEN, in->n);
    if (!qsf_j_ok(c)) return false;
    const QsfJVal *otherwise = kwarg(a, "default");
    if (a->n == 0 && attribute != NULL && in->n > 0 && a->n_kw > (otherwise != NULL ? 2 : 1))
        return qsf_j_fail(c, "'map' of an attribute takes 'default' and no other keyword");
    if (a->n == 0 && attribute != NULL) return map_attribute(c, in, *attribute, otherwise, out->u.l);
    if (a->n == 0 || !qsf_j_arg_str(c, a, 0, &name))
        return qsf_j_fail(c, "'map' needs the name of a filter or an attribute");
    for (uint32_t i = 0; i < in->n; i++) {
        QsfJVal v;
        if (!qsf_j_apply(c, false, name.u.s, in->v[i], a, 1, &v)) return false;
        if (!qsf_j_append(c->mem, out->u.l, v)) return qsf_j_ok(c);
    }
    return true;
}

/* Elements whose value (or attribute) passes the test named by the next argument, or is true; or all
 * others. */
static bool select_items(QsfJCtx *c, A *a, bool by_attribute, bool wanted, QsfJVal *out) {
    uint32_t skip = by_attribute ? 1 : 0;
    const QsfJList *in;
    QsfJVal name = { 0 };
    if (a->n < skip) return qsf_j_fail(c, "'%s' needs an attribute", a->who);
    if (a->n > skip && !qsf_j_arg_str(c, a, skip, &name)) return false;
    if (!walk(c, a->self, &in)) return false;
    *out = qsf_j_list(c->mem, QSF_J_GEN, in->n);
    for (uint32_t i = 0; i < in->n && qsf_j_ok(c); i++) {
        QsfJVal v = in->v[i], passed;
        if (by_attribute && a->v[0].type != QSF_J_NONE && !qsf_j_path(c, v, a->v[0], NULL, &v)) return false;
        passed = v;
        if (name.type == QSF_J_STR && !qsf_j_apply(c, true, name.u.s, v, a, skip + 1, &passed)) return false;
        if (qsf_j_truth(passed) == wanted) qsf_j_append(c->mem, out->u.l, in->v[i]);
    }
    return qsf_j_ok(c);
}

static bool f_select(QsfJCtx *c, A *a, QsfJVal *out) { return select_items(c, a, false, true, out); }
static bool f_reject(QsfJCtx *c, A *a, QsfJVal *out) { return select_items(c, a, false, false, out); }
static bool f_selectattr(QsfJCtx *c, A *a, QsfJVal *out) { return select_items(c, a, true, true, out); }
static bool f_rejectattr(QsfJCtx *c, A *a, QsfJVal *out) { return select_items(c, a, true, false, out); }

static bool f_default(QsfJCtx *c, A *a, QsfJVal *out) {
    bool falsy = qsf_j_given(a, 1) && qsf_j_truth(a->v[1]);
    *out = a->self;
    if (a->self.type != QSF_J_UNDEF && !(falsy && !qsf_j_truth(a->self))) return true;
    *out = a->v[0];
    return qsf_j_given(a, 0) || qsf_j_text(c, "", out);
}

static bool f_attr(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal name;
    if (!qsf_j_arg_str(c, a, 0, &name)) return false;
    if (a->self.type == QSF_J_DICT) { /* only attributes, never items */
        *out = qsf_j_undef(NULL);
        return true;
    }
    return qsf_j_attr(c, a->self, name.u.s, out);
}

static const QsfJRow select_filters[] = {
    { "map", f_map, "*" },
    { "select", f_select, "*" },
    { "reject", f_reject, "*" },
    { "selectattr", f_selectattr, "*" },
    { "rejectattr", f_rejectattr, "*" },
    { "default", f_default, "default_value boolean" },
    { "d", f_default, "default_value boolean" },
    { "attr", f_attr, "name" },
    { 0 },
};

const QsfJRow *qsf_j_find_filter(const QsfJStr *name) {
    static const QsfJRow *const tables[] = { qsf_j_text_filters, qsf_j_seq_filters, select_filters,
                                             qsf_j_num_filters, qsf_j_json_filters };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const QsfJRow *row = qsf_j_find_row(tables[i], name);
        if (row != NULL) return row;
    }
    return NULL;
}
