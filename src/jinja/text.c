/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Building text together with the tags of its characters. Everything is built at the end of the output: one
 * growing buffer is used for nested blocks, macros and filters. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/unicode.h"
#include "src/base/utf8.h"
#include "src/jinja/eval.h"

size_t qsf_j_mark(const QsfJCtx *c) { return c->out->text.len; }

/* The last run ends at end and has this tag. */
static bool extend_run(QsfJCtx *c, size_t end, QsfJTag tag) {
    QsfJinjaOut *o = c->out;
    if (o->n_runs > 0 && o->runs[o->n_runs - 1].tag == tag) {
        o->runs[o->n_runs - 1].end = (uint32_t)end;
        return true;
    }
    if (o->n_runs == o->cap_runs) {
        size_t cap = o->cap_runs < 16 ? 16 : o->cap_runs * 2;
        QsfJRun *runs = realloc(o->runs, cap * sizeof *runs);
        if (runs == NULL) return qsf_j_no_memory(c);
        o->runs = runs;
        o->cap_runs = cap;
    }
    o->runs[o->n_runs++] = (QsfJRun){ (uint32_t)end, tag };
    return true;
}

bool qsf_j_put(QsfJCtx *c, const char *p, size_t len, QsfJTag tag) {
    if (len == 0) return true;
    QsfStrbuf *b = &c->out->text;
    if (len > c->limits.output - b->len)
        return qsf_j_fail(c, "the text grows beyond the limit of %zu bytes", c->limits.output);
    if (!qsf_j_work(c, len / 64)) return false;
    qsf_strbuf_add(b, p, len);
    if (!qsf_strbuf_ok(b)) return qsf_j_no_memory(c);
    return extend_run(c, b->len, tag);
}

bool qsf_j_puts(QsfJCtx *c, const char *s) { return qsf_j_put(c, s, strlen(s), QSF_J_TEXT); }

bool qsf_j_putf(QsfJCtx *c, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text) return qsf_j_fail(c, "a formatted number is too long");
    return qsf_j_put(c, text, (size_t)n, QSF_J_TEXT);
}

bool qsf_j_put_sub(QsfJCtx *c, const QsfJStr *s, size_t off, size_t len) {
    for (size_t end = off + len; off < end;) {
        QsfJTag tag;
        size_t stop = qsf_j_run_end(s, off, &tag);
        if (stop > end) stop = end;
        if (!qsf_j_put(c, s->p + off, stop - off, tag)) return false;
        off = stop;
    }
    return true;
}

bool qsf_j_put_cp(QsfJCtx *c, uint32_t cp, QsfJTag tag) {
    char text[4];
    return qsf_j_put(c, text, qsf_utf8_put(cp, text), tag);
}

