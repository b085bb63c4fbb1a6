/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Python's arithmetic on 64-bit integers: results that do not fit are an error. */
#include <math.h>
#include <string.h>

#include "src/jinja/eval.h"

bool qsf_j_truth(QsfJVal v) {
    switch (v.type) {
    case QSF_J_BOOL: return v.u.b;
    case QSF_J_INT: return v.u.i != 0;
    case QSF_J_FLOAT: return v.u.f < 0 || v.u.f > 0 || isnan(v.u.f);
    case QSF_J_STR: return v.u.s->len > 0;
    case QSF_J_LIST:
    case QSF_J_TUPLE:
    case QSF_J_VIEW:
    case QSF_J_RANGE: return v.u.l->n > 0;
    case QSF_J_DICT: return v.u.d->n > 0;
    case QSF_J_MISSING:
    case QSF_J_UNDEF:
    case QSF_J_NONE: return false;
    default: return true;
    }
}

static const char *const op_texts[QSF_J_N_OPS] = {
    [QSF_J_OP_ADD] = "+",       [QSF_J_OP_SUB] = "-", [QSF_J_OP_MUL] = "*",  [QSF_J_OP_DIV] = "/",
    [QSF_J_OP_FLOORDIV] = "//", [QSF_J_OP_MOD] = "%", [QSF_J_OP_POW] = "**",
};

static bool no_operator(QsfJCtx *c, QsfJOp op, QsfJVal a, QsfJVal b) {
    return qsf_j_fail(c, "'%s' does not work on %s and %s", op_texts[op], qsf_j_type_name(a),
                      qsf_j_type_name(b));
}

/* --- integers --- */

static bool int_pow(QsfJCtx *c, int64_t base, int64_t exp, QsfJVal *out) {
    int64_t r = 1;
    if (exp < 0) {
        if (base == 0) return qsf_j_fail(c, "0 cannot be raised to a negative power");
        *out = qsf_j_float(pow((double)base, (double)exp));
        return true;
    }
    bool overflow = false;
    for (int64_t e = exp, b = base; e > 0 && !overflow; e >>= 1) { /* at most 63 squarings */
        if (e & 1) overflow = __builtin_mul_overflow(r, b, &r);
        if (e > 1 && __builtin_mul_overflow(b, b, &b)) overflow = true;
    }
    if (overflow) return qsf_j_fail(c, "integer overflow in '**'");
    *out = qsf_j_int(r);
    return true;
}

/* Quotient rounded towards minus infinity and the matching remainder. b is not 0, and not -1. */
static int64_t floor_div(int64_t a, int64_t b, int64_t *rest) {
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    *rest = r;
    return q;
}

static bool int_arith(QsfJCtx *c, QsfJOp op, int64_t a, int64_t b, QsfJVal *out) {
    int64_t r = 0, rest = 0;
    bool overflow = false;
    if (b == 0 && (op == QSF_J_OP_DIV || op == QSF_J_OP_FLOORDIV || op == QSF_J_OP_MOD))
        return qsf_j_fail(c, "division by zero in '%s'", op_texts[op]);
    switch (op) {
    case QSF_J_OP_ADD: overflow = __builtin_add_overflow(a, b, &r); break;
    case QSF_J_OP_SUB: overflow = __builtin_sub_overflow(a, b, &r); break;
    case QSF_J_OP_MUL: overflow = __builtin_mul_overflow(a, b, &r); break;
    case QSF_J_OP_FLOORDIV:
        if (b == -1)
            overflow = __builtin_sub_overflow((int64_t)0, a, &r);
        else
            r = floor_div(a, b, &rest);
        break;
    case QSF_J_OP_MOD:
        if (b != -1) floor_div(a, b, &r);
        break;
    case QSF_J_OP_DIV: *out = qsf_j_float((double)a / (double)b); return true;
    default: return int_pow(c, a, b, out);
    }
    if (overflow) return qsf_j_fail(c, "integer overflow in '%s'", op_texts[op]);
    *out = qsf_j_int(r);
    return true;
}

static bool float_arith(QsfJCtx *c, QsfJOp op, double a, double b, QsfJVal *out) {
    double r, rest;
    bool zero = !(b < 0 || b > 0) && !isnan(b);
    if (zero && (op == QSF_J_OP_DIV || op == QSF_J_OP_FLOORDIV || op == QSF_J_OP_MOD))
        return qsf_j_fail(c, "division by zero in '%s'", op_texts[op]);
    switch (op) {
    case QSF_J_OP_ADD: r = a + b; break;
    case QSF_J_OP_SUB: r = a - b; break;
    case QSF_J_OP_MUL: r = a * b; break;
    case QSF_J_OP_DIV: r = a / b; break;
    case QSF_J_OP_FLOORDIV:
    case QSF_J_OP_MOD:
        rest = fmod(a, b);
        if ((rest < 0 || rest > 0) && (rest < 0) != (b < 0)) rest += b;
        r = op == QSF_J_OP_MOD ? rest : floor((a - rest) / b + 0.5);
        break;
    default:
        r = pow(a, b);
        if (isnan(r) && !isnan(a) && !isnan(b)) return qsf_j_fail(c, "'**' has no real result");
        if (isinf(r) && !isinf(a) && !isinf(b)) return qsf_j_fail(c, "overflow in '**'");
        break;
    }
    *out = qsf_j_float(r);
    return true;
}

