/* SPDX-License-Identifier: GPL-3.0-or-later */
/* String operations that keep the tags of characters. */
#include "src/jinja/strings.h"

#include <string.h>

#include "src/base/unicode.h"
#include "src/base/utf8.h"

#define SHARP_S 0xDF

/* --- case --- */

static bool is_letter(uint32_t cp) {
    const char *cat = qsf_unicode_category(cp);
    return cat[0] == 'L' && (cat[1] == 'u' || cat[1] == 'l' || cat[1] == 't');
}

static bool opens_word(uint32_t cp) { return cp < 128 && cp > 0 && strchr("-({[<", (int)cp) != NULL; }

/* The case of cp, given whether it begins a word. */
static bool put_cased(QsfJCtx *c, uint32_t cp, QsfJCase how, bool begins, QsfJTag tag) {
    bool up = how == QSF_JC_UPPER || (how >= QSF_JC_CAPITAL && begins);
    if (how == QSF_JC_SWAP) up = qsf_unicode_lower(cp) == cp;
    if (up && cp == SHARP_S)
        return qsf_j_put(c, how == QSF_JC_UPPER || how == QSF_JC_SWAP ? "SS" : "Ss", 2, tag);
    return qsf_j_put_cp(c, up ? qsf_unicode_upper(cp) : qsf_unicode_lower(cp), tag);
}

bool qsf_j_case(QsfJCtx *c, QsfJVal v, QsfJCase how, QsfJVal *out) {
    const QsfJStr *s = v.u.s;
    size_t mark = qsf_j_mark(c);
    bool begins = true;
    if (!qsf_j_bytes(c, s->len)) return false;
    for (size_t i = 0, n; i < s->len; i += n) {
        uint32_t cp;
        QsfJTag tag;
        size_t stop = qsf_j_run_end(s, i, &tag);
        n = qsf_utf8_next(s->p + i, stop - i, &cp);
        if (!(cp == UINT32_MAX ? qsf_j_put(c, s->p + i, 1, tag) : put_cased(c, cp, how, begins, tag)))
            return false;
        if (how == QSF_JC_TITLE)
            begins = cp == UINT32_MAX || !is_letter(cp);
        else if (how == QSF_JC_TITLE_FILTER)
            begins = opens_word(cp) || qsf_j_space(s->p + i, n) > 0;
        else
            begins = false;
    }
    if (!qsf_j_cut(c, mark, out)) return false;
    out->markup = v.markup && how != QSF_JC_TITLE_FILTER;
    return true;
}

/* --- strip --- */

/* Length of the last character of p[0..len). */
static size_t last_char(const char *p, size_t len) {
    size_t n = 1;
    while (n < 4 && n < len && ((unsigned char)p[len - n] & 0xC0) == 0x80) n++;
    uint32_t cp;
    return qsf_utf8_next(p + len - n, n, &cp) == n ? n : 1;
}

/* Whether to strip the character p[0..n). */
static bool stripped(const char *p, size_t n, const QsfJStr *chars) {
    if (chars == NULL) return qsf_j_space(p, n) == n;
    return chars->len >= n && memmem(chars->p, chars->len, p, n) != NULL;
}

bool qsf_j_strip(QsfJCtx *c, QsfJVal s, QsfJVal chars, unsigned sides, QsfJVal *out) {
    const char *p = s.u.s->p;
    size_t from = 0, to = s.u.s->len;
    const QsfJStr *set = chars.type == QSF_J_STR ? chars.u.s : NULL;
    if (set == NULL && chars.type != QSF_J_MISSING && chars.type != QSF_J_NONE)
        return qsf_j_fail(c, "the characters to strip must be a string, not %s", qsf_j_type_name(chars));
    while ((sides & QSF_JS_LEFT) != 0 && from < to) {
        uint32_t cp;
        size_t n = qsf_utf8_next(p + from, to - from, &cp);
        if (!stripped(p + from, n, set)) break;
        from += n;
    }
    while ((sides & QSF_JS_RIGHT) != 0 && from < to) {
        size_t n = last_char(p + from, to - from);
        if (!stripped(p + to - n, n, set)) break;
        to -= n;
    }
    *out = qsf_j_substr(c->mem, s, from, to - from);
    return qsf_j_ok(c) && qsf_j_bytes(c, (s.u.s->len - (to - from)) * (set == NULL ? 1 : 1 + set->len / 64));
}