/* Index of the first run that reaches beyond mark. */
static size_t first_run(const QsfJinjaOut *o, size_t mark) {
    size_t lo = 0, hi = o->n_runs;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (o->runs[mid].end > mark)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Discards the output after mark. */
static void cut_back(QsfJinjaOut *o, size_t mark, size_t first) {
    o->n_runs = first;
    size_t start = first > 0 ? o->runs[first - 1].end : 0;
    if (start < mark && first < o->cap_runs) { /* the run that contains mark extends up to it */
        o->runs[first].end = (uint32_t)mark;
        o->n_runs++;
    }
    o->text.len = mark;
}

bool qsf_j_cut(QsfJCtx *c, size_t mark, QsfJVal *out) {
    QsfJinjaOut *o = c->out;
    size_t len = o->text.len - mark, first = first_run(o, mark), n = o->n_runs - first;
    char *bytes = qsf_j_alloc(c->mem, len + 1);
    if (bytes == NULL) return qsf_j_ok(c);
    if (len > 0) memcpy(bytes, o->text.data + mark, len);
    QsfJTag tag = len == 0 ? QSF_J_TEXT : n == 1 ? (QsfJTag)o->runs[first].tag : QSF_J_MIXED;
    *out = qsf_j_str(c->mem, bytes, len, tag);
    if (tag == QSF_J_MIXED && !c->mem->failed) {
        QsfJStr *s = (QsfJStr *)(uintptr_t)out->u.s; /* just created: may be modified */
        QsfJRun *runs = qsf_j_alloc(c->mem, n * sizeof *runs);
        for (size_t i = 0; runs != NULL && i < n; i++)
            runs[i] = (QsfJRun){ o->runs[first + i].end - (uint32_t)mark, o->runs[first + i].tag };
        s->runs = runs;
        s->n_runs = (uint32_t)n;
    }
    cut_back(o, mark, first);
    return qsf_j_ok(c);
}

bool qsf_j_text(QsfJCtx *c, const char *s, QsfJVal *out) {
    size_t mark = qsf_j_mark(c);
    return qsf_j_puts(c, s) && qsf_j_cut(c, mark, out);
}

/* --- Python's str() and repr() --- */

bool qsf_j_put_float(QsfJCtx *c, double f) {
    char text[40], sig[40];
    if (isnan(f)) return qsf_j_puts(c, "nan");
    if (isinf(f)) return qsf_j_puts(c, f > 0 ? "inf" : "-inf");
    int prec = 0;
    do { /* the fewest digits that read back as the same number */
        snprintf(sig, sizeof sig, "%.*e", prec, f);
        double back = strtod(sig, NULL);
        if (!(back < f || back > f)) break;
    } while (++prec < 17);
    int exponent = atoi(strchr(sig, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        const char *e = strchr(sig, 'e');
        return qsf_j_putf(c, "%.*s%s", (int)(e - sig), sig, e);
    }
    int decimals = prec - exponent;
    snprintf(text, sizeof text, "%.*f", decimals < 1 ? 1 : decimals, f);
    return qsf_j_puts(c, text);
}

static bool printable(uint32_t cp) {
    if (cp < 127) return cp >= 32;
    const char *cat = qsf_unicode_category(cp);
    return cat[0] != 'C' && cat[0] != 'Z';
}

static bool put_escape(QsfJCtx *c, uint32_t cp, QsfJTag tag) {
    static const char named[] = "\\\n\r\t", letters[] = "\\nrt";
    char text[12];
    const char *at = cp > 0 && cp < 128 ? strchr(named, (int)cp) : NULL;
    int n = at != NULL ? snprintf(text, sizeof text, "\\%c", letters[at - named])
                       : snprintf(text, sizeof text,
                                  cp < 256       ? "\\x%02x"
                                  : cp < 0x10000 ? "\\u%04x"
                                                 : "\\U%08x",
                                  (unsigned)cp);
    return qsf_j_put(c, text, (size_t)n, tag);
}

static bool put_str_repr(QsfJCtx *c, const QsfJStr *s) {
    bool single = s->len > 0 && memchr(s->p, '\'', s->len) != NULL,
         dbl = s->len > 0 && memchr(s->p, '"', s->len) != NULL;
    char quote = single && !dbl ? '"' : '\'';
    if (!qsf_j_put(c, &quote, 1, QSF_J_TEXT)) return false;
    for (size_t i = 0, n; i < s->len; i += n) {
        uint32_t cp;
        QsfJTag tag;
        size_t stop = qsf_j_run_end(s, i, &tag);
        n = qsf_utf8_next(s->p + i, stop - i, &cp);
        bool ok = true;
        if (cp == (unsigned char)quote) ok = qsf_j_put(c, "\\", 1, tag);
        if (cp == UINT32_MAX || (cp != '\\' && printable(cp)))
            ok = ok && qsf_j_put(c, s->p + i, n, tag);
        else
            ok = ok && put_escape(c, cp, tag);
        if (!ok) return false;
    }
    return qsf_j_put(c, &quote, 1, QSF_J_TEXT);
}

static bool put_elements(QsfJCtx *c, const QsfJList *l, const char *open, const char *close) {
    if (!qsf_j_puts(c, open)) return false;
    for (uint32_t i = 0; i < l->n; i++)
        if ((i > 0 && !qsf_j_puts(c, ", ")) || !qsf_j_put_repr(c, l->v[i])) return false;
    return qsf_j_puts(c, close);
}

static bool put_dict(QsfJCtx *c, const QsfJDict *d) {
    if (!qsf_j_puts(c, "{")) return false;
    for (uint32_t i = 0; i < d->n; i++)
        if ((i > 0 && !qsf_j_puts(c, ", ")) || !qsf_j_put_repr(c, d->kv[2 * i]) || !qsf_j_puts(c, ": ") ||
            !qsf_j_put_repr(c, d->kv[2 * i + 1]))
            return false;
    return qsf_j_puts(c, "}");
}

static bool put_range(QsfJCtx *c, const QsfJList *l) {
    long long first = l->n > 0 ? l->v[0].u.i : 0, step = l->n > 1 ? l->v[1].u.i - first : 1;
    long long end = first + step * (long long)l->n;
    return step == 1 ? qsf_j_putf(c, "range(%lld, %lld)", first, end)
                     : qsf_j_putf(c, "range(%lld, %lld, %lld)", first, end, step);
}

static bool put_compound(QsfJCtx *c, QsfJVal v) {
    switch (v.type) {
    case QSF_J_LIST: return put_elements(c, v.u.l, "[", "]");
    case QSF_J_TUPLE: return put_elements(c, v.u.l, "(", v.u.l->n == 1 ? ",)" : ")");
    case QSF_J_VIEW: return qsf_j_puts(c, v.u.l->view) && put_elements(c, v.u.l, "([", "])");
    case QSF_J_DICT: return put_dict(c, v.u.d);
    case QSF_J_NS: return qsf_j_puts(c, "<Namespace ") && put_dict(c, v.u.d) && qsf_j_puts(c, ">");
    default: return put_range(c, v.u.l);
    }
}

bool qsf_j_put_repr(QsfJCtx *c, QsfJVal v) {
    if (!qsf_j_work(c, 1)) return false;
    switch (v.type) {
    case QSF_J_NONE: return qsf_j_puts(c, "None");
    case QSF_J_BOOL: return qsf_j_puts(c, v.u.b ? "True" : "False");
    case QSF_J_INT: return qsf_j_putf(c, "%lld", (long long)v.u.i);
    case QSF_J_FLOAT: return qsf_j_put_float(c, v.u.f);
    case QSF_J_STR: return put_str_repr(c, v.u.s);
    case QSF_J_UNDEF: return qsf_j_puts(c, "Undefined");
    case QSF_J_LIST:
    case QSF_J_TUPLE:
    case QSF_J_DICT:
    case QSF_J_VIEW:
    case QSF_J_NS:
    case QSF_J_RANGE: {
        if (!qsf_j_enter_level(c)) return false;
        bool ok = put_compound(c, v);
        c->depth--;
        return ok;
    }
    default: return qsf_j_putf(c, "<%s object>", qsf_j_type_name(v));
    }
}

bool qsf_j_put_val(QsfJCtx *c, QsfJVal v) {
    if (v.type == QSF_J_STR) return qsf_j_put_sub(c, v.u.s, 0, v.u.s->len);
    return v.type == QSF_J_UNDEF || qsf_j_put_repr(c, v);
}

bool qsf_j_to_str(QsfJCtx *c, QsfJVal v, QsfJVal *out) {
    *out = v;
    if (v.type == QSF_J_STR) return true;
    size_t mark = qsf_j_mark(c);
    return qsf_j_put_val(c, v) && qsf_j_cut(c, mark, out);
}

/* --- HTML --- */

static bool put_escaped(QsfJCtx *c, QsfJVal v) {
    static const char from[] = "&<>'\"";
    static const char *const to[] = { "&amp;", "&lt;", "&gt;", "&#39;", "&#34;" };
    if (!qsf_j_to_str(c, v, &v)) return false;
    if (v.markup) return qsf_j_put_val(c, v);
    const QsfJStr *s = v.u.s;
    for (size_t i = 0; i < s->len; i++) {
        const char *at = s->p[i] == '\0' ? NULL : strchr(from, s->p[i]);
        QsfJTag tag;
        qsf_j_run_end(s, i, &tag);
        if (!(at == NULL ? qsf_j_put_sub(c, s, i, 1)
                         : qsf_j_put(c, to[at - from], strlen(to[at - from]), tag)))
            return false;
    }
    return true;
}

bool qsf_j_markup(QsfJCtx *c, QsfJVal v, QsfJVal *out) {
    *out = v;
    if (v.type == QSF_J_STR && v.markup) return true;
    size_t mark = qsf_j_mark(c);
    if (!put_escaped(c, v) || !qsf_j_cut(c, mark, out)) return false;
    out->markup = true;
    return true;
}

/* --- characters --- */

size_t qsf_j_chars(const QsfJStr *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->len; n++) {
        uint32_t cp;
        i += qsf_utf8_next(s->p + i, s->len - i, &cp);
    }
    return n;
}

size_t qsf_j_char_off(const QsfJStr *s, size_t k) {
    size_t i = 0;
    while (k-- > 0 && i < s->len) {
        uint32_t cp;
        i += qsf_utf8_next(s->p + i, s->len - i, &cp);
    }
    return i;
}