/* --- sequences --- */

/* The repetition count of n elements, or an error before anything is allocated. */
static bool repeat_count(QsfJCtx *c, int64_t times, uint64_t n, uint64_t max, uint64_t *count) {
    *count = times < 0 ? 0 : (uint64_t)times;
    if (n == 0) *count = 0;
    if (n > 0 && *count > max / n) return qsf_j_fail(c, "the result of '*' would be too large");
    return true;
}

static bool repeat(QsfJCtx *c, QsfJVal seq, int64_t times, QsfJVal *out) {
    uint64_t count;
    if (seq.type == QSF_J_STR) {
        size_t mark = qsf_j_mark(c);
        if (!repeat_count(c, times, seq.u.s->len, c->limits.output, &count) || !qsf_j_work(c, count))
            return false;
        for (uint64_t i = 0; i < count; i++)
            if (!qsf_j_put_val(c, seq)) return false;
        if (!qsf_j_cut(c, mark, out)) return false;
        out->markup = seq.markup;
        return true;
    }
    const QsfJList *l = seq.u.l;
    if (!repeat_count(c, times, l->n, c->limits.memory / sizeof(QsfJVal), &count) ||
        !qsf_j_work(c, count * l->n))
        return false;
    *out = qsf_j_list(c->mem, (QsfJType)seq.type, count * l->n);
    for (uint64_t i = 0; i < count && !c->mem->failed; i++)
        for (uint32_t k = 0; k < l->n; k++) qsf_j_append(c->mem, out->u.l, l->v[k]);
    return qsf_j_ok(c);
}

static bool join_lists(QsfJCtx *c, QsfJVal a, QsfJVal b, QsfJVal *out) {
    const QsfJList *x = a.u.l, *y = b.u.l;
    if (!qsf_j_work(c, ((uint64_t)x->n + y->n) / 8)) return false;
    *out = qsf_j_list(c->mem, (QsfJType)a.type, (size_t)x->n + y->n);
    if (!qsf_j_ok(c)) return false;
    QsfJList *l = out->u.l;
    if (x->n > 0) memcpy(l->v, x->v, x->n * sizeof *l->v);
    if (y->n > 0) memcpy(l->v + x->n, y->v, y->n * sizeof *l->v);
    l->n = x->n + y->n;
    return true;
}

static bool concat(QsfJCtx *c, QsfJVal a, QsfJVal b, QsfJVal *out) {
    bool markup = a.markup || b.markup;
    if (markup && (!qsf_j_markup(c, a, &a) || !qsf_j_markup(c, b, &b))) return false;
    size_t mark = qsf_j_mark(c);
    if (!qsf_j_put_val(c, a) || !qsf_j_put_val(c, b) || !qsf_j_cut(c, mark, out)) return false;
    out->markup = markup;
    return true;
}

static bool undefined_operand(QsfJCtx *c, QsfJOp op, QsfJVal v) {
    if (v.u.u == NULL || v.u.u->name == NULL)
        return qsf_j_fail(c, "'%s' on an undefined value", op_texts[op]);
    return qsf_j_fail(c, "'%.*s' is undefined (in '%s')", (int)v.u.u->name->len, v.u.u->name->p,
                      op_texts[op]);
}

bool qsf_j_arith(QsfJCtx *c, QsfJOp op, QsfJVal a, QsfJVal b, QsfJVal *out) {
    if (a.type == QSF_J_UNDEF) return undefined_operand(c, op, a);
    if (b.type == QSF_J_UNDEF && !(op == QSF_J_OP_MOD && a.type == QSF_J_STR))
        return undefined_operand(c, op, b);
    if (qsf_j_is_whole(a) && qsf_j_is_whole(b)) return int_arith(c, op, qsf_j_whole(a), qsf_j_whole(b), out);
    if (qsf_j_is_num(a) && qsf_j_is_num(b)) return float_arith(c, op, qsf_j_real(a), qsf_j_real(b), out);
    bool seq_a = a.type == QSF_J_STR || qsf_j_is_listy(a), seq_b = b.type == QSF_J_STR || qsf_j_is_listy(b);
    if (op == QSF_J_OP_MUL && seq_a && qsf_j_is_whole(b)) return repeat(c, a, qsf_j_whole(b), out);
    if (op == QSF_J_OP_MUL && seq_b && qsf_j_is_whole(a)) return repeat(c, b, qsf_j_whole(a), out);
    if (op == QSF_J_OP_MOD && a.type == QSF_J_STR) return qsf_j_percent(c, a, b, out);
    if (op != QSF_J_OP_ADD || a.type != b.type || !seq_a) return no_operator(c, op, a, b);
    return a.type == QSF_J_STR ? concat(c, a, b, out) : join_lists(c, a, b, out);
}

/* --- ==, <, in. The tags of characters are ignored --- */

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
