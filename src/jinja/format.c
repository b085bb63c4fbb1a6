/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Python's two ways of formatting: "%s" % values and "{}".format(values), as far as templates use them. */
#include <stdio.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/jinja/strings.h"

#define MAX_WIDTH 10000

/* [[fill]align][sign][#][0][width][,][.precision][type], also built from a % conversion. */
typedef struct Spec {
    char fill[4];
    size_t fill_len;
    char align, sign, type;
    bool alt, zero, comma;
    int width, precision; /* -1 = none */
} Spec;

static bool read_number(QsfJCtx *c, const char *s, size_t len, size_t *at, int *out) {
    if (*at >= len || s[*at] < '0' || s[*at] > '9') return true;
    *out = 0;
    for (; *at < len && s[*at] >= '0' && s[*at] <= '9'; ++*at) {
        *out = *out * 10 + (s[*at] - '0');
        if (*out > MAX_WIDTH) return qsf_j_fail(c, "a format width above %d", MAX_WIDTH);
    }
    return true;
}

static bool read_spec(QsfJCtx *c, const char *s, size_t len, Spec *sp) {
    *sp = (Spec){ .fill = " ", .fill_len = 1, .width = -1, .precision = -1 };
    uint32_t cp;
    size_t i = 0, n = qsf_utf8_next(s, len, &cp);
    if (n > 0 && n < len && s[n] != '\0' && strchr("<>^=", s[n]) != NULL) {
        memcpy(sp->fill, s, n);
        sp->fill_len = n;
        sp->align = s[n];
        i = n + 1;
    } else if (len > 0 && s[0] != '\0' && strchr("<>^=", s[0]) != NULL) {
        sp->align = s[i++];
    }
    if (i < len && (s[i] == '+' || s[i] == '-' || s[i] == ' ')) sp->sign = s[i++];
    if (i < len && s[i] == '#') sp->alt = s[i++] != 0;
    if (i < len && s[i] == '0') sp->zero = s[i++] != 0;
    if (!read_number(c, s, len, &i, &sp->width)) return false;
    if (i < len && s[i] == ',') sp->comma = s[i++] != 0;
    if (i < len && s[i] == '.') {
        i++;
        if (!read_number(c, s, len, &i, &sp->precision)) return false;
        if (sp->precision < 0) return qsf_j_fail(c, "a format without its precision");
    }
    if (i < len) sp->type = s[i++];
    return i == len || qsf_j_fail(c, "not supported: format '%.*s'", (int)(len > 40 ? 40 : len), s);
}

/* Pads a text of n characters to the width: the first sign_len bytes precede "=" padding. */
static bool put_aligned(QsfJCtx *c, const Spec *sp, QsfJVal text, size_t sign_len, char align) {
    const QsfJStr *s = text.u.s;
    int64_t pad = sp->width - (int64_t)qsf_j_chars(s);
    if (pad < 0) pad = 0;
    int64_t before = align == '>' || align == '=' ? pad : align == '^' ? pad / 2 : 0;
    if (align != '=') sign_len = 0;
    if (!qsf_j_put_sub(c, s, 0, sign_len)) return false;
    for (int64_t i = 0; i < before; i++)
        if (!qsf_j_put(c, sp->fill, sp->fill_len, QSF_J_TEXT)) return false;
    if (!qsf_j_put_sub(c, s, sign_len, s->len - sign_len)) return false;
    for (int64_t i = before; i < pad; i++)
        if (!qsf_j_put(c, sp->fill, sp->fill_len, QSF_J_TEXT)) return false;
    return true;
}

/* Commas every three digits before the point. */
static void group_digits(char *text, size_t cap) {
    size_t start = text[0] == '-' || text[0] == '+' || text[0] == ' ', len = strlen(text);
    size_t end = start + strspn(text + start, "0123456789");
    for (size_t at = end; at > start + 3 && len + 1 < cap; len++) {
        at -= 3;
        memmove(text + at + 1, text + at, len - at + 1);
        text[at] = ',';
    }
}

