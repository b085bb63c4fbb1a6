/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stacks and states that an automaton has found, each once. */
#include <stdlib.h>
#include <string.h>

#include "src/base/hashmap.h"
#include "src/grammar/automaton_impl.h"

bool qsf_automaton_space(QsfAutomaton *a, void **p, uint32_t n, uint32_t *cap, size_t size) {
    if (n <= *cap) return true;
    uint32_t more = *cap > 0 ? *cap : 32;
    while (more < n && more < UINT32_MAX / 2) more *= 2;
    const uint64_t extra = (uint64_t)(more - *cap) * size;
    if (more < n || a->bytes + extra > a->max_bytes) {
        a->full = true;
        return false;
    }
    void *q = realloc(*p, more * size);
    if (q == NULL) {
        a->no_memory = true;
        return false;
    }
    *p = q;
    *cap = more;
    a->bytes += extra;
    return true;
}

static int by_place(const void *x, const void *y) {
    const QsfStackPlace *a = x, *b = y;
    if (a->node != b->node) return a->node < b->node ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* By insertion: most states have few places. */
static void sort_few(QsfStackPlace *p, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        const QsfStackPlace one = p[i];
        uint32_t k = i;
        for (; k > 0 && by_place(&p[k - 1], &one) > 0; k--) p[k] = p[k - 1];
        p[k] = one;
    }
}

uint32_t qsf_places_sort(QsfStackPlace *p, uint32_t n) {
    uint32_t kept = 0;
    if (n <= 24)
        sort_few(p, n);
    else
        qsort(p, n, sizeof *p, by_place);
    for (uint32_t i = 0; i < n; i++)
        if (kept == 0 || by_place(&p[kept - 1], &p[i]) != 0) p[kept++] = p[i];
    return kept;
}

/* Doubles a table whose entries are put again by the caller. */
static bool table_grow(QsfAutomaton *a, QsfTable *t) {
    const uint32_t n = t->n_slots > 0 ? t->n_slots * 2 : 64;
    const uint64_t extra = (uint64_t)(n - t->n_slots) * sizeof *t->slot;
    if (a->bytes + extra > a->max_bytes) {
        a->full = true;
        return false;
    }
    uint32_t *slot = calloc(n, sizeof *slot);
    if (slot == NULL) {
        a->no_memory = true;
        return false;
    }
    free(t->slot);
    *t = (QsfTable){ .slot = slot, .n_slots = n };
    a->bytes += extra;
    return true;
}

static void table_put(QsfTable *t, uint64_t hash, uint32_t value) {
    uint32_t i = (uint32_t)hash & (t->n_slots - 1);
    while (t->slot[i] > 0) i = (i + 1) & (t->n_slots - 1);
    t->slot[i] = value + 1;
    t->used++;
}

static uint64_t hash_of(const QsfStackPlace *p, uint32_t n) { return qsf_hash_bytes(p, n * sizeof *p); }

static bool same(const QsfAutomaton *a, uint32_t from, uint32_t count, const QsfStackPlace *p, uint32_t n) {
    return count == n && (n == 0 || memcmp(a->places + from, p, n * sizeof *p) == 0);
}

static uint32_t add_places(QsfAutomaton *a, const QsfStackPlace *p, uint32_t n) {
    void *mem = a->places;
    const bool ok = qsf_automaton_space(a, &mem, a->n_places + n, &a->cap_places, sizeof *p);
    a->places = mem;
    if (!ok) return UINT32_MAX;
    if (n > 0) memcpy(a->places + a->n_places, p, n * sizeof *p);
    a->n_places += n;
    return a->n_places - n;
}

static uint32_t sum(uint32_t a, uint32_t b) { return a + b < QSF_COST_MOST ? a + b : QSF_COST_MOST; }

static uint32_t cost_of(const QsfAutomaton *a, const QsfStackPlace *p, uint32_t n) {
    uint32_t least = QSF_COST_MOST;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t c = p[i].at == QSF_ACCEPT ? 0 : sum(a->g->cost[p[i].at], a->stacks[p[i].node].cost);
        if (c < least) least = c;
    }
    return least;
}

uint32_t qsf_stack_of(QsfAutomaton *a, const QsfStackPlace *p, uint32_t n) {
    QsfTable *t = &a->stack_table;
    const uint64_t hash = hash_of(p, n);
    if (t->used * 2 >= t->n_slots) {
        if (!table_grow(a, t)) return UINT32_MAX;
        for (uint32_t i = 0; i < a->n_stacks; i++)
            table_put(t, hash_of(a->places + a->stacks[i].from, a->stacks[i].n), i);
    }
    for (uint32_t i = (uint32_t)hash & (t->n_slots - 1); t->slot[i] > 0; i = (i + 1) & (t->n_slots - 1)) {
        const QsfStack *s = &a->stacks[t->slot[i] - 1];
        if (same(a, s->from, s->n, p, n)) return t->slot[i] - 1;
    }
    void *mem = a->stacks;
    const bool ok = qsf_automaton_space(a, &mem, a->n_stacks + 1, &a->cap_stacks, sizeof *a->stacks);
    a->stacks = mem;
    const uint32_t from = ok ? add_places(a, p, n) : UINT32_MAX;
    if (from == UINT32_MAX) return UINT32_MAX;
    a->stacks[a->n_stacks] = (QsfStack){ from, n, cost_of(a, p, n) };
    table_put(t, hash, a->n_stacks);
    return a->n_stacks++;
}

static uint64_t state_hash(const QsfStackPlace *p, uint32_t n, bool ends) { return hash_of(p, n) + ends; }

uint32_t qsf_state_of(QsfAutomaton *a, const QsfStackPlace *p, uint32_t n, bool ends) {
    QsfTable *t = &a->state_table;
    const uint64_t hash = state_hash(p, n, ends);
    if (t->used * 2 >= t->n_slots) {
        if (!table_grow(a, t)) return UINT32_MAX;
        for (uint32_t i = 0; i < a->n_states; i++) {
            const QsfState *s = &a->states[i];
            table_put(t, state_hash(a->places + s->from, s->n, s->ends), i);
        }
    }
    for (uint32_t i = (uint32_t)hash & (t->n_slots - 1); t->slot[i] > 0; i = (i + 1) & (t->n_slots - 1)) {
        const QsfState *s = &a->states[t->slot[i] - 1];
        if (s->ends == ends && same(a, s->from, s->n, p, n)) return t->slot[i] - 1;
    }
    void *mem = a->states;
    const bool ok = qsf_automaton_space(a, &mem, a->n_states + 1, &a->cap_states, sizeof *a->states);
    a->states = mem;
    const uint32_t from = ok ? add_places(a, p, n) : UINT32_MAX;
    if (from == UINT32_MAX) return UINT32_MAX;
    a->states[a->n_states] =
        (QsfState){ .from = from, .n = n, .cost = ends ? 0 : cost_of(a, p, n), .ends = ends };
    table_put(t, hash, a->n_states);
    return a->n_states++;
}
