/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ==, <, in. The tags of characters are ignored. */
#include <math.h>
#include <string.h>

#include "src/jinja/eval.h"

static bool lists_equal(QsfJCtx *c, const QsfJList *a, const QsfJList *b, bool *out) {
    *out = a->n == b->n;
    for (uint32_t i = 0; i < a->n && *out; i++)
        if (!qsf_j_equal(c, a->v[i], b->v[i], out)) return false;
    return true;
}

static bool dicts_equal(QsfJCtx *c, const QsfJDict *a, const QsfJDict *b, bool *out) {
    *out = a->n == b->n;
    for (uint32_t i = 0; i < a->n && *out; i++) {
        uint32_t at;
        if (!qsf_j_dict_find(c, b, a->kv[2 * i], &at, out)) return false;
        if (*out && !qsf_j_equal(c, a->kv[2 * i + 1], b->kv[2 * at + 1], out)) return false;
    }
    return true;
}

static bool numbers_equal(QsfJVal a, QsfJVal b) {
    if (qsf_j_is_whole(a) && qsf_j_is_whole(b)) return qsf_j_whole(a) == qsf_j_whole(b);
    long double x = a.type == QSF_J_FLOAT ? (long double)a.u.f : (long double)qsf_j_whole(a);
    long double y = b.type == QSF_J_FLOAT ? (long double)b.u.f : (long double)qsf_j_whole(b);
    return !(x < y || x > y) && !isnan(x) && !isnan(y);
}

static bool same_kind_equal(QsfJCtx *c, QsfJVal a, QsfJVal b, bool *out) {
    switch (a.type) {
    case QSF_J_STR:
        *out = qsf_j_same_text(a.u.s, b.u.s->p, b.u.s->len);
        return qsf_j_work(c, *out ? a.u.s->len / 64 : 0);
    case QSF_J_LIST:
    case QSF_J_TUPLE:
    case QSF_J_RANGE: return lists_equal(c, a.u.l, b.u.l, out);
    case QSF_J_DICT: return dicts_equal(c, a.u.d, b.u.d, out);
    case QSF_J_NONE:
    case QSF_J_UNDEF: *out = true; return true;
    case QSF_J_VIEW:
    case QSF_J_GEN: *out = a.u.l == b.u.l; return true;
    case QSF_J_NS: *out = a.u.d == b.u.d; return true;
    case QSF_J_FUNC: *out = a.u.fn == b.u.fn; return true;
    case QSF_J_MACRO: *out = a.u.m == b.u.m; return true;
    default: *out = a.u.loop == b.u.loop; return true;
    }
}

bool qsf_j_equal(QsfJCtx *c, QsfJVal a, QsfJVal b, bool *out) {
    *out = false;
    if (!qsf_j_work(c, 1)) return false;
    if (qsf_j_is_num(a) && qsf_j_is_num(b)) {
        *out = numbers_equal(a, b);
        return true;
    }
    if (a.type != b.type) return true;
    if (!qsf_j_enter_level(c)) return false;
    bool ok = same_kind_equal(c, a, b, out);
    c->depth--;
    return ok;
}

static int text_order(const QsfJStr *a, const QsfJStr *b) {
    size_t n = a->len < b->len ? a->len : b->len;
    int r = n == 0 ? 0 : memcmp(a->p, b->p, n); /* the order of UTF-8 bytes is that of code points */
    return r != 0 ? r : (a->len > b->len) - (a->len < b->len);
}

static bool lists_less(QsfJCtx *c, const QsfJList *a, const QsfJList *b, bool *out) {
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        bool same;
        if (!qsf_j_equal(c, a->v[i], b->v[i], &same)) return false;
        if (!same) return qsf_j_less(c, a->v[i], b->v[i], out);
    }
    *out = a->n < b->n;
    return true;
}

bool qsf_j_less(QsfJCtx *c, QsfJVal a, QsfJVal b, bool *out) {
    if (!qsf_j_work(c, 1)) return false;
    if (qsf_j_is_whole(a) && qsf_j_is_whole(b)) {
        *out = qsf_j_whole(a) < qsf_j_whole(b);
        return true;
    }
    if (qsf_j_is_num(a) && qsf_j_is_num(b)) {
        *out = (a.type == QSF_J_FLOAT ? (long double)a.u.f : (long double)qsf_j_whole(a)) <
               (b.type == QSF_J_FLOAT ? (long double)b.u.f : (long double)qsf_j_whole(b));
        return true;
    }
    if (a.type == QSF_J_STR && b.type == QSF_J_STR) {
        *out = text_order(a.u.s, b.u.s) < 0;
        return qsf_j_work(c, a.u.s->len / 64);
    }
    if (qsf_j_is_listy(a) && a.type == b.type) {
        if (!qsf_j_enter_level(c)) return false;
        bool ok = lists_less(c, a.u.l, b.u.l, out);
        c->depth--;
        return ok;
    }
    if (a.type == QSF_J_UNDEF || b.type == QSF_J_UNDEF)
        return qsf_j_fail(c, "an undefined value has no order");
    return qsf_j_fail(c, "%s and %s have no order", qsf_j_type_name(a), qsf_j_type_name(b));
}

static bool contains(QsfJCtx *c, QsfJVal item, QsfJVal in, bool *out) {
    *out = false;
    if (in.type == QSF_J_STR) {
        if (item.type != QSF_J_STR)
            return qsf_j_fail(c, "'in' a string needs a string on its left, not %s", qsf_j_type_name(item));
        const QsfJStr *s = in.u.s, *part = item.u.s;
        *out = part->len == 0 || (s->len > 0 && memmem(s->p, s->len, part->p, part->len) != NULL);
        return qsf_j_bytes(c, s->len);
    }
    if (in.type == QSF_J_DICT) {
        uint32_t at;
        return qsf_j_dict_find(c, in.u.d, item, &at, out);
    }
    if (in.type != QSF_J_UNDEF && !qsf_j_iterable(in))
        return qsf_j_fail(c, "'in' does not work on %s", qsf_j_type_name(in));
    const QsfJList *l;
    if (!qsf_j_iter(c, in, &l)) return false;
    for (uint32_t i = 0; i < l->n && !*out; i++)
        if (!qsf_j_equal(c, item, l->v[i], out)) return false;
    return true;
}

bool qsf_j_compare(QsfJCtx *c, QsfJOp op, QsfJVal a, QsfJVal b, bool *out) {
    bool ok;
    switch (op) {
    case QSF_J_OP_EQ: return qsf_j_equal(c, a, b, out);
    case QSF_J_OP_NE: ok = qsf_j_equal(c, a, b, out); break;
    case QSF_J_OP_LT: return qsf_j_less(c, a, b, out);
    case QSF_J_OP_GT: return qsf_j_less(c, b, a, out);
    case QSF_J_OP_LE: ok = qsf_j_less(c, b, a, out); break;
    case QSF_J_OP_GE: ok = qsf_j_less(c, a, b, out); break;
    case QSF_J_OP_IN: return contains(c, a, b, out);
    default: ok = contains(c, a, b, out); break;
    }
    if (ok) *out = !*out; /* not set if they cannot be compared */
    return ok;
}
