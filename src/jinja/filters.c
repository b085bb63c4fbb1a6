/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filters over numbers, conversions to them, and pprint; filters that apply others; the lookup by name. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/jinja/eval.h"

typedef QsfJArgs A;

/* The text of a number as accepted by Python's int() and float(): surrounding white space and single
 * underscores between digits are dropped. False if it is not a number. */
static bool number_text(const QsfJStr *s, char *out, size_t cap) {
    size_t i = 0, end = qsf_j_rstrip(s->p, s->len), n = 0, space;
    while (i < end && (space = qsf_j_space(s->p + i, end - i)) > 0) i += space;
    for (; i < end; i++) {
        bool between = n > 0 && i + 1 < end && s->p[i - 1] != '_' && s->p[i + 1] != '_';
        if (s->p[i] == '_' && between) continue;
        if (s->p[i] == '_' || s->p[i] == '\0' || n + 1 == cap) return false;
        out[n++] = s->p[i];
    }
    out[n] = '\0';
    return n > 0;
}

/* 1 for a number, 0 for something else, -1 if it does not fit. */
static int parse_int(const QsfJStr *s, int base, int64_t *out) {
    char text[128], *end, *p = text;
    if (!number_text(s, text, sizeof text)) return 0;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    char kind = *p == '0' ? (char)(p[1] | 32) : '\0';
    int radix = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (radix != 0 && (base == radix || base == 0)) p += 2;
    if (base == 0) base = radix != 0 ? radix : 10;
    if (*p == '-' || *p == '+' || *p == ' ' || *p == '\0') return 0;
    if (base == 16 && p[0] == '0' && (p[1] | 32) == 'x') return 0;
    errno = 0;
    unsigned long long v = strtoull(p, &end, base);
    if (*end != '\0') return 0;
    if (errno != 0 || v > (unsigned long long)INT64_MAX) return -1;
    *out = negative ? -(int64_t)v : (int64_t)v;
    return 1;
}

static bool parse_float(const QsfJStr *s, double *out) {
    char text[512], *end;
    if (!number_text(s, text, sizeof text)) return false;
    const char *p = text + (*text == '-' || *text == '+');
    if (strpbrk(p, "xX(") != NULL || qsf_j_space(p, strlen(p)) > 0)
        return false; /* strtod accepts more than Python */
    *out = strtod(text, &end);
    return *end == '\0';
}

static bool whole_of(QsfJCtx *c, double f, QsfJVal fallback, QsfJVal *out) {
    *out = fallback;
    if (isnan(f) || isinf(f)) return true;
    if (fabs(f) >= 9.2e18) return qsf_j_fail(c, "integer overflow in 'int'");
    *out = qsf_j_int((int64_t)f);
    return true;
}

static bool f_int(QsfJCtx *c, A *a, QsfJVal *out) {
    int64_t base, v;
    double f;
    QsfJVal fallback = qsf_j_given(a, 0) ? a->v[0] : qsf_j_int(0);
    *out = fallback;
    if (!qsf_j_arg_int(c, a, 1, 10, &base)) return false;
    if (base != 0 && (base < 2 || base > 36)) return qsf_j_fail(c, "'int' with base %lld", (long long)base);
    if (qsf_j_is_whole(a->self)) *out = qsf_j_int(qsf_j_whole(a->self));
    if (a->self.type == QSF_J_FLOAT) return whole_of(c, a->self.u.f, fallback, out);
    if (a->self.type != QSF_J_STR) return true;
    int ok = parse_int(a->self.u.s, (int)base, &v);
    if (ok < 0) return qsf_j_fail(c, "integer overflow in 'int'");
    if (ok > 0) *out = qsf_j_int(v);
    return ok > 0 || !parse_float(a->self.u.s, &f) || whole_of(c, f, fallback, out);
}

static bool f_float(QsfJCtx *c, A *a, QsfJVal *out) {
    double f;
    (void)c;
    *out = qsf_j_given(a, 0) ? a->v[0] : qsf_j_float(0);
    if (qsf_j_is_num(a->self)) *out = qsf_j_float(qsf_j_real(a->self));
    if (a->self.type == QSF_J_STR && parse_float(a->self.u.s, &f)) *out = qsf_j_float(f);
    return true;
}