/* --- find and replace --- */

int64_t qsf_j_find(const QsfJStr *s, const QsfJStr *part, size_t from, bool reverse) {
    if (from > s->len || part->len > s->len - from) return -1;
    if (part->len == 0) return reverse ? (int64_t)s->len : (int64_t)from;
    if (!reverse) {
        const char *at = memmem(s->p + from, s->len - from, part->p, part->len);
        return at == NULL ? -1 : at - s->p;
    }
    for (size_t i = s->len - part->len + 1; i-- > from;)
        if (s->p[i] == part->p[0] && memcmp(s->p + i, part->p, part->len) == 0) return (int64_t)i;
    return -1;
}

/* Replacing the empty string puts `to` around every character. */
static bool replace_empty(QsfJCtx *c, const QsfJStr *s, QsfJVal to, uint64_t left) {
    size_t i = 0;
    while (left-- > 0) {
        uint32_t cp;
        if (!qsf_j_put_val(c, to)) return false;
        if (i >= s->len) return true;
        size_t n = qsf_utf8_next(s->p + i, s->len - i, &cp);
        if (!qsf_j_put_sub(c, s, i, n)) return false;
        i += n;
    }
    return qsf_j_put_sub(c, s, i, s->len - i);
}

static bool replace_text(QsfJCtx *c, const QsfJStr *s, const QsfJStr *from, QsfJVal to, uint64_t left) {
    size_t i = 0;
    int64_t at;
    while (left-- > 0 && (at = qsf_j_find(s, from, i, false)) >= 0) {
        if (!qsf_j_put_sub(c, s, i, (size_t)at - i) || !qsf_j_put_val(c, to)) return false;
        i = (size_t)at + from->len;
    }
    return qsf_j_put_sub(c, s, i, s->len - i);
}

bool qsf_j_replace(QsfJCtx *c, QsfJVal s, QsfJVal from, QsfJVal to, int64_t max, QsfJVal *out) {
    size_t mark = qsf_j_mark(c);
    uint64_t left = max < 0 ? UINT64_MAX : (uint64_t)max;
    if (!qsf_j_bytes(c, s.u.s->len)) return false;
    bool ok = from.u.s->len == 0 ? replace_empty(c, s.u.s, to, left)
                                 : replace_text(c, s.u.s, from.u.s, to, left);
    return ok && qsf_j_cut(c, mark, out);
}

/* --- padding --- */

bool qsf_j_pad(QsfJCtx *c, QsfJVal s, int64_t width, unsigned sides, QsfJVal fill, QsfJVal *out) {
    int64_t n = (int64_t)qsf_j_chars(s.u.s), missing = width > n ? width - n : 0;
    const char *p = fill.type == QSF_J_STR ? fill.u.s->p : " ";
    size_t len = fill.type == QSF_J_STR ? fill.u.s->len : 1, mark = qsf_j_mark(c);
    if (fill.type == QSF_J_STR && qsf_j_chars(fill.u.s) != 1)
        return qsf_j_fail(c, "the fill must be one character");
    if (missing > (int64_t)c->limits.output) return qsf_j_fail(c, "the padded text would be too long");
    if (!qsf_j_bytes(c, s.u.s->len) || !qsf_j_work(c, (uint64_t)missing / 8)) return false;
    int64_t before = 0;
    if (sides == QSF_JS_RIGHT) before = missing;
    if (sides == (QSF_JS_LEFT | QSF_JS_RIGHT)) before = missing / 2 + (missing & width & 1);
    for (int64_t i = 0; i < before; i++)
        if (!qsf_j_put(c, p, len, QSF_J_TEXT)) return false;
    if (!qsf_j_put_val(c, s)) return false;
    for (int64_t i = before; i < missing; i++)
        if (!qsf_j_put(c, p, len, QSF_J_TEXT)) return false;
    if (!qsf_j_cut(c, mark, out)) return false;
    out->markup = s.markup;
    return true;
}

