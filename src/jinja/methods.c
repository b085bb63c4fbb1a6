/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Methods of strings that transform, search or test; of dictionaries, lists and numbers. Methods that modify
 * a list or dictionary do not exist, as in Jinja's immutable sandbox. */
#include <math.h>

#include "src/base/unicode.h"
#include "src/base/utf8.h"
#include "src/jinja/strings.h"

typedef QsfJArgs A;

/* --- strings --- */

static bool m_upper(QsfJCtx *c, A *a, QsfJVal *o) { return qsf_j_case(c, a->self, QSF_JC_UPPER, o); }
static bool m_lower(QsfJCtx *c, A *a, QsfJVal *o) { return qsf_j_case(c, a->self, QSF_JC_LOWER, o); }
static bool m_title(QsfJCtx *c, A *a, QsfJVal *o) { return qsf_j_case(c, a->self, QSF_JC_TITLE, o); }
static bool m_capitalize(QsfJCtx *c, A *a, QsfJVal *o) { return qsf_j_case(c, a->self, QSF_JC_CAPITAL, o); }
static bool m_swapcase(QsfJCtx *c, A *a, QsfJVal *o) { return qsf_j_case(c, a->self, QSF_JC_SWAP, o); }

/* Characters to strip from markup are escaped first, like everything combined with markup. */
static bool strip(QsfJCtx *c, A *a, unsigned sides, QsfJVal *o) {
    if (a->self.markup && qsf_j_is_str(a->v[0]) && !qsf_j_markup(c, a->v[0], &a->v[0])) return false;
    return qsf_j_strip(c, a->self, a->v[0], sides, o);
}
static bool m_strip(QsfJCtx *c, A *a, QsfJVal *o) { return strip(c, a, QSF_JS_LEFT | QSF_JS_RIGHT, o); }
static bool m_lstrip(QsfJCtx *c, A *a, QsfJVal *o) { return strip(c, a, QSF_JS_LEFT, o); }
static bool m_rstrip(QsfJCtx *c, A *a, QsfJVal *o) { return strip(c, a, QSF_JS_RIGHT, o); }

static bool m_replace(QsfJCtx *c, A *a, QsfJVal *o) {
    QsfJVal from, to;
    int64_t max;
    bool markup = a->self.markup;
    if (!qsf_j_arg_str(c, a, 0, &from) || !qsf_j_arg_str(c, a, 1, &to) || !qsf_j_arg_int(c, a, 2, -1, &max))
        return false;
    if (markup && (!qsf_j_markup(c, from, &from) || !qsf_j_markup(c, to, &to))) return false;
    if (!qsf_j_replace(c, a->self, from, to, max, o)) return false;
    o->markup = markup;
    return true;
}

/* Whether s begins (or ends) with a string or with one of a tuple of strings. */
static bool edge(QsfJCtx *c, A *a, bool at_end, QsfJVal *o) {
    const QsfJStr *s = a->self.u.s;
    QsfJVal one = a->v[0];
    uint32_t n = one.type == QSF_J_TUPLE ? one.u.l->n : 1;
    *o = qsf_j_bool(false);
    for (uint32_t i = 0; i < n; i++) {
        QsfJVal part = one.type == QSF_J_TUPLE ? one.u.l->v[i] : one;
        if (part.type != QSF_J_STR) return qsf_j_fail(c, "'%s' needs a string or a tuple of strings", a->who);
        const QsfJStr *p = part.u.s;
        if (!qsf_j_work(c, p->len / 64) || p->len > s->len) continue;
        if (qsf_j_same_text(p, s->p + (at_end ? s->len - p->len : 0), p->len)) *o = qsf_j_bool(true);
    }
    return qsf_j_work(c, n / 8);
}

static bool m_startswith(QsfJCtx *c, A *a, QsfJVal *o) { return edge(c, a, false, o); }
static bool m_endswith(QsfJCtx *c, A *a, QsfJVal *o) { return edge(c, a, true, o); }

static bool remove_edge(QsfJCtx *c, A *a, bool at_end, QsfJVal *o) {
    QsfJVal yes, part;
    if (!qsf_j_arg_str(c, a, 0, &part) || !edge(c, a, at_end, &yes)) return false;
    uint32_t cut = yes.u.b ? part.u.s->len : 0;
    *o = qsf_j_substr(c->mem, a->self, at_end ? 0 : cut, a->self.u.s->len - cut);
    return qsf_j_ok(c);
}

static bool m_removeprefix(QsfJCtx *c, A *a, QsfJVal *o) { return remove_edge(c, a, false, o); }
static bool m_removesuffix(QsfJCtx *c, A *a, QsfJVal *o) { return remove_edge(c, a, true, o); }

