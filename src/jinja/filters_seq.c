/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Filters over sequences and mappings. */
#include <string.h>

#include "src/jinja/strings.h"

typedef QsfJArgs A;

/* A new list of n elements, obtained by iterating. */
static bool walk(QsfJCtx *c, QsfJVal v, const QsfJList **in, QsfJType type, QsfJVal *out) {
    if (!qsf_j_iter(c, v, in)) return false;
    *out = qsf_j_list(c->mem, type, (*in)->n);
    return qsf_j_ok(c);
}

static bool f_length(QsfJCtx *c, A *a, QsfJVal *out) {
    int64_t n;
    if (!qsf_j_length(c, a->self, &n)) return false;
    *out = qsf_j_int(n);
    return true;
}

static bool f_list(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJList *in;
    if (!walk(c, a->self, &in, QSF_J_LIST, out)) return false;
    if (in->n > 0) memcpy(out->u.l->v, in->v, in->n * sizeof *in->v);
    out->u.l->n = in->n;
    return true;
}

static bool f_first(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJList *in;
    if (!qsf_j_iter(c, a->self, &in)) return false;
    *out = in->n > 0 ? in->v[0] : qsf_j_undef(NULL);
    return true;
}

static bool f_last(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJList *in;
    if (a->self.type == QSF_J_GEN) return qsf_j_fail(c, "'last' of a generator");
    if (!qsf_j_iter(c, a->self, &in)) return false;
    *out = in->n > 0 ? in->v[in->n - 1] : qsf_j_undef(NULL);
    return true;
}

static bool f_reverse(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJList *in;
    if (a->self.type == QSF_J_STR)
        return qsf_j_slice(c, a->self, qsf_j_none(), qsf_j_none(), qsf_j_int(-1), out);
    if (!walk(c, a->self, &in, a->self.type == QSF_J_GEN ? QSF_J_LIST : QSF_J_GEN, out)) return false;
    for (uint32_t i = in->n; i-- > 0;) qsf_j_append(c->mem, out->u.l, in->v[i]);
    return true;
}

static bool has_attribute(const A *a, uint32_t i) { return qsf_j_given(a, i) && a->v[i].type != QSF_J_NONE; }

static bool f_join(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJList *in;
    QsfJVal sep, v;
    if (!(qsf_j_given(a, 0) ? qsf_j_to_str(c, a->v[0], &sep) : qsf_j_text(c, "", &sep)) ||
        !qsf_j_iter(c, a->self, &in))
        return false;
    size_t mark = qsf_j_mark(c);
    for (uint32_t i = 0; i < in->n; i++) {
        if (i > 0 && !qsf_j_put_val(c, sep)) return false;
        v = in->v[i];
        if (has_attribute(a, 1) && !qsf_j_path(c, v, a->v[1], NULL, &v)) return false;
        if (!qsf_j_put_val(c, v)) return false;
    }
    return qsf_j_cut(c, mark, out);
}

/* --- order --- */

typedef struct Keyed {
    QsfJVal key, v;
} Keyed;

/* How elements become keys. */
typedef struct KeyRule {
    QsfJVal attribute;        /* missing or none: the element itself */
    const QsfJVal *otherwise; /* of qsf_j_path */
    bool case_matters;
    bool several; /* the attribute may be several, separated by commas */
} KeyRule;

/* The key of v: its attribute if requested, in lower case unless case matters. */
static bool sort_key(QsfJCtx *c, QsfJVal v, QsfJVal attribute, const KeyRule *r, QsfJVal *out) {
    *out = v;
    if (attribute.type != QSF_J_MISSING && attribute.type != QSF_J_NONE &&
        !qsf_j_path(c, v, attribute, r->otherwise, out))
        return false;
    return r->case_matters || out->type != QSF_J_STR || qsf_j_case(c, *out, QSF_JC_LOWER, out);
}

/* Several attributes separated by commas: a tuple of keys. */
static bool sort_keys(QsfJCtx *c, QsfJVal v, const KeyRule *r, QsfJVal *out) {
    const QsfJVal attribute = r->attribute;
    if (!r->several || attribute.type != QSF_J_STR ||
        memchr(attribute.u.s->p, ',', attribute.u.s->len) == NULL)
        return sort_key(c, v, attribute, r, out);
    *out = qsf_j_list(c->mem, QSF_J_TUPLE, 2);
    const QsfJStr *s = attribute.u.s;
    for (size_t at = 0; at <= s->len && qsf_j_ok(c);) {
        const char *comma = at < s->len ? memchr(s->p + at, ',', s->len - at) : NULL;
        size_t end = comma == NULL ? s->len : (size_t)(comma - s->p);
        QsfJVal key;
        if (!sort_key(c, v, qsf_j_substr(c->mem, attribute, at, end - at), r, &key)) return false;
        qsf_j_append(c->mem, out->u.l, key);
        at = end + 1;
    }
    return qsf_j_ok(c);
}