/* The digits of v for the type, at most 800 bytes. */
static bool number_digits(QsfJCtx *c, QsfJVal v, const Spec *sp, char *out, size_t cap) {
    char fmt[16] = "%", type = sp->type;
    size_t n = 1;
    if (sp->precision > 300) return qsf_j_fail(c, "a format precision above 300");
    if (sp->sign == '+' || sp->sign == ' ') fmt[n++] = sp->sign;
    if (sp->alt) fmt[n++] = '#';
    bool whole = strchr("dxXoi", type) != NULL && type != '\0';
    if (whole && v.type == QSF_J_FLOAT) return qsf_j_fail(c, "format '%c' needs an integer", type);
    if (whole) {
        long long i = (long long)qsf_j_whole(v);
        if (type != 'd' && i < 0)
            return qsf_j_fail(c, "not supported: format '%c' of a negative number", type);
        memcpy(fmt + n, "ll", 2);
        fmt[n + 2] = type == 'i' ? 'd' : type;
        snprintf(out, cap, fmt, i);
        return true;
    }
    memcpy(fmt + n, ".*", 2);
    fmt[n + 2] = type == '%' ? 'f' : type;
    double f = qsf_j_real(v) * (type == '%' ? 100 : 1);
    snprintf(out, cap, fmt, sp->precision < 0 ? 6 : sp->precision, f);
    if (type == '%') strncat(out, "%", cap - strlen(out) - 1);
    return true;
}

static bool put_number(QsfJCtx *c, QsfJVal v, const Spec *sp) {
    char text[800];
    if (!qsf_j_is_num(v))
        return qsf_j_fail(c, "format '%c' needs a number, not %s", sp->type, qsf_j_type_name(v));
    if (strchr("dxXoieEfFgG%", sp->type) == NULL)
        return qsf_j_fail(c, "not supported: format '%c'", sp->type);
    if (!number_digits(c, v, sp, text, sizeof text)) return false;
    if (sp->comma) group_digits(text, sizeof text);
    QsfJVal s;
    Spec padded = *sp;
    char align = sp->align != 0 ? sp->align : sp->zero ? '=' : '>';
    if (sp->zero && sp->align == 0) padded.fill[0] = '0';
    return qsf_j_text(c, text, &s) &&
           put_aligned(c, &padded, s, text[0] == '-' || text[0] == '+' || text[0] == ' ', align);
}

static bool put_text(QsfJCtx *c, QsfJVal v, const Spec *sp, bool right) {
    QsfJVal s;
    if (!qsf_j_to_str(c, v, &s)) return false;
    if (sp->precision >= 0) s = qsf_j_substr(c->mem, s, 0, qsf_j_char_off(s.u.s, (size_t)sp->precision));
    if (!qsf_j_ok(c)) return false;
    return put_aligned(c, sp, s, 0, sp->align != 0 ? sp->align : right ? '>' : '<');
}

/* {} formatting of one value by the part after the colon. */
static bool put_formatted(QsfJCtx *c, QsfJVal v, const char *spec, size_t len) {
    Spec sp;
    if (len == 0) return qsf_j_put_val(c, v);
    if (!read_spec(c, spec, len, &sp)) return false;
    bool number = qsf_j_is_num(v) && v.type != QSF_J_BOOL;
    if (sp.type == '\0' && number && (v.type == QSF_J_INT || sp.precision >= 0))
        sp.type = v.type == QSF_J_INT ? 'd' : 'g';
    if (sp.type == '\0' || sp.type == 's') return put_text(c, v, &sp, number);
    return put_number(c, v, &sp);
}

/* --- % --- */

typedef struct Percent {
    QsfJVal args;
    uint32_t next; /* positional argument */
    bool markup;
} Percent;

