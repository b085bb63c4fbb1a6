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