enum { DOWN = 1, EQUAL_FIRST = 2 };

/* Whether a sorts before b. EQUAL_FIRST: as lists of keys, of which equal ones need no order
 * (two of undefined). */
static bool before(QsfJCtx *c, QsfJVal a, QsfJVal b, unsigned how, bool *out) {
    bool same = false;
    *out = false;
    if ((how & EQUAL_FIRST) && !qsf_j_equal(c, a, b, &same)) return false;
    return same || ((how & DOWN) ? qsf_j_less(c, b, a, out) : qsf_j_less(c, a, b, out));
}

/* Merges two sorted runs of from into to; equal elements keep their order. */
static bool merge(QsfJCtx *c, const Keyed *from, Keyed *to, size_t lo, size_t mid, size_t hi, unsigned how) {
    size_t i = lo, k = mid;
    for (size_t at = lo; at < hi; at++) {
        bool second = i == mid;
        if (i < mid && k < hi && !before(c, from[k].key, from[i].key, how, &second)) return false;
        to[at] = second ? from[k++] : from[i++];
    }
    return true;
}

/* Stable bottom-up merge sort; the result is in *v. */
static bool sort_keyed(QsfJCtx *c, Keyed **v, size_t n, unsigned how) {
    Keyed *a = *v, *b = qsf_j_alloc(c->mem, (n + 1) * sizeof *b);
    if (b == NULL) return qsf_j_ok(c);
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n, hi = mid + width < n ? mid + width : n;
            if (!merge(c, a, b, lo, mid, hi, how)) return false;
        }
        Keyed *swap = a;
        a = b;
        b = swap;
    }
    *v = a;
    return true;
}

/* The elements of v with their keys. */
static bool with_keys(QsfJCtx *c, QsfJVal v, const KeyRule *r, Keyed **out, uint32_t *n) {
    const QsfJList *in;
    if (!qsf_j_iter(c, v, &in)) return false;
    *n = in->n;
    *out = qsf_j_alloc(c->mem, (in->n + 1u) * sizeof **out);
    if (*out == NULL) return qsf_j_ok(c);
    for (uint32_t i = 0; i < in->n; i++) {
        (*out)[i].v = in->v[i];
        if (!sort_keys(c, in->v[i], r, &(*out)[i].key)) return false;
    }
    return true;
}

static bool f_sort(QsfJCtx *c, A *a, QsfJVal *out) {
    Keyed *v;
    uint32_t n;
    const KeyRule r = { a->v[2], NULL, qsf_j_truth(a->v[1]), true };
    if (!with_keys(c, a->self, &r, &v, &n) ||
        !sort_keyed(c, &v, n, EQUAL_FIRST | (qsf_j_truth(a->v[0]) ? DOWN : 0)))
        return false;
    *out = qsf_j_list(c->mem, QSF_J_LIST, n);
    for (uint32_t i = 0; i < n && !c->mem->failed; i++) qsf_j_append(c->mem, out->u.l, v[i].v);
    return qsf_j_ok(c);
}

static bool extreme(QsfJCtx *c, A *a, bool largest, QsfJVal *out) {
    Keyed *v;
    uint32_t n, best = 0;
    const KeyRule r = { a->v[1], NULL, qsf_j_truth(a->v[0]), false };
    if (!with_keys(c, a->self, &r, &v, &n)) return false;
    for (uint32_t i = 1; i < n; i++) {
        bool better;
        if (!(largest ? qsf_j_less(c, v[best].key, v[i].key, &better)
                      : qsf_j_less(c, v[i].key, v[best].key, &better)))
            return false;
        if (better) best = i;
    }
    *out = n > 0 ? v[best].v : qsf_j_undef(NULL);
    return true;
}

static bool f_min(QsfJCtx *c, A *a, QsfJVal *out) { return extreme(c, a, false, out); }
static bool f_max(QsfJCtx *c, A *a, QsfJVal *out) { return extreme(c, a, true, out); }