/* Index in characters, or -1; a->v[1] and [2] limit the search. */
static bool find(QsfJCtx *c, A *a, bool reverse, int64_t *at) {
    QsfJVal part, all = a->self;
    const QsfJStr *s = a->self.u.s;
    if (!qsf_j_arg_str(c, a, 0, &part) || !qsf_j_bytes(c, s->len)) return false;
    if (!qsf_j_slice(c, all, a->v[1], a->v[2], qsf_j_none(), &all)) return false;
    if (reverse && !qsf_j_work(c, s->len * (uint64_t)(1 + part.u.s->len / 64) / 8)) return false;
    int64_t byte = qsf_j_find(all.u.s, part.u.s, 0, reverse);
    *at = -1;
    if (byte < 0) return true;
    QsfJStr before = { .p = s->p, .len = (uint32_t)(all.u.s->p - s->p) + (uint32_t)byte };
    *at = (int64_t)qsf_j_chars(&before);
    return true;
}

static bool found_or_fail(QsfJCtx *c, A *a, bool reverse, bool must, QsfJVal *o) {
    int64_t at;
    if (!find(c, a, reverse, &at)) return false;
    *o = qsf_j_int(at);
    return !must || at >= 0 || qsf_j_fail(c, "'%s': the string does not occur", a->who);
}

static bool m_find(QsfJCtx *c, A *a, QsfJVal *o) { return found_or_fail(c, a, false, false, o); }
static bool m_rfind(QsfJCtx *c, A *a, QsfJVal *o) { return found_or_fail(c, a, true, false, o); }
static bool m_index(QsfJCtx *c, A *a, QsfJVal *o) { return found_or_fail(c, a, false, true, o); }
static bool m_rindex(QsfJCtx *c, A *a, QsfJVal *o) { return found_or_fail(c, a, true, true, o); }

static bool m_count(QsfJCtx *c, A *a, QsfJVal *o) {
    QsfJVal part;
    const QsfJStr *s = a->self.u.s;
    if (!qsf_j_arg_str(c, a, 0, &part) || !qsf_j_bytes(c, s->len)) return false;
    int64_t n = 0, at = 0;
    if (part.u.s->len == 0) n = (int64_t)qsf_j_chars(s) + 1;
    while (part.u.s->len > 0 && (at = qsf_j_find(s, part.u.s, (size_t)at, false)) >= 0) {
        n++;
        at += part.u.s->len;
    }
    *o = qsf_j_int(n);
    return true;
}

static bool m_join(QsfJCtx *c, A *a, QsfJVal *o) {
    const QsfJList *in;
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "join() needs what to join");
    if (!qsf_j_iter(c, a->v[0], &in)) return false;
    size_t mark = qsf_j_mark(c);
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->v[i].type != QSF_J_STR) return qsf_j_fail(c, "join() of %s", qsf_j_type_name(in->v[i]));
        if ((i > 0 && !qsf_j_put_val(c, a->self)) || !qsf_j_put_val(c, in->v[i])) return false;
    }
    return qsf_j_cut(c, mark, o);
}

static bool padded(QsfJCtx *c, A *a, unsigned sides, QsfJVal *o) {
    int64_t width;
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "'%s' needs a width", a->who);
    return qsf_j_arg_int(c, a, 0, 0, &width) && qsf_j_pad(c, a->self, width, sides, a->v[1], o);
}

static bool m_center(QsfJCtx *c, A *a, QsfJVal *o) { return padded(c, a, QSF_JS_LEFT | QSF_JS_RIGHT, o); }
static bool m_ljust(QsfJCtx *c, A *a, QsfJVal *o) { return padded(c, a, QSF_JS_LEFT, o); }
static bool m_rjust(QsfJCtx *c, A *a, QsfJVal *o) { return padded(c, a, QSF_JS_RIGHT, o); }

static bool m_zfill(QsfJCtx *c, A *a, QsfJVal *o) {
    const QsfJStr *s = a->self.u.s;
    size_t sign = s->len > 0 && (s->p[0] == '-' || s->p[0] == '+'), mark = qsf_j_mark(c);
    int64_t width;
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "'zfill' needs a width");
    if (!qsf_j_arg_int(c, a, 0, 0, &width)) return false;
    if (width > (int64_t)c->limits.output) return qsf_j_fail(c, "the padded text would be too long");
    int64_t missing = width - (int64_t)qsf_j_chars(s);
    if (!qsf_j_put_sub(c, s, 0, sign) || !qsf_j_work(c, missing > 0 ? (uint64_t)missing / 8 : 0))
        return false;
    while (missing-- > 0)
        if (!qsf_j_puts(c, "0")) return false;
    return qsf_j_put_sub(c, s, sign, s->len - sign) && qsf_j_cut(c, mark, o);
}

