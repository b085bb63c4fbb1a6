/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of a JSON Schema between bounds. Bounds are decimals, compared digit by digit in an automaton:
 * what is at least a, what is at most b, and both. Numbers with a bound are written without an exponent. */
#include "src/grammar/schema.h"

typedef struct Bound {
    bool given, open;  /* open: the bound itself does not belong to it */
    QsfDecimal digits; /* the automata look at its absolute value */
} Bound;

static void read_bound(QsfSchema *s, const QsfSchemaPart *p, const char *key, bool lower, Bound *out) {
    const QsfJson *v = qsf_json_get(p->schema, key);
    Bound b = { .given = true, .open = key[0] == 'e' };
    if (v == NULL) return;
    const uint32_t path = qsf_schema_at(s, p->path, key);
    if (!qsf_schema_decimal(s, v, path, &b.digits)) return;
    const int order = out->given ? qsf_decimal_compare(&b.digits, &out->digits) : 0;
    if (lower ? order < 0 : order > 0) return;
    if (order == 0 && out->given && out->open) return;
    *out = b;
}

/* --- automata --- */

static void edge(QsfGraph *g, uint32_t to, char lo, char hi) {
    const QsfRange r = { (unsigned char)lo, (unsigned char)hi };
    if (lo <= hi) qsf_graph_edge(g, to, &r, 1);
}

static bool zeros_from(const QsfDecimal *d, size_t i) {
    return i >= d->n_part;
} /* it has no zeros at its end */

/* May a number end that equals the bound in all its digits so far, i of them behind the point? */
static bool may_end(const Bound *b, bool lower, size_t i) {
    return zeros_from(&b->digits, i) ? !b->open : !lower;
}

/* The states of an automaton, in this order. */
typedef struct Layout {
    uint32_t equal;  /* + i: i digits before the point are those of the bound */
    uint32_t better; /* + i: i digits, and the number is on the right side already, if it has as many as the
                        bound */
    uint32_t tight;  /* behind the point: + i digits are those of the bound */
    uint32_t whole;  /* any digits before the point */
    uint32_t point;  /* behind the point, any digits: one has to follow */
    uint32_t part;   /* any digits */
} Layout;

static void add_whole_end(QsfGraph *g, const Layout *l, bool integers) {
    if (!integers) edge(g, l->point, '.', '.');
}

/* Digit i of the bound, before the point: one that is equal, and those that decide. */
static void add_equal(QsfGraph *g, const Layout *l, const Bound *b, bool lower, bool integers, size_t i) {
    const size_t n = b->digits.n_whole;
    const char c = i < n ? b->digits.whole[i] : '0';
    const bool ended = i == n;
    qsf_graph_state(g, ended && may_end(b, lower, 0));
    if (ended && !integers) edge(g, l->tight, '.', '.');
    if (ended) return;
    edge(g, l->equal + (uint32_t)i + 1, c, c);
    const char first = i == 0 && n > 1 ? '1' : '0'; /* no zero at the beginning */
    if (lower)
        edge(g, l->better + (uint32_t)i + 1, (char)(c + 1), '9');
    else
        edge(g, l->better + (uint32_t)i + 1, first, (char)(c - 1));
}

/* The number of digits differs from that of the bound: more of them are above it, fewer below. */
static void add_start(QsfGraph *g, const Layout *l, const Bound *b, bool lower) {
    if (lower)
        edge(g, l->whole, '1', '9');
    else if (b->digits.n_whole > 1)
        edge(g, l->whole, '0', '9');
}

static void add_tight(QsfGraph *g, const Layout *l, const Bound *b, bool lower, size_t i) {
    const bool past = i >= b->digits.n_part;
    const char c = past ? '0' : b->digits.part[i];
    qsf_graph_state(g, i > 0 && may_end(b, lower, i));
    edge(g, l->tight + (uint32_t)(past ? i + (i == 0) : i + 1), c, c);
    if (lower)
        edge(g, l->part, (char)(c + 1), '9');
    else
        edge(g, l->part, '0', (char)(c - 1));
}

/* Numbers with another number of digits than the bound: lower: more, at least n + 1; otherwise fewer. The
 * states count the digits. */
static void add_lengths(QsfGraph *g, const Layout *l, size_t n, bool lower, bool integers, uint32_t count) {
    for (size_t i = 1; i <= n + 1; i++) {
        const bool last = i == n + 1;
        const bool ok = lower ? last : i < n;
        qsf_graph_state(g, ok);
        if (!last || lower) edge(g, count + (uint32_t)(last ? i : i + 1) - 1, '0', '9');
        if (ok) add_whole_end(g, l, integers);
    }
}