static bool f_unique(QsfJCtx *c, A *a, QsfJVal *out) {
    Keyed *v;
    uint32_t n, kept = 0;
    const KeyRule r = { a->v[1], NULL, qsf_j_truth(a->v[0]), false };
    if (!with_keys(c, a->self, &r, &v, &n)) return false;
    *out = qsf_j_list(c->mem, QSF_J_GEN, n);
    for (uint32_t i = 0; i < n && !c->mem->failed; i++) {
        if (v[i].key.type == QSF_J_LIST || v[i].key.type == QSF_J_DICT)
            return qsf_j_fail(c, "'unique' needs keys that can be hashed, not %s", qsf_j_type_name(v[i].key));
        bool known = false;
        for (uint32_t k = 0; k < kept && !known; k++)
            if (!qsf_j_equal(c, v[k].key, v[i].key, &known)) return false;
        if (known) continue;
        v[kept++].key = v[i].key;
        qsf_j_append(c->mem, out->u.l, v[i].v);
    }
    return qsf_j_ok(c);
}

static bool f_groupby(QsfJCtx *c, A *a, QsfJVal *out) {
    Keyed *v;
    uint32_t n;
    if (!qsf_j_given(a, 0)) return qsf_j_fail(c, "'groupby' needs an attribute");
    KeyRule r = { a->v[0], qsf_j_given(a, 1) ? &a->v[1] : NULL, qsf_j_truth(a->v[2]), false };
    if (!with_keys(c, a->self, &r, &v, &n) || !sort_keyed(c, &v, n, 0)) return false;
    r.case_matters = true; /* a group is named after its first element */
    *out = qsf_j_list(c->mem, QSF_J_LIST, 4);
    for (uint32_t i = 0; i < n && qsf_j_ok(c);) {
        QsfJVal group = qsf_j_list(c->mem, QSF_J_TUPLE, 2), members = qsf_j_list(c->mem, QSF_J_LIST, 4), name;
        if (!qsf_j_ok(c) || !sort_key(c, v[i].v, a->v[0], &r, &name)) return false;
        uint32_t first = i;
        for (bool same = true; i < n && same;) {
            qsf_j_append(c->mem, members.u.l, v[i++].v);
            if (i < n && !qsf_j_equal(c, v[first].key, v[i].key, &same)) return false;
        }
        group.u.l->view = "group";
        qsf_j_append(c->mem, group.u.l, name);
        qsf_j_append(c->mem, group.u.l, members);
        qsf_j_append(c->mem, out->u.l, group);
    }
    return qsf_j_ok(c);
}

/* --- mappings --- */

static bool pair(QsfJCtx *c, const QsfJDict *d, uint32_t i, QsfJVal *out) {
    *out = qsf_j_list(c->mem, QSF_J_TUPLE, 2);
    if (!qsf_j_ok(c)) return false;
    qsf_j_append(c->mem, out->u.l, d->kv[2 * i]);
    return qsf_j_append(c->mem, out->u.l, d->kv[2 * i + 1]);
}

static bool f_items(QsfJCtx *c, A *a, QsfJVal *out) {
    QsfJVal v = a->self;
    if (v.type != QSF_J_DICT && v.type != QSF_J_UNDEF)
        return qsf_j_fail(c, "'items' needs a mapping, not %s", qsf_j_type_name(v));
    uint32_t n = v.type == QSF_J_DICT ? v.u.d->n : 0;
    *out = qsf_j_list(c->mem, QSF_J_GEN, n);
    for (uint32_t i = 0; i < n && qsf_j_ok(c); i++) {
        QsfJVal p;
        if (!pair(c, v.u.d, i, &p)) return false;
        qsf_j_append(c->mem, out->u.l, p);
    }
    return qsf_j_ok(c);
}

static bool f_dictsort(QsfJCtx *c, A *a, QsfJVal *out) {
    bool by_value = a->v[1].type == QSF_J_STR && qsf_j_is(a->v[1].u.s, "value");
    if (a->self.type != QSF_J_DICT)
        return qsf_j_fail(c, "'dictsort' needs a mapping, not %s", qsf_j_type_name(a->self));
    if (qsf_j_given(a, 1) && !by_value && (a->v[1].type != QSF_J_STR || !qsf_j_is(a->v[1].u.s, "key")))
        return qsf_j_fail(c, "'dictsort' goes by 'key' or by 'value'");
    const QsfJDict *d = a->self.u.d;
    const KeyRule r = { .case_matters = qsf_j_truth(a->v[0]) };
    Keyed *v = qsf_j_alloc(c->mem, (d->n + 1u) * sizeof *v);
    if (v == NULL) return qsf_j_ok(c);
    for (uint32_t i = 0; i < d->n; i++)
        if (!pair(c, d, i, &v[i].v) || !sort_key(c, v[i].v.u.l->v[by_value], r.attribute, &r, &v[i].key))
            return false;
    if (!sort_keyed(c, &v, d->n, qsf_j_truth(a->v[2]) ? DOWN : 0)) return false;
    *out = qsf_j_list(c->mem, QSF_J_LIST, d->n);
    for (uint32_t i = 0; i < d->n && !c->mem->failed; i++) qsf_j_append(c->mem, out->u.l, v[i].v);
    return qsf_j_ok(c);
}