const QsfJRow qsf_j_str_methods[] = {
    { "upper", m_upper, "" },
    { "lower", m_lower, "" },
    { "casefold", m_lower, "" },
    { "title", m_title, "" },
    { "capitalize", m_capitalize, "" },
    { "swapcase", m_swapcase, "" },
    { "strip", m_strip, "chars" },
    { "lstrip", m_lstrip, "chars" },
    { "rstrip", m_rstrip, "chars" },
    { "replace", m_replace, "old new count" },
    { "startswith", m_startswith, "prefix" },
    { "endswith", m_endswith, "suffix" },
    { "removeprefix", m_removeprefix, "prefix" },
    { "removesuffix", m_removesuffix, "suffix" },
    { "find", m_find, "sub start end" },
    { "rfind", m_rfind, "sub start end" },
    { "index", m_index, "sub start end" },
    { "rindex", m_rindex, "sub start end" },
    { "count", m_count, "sub" },
    { "join", m_join, "iterable" },
    { "center", m_center, "width fill" },
    { "ljust", m_ljust, "width fill" },
    { "rjust", m_rjust, "width fill" },
    { "zfill", m_zfill, "width" },
    { 0 },
};

/* --- tests of all characters of a string --- */

typedef bool (*CharTest)(uint32_t cp, const char *cat);

static bool all_chars(QsfJCtx *c, A *a, CharTest test, QsfJVal *o) {
    const QsfJStr *s = a->self.u.s;
    *o = qsf_j_bool(s->len > 0);
    for (size_t i = 0; i < s->len && o->u.b;) {
        uint32_t cp;
        i += qsf_utf8_next(s->p + i, s->len - i, &cp);
        o->u.b = cp != UINT32_MAX && test(cp, qsf_unicode_category(cp));
    }
    return qsf_j_bytes(c, s->len);
}

/* Superscript digits and the like are digits to Python, though not decimals. */
static bool super_digit(uint32_t cp) {
    return cp == 0xB2 || cp == 0xB3 || cp == 0xB9 || cp == 0x2070 || (cp >= 0x2074 && cp <= 0x2079) ||
           (cp >= 0x2080 && cp <= 0x2089) || (cp >= 0x2460 && cp <= 0x2468);
}
static bool is_decimal(uint32_t cp, const char *cat) { return (void)cp, cat[0] == 'N' && cat[1] == 'd'; }
static bool is_digit(uint32_t cp, const char *cat) { return is_decimal(cp, cat) || super_digit(cp); }
static bool is_numeric(uint32_t cp, const char *cat) { return (void)cp, cat[0] == 'N'; }
static bool is_alpha(uint32_t cp, const char *cat) { return (void)cp, cat[0] == 'L'; }
static bool is_alnum(uint32_t cp, const char *cat) { return (void)cp, cat[0] == 'L' || cat[0] == 'N'; }
static bool is_ascii(uint32_t cp, const char *cat) { return (void)cat, cp < 128; }
static bool is_space(uint32_t cp, const char *cat) {
    char text[4];
    (void)cat;
    return qsf_j_space(text, qsf_utf8_put(cp, text)) > 0;
}

static bool m_isdecimal(QsfJCtx *c, A *a, QsfJVal *o) { return all_chars(c, a, is_decimal, o); }
static bool m_isdigit(QsfJCtx *c, A *a, QsfJVal *o) { return all_chars(c, a, is_digit, o); }
static bool m_isnumeric(QsfJCtx *c, A *a, QsfJVal *o) { return all_chars(c, a, is_numeric, o); }
static bool m_isalpha(QsfJCtx *c, A *a, QsfJVal *o) { return all_chars(c, a, is_alpha, o); }
static bool m_isalnum(QsfJCtx *c, A *a, QsfJVal *o) { return all_chars(c, a, is_alnum, o); }
static bool m_isspace(QsfJCtx *c, A *a, QsfJVal *o) { return all_chars(c, a, is_space, o); }

static bool m_isascii(QsfJCtx *c, A *a, QsfJVal *o) {
    if (!all_chars(c, a, is_ascii, o)) return false;
    o->u.b = o->u.b || a->self.u.s->len == 0;
    return true;
}

static bool by_test(QsfJCtx *c, A *a, const char *name, QsfJVal *o) {
    QsfJStr s = { .p = name, .len = 5 };
    QsfJArgs none = { 0 };
    return qsf_j_apply(c, true, &s, a->self, &none, 0, o);
}
static bool m_isupper(QsfJCtx *c, A *a, QsfJVal *o) { return by_test(c, a, "upper", o); }
static bool m_islower(QsfJCtx *c, A *a, QsfJVal *o) { return by_test(c, a, "lower", o); }

