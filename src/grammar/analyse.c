/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is known about a program before it runs: the shortest text of every instruction, which rules call
 * each other before they take a byte (a circle is left recursion), classes of bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/grammar/program.h"

/* --- the shortest text: Knuth's generalization of Dijkstra's algorithm (1977) --- */

typedef struct Item {
    uint32_t cost, at;
} Item;

typedef struct Shortest {
    QsfGrammar *g;
    uint32_t *first; /* (n + 1) of pred */
    uint32_t *pred;  /* instructions whose cost depends on this one */
    uint8_t *done;   /* (n) */
    Item *heap;
    uint32_t n_heap, cap_heap;
    bool failed;
} Shortest;

static void heap_push(Shortest *s, uint32_t cost, uint32_t at) {
    if (s->n_heap == s->cap_heap) {
        s->failed = true;
        return;
    }
    uint32_t i = s->n_heap++;
    for (; i > 0 && s->heap[(i - 1) / 2].cost > cost; i = (i - 1) / 2) s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = (Item){ cost, at };
}

static Item heap_pop(Shortest *s) {
    const Item top = s->heap[0], last = s->heap[--s->n_heap];
    uint32_t i = 0;
    for (uint32_t c; (c = 2 * i + 1) < s->n_heap; i = c) {
        if (c + 1 < s->n_heap && s->heap[c + 1].cost < s->heap[c].cost) c++;
        if (s->heap[c].cost >= last.cost) break;
        s->heap[i] = s->heap[c];
    }
    s->heap[i] = last;
    return top;
}

/* The instructions that i depends on; returns how many. */
static unsigned needs(const QsfGrammar *g, uint32_t i, uint32_t out[2]) {
    const QsfInstr *in = &g->code[i];
    switch (in->op) {
    case QSF_OP_BYTE:
    case QSF_OP_JUMP: out[0] = in->x; return 1;
    case QSF_OP_SPLIT: out[0] = in->x, out[1] = in->y; return 2;
    case QSF_OP_CALL: out[0] = g->start[in->x], out[1] = in->y; return 2;
    case QSF_OP_TOKEN: out[0] = in->y; return 1;
    default: return 0;
    }
}

static bool shortest_open(Shortest *s, QsfGrammar *g) {
    uint32_t need[2];
    *s = (Shortest){ .g = g };
    s->first = calloc((size_t)g->n + 2, sizeof *s->first);
    s->pred = malloc((size_t)g->n * 2 * sizeof *s->pred);
    s->done = calloc(g->n, 1);
    s->cap_heap = g->n * 2 + 1;
    s->heap = malloc(s->cap_heap * sizeof *s->heap);
    if (s->first == NULL || s->pred == NULL || s->done == NULL || s->heap == NULL) return false;
    for (uint32_t i = 0; i < g->n; i++)
        for (unsigned k = needs(g, i, need); k-- > 0;) s->first[need[k] + 2]++;
    for (uint32_t i = 2; i < g->n + 2; i++) s->first[i] += s->first[i - 1];
    for (uint32_t i = 0; i < g->n; i++)
        for (unsigned k = needs(g, i, need); k-- > 0;) s->pred[s->first[need[k] + 1]++] = i;
    return true;
}

static void shortest_close(Shortest *s) {
    free(s->first);
    free(s->pred);
    free(s->done);
    free(s->heap);
}

static uint32_t add_cost(uint32_t a, uint32_t b) { return a + b < QSF_COST_MOST ? a + b : QSF_COST_MOST; }

