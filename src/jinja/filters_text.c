/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filters for text (pallets/jinja src/jinja2/filters.py). Most accept any value and use its str(). */
#include <string.h>

#include "src/base/unicode.h"
#include "src/jinja/strings.h"

typedef QsfJArgs A;

static bool cased(QsfJCtx *c, A *a, QsfJCase how, QsfJVal *out) {
    QsfJVal s;
    return qsf_j_to_str(c, a->self, &s) && qsf_j_case(c, s, how, out);
}

static bool f_upper(QsfJCtx *c, A *a, QsfJVal *out) { return cased(c, a, QSF_JC_UPPER, out); }
static bool f_lower(QsfJCtx *c, A *a, QsfJVal *out) { return cased(c, a, QSF_JC_LOWER, out); }
static bool f_capitalize(QsfJCtx *c, A *a, QsfJVal *out) { return cased(c, a, QSF_JC_CAPITAL, out); }
static bool f_title(QsfJCtx *c, A *a, QsfJVal *out) { return cased(c, a, QSF_JC_TITLE_FILTER, out); }
static bool f_string(QsfJCtx *c, A *a, QsfJVal *out) { return qsf_j_to_str(c, a->self, out); }

static bool f_trim(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s;
    return qsf_j_to_str(c, a->self, &s) && qsf_j_strip(c, s, a->v[0], QSF_JS_LEFT | QSF_JS_RIGHT, out);
}

static bool f_replace(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s, from, to;
    int64_t max;
    if (!qsf_j_given(a, 0) || !qsf_j_given(a, 1))
        return qsf_j_fail(c, "'replace' needs the old and the new text");
    if (a->v[2].type == QSF_J_NONE) a->v[2] = (QsfJVal){ 0 };
    return qsf_j_to_str(c, a->self, &s) && qsf_j_to_str(c, a->v[0], &from) && qsf_j_to_str(c, a->v[1], &to) &&
           qsf_j_arg_int(c, a, 2, -1, &max) && qsf_j_replace(c, s, from, to, max, out);
}

static bool f_center(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s;
    int64_t width;
    return qsf_j_to_str(c, a->self, &s) && qsf_j_arg_int(c, a, 0, 80, &width) &&
           qsf_j_pad(c, s, width, QSF_JS_LEFT | QSF_JS_RIGHT, (QsfJVal){ 0 }, out);
}

/* The text that indent adds before a line. */
static bool indentation(QsfJCtx *c, QsfJVal width, QsfJVal *out) {
    if (width.type == QSF_J_STR) {
        *out = width;
        return true;
    }
    if (width.type != QSF_J_MISSING && !qsf_j_is_whole(width))
        return qsf_j_fail(c, "'indent' needs a number or a string");
    int64_t n = width.type == QSF_J_MISSING ? 4 : qsf_j_whole(width);
    QsfJVal space;
    return qsf_j_text(c, " ", &space) && qsf_j_arith(c, QSF_J_OP_MUL, space, qsf_j_int(n), out);
}

static bool f_indent(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s, with;
    bool first = qsf_j_truth(a->v[1]), blank = qsf_j_truth(a->v[2]);
    if (!qsf_j_to_str(c, a->self, &s) || !indentation(c, a->v[0], &with) || !qsf_j_bytes(c, s.u.s->len))
        return false;
    const QsfJStr *t = s.u.s;
    size_t mark = qsf_j_mark(c);
    for (size_t i = 0; i <= t->len;) {
        const char *nl = i < t->len ? memchr(t->p + i, '\n', t->len - i) : NULL;
        size_t end = nl == NULL ? t->len : (size_t)(nl - t->p);
        bool indents = i == 0 ? first : blank || end > i;
        if ((indents && !qsf_j_put_val(c, with)) || !qsf_j_put_sub(c, t, i, end - i)) return false;
        if (nl != NULL && !qsf_j_put_sub(c, t, end, 1)) return false;
        i = end + 1;
    }
    return qsf_j_cut(c, mark, out);
}

static bool f_safe(QsfJCtx *c, A *a, QsfJVal *out) {
    if (!qsf_j_to_str(c, a->self, out)) return false;
    out->markup = true;
    return true;
}

static bool f_escape(QsfJCtx *c, A *a, QsfJVal *out) { return qsf_j_markup(c, a->self, out); }

static bool f_forceescape(QsfJCtx *c, A *a, QsfJVal *out) {
    if (!qsf_j_to_str(c, a->self, &a->self)) return false;
    a->self.markup = false;
    return qsf_j_markup(c, a->self, out);
}

/* Removes everything between < and >, reduces runs of white space to one space. */
static bool f_striptags(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s;
    if (!qsf_j_to_str(c, a->self, &s) || !qsf_j_bytes(c, s.u.s->len)) return false;
    const QsfJStr *t = s.u.s;
    size_t mark = qsf_j_mark(c);
    bool gap = false;
    for (size_t i = 0; i < t->len;) {
        const char *end = t->p[i] == '<' ? memchr(t->p + i, '>', t->len - i) : NULL;
        if (end != NULL) {
            i = (size_t)(end - t->p) + 1;
            continue;
        }
        size_t space = qsf_j_space(t->p + i, t->len - i);
        gap = gap || space > 0;
        if (space == 0) {
            if (gap && qsf_j_mark(c) > mark && !qsf_j_puts(c, " ")) return false;
            gap = false;
            if (!qsf_j_put_sub(c, t, i, 1)) return false;
        }
        i += space == 0 ? 1 : space;
    }
    return qsf_j_cut(c, mark, out);
}