/* --- sums and parts --- */

static bool f_sum(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJList *in;
    QsfJVal acc = qsf_j_given(a, 1) ? a->v[1] : qsf_j_int(0), v;
    if (!qsf_j_iter(c, a->self, &in)) return false;
    if (acc.type == QSF_J_STR) return qsf_j_fail(c, "'sum' adds no strings");
    for (uint32_t i = 0; i < in->n; i++) {
        v = in->v[i];
        if (has_attribute(a, 0) && !qsf_j_path(c, v, a->v[0], NULL, &v)) return false;
        if (!qsf_j_arith(c, QSF_J_OP_ADD, acc, v, &acc)) return false;
    }
    *out = acc;
    return true;
}

/* n elements of in, then the filler if any, as an element of out. */
static bool add_part(QsfJCtx *c, const QsfJList *in, uint32_t from, uint32_t n, QsfJVal fill,
                     uint32_t missing, QsfJVal out) {
    QsfJVal part = qsf_j_list(c->mem, QSF_J_LIST, n);
    if (!qsf_j_ok(c)) return false;
    for (uint32_t i = 0; i < n; i++) qsf_j_append(c->mem, part.u.l, in->v[from + i]);
    while (missing-- > 0 && fill.type != QSF_J_MISSING && fill.type != QSF_J_NONE && !c->mem->failed)
        qsf_j_append(c->mem, part.u.l, fill);
    return qsf_j_append(c->mem, out.u.l, part) && qsf_j_work(c, n / 8);
}

static bool part_size(QsfJCtx *c, A *a, int64_t *n) {
    if (!qsf_j_arg_int(c, a, 0, 0, n)) return false;
    return (*n > 0 && *n <= 100000) || qsf_j_fail(c, "'%s' needs a number from 1 to 100000", a->who);
}

static bool f_batch(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJList *in;
    int64_t size;
    if (!part_size(c, a, &size) || !walk(c, a->self, &in, QSF_J_GEN, out)) return false;
    for (uint32_t i = 0; i < in->n; i += (uint32_t)size) {
        uint32_t n = in->n - i < size ? in->n - i : (uint32_t)size;
        if (!add_part(c, in, i, n, a->v[1], (uint32_t)size - n, *out)) return qsf_j_ok(c);
    }
    return true;
}

static bool f_slice(QsfJCtx *c, A *a, QsfJVal *out) {
    const QsfJList *in;
    int64_t slices;
    if (!part_size(c, a, &slices) || !walk(c, a->self, &in, QSF_J_GEN, out)) return false;
    uint32_t each = in->n / (uint32_t)slices, longer = in->n % (uint32_t)slices, from = 0;
    for (uint32_t i = 0; i < (uint32_t)slices; i++) {
        uint32_t n = each + (i < longer);
        if (!add_part(c, in, from, n, a->v[1], longer > 0 && i >= longer, *out)) return qsf_j_ok(c);
        from += n;
    }
    return true;
}

static bool f_random(QsfJCtx *c, A *a, QsfJVal *out) {
    (void)a;
    (void)out;
    return qsf_j_fail(c, "not supported: 'random' (a rendering must be repeatable)");
}

const QsfJRow qsf_j_seq_filters[] = {
    { "length", f_length, "" },
    { "count", f_length, "" },
    { "list", f_list, "" },
    { "first", f_first, "" },
    { "last", f_last, "" },
    { "reverse", f_reverse, "" },
    { "join", f_join, "d attribute" },
    { "sort", f_sort, "reverse case_sensitive attribute" },
    { "min", f_min, "case_sensitive attribute" },
    { "max", f_max, "case_sensitive attribute" },
    { "unique", f_unique, "case_sensitive attribute" },
    { "groupby", f_groupby, "attribute default case_sensitive" },
    { "items", f_items, "" },
    { "dictsort", f_dictsort, "case_sensitive by reverse" },
    { "sum", f_sum, "attribute start" },
    { "batch", f_batch, "linecount fill_with" },
    { "slice", f_slice, "slices fill_with" },
    { "random", f_random, "" },
    { 0 },
};
