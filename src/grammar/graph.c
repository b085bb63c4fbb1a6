/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Automata over code points: implements graph.h. */
#include "src/grammar/graph.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"

QsfGraph *qsf_graph_new(void) { return calloc(1, sizeof(QsfGraph)); }

void qsf_graph_free(QsfGraph *g) {
    if (g == NULL) return;
    free(g->first);
    free(g->final);
    free(g->edges);
    free(g->ranges);
    free(g);
}

/* Makes space for n elements; false without it. */
static bool space(void **p, uint32_t n, uint32_t *cap, size_t size, uint32_t most) {
    if (n <= *cap) return true;
    if (n > most) return false;
    uint32_t more = *cap > 0 ? *cap : 16;
    while (more < n) more *= 2;
    void *q = realloc(*p, more * size);
    if (q == NULL) return false;
    *p = q;
    *cap = more;
    return true;
}

void qsf_graph_state(QsfGraph *g, bool final) {
    void *first = g->first, *ends = g->final;
    uint32_t cap = g->cap, same = g->cap;
    if (g->failed) return;
    g->failed = !space(&first, g->n + 2, &cap, sizeof *g->first, QSF_GRAPH_STATES);
    g->first = first;
    if (!g->failed) g->failed = !space(&ends, g->n + 2, &same, sizeof *g->final, QSF_GRAPH_STATES);
    g->final = ends;
    if (g->failed) return;
    g->cap = cap;
    g->final[g->n] = final;
    g->first[g->n++] = g->n_edges;
    g->first[g->n] = g->n_edges;
}

void qsf_graph_edge(QsfGraph *g, uint32_t to, const QsfRange *r, uint32_t n) {
    void *edges = g->edges, *ranges = g->ranges;
    if (g->failed || n == 0) return;
    g->failed = !space(&edges, g->n_edges + 1, &g->cap_edges, sizeof *g->edges, QSF_GRAPH_EDGES) ||
                !space(&ranges, g->n_ranges + n, &g->cap_ranges, sizeof *g->ranges, 4 * QSF_GRAPH_EDGES);
    g->edges = edges;
    g->ranges = ranges;
    if (g->failed) return;
    memcpy(g->ranges + g->n_ranges, r, n * sizeof *r);
    g->edges[g->n_edges++] = (QsfEdge){ to, g->n_ranges, n };
    g->n_ranges += n;
    g->first[g->n] = g->n_edges;
}

static QsfGraph *checked(QsfGraph *g) {
    if (g == NULL || !g->failed) return g;
    qsf_graph_free(g);
    return NULL;
}

QsfGraph *qsf_graph_length(uint32_t min, uint32_t max) {
    static const QsfRange all[] = { { 0, 0xD7FF }, { 0xE000, QSF_CODE_MAX } };
    const bool open = max >= QSF_GRAPH_STATES;
    const uint32_t last = open ? min : max;
    QsfGraph *g = qsf_graph_new();
    for (uint32_t i = 0; g != NULL && !g->failed && i <= last; i++) {
        qsf_graph_state(g, i >= min);
        if (i < last || open) qsf_graph_edge(g, i < last ? i + 1 : i, all, 2);
    }
    return checked(g);
}

/* --- both --- */

/* The pairs of states that were found, in a table by hash. */
typedef struct Pairs {
    uint64_t *pair; /* (n) */
    uint32_t *slot; /* (n_slots) index + 1 */
    uint32_t n, cap, n_slots;
} Pairs;

static uint32_t find_pair(Pairs *p, uint32_t a, uint32_t b) {
    const uint64_t key = (uint64_t)a << 32 | b;
    uint32_t i = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 40) & (p->n_slots - 1);
    void *mem = p->pair;
    for (; p->slot[i] > 0; i = (i + 1) & (p->n_slots - 1))
        if (p->pair[p->slot[i] - 1] == key) return p->slot[i] - 1;
    if (!space(&mem, p->n + 1, &p->cap, sizeof *p->pair, QSF_GRAPH_STATES)) return UINT32_MAX;
    p->pair = mem;
    p->pair[p->n] = key;
    p->slot[i] = ++p->n;
    return p->n - 1;
}