static bool f_urlencode(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s;
    if (a->self.type == QSF_J_DICT || qsf_j_is_listy(a->self))
        return qsf_j_fail(c, "not supported: 'urlencode' of %s", qsf_j_type_name(a->self));
    if (!qsf_j_to_str(c, a->self, &s) || !qsf_j_bytes(c, s.u.s->len)) return false;
    size_t mark = qsf_j_mark(c);
    for (size_t i = 0; i < s.u.s->len; i++) {
        unsigned b = (unsigned char)s.u.s->p[i];
        bool plain = (b | 32) - 'a' < 26u || b - '0' < 10u || (b != 0 && strchr("_.-~/", (int)b) != NULL);
        if (!(plain ? qsf_j_put_sub(c, s.u.s, i, 1) : qsf_j_putf(c, "%%%02X", b))) return false;
    }
    return qsf_j_cut(c, mark, out);
}

/* "%s" | format(values): the % operator. */
static bool f_format(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s, args;
    if (a->n > 0 && a->n_kw > 0)
        return qsf_j_fail(c, "'format' takes positional or keyword arguments, not both");
    args = a->n_kw > 0 ? qsf_j_dict(c->mem, QSF_J_DICT, a->n_kw) : qsf_j_list(c->mem, QSF_J_TUPLE, a->n);
    for (uint32_t i = 0; i < a->n && qsf_j_ok(c); i++) qsf_j_append(c->mem, args.u.l, a->v[i]);
    for (uint32_t i = 0; i < a->n_kw && qsf_j_ok(c); i++)
        qsf_j_dict_add(c->mem, args.u.d, (QsfJVal){ .type = QSF_J_STR, .u.s = a->kw[i].name }, a->kw[i].v);
    return qsf_j_ok(c) && qsf_j_to_str(c, a->self, &s) && qsf_j_percent(c, s, args, out);
}

static bool f_wordcount(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s;
    int64_t words = 0;
    bool inside = false;
    if (!qsf_j_to_str(c, a->self, &s) || !qsf_j_bytes(c, s.u.s->len)) return false;
    for (size_t i = 0; i < s.u.s->len; i++) {
        unsigned b = (unsigned char)s.u.s->p[i];
        bool word = b >= 128 || b == '_' || (b | 32) - 'a' < 26u || b - '0' < 10u;
        words += word && !inside;
        inside = word;
    }
    *out = qsf_j_int(words);
    return true;
}

static bool f_truncate(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal s, end;
    int64_t length, leeway;
    if (!qsf_j_to_str(c, a->self, &s) || !qsf_j_arg_int(c, a, 0, 255, &length) ||
        !qsf_j_arg_int(c, a, 3, 5, &leeway))
        return false;
    if (!(qsf_j_given(a, 2) ? qsf_j_to_str(c, a->v[2], &end) : qsf_j_text(c, "...", &end))) return false;
    int64_t tail = (int64_t)qsf_j_chars(end.u.s);
    if (length < tail || leeway < 0) return qsf_j_fail(c, "'truncate' to %lld characters", (long long)length);
    *out = s;
    if (!qsf_j_bytes(c, s.u.s->len)) return false;
    int64_t chars = (int64_t)qsf_j_chars(s.u.s);
    if (chars <= length || chars - length <= leeway) return true;
    size_t keep = qsf_j_char_off(s.u.s, (size_t)(length - tail)), mark = qsf_j_mark(c);
    size_t word = qsf_j_truth(a->v[1]) ? 0 : keep;
    while (word > 0 && s.u.s->p[word - 1] != ' ') word--;
    if (word > 0) keep = word - 1;
    return qsf_j_put_sub(c, s.u.s, 0, keep) && qsf_j_put_val(c, end) && qsf_j_cut(c, mark, out);
}

const QsfJRow qsf_j_text_filters[] = {
    { "upper", f_upper, "" },
    { "lower", f_lower, "" },
    { "capitalize", f_capitalize, "" },
    { "title", f_title, "" },
    { "string", f_string, "" },
    { "trim", f_trim, "chars" },
    { "replace", f_replace, "old new count" },
    { "center", f_center, "width" },
    { "indent", f_indent, "width first blank" },
    { "safe", f_safe, "" },
    { "escape", f_escape, "" },
    { "e", f_escape, "" },
    { "forceescape", f_forceescape, "" },
    { "striptags", f_striptags, "" },
    { "urlencode", f_urlencode, "" },
    { "format", f_format, "*" },
    { "wordcount", f_wordcount, "" },
    { "truncate", f_truncate, "length killwords end leeway" },
    { 0 },
};