/* The cost of i from those that are known; QSF_COST_NONE if it cannot be told yet. */
static uint32_t cost_of(const QsfGrammar *g, uint32_t i) {
    const QsfInstr *in = &g->code[i];
    uint32_t x, y;
    switch (in->op) {
    case QSF_OP_BYTE: return add_cost(g->cost[in->x], 1);
    case QSF_OP_TOKEN: return add_cost(g->cost[in->y], QSF_COST_OF_TOKEN);
    case QSF_OP_JUMP: return g->cost[in->x];
    case QSF_OP_SPLIT: x = g->cost[in->x], y = g->cost[in->y]; return x < y ? x : y;
    case QSF_OP_CALL:
        x = g->cost[g->start[in->x]], y = g->cost[in->y];
        return x == QSF_COST_NONE || y == QSF_COST_NONE ? QSF_COST_NONE : add_cost(x, y);
    default: return QSF_COST_NONE;
    }
}

static void shortest_run(Shortest *s) {
    QsfGrammar *g = s->g;
    memset(g->cost, 0xFF, g->n * sizeof *g->cost);
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->code[i].op == QSF_OP_RETURN) heap_push(s, 0, i);
    }
    for (uint32_t n = 0; s->n_heap > 0 && !s->failed && (n % 16384 != 0 || !qsf_interrupted()); n++) {
        const Item top = heap_pop(s);
        if (s->done[top.at]) continue;
        s->done[top.at] = 1;
        g->cost[top.at] = top.cost;
        for (uint32_t k = s->first[top.at]; k < s->first[top.at + 1]; k++) {
            const uint32_t p = s->pred[k], cost = s->done[p] ? QSF_COST_NONE : cost_of(g, p);
            if (cost != QSF_COST_NONE) heap_push(s, cost, p);
        }
    }
}

/* --- left recursion --- */

typedef struct Left {
    const QsfGrammar *g;
    uint32_t *mark;  /* (n) the rule + 1 whose beginning has this instruction */
    uint32_t *first; /* (n_rules + 1) of called */
    uint32_t *called;
    uint32_t *list; /* (n) to be looked at */
    uint8_t *colour;
    uint32_t *at;
    uint32_t n_called;
} Left;

static bool is_nullable(const QsfGrammar *g, uint32_t rule) { return g->cost[g->start[rule]] == 0; }

/* Adds the rules that may be called before a byte of this one. */
static void find_called(Left *l, uint32_t rule) {
    const QsfGrammar *g = l->g;
    uint32_t n = 0;
    l->list[n++] = g->start[rule];
    l->mark[g->start[rule]] = rule + 1;
    while (n > 0) {
        const QsfInstr *in = &g->code[l->list[--n]];
        uint32_t next[2], k = 0;
        if (in->op == QSF_OP_CALL) l->called[l->n_called++] = in->x;
        if (in->op == QSF_OP_SPLIT) next[k++] = in->y;
        if (in->op == QSF_OP_SPLIT || in->op == QSF_OP_JUMP) next[k++] = in->x;
        if (in->op == QSF_OP_CALL && is_nullable(g, in->x)) next[k++] = in->y;
        while (k-- > 0) {
            if (l->mark[next[k]] == rule + 1) continue;
            l->mark[next[k]] = rule + 1;
            l->list[n++] = next[k];
        }
    }
}

/* Depth first; returns a rule that comes back to itself, or UINT32_MAX. list is the path. */
static uint32_t find_circle(Left *l, uint32_t from, uint32_t *rank) {
    uint32_t n = 0;
    l->list[n++] = from;
    l->colour[from] = 1;
    l->at[from] = l->first[from];
    while (n > 0) {
        const uint32_t rule = l->list[n - 1];
        if (l->at[rule] == l->first[rule + 1]) {
            l->colour[rule] = 2;
            l->g->rank[rule] = --*rank;
            n--;
            continue;
        }
        const uint32_t to = l->called[l->at[rule]++];
        if (l->colour[to] == 1) return to;
        if (l->colour[to] == 2) continue;
        l->colour[to] = 1;
        l->at[to] = l->first[to];
        l->list[n++] = to;
    }
    return UINT32_MAX;
}