/* Canonical decimals of 0 or more that are at least (lower) or at most the bound. */
static QsfGraph *compare(const Bound *b, bool lower, bool integers) {
    QsfGraph *g = qsf_graph_new();
    const size_t n = b->digits.n_whole, m = b->digits.n_part;
    if (g == NULL) return NULL;
    /* 0: the beginning, then equal 1..n, better 1..n, tight 0..m+1, zero, count 1..n+1, point, part */
    Layout l = { .equal = 0 };
    l.better = (uint32_t)n;
    l.tight = l.better + (uint32_t)n + 1;
    const uint32_t zero = l.tight + (uint32_t)m + 2, count = zero + 1;
    l.whole = count;
    l.point = count + (uint32_t)n + 1;
    l.part = l.point + 1;
    add_equal(g, &l, b, lower, integers, 0);
    add_start(g, &l, b, lower);
    if (!lower && n > 1) edge(g, zero, '0', '0');
    for (size_t i = 1; i <= n; i++) add_equal(g, &l, b, lower, integers, i);
    for (size_t i = 1; i <= n; i++) {
        qsf_graph_state(g, i == n);
        if (i < n) edge(g, l.better + (uint32_t)i + 1, '0', '9');
        if (i == n) add_whole_end(g, &l, integers);
    }
    for (size_t i = 0; i <= m + 1; i++) add_tight(g, &l, b, lower, i);
    qsf_graph_state(g, true); /* zero: below a bound of more digits */
    add_whole_end(g, &l, integers);
    add_lengths(g, &l, n, lower, integers, count);
    qsf_graph_state(g, false); /* point */
    edge(g, l.part, '0', '9');
    qsf_graph_state(g, true); /* part */
    edge(g, l.part, '0', '9');
    if (!g->failed) return g;
    qsf_graph_free(g);
    return NULL;
}

/* The absolute values between two bounds, of which one may be missing. */
static QsfGraph *between(const Bound *lo, const Bound *hi, bool integers) {
    const Bound zero = { .given = true, .digits = { .whole = "0", .n_whole = 1 } };
    QsfGraph *a = compare(lo->given ? lo : &zero, true, integers), *both;
    if (!hi->given || a == NULL) return a;
    QsfGraph *b = compare(hi, false, integers);
    both = b != NULL ? qsf_graph_both(a, b) : NULL;
    qsf_graph_free(a);
    qsf_graph_free(b);
    return both;
}

/* Adds the numbers with this sign, if there are any. */
static bool add_sign(QsfSchema *s, uint32_t alt, const Bound *lo, const Bound *hi, bool integers,
                     bool minus) {
    QsfGraph *g = between(lo, hi, integers);
    if (g == NULL) return qsf_gbuild_fail(s->b, QSF_E_USAGE, "the bounds of a number are too long") != 0;
    if (qsf_graph_is_empty(g)) {
        qsf_graph_free(g);
        return false;
    }
    const uint32_t seq = qsf_node_list(s->b, QSF_NODE_SEQ);
    if (minus) qsf_node_add(s->b, seq, qsf_node_text(s->b, "-"));
    qsf_node_add(s->b, seq, qsf_node_graph(s->b, g, false));
    qsf_node_add(s->b, alt, seq);
    return true;
}

uint32_t qsf_schema_number(QsfSchema *s, const QsfSchemaParts *p, bool integers) {
    Bound lo = { 0 }, hi = { 0 };
    const Bound none = { 0 };
    bool any = false;
    for (uint32_t i = 0; i < p->n && !s->b->failed; i++) {
        read_bound(s, &p->part[i], "minimum", true, &lo);
        read_bound(s, &p->part[i], "exclusiveMinimum", true, &lo);
        read_bound(s, &p->part[i], "maximum", false, &hi);
        read_bound(s, &p->part[i], "exclusiveMaximum", false, &hi);
    }
    if (s->b->failed) return 0;
    if (!lo.given && !hi.given) return qsf_schema_any_number(s, integers);
    const uint32_t alt = qsf_node_list(s->b, QSF_NODE_ALT);
    const bool from_zero = !lo.given || lo.digits.negative; /* of those without a sign */
    if (!hi.given || !hi.digits.negative)
        any |= add_sign(s, alt, from_zero ? &none : &lo, &hi, integers, false);
    if (from_zero) any |= add_sign(s, alt, hi.given && hi.digits.negative ? &hi : &none, &lo, integers, true);
    if (any || s->b->failed) return alt;
    return qsf_schema_fail(s, p->part[p->n - 1].path,
                           "no number is within the bounds minimum and maximum: they contradict each other");
}
