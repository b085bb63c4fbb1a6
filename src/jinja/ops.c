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