static int refuse_circle(const QsfGrammarBuild *b, uint32_t rule) {
    if (rule >= b->n_rules) return qsf_err_set(b->err, QSF_E_USAGE, "the grammar is left-recursive");
    const QsfRule *r = &b->rules[rule];
    char where[48] = "";
    if (r->line > 0) snprintf(where, sizeof where, "line %u, column %u: ", r->line, r->col);
    return qsf_err_set(b->err, QSF_E_USAGE,
                       "%sthe rule \"%.*s\" is left-recursive: it can come back to itself without a "
                       "character in between",
                       where, (int)r->name_len, b->text.data + r->name);
}

static bool left_open(Left *l, const QsfGrammar *g) {
    const size_t most = g->n > g->n_rules ? g->n : g->n_rules;
    *l = (Left){ .g = g };
    l->mark = calloc(g->n, sizeof *l->mark);
    l->first = calloc((size_t)g->n_rules + 1, sizeof *l->first);
    l->called = malloc(most * sizeof *l->called);
    l->list = malloc((most + 1) * sizeof *l->list);
    l->colour = calloc(g->n_rules, 1);
    l->at = calloc(g->n_rules, sizeof *l->at);
    return l->mark && l->first && l->called && l->list && l->colour && l->at;
}

static void left_close(Left *l) {
    free(l->mark);
    free(l->first);
    free(l->called);
    free(l->list);
    free(l->colour);
    free(l->at);
}

static int order_rules(const QsfGrammar *g, const QsfGrammarBuild *b) {
    Left l;
    uint32_t rank = g->n_rules, circle = UINT32_MAX;
    const bool ok = left_open(&l, g);
    for (uint32_t r = 0; ok && r < g->n_rules; r++) {
        l.first[r] = l.n_called;
        find_called(&l, r);
    }
    if (ok) l.first[g->n_rules] = l.n_called;
    for (uint32_t r = 0; ok && r < g->n_rules && circle == UINT32_MAX; r++)
        if (l.colour[r] == 0) circle = find_circle(&l, r, &rank);
    left_close(&l);
    if (!ok) return qsf_err_memory(b->err, "the grammar");
    return circle == UINT32_MAX ? QSF_OK : refuse_circle(b, circle);
}

/* --- the rest --- */

static void find_classes(QsfGrammar *g) {
    bool cut[257] = { true };
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->code[i].op != QSF_OP_BYTE) continue;
        cut[g->code[i].lo] = cut[g->code[i].hi + 1] = true;
    }
    for (unsigned c = 0; c < 256; c++) {
        if (cut[c]) g->byte_of[g->n_classes++] = (uint8_t)c;
        g->class_of[c] = (uint8_t)(g->n_classes - 1);
    }
}

static void find_tails(QsfGrammar *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t at = i;
        for (int k = 0; k < 32 && g->code[at].op == QSF_OP_JUMP; k++) at = g->code[at].x;
        g->tail[i] = g->code[at].op == QSF_OP_RETURN;
    }
}

int qsf_grammar_analyse(QsfGrammar *g, const QsfGrammarBuild *b) {
    Shortest s = { 0 };
    g->cost = malloc(g->n * sizeof *g->cost);
    g->tail = malloc(g->n);
    g->rank = malloc(g->n_rules * sizeof *g->rank);
    bool ok = g->cost != NULL && g->tail != NULL && g->rank != NULL && shortest_open(&s, g);
    if (ok) shortest_run(&s);
    shortest_close(&s);
    if (!ok || s.failed) return qsf_err_memory(b->err, "the grammar");
    if (qsf_interrupt_check(b->err) != QSF_OK) return b->err->code;
    int rc = order_rules(g, b);
    if (rc != QSF_OK) return rc;
    if (g->cost[g->start[g->root]] == QSF_COST_NONE)
        return qsf_err_set(b->err, QSF_E_USAGE, "nothing matches this grammar: no text ever ends it");
    find_classes(g);
    find_tails(g);
    return QSF_OK;
}