static bool f_abs(QsfJCtx *c, A *a, QsfJVal *out) {
    if (a->self.type == QSF_J_FLOAT) {
        *out = qsf_j_float(fabs(a->self.u.f));
        return true;
    }
    if (!qsf_j_is_whole(a->self))
        return qsf_j_fail(c, "'abs' needs a number, not %s", qsf_j_type_name(a->self));
    int64_t v = qsf_j_whole(a->self);
    if (v < 0) return qsf_j_arith(c, QSF_J_OP_SUB, qsf_j_int(0), qsf_j_int(v), out);
    *out = qsf_j_int(v);
    return true;
}

/* Python's round(): half to even, on the exact decimal value. */
static double round_common(double f, int64_t digits) {
    char text[400];
    if (digits > 22 || isnan(f) || isinf(f)) return f;
    if (digits >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)digits, f);
        return strtod(text, NULL);
    }
    double scale = pow(10, (double)-digits);
    return isinf(scale) ? 0 : nearbyint(f / scale) * scale;
}

static bool f_round(QsfJCtx *c, A *a, QsfJVal *out) {
    int64_t digits;
    const QsfJStr *method = qsf_j_given(a, 1) && a->v[1].type == QSF_J_STR ? a->v[1].u.s : NULL;
    bool up = method != NULL && qsf_j_is(method, "ceil"), down = method != NULL && qsf_j_is(method, "floor");
    if (!qsf_j_is_num(a->self))
        return qsf_j_fail(c, "'round' needs a number, not %s", qsf_j_type_name(a->self));
    if (qsf_j_given(a, 1) && !up && !down && (method == NULL || !qsf_j_is(method, "common")))
        return qsf_j_fail(c, "'round' goes by 'common', 'ceil' or 'floor'");
    if (!qsf_j_arg_int(c, a, 0, 0, &digits)) return false;
    *out = a->self;
    if (digits < -300 || digits > 300) return true;
    double f = qsf_j_real(a->self), scale = pow(10, (double)digits);
    if (up || down) {
        *out = qsf_j_float((up ? ceil(f * scale) : floor(f * scale)) / scale);
        return true;
    }
    if (qsf_j_is_whole(a->self) && digits >= 0)
        *out = qsf_j_int(qsf_j_whole(a->self));
    else if (qsf_j_is_whole(a->self))
        return whole_of(c, round_common(f, digits), *out, out);
    else
        *out = qsf_j_float(round_common(f, digits));
    return true;
}

static bool f_filesizeformat(QsfJCtx *c, A *a, QsfJVal *out) {
    static const char *const names[2][8] = { { "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB" },
                                             { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB" } };
    bool binary = qsf_j_truth(a->v[0]);
    double f = 0, base = binary ? 1024 : 1000, unit = base;
    if (a->self.type == QSF_J_STR && !parse_float(a->self.u.s, &f))
        return qsf_j_fail(c, "'filesizeformat' needs a number");
    if (a->self.type != QSF_J_STR && !qsf_j_is_num(a->self))
        return qsf_j_fail(c, "'filesizeformat' needs a number");
    if (a->self.type != QSF_J_STR) f = qsf_j_real(a->self);
    size_t mark = qsf_j_mark(c);
    int i = 0;
    while (i < 7 && f >= unit * base) {
        unit *= base;
        i++;
    }
    bool ok = f < base ? qsf_j_putf(c, f > 0.5 && f < 1.5 ? "%.0f Byte" : "%.0f Bytes", f)
                       : qsf_j_putf(c, "%.1f %s", f / unit, names[binary][i]);
    return ok && qsf_j_cut(c, mark, out);
}

static bool f_pprint(QsfJCtx *c, A *a, QsfJVal *out) {
    size_t mark = qsf_j_mark(c);
    if (!qsf_j_put_repr(c, a->self) || !qsf_j_cut(c, mark, out)) return false;
    return out->u.s->len <= 80 || qsf_j_fail(c, "not supported: 'pprint' of what does not fit in one line");
}

const QsfJRow qsf_j_num_filters[] = {
    { "int", f_int, "default base" },
    { "float", f_float, "default" },
    { "abs", f_abs, "" },
    { "round", f_round, "precision method" },
    { "filesizeformat", f_filesizeformat, "binary" },
    { "pprint", f_pprint, "verbose" },
    { 0 },
};

/* --- filters that apply other filters and tests, and default. Also the lookup of filters by name --- */

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