static void join_edges(QsfGraph *g, Pairs *p, const QsfGraph *a, const QsfEdge *x, const QsfGraph *b,
                       uint32_t state_b, QsfCharset *both) {
    g->failed = g->failed || qsf_interrupted();
    for (uint32_t j = b->first[state_b]; j < b->first[state_b + 1] && !g->failed; j++) {
        const QsfEdge *y = &b->edges[j];
        qsf_charset_intersect(both, a->ranges + x->set, x->n, b->ranges + y->set, y->n);
        if (both->n == 0) continue;
        const uint32_t to = find_pair(p, x->to, y->to);
        g->failed = to == UINT32_MAX || both->failed;
        qsf_graph_edge(g, to, both->r, both->n);
    }
}

static void join(QsfGraph *g, Pairs *p, const QsfGraph *a, const QsfGraph *b) {
    QsfCharset both = { 0 };
    (void)find_pair(p, 0, 0);
    for (uint32_t i = 0; i < p->n && !g->failed; i++) {
        const uint32_t s = (uint32_t)(p->pair[i] >> 32), t = (uint32_t)p->pair[i];
        qsf_graph_state(g, a->final[s] && b->final[t]);
        for (uint32_t k = a->first[s]; k < a->first[s + 1] && !g->failed; k++)
            join_edges(g, p, a, &a->edges[k], b, t, &both);
    }
    qsf_charset_free(&both);
}

QsfGraph *qsf_graph_both(const QsfGraph *a, const QsfGraph *b) {
    Pairs p = { .n_slots = 1u << 17 };
    QsfGraph *g = qsf_graph_new();
    p.slot = calloc(p.n_slots, sizeof *p.slot);
    if (g != NULL && p.slot != NULL)
        join(g, &p, a, b);
    else if (g != NULL)
        g->failed = true;
    free(p.slot);
    free(p.pair);
    return checked(g);
}

/* --- texts --- */

static bool has_code(const QsfRange *r, uint32_t n, uint32_t c) {
    uint32_t lo = 0;
    while (n > 0) {
        const uint32_t half = n / 2;
        if (r[lo + half].hi < c)
            lo += half + 1, n -= half + 1;
        else if (r[lo + half].lo > c)
            n = half;
        else
            return true;
    }
    return false;
}

bool qsf_graph_accepts(const QsfGraph *g, const char *text, size_t len) {
    uint8_t *now = calloc(g->n + 1, 1), *then = calloc(g->n + 1, 1);
    bool ok = now != NULL && then != NULL && g->n > 0, ends = false;
    if (ok) now[0] = 1;
    for (size_t i = 0; ok && i < len;) {
        uint32_t c;
        i += qsf_utf8_next(text + i, len - i, &c);
        ok = !qsf_interrupted();
        memset(then, 0, g->n);
        for (uint32_t s = 0; s < g->n; s++)
            for (uint32_t k = g->first[s]; now[s] && k < g->first[s + 1]; k++)
                if (has_code(g->ranges + g->edges[k].set, g->edges[k].n, c)) then[g->edges[k].to] = 1;
        uint8_t *swap = now;
        now = then;
        then = swap;
    }
    for (uint32_t s = 0; ok && s < g->n; s++) ends = ends || (now[s] && g->final[s]);
    free(now);
    free(then);
    return ends;
}

bool qsf_graph_is_empty(const QsfGraph *g) {
    uint32_t *list = malloc((g->n + 1) * sizeof *list), n = 0;
    uint8_t *seen = calloc(g->n + 1, 1);
    bool empty = list != NULL && seen != NULL;
    if (empty && g->n > 0) list[n++] = 0, seen[0] = 1;
    while (empty && n > 0) {
        const uint32_t s = list[--n];
        empty = !g->final[s];
        for (uint32_t k = g->first[s]; k < g->first[s + 1]; k++) {
            const uint32_t to = g->edges[k].to;
            if (!seen[to]) list[n++] = to;
            seen[to] = 1;
        }
    }
    free(list);
    free(seen);
    return empty;
}