/* --- methods that split strings --- */

typedef QsfJArgs A;

static bool add_part(QsfJCtx *c, QsfJVal s, size_t from, size_t to, QsfJVal out) {
    QsfJVal part = qsf_j_substr(c->mem, s, from, to - from);
    return qsf_j_ok(c) && qsf_j_append(c->mem, out.u.l, part);
}

/* Splits at white space; a run is one separator, and those at the ends do not count. */
static bool split_space(QsfJCtx *c, QsfJVal v, uint64_t left, QsfJVal out) {
    const QsfJStr *s = v.u.s;
    size_t i = 0, n;
    for (;;) {
        while (i < s->len && (n = qsf_j_space(s->p + i, s->len - i)) > 0) i += n;
        if (i >= s->len) return true;
        size_t start = i;
        if (left-- == 0) return add_part(c, v, start, qsf_j_rstrip(s->p, s->len), out);
        while (i < s->len && qsf_j_space(s->p + i, s->len - i) == 0) i++;
        if (!add_part(c, v, start, i, out)) return false;
    }
}

static bool split_at(QsfJCtx *c, QsfJVal v, const QsfJStr *sep, uint64_t left, QsfJVal out) {
    size_t i = 0;
    int64_t at;
    while (left-- > 0 && (at = qsf_j_find(v.u.s, sep, i, false)) >= 0) {
        if (!add_part(c, v, i, (size_t)at, out)) return false;
        i = (size_t)at + sep->len;
    }
    return add_part(c, v, i, v.u.s->len, out);
}

static void reverse_list(QsfJList *l) {
    for (uint32_t i = 0; i < l->n / 2; i++) {
        QsfJVal swap = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = swap;
    }
}

static bool rsplit_space(QsfJCtx *c, QsfJVal v, uint64_t left, QsfJVal out) {
    const QsfJStr *s = v.u.s;
    size_t end = s->len, n;
    while ((end = qsf_j_rstrip(s->p, end)) > 0) {
        size_t start = end;
        if (left-- == 0) {
            for (start = 0; start < end && (n = qsf_j_space(s->p + start, end - start)) > 0;) start += n;
            if (!add_part(c, v, start, end, out)) return false;
            break;
        }
        while (start > 0 && qsf_j_rstrip(s->p, start) == start) start--;
        if (!add_part(c, v, start, end, out)) return false;
        end = start;
    }
    reverse_list(out.u.l);
    return true;
}

static bool rsplit_at(QsfJCtx *c, QsfJVal v, const QsfJStr *sep, uint64_t left, QsfJVal out) {
    QsfJStr rest = { .p = v.u.s->p, .len = v.u.s->len };
    int64_t at;
    while (left-- > 0 && (at = qsf_j_find(&rest, sep, 0, true)) >= 0) {
        if (!add_part(c, v, (size_t)at + sep->len, rest.len, out)) return false;
        rest.len = (uint32_t)at;
    }
    if (!add_part(c, v, 0, rest.len, out)) return false;
    reverse_list(out.u.l);
    return true;
}