static bool next_value(QsfJCtx *c, Percent *p, QsfJVal *out) {
    uint32_t n = p->args.type == QSF_J_TUPLE ? p->args.u.l->n : 1;
    if (p->next >= n) return qsf_j_fail(c, "'%%' has too few values for its text");
    *out = p->args.type == QSF_J_TUPLE ? p->args.u.l->v[p->next] : p->args;
    p->next++;
    return true;
}

/* The value for one conversion at s[*at], after %; (name) selects it from a mapping. */
static bool percent_value(QsfJCtx *c, Percent *p, const QsfJStr *s, size_t *at, QsfJVal *out) {
    if (*at >= s->len || s->p[*at] != '(') return true;
    const char *close = memchr(s->p + *at, ')', s->len - *at);
    if (close == NULL || p->args.type != QSF_J_DICT) return qsf_j_fail(c, "'%%' with a name needs a mapping");
    size_t start = *at + 1, end = (size_t)(close - s->p);
    const QsfJVal *v = qsf_j_dict_text(p->args.u.d, s->p + start, end - start);
    if (v == NULL)
        return qsf_j_fail(c, "'%%': the mapping has no '%.*s'", (int)(end - start > 40 ? 40 : end - start),
                          s->p + start);
    *out = *v;
    *at = end + 1;
    p->next = 1;
    return true;
}

static bool put_conversion(QsfJCtx *c, Percent *p, QsfJVal v, Spec *sp) {
    if (sp->type == 's' || sp->type == 'r' || sp->type == 'a') {
        size_t mark = qsf_j_mark(c);
        if (sp->type != 's' && (!qsf_j_put_repr(c, v) || !qsf_j_cut(c, mark, &v))) return false;
        if (p->markup && !qsf_j_markup(c, v, &v)) return false;
        return put_text(c, v, sp, true);
    }
    if (sp->type == 'i' || sp->type == 'u') sp->type = 'd';
    if (sp->type == 'd' && v.type == QSF_J_FLOAT)
        v = qsf_j_int(v.u.f > -9e18 && v.u.f < 9e18 ? (int64_t)v.u.f : 0);
    return put_number(c, v, sp);
}

/* One % conversion at s[at], after the %; *end is after it. */
static bool percent_one(QsfJCtx *c, Percent *p, const QsfJStr *s, size_t at, size_t *end) {
    Spec sp = { .fill = " ", .fill_len = 1, .width = -1, .precision = -1 };
    QsfJVal v = { 0 };
    if (!percent_value(c, p, s, &at, &v)) return false;
    for (; at < s->len && s->p[at] != '\0' && strchr("-+ #0", s->p[at]) != NULL; at++) {
        if (s->p[at] == '-') sp.align = '<';
        if (s->p[at] == '+' || s->p[at] == ' ') sp.sign = s->p[at];
        if (s->p[at] == '0') sp.zero = true;
        if (s->p[at] == '#') sp.alt = true;
    }
    if (!read_number(c, s->p, s->len, &at, &sp.width)) return false;
    if (at < s->len && s->p[at] == '.') {
        at++;
        sp.precision = 0;
        if (!read_number(c, s->p, s->len, &at, &sp.precision)) return false;
    }
    if (at >= s->len) return qsf_j_fail(c, "'%%' at the end of its text");
    sp.type = s->p[at];
    *end = at + 1;
    if (sp.type == '%') return qsf_j_puts(c, "%");
    return (v.type != QSF_J_MISSING || next_value(c, p, &v)) && put_conversion(c, p, v, &sp);
}

