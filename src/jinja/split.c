/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Methods that split strings. */
#include <string.h>

#include "src/base/utf8.h"
#include "src/jinja/strings.h"

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
