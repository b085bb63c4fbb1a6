/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Choosing the largest of a list without sorting it: quickselect (Hoare, "Algorithm 65: Find", 1961), by
 * count or by weight. */
#include <math.h>

#include "src/sample/chain.h"

/* Larger keys come first, of equal ones those that were first in the list. */
static bool before(qk_pick a, qk_pick b) { return a.x > b.x || (a.x == b.x && a.id < b.id); }

static void swap(qk_pick *key, size_t i, size_t j) {
    const qk_pick k = key[i];
    key[i] = key[j];
    key[j] = k;
}

/* The median of three becomes key[lo]. */
static void choose_pivot(qk_pick *key, size_t lo, size_t hi) {
    const size_t mid = lo + (hi - lo) / 2, last = hi - 1;
    if (before(key[mid], key[lo])) swap(key, mid, lo);
    if (before(key[last], key[lo])) swap(key, last, lo);
    if (before(key[mid], key[last]))
        swap(key, mid, lo);
    else
        swap(key, last, lo);
}

/* Partitions [lo, hi) around a pivot and returns the place of the pivot. */
static size_t partition(qk_pick *key, size_t lo, size_t hi) {
    choose_pivot(key, lo, hi);
    const qk_pick pivot = key[lo];
    size_t at = lo;
    for (size_t i = lo + 1; i < hi; i++)
        if (before(key[i], pivot)) swap(key, ++at, i);
    swap(key, lo, at);
    return at;
}

static double weigh(const QsfChain *c, const QsfSelection *s, const qk_pick *key, size_t lo, size_t hi) {
    double sum = 0;
    for (size_t i = lo; i < hi && s->count == 0; i++)
        sum += exp(((double)c->cand[key[i].id].x - s->max) / c->temperature);
    return sum;
}

/* Returns how many of key are wanted; they are the first ones then. */
static size_t find(const QsfChain *c, const QsfSelection *s, qk_pick *key) {
    size_t lo = 0, hi = c->n - s->sure;
    double sum = 0; /* of [0, lo) */
    while (hi - lo > 1) {
        const size_t at = partition(key, lo, hi);
        const double below = sum + weigh(c, s, key, lo, at), with = below + weigh(c, s, key, at, at + 1);
        const bool enough = s->count > 0 ? at >= s->count : below >= s->weight && at > 0;
        const bool exact = s->count > 0 ? at + 1 == s->count : with >= s->weight;
        if (!enough && exact) return at + 1;
        if (enough) {
            hi = at;
        } else {
            lo = at + 1;
            sum = with;
        }
    }
    return hi;
}

void qsf_chain_select(QsfChain *c, qk_pick *key, const QsfSelection *s) {
    const uint32_t n = c->n;
    const bool sorted = c->sorted;
    const bool enough = s->count == 0 && s->weight <= 0 && s->sure > 0;
    const size_t wanted = enough || s->sure >= n ? 0 : find(c, s, key);
    size_t kept = s->sure;
    for (size_t i = 0; i < wanted; i++) c->cand[key[i].id].id = ~c->cand[key[i].id].id;
    for (size_t i = kept; i < n; i++) {
        const qk_pick k = c->cand[i];
        if (k.id < 0) c->cand[kept++] = (qk_pick){ k.x, ~k.id };
    }
    qsf_chain_adopt(c, kept);
    c->sorted = sorted;
}