bool qsf_j_percent(QsfJCtx *c, QsfJVal fmt, QsfJVal args, QsfJVal *out) {
    const QsfJStr *s = fmt.u.s;
    Percent p = { .args = args, .markup = fmt.markup };
    size_t mark = qsf_j_mark(c);
    for (size_t i = 0; i < s->len;) {
        const char *at = memchr(s->p + i, '%', s->len - i);
        size_t end = at == NULL ? s->len : (size_t)(at - s->p);
        if (!qsf_j_put_sub(c, s, i, end - i)) return false;
        i = end;
        if (at != NULL && !percent_one(c, &p, s, end + 1, &i)) return false;
    }
    bool mapping = args.type == QSF_J_DICT || args.type == QSF_J_LIST;
    if (!mapping && p.next < (args.type == QSF_J_TUPLE ? args.u.l->n : 1))
        return qsf_j_fail(c, "'%%' has more values than its text takes");
    if (!qsf_j_cut(c, mark, out)) return false;
    out->markup = fmt.markup;
    return true;
}

/* --- str.format --- */

/* The field name before [!:}], then .attribute and [item] parts. */
static bool field_value(QsfJCtx *c, QsfJArgs *a, const char *s, size_t len, uint32_t *next, QsfJVal *out) {
    size_t n = 0, index = 0;
    while (n < len && s[n] != '.' && s[n] != '[') n++;
    if (n < len) return qsf_j_fail(c, "not supported: '.' and '[' in the fields of format()");
    bool digits = len > 0 && strspn(s, "0123456789") >= len && len < 5;
    for (size_t i = 0; digits && i < len; i++) index = index * 10 + (size_t)(s[i] - '0');
    if (len == 0) index = (*next)++;
    if (len == 0 || digits) {
        if (index >= a->n) return qsf_j_fail(c, "format() has too few values for its text");
        *out = a->v[index];
        return true;
    }
    for (uint32_t i = 0; i < a->n_kw; i++)
        if (qsf_j_same_text(a->kw[i].name, s, len)) {
            *out = a->kw[i].v;
            return true;
        }
    return qsf_j_fail(c, "format() has no value '%.*s'", (int)(len > 40 ? 40 : len), s);
}

static bool put_field(QsfJCtx *c, QsfJArgs *a, const char *s, size_t len, uint32_t *next) {
    const char *colon = memchr(s, ':', len);
    size_t name = colon == NULL ? len : (size_t)(colon - s), spec = colon == NULL ? len : name + 1;
    char conversion = name >= 2 && s[name - 2] == '!' ? s[name - 1] : '\0';
    QsfJVal v;
    if (!field_value(c, a, s, conversion != 0 ? name - 2 : name, next, &v)) return false;
    size_t mark = qsf_j_mark(c);
    if (conversion != 0 && !(conversion == 'r' ? qsf_j_put_repr(c, v) : qsf_j_put_val(c, v))) return false;
    if (conversion != 0 && !qsf_j_cut(c, mark, &v)) return false;
    return put_formatted(c, v, s + spec, len - spec);
}

static bool m_format(QsfJCtx *c, QsfJArgs *a, QsfJVal *out) {
    const QsfJStr *s = a->self.u.s;
    size_t mark = qsf_j_mark(c);
    uint32_t next = 0;
    if (!qsf_j_bytes(c, s->len)) return false;
    for (size_t i = 0; i < s->len; i++) {
        bool twice = i + 1 < s->len && s->p[i + 1] == s->p[i];
        if ((s->p[i] == '{' || s->p[i] == '}') && twice) {
            if (!qsf_j_put_sub(c, s, i++, 1)) return false;
        } else if (s->p[i] == '{') {
            const char *close = memchr(s->p + i, '}', s->len - i);
            if (close == NULL) return qsf_j_fail(c, "format() with a '{' that is not closed");
            size_t end = (size_t)(close - s->p);
            if (!put_field(c, a, s->p + i + 1, end - i - 1, &next)) return false;
            i = end;
        } else if (s->p[i] == '}') {
            return qsf_j_fail(c, "format() with a single '}'");
        } else if (!qsf_j_put_sub(c, s, i, 1)) {
            return false;
        }
    }
    return qsf_j_cut(c, mark, out);
}

const QsfJRow qsf_j_str_format_methods[] = { { "format", m_format, "*" }, { 0 } };