static bool split(QsfJCtx *c, A *a, bool from_right, QsfJVal *out) {
    int64_t max;
    bool space = a->v[0].type == QSF_J_MISSING || a->v[0].type == QSF_J_NONE;
    QsfJVal sep = a->v[0];
    if (!space && !qsf_j_arg_str(c, a, 0, &sep)) return false;
    if (!space && sep.u.s->len == 0) return qsf_j_fail(c, "'%s' with an empty separator", a->who);
    if (!qsf_j_arg_int(c, a, 1, -1, &max) || !qsf_j_bytes(c, a->self.u.s->len * (from_right ? 8u : 1u)))
        return false;
    uint64_t left = max < 0 ? UINT64_MAX : (uint64_t)max;
    *out = qsf_j_list(c->mem, QSF_J_LIST, 4);
    if (!qsf_j_ok(c)) return false;
    bool ok = space
                  ? (from_right ? rsplit_space(c, a->self, left, *out) : split_space(c, a->self, left, *out))
                  : (from_right ? rsplit_at(c, a->self, sep.u.s, left, *out)
                                : split_at(c, a->self, sep.u.s, left, *out));
    return ok ? qsf_j_work(c, out->u.l->n / 2) : qsf_j_ok(c);
}

static bool m_split(QsfJCtx *c, A *a, QsfJVal *out) { return split(c, a, false, out); }
static bool m_rsplit(QsfJCtx *c, A *a, QsfJVal *out) { return split(c, a, true, out); }

/* Length of the line end at s[0..len), 0 if there is none (Python's str.splitlines). */
static size_t line_end(const char *s, size_t len) {
    uint32_t cp = 0;
    size_t n = qsf_utf8_next(s, len, &cp);
    if (cp == '\r' && len > 1 && s[1] == '\n') return 2;
    bool ends = (cp >= 10 && cp <= 13) || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 ||
                cp == 0x2029;
    return ends ? n : 0;
}

static bool m_splitlines(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJStr *s = a->self.u.s;
    bool keep = qsf_j_truth(a->v[0]);
    size_t start = 0;
    *out = qsf_j_list(c->mem, QSF_J_LIST, 4);
    if (!qsf_j_ok(c) || !qsf_j_bytes(c, s->len)) return false;
    for (size_t i = 0; i < s->len;) {
        size_t n = line_end(s->p + i, s->len - i);
        if (n > 0 && !add_part(c, a->self, start, i + (keep ? n : 0), *out)) return false;
        i += n == 0 ? 1 : n;
        if (n > 0) start = i;
    }
    return start >= s->len || add_part(c, a->self, start, s->len, *out);
}

static bool partition(QsfJCtx *c, A *a, bool from_right, QsfJVal *out) {
    QsfJVal sep;
    const QsfJStr *s = a->self.u.s;
    if (!qsf_j_arg_str(c, a, 0, &sep) || !qsf_j_bytes(c, s->len * (from_right ? 8u : 1u))) return false;
    if (sep.u.s->len == 0) return qsf_j_fail(c, "'%s' with an empty separator", a->who);
    int64_t at = qsf_j_find(s, sep.u.s, 0, from_right);
    size_t end = at < 0 ? (from_right ? 0 : s->len) : (size_t)at, next = at < 0 ? end : end + sep.u.s->len;
    *out = qsf_j_list(c->mem, QSF_J_TUPLE, 3);
    return qsf_j_ok(c) && add_part(c, a->self, 0, end, *out) && add_part(c, a->self, end, next, *out) &&
           add_part(c, a->self, next, s->len, *out);
}

static bool m_partition(QsfJCtx *c, A *a, QsfJVal *out) { return partition(c, a, false, out); }
static bool m_rpartition(QsfJCtx *c, A *a, QsfJVal *out) { return partition(c, a, true, out); }

const QsfJRow qsf_j_str_split_methods[] = {
    { "split", m_split, "sep maxsplit" },       { "rsplit", m_rsplit, "sep maxsplit" },
    { "splitlines", m_splitlines, "keepends" }, { "partition", m_partition, "sep" },
    { "rpartition", m_rpartition, "sep" },      { 0 },
};