const QsfJRow qsf_j_str_is_methods[] = {
    { "isdecimal", m_isdecimal, "" }, { "isdigit", m_isdigit, "" },
    { "isnumeric", m_isnumeric, "" }, { "isalpha", m_isalpha, "" },
    { "isalnum", m_isalnum, "" },     { "isspace", m_isspace, "" },
    { "isascii", m_isascii, "" },     { "isupper", m_isupper, "" },
    { "islower", m_islower, "" },     { 0 },
};

/* --- dictionaries --- */

enum { KEYS = 1, VALUES = 2, ITEMS = 3 };

static bool view(QsfJCtx *c, A *a, int what, const char *name, QsfJVal *o) {
    const QsfJDict *d = a->self.u.d;
    *o = qsf_j_list(c->mem, QSF_J_VIEW, d->n);
    for (uint32_t i = 0; i < d->n && qsf_j_ok(c); i++) {
        QsfJVal v = d->kv[2 * i + (what == VALUES)];
        if (what == ITEMS) {
            v = qsf_j_list(c->mem, QSF_J_TUPLE, 2);
            if (!qsf_j_ok(c)) return false;
            qsf_j_append(c->mem, v.u.l, d->kv[2 * i]);
            qsf_j_append(c->mem, v.u.l, d->kv[2 * i + 1]);
        }
        qsf_j_append(c->mem, o->u.l, v);
    }
    if (!qsf_j_ok(c)) return false;
    o->u.l->view = name;
    return qsf_j_work(c, d->n / 8);
}

static bool m_keys(QsfJCtx *c, A *a, QsfJVal *o) { return view(c, a, KEYS, "dict_keys", o); }
static bool m_values(QsfJCtx *c, A *a, QsfJVal *o) { return view(c, a, VALUES, "dict_values", o); }
static bool m_items(QsfJCtx *c, A *a, QsfJVal *o) { return view(c, a, ITEMS, "dict_items", o); }

static bool m_get(QsfJCtx *c, A *a, QsfJVal *o) {
    uint32_t at;
    bool found;
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "get() needs a key");
    if (!qsf_j_dict_find(c, a->self.u.d, a->v[0], &at, &found)) return false;
    *o = found ? a->self.u.d->kv[2 * at + 1] : qsf_j_given(a, 1) ? a->v[1] : qsf_j_none();
    return true;
}

static bool m_copy(QsfJCtx *c, A *a, QsfJVal *o) { /* values never change, so they are their own copies */
    (void)c;
    *o = a->self;
    return true;
}

const QsfJRow qsf_j_dict_methods[] = { { "get", m_get, "key default" }, { "items", m_items, "" },
                                       { "keys", m_keys, "" },          { "values", m_values, "" },
                                       { "copy", m_copy, "" },          { 0 } };

/* --- lists --- */

static bool l_count(QsfJCtx *c, A *a, QsfJVal *o) {
    int64_t n = 0;
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "count() needs a value");
    for (uint32_t i = 0; i < a->self.u.l->n; i++) {
        bool same;
        if (!qsf_j_equal(c, a->self.u.l->v[i], a->v[0], &same)) return false;
        n += same;
    }
    *o = qsf_j_int(n);
    return true;
}

static bool l_index(QsfJCtx *c, A *a, QsfJVal *o) {
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "index() needs a value");
    for (uint32_t i = 0; i < a->self.u.l->n; i++) {
        bool same;
        if (!qsf_j_equal(c, a->self.u.l->v[i], a->v[0], &same)) return false;
        *o = qsf_j_int(i);
        if (same) return true;
    }
    return qsf_j_fail(c, "index(): the value is not in the list");
}

const QsfJRow qsf_j_list_methods[] = {
    { "count", l_count, "value" }, { "index", l_index, "value" }, { "copy", m_copy, "" }, { 0 }
};

/* --- numbers --- */

static bool n_bit_length(QsfJCtx *c, A *a, QsfJVal *o) {
    if (!qsf_j_is_whole(a->self)) return qsf_j_fail(c, "bit_length() needs an integer");
    int64_t v = qsf_j_whole(a->self);
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    *o = qsf_j_int(u == 0 ? 0 : 64 - __builtin_clzll(u));
    return true;
}

static bool n_is_integer(QsfJCtx *c, A *a, QsfJVal *o) {
    double f = qsf_j_real(a->self);
    (void)c;
    *o = qsf_j_bool(!(f < floor(f) || f > floor(f)) && !isnan(f) && !isinf(f));
    return true;
}

const QsfJRow qsf_j_num_methods[] = { { "bit_length", n_bit_length, "" },
                                      { "is_integer", n_is_integer, "" },
                                      { 0 } };
