/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the places after a byte to the state: follows what takes no byte. First all returns, to stacks that
 * are older than the byte; then the calls, in the order of ranks, so that when a rule is entered all places
 * it returns to are known and make one stack. A rule that may match nothing is also passed over where it is
 * called, so returns from the stacks of this step are not followed (Aycock and Horspool, "Practical Earley
 * parsing", 2002). A call that nothing follows returns to where its rule would: recursion at the end of a
 * rule does not grow the stack. */
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/grammar/automaton_impl.h"

static bool failed(const QsfAutomaton *a) { return a->full || a->many || a->no_memory; }

void qsf_closure_begin(QsfAutomaton *a) {
    a->n_work = a->n_wants = a->n_adds = a->n_entered = 0;
    a->used_seen = 0;
    a->ends = false;
    a->pops = true;
    if (++a->step == 0) { /* the stamps of older steps would count again */
        if (a->n_seen > 0) memset(a->seen_step, 0, a->n_seen * sizeof *a->seen_step);
        a->step = 1;
    }
}

static uint32_t seen_slot(const QsfAutomaton *a, uint64_t key) {
    uint32_t i = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 36) & (a->n_seen - 1);
    while (a->seen_step[i] == a->step && a->seen[i] != key) i = (i + 1) & (a->n_seen - 1);
    return i;
}

static bool grow_seen(QsfAutomaton *a) {
    const uint32_t old = a->n_seen, n = old > 0 ? old * 2 : 256;
    uint64_t *seen = a->seen;
    uint32_t *step = a->seen_step;
    const uint64_t extra = (uint64_t)(n - old) * 12;
    if (a->bytes + extra > a->max_bytes) {
        a->full = true;
        return false;
    }
    a->seen = malloc(n * sizeof *a->seen);
    a->seen_step = calloc(n, sizeof *a->seen_step);
    if (a->seen == NULL || a->seen_step == NULL) {
        free(a->seen);
        free(a->seen_step);
        a->seen = seen;
        a->seen_step = step;
        a->no_memory = true;
        return false;
    }
    a->bytes += extra;
    a->n_seen = n;
    for (uint32_t i = 0; i < old; i++) {
        if (step[i] != a->step) continue;
        const uint32_t k = seen_slot(a, seen[i]);
        a->seen[k] = seen[i];
        a->seen_step[k] = a->step;
    }
    free(seen);
    free(step);
    return true;
}

/* Is it new in this step? */
static bool is_new(QsfAutomaton *a, uint32_t at, uint32_t node) {
    const uint64_t key = (uint64_t)at << 32 | node;
    if (a->used_seen * 2 >= a->n_seen && !grow_seen(a)) return false;
    const uint32_t i = seen_slot(a, key);
    if (a->seen_step[i] == a->step) return false;
    a->seen[i] = key;
    a->seen_step[i] = a->step;
    a->used_seen++;
    return true;
}

void qsf_closure_add(QsfAutomaton *a, uint32_t at, uint32_t node) {
    void *mem = a->work;
    if (++a->n_adds > QSF_ADDS_MOST) a->many = true;
    if (a->many || a->g->cost[at] == QSF_COST_NONE || !is_new(a, at, node)) return;
    const bool ok = !a->full && qsf_automaton_space(a, &mem, a->n_work + 1, &a->cap_work, sizeof *a->work);
    a->work = mem;
    if (ok) a->work[a->n_work++] = (QsfStackPlace){ at, node };
}

void qsf_closure_want(QsfAutomaton *a, uint32_t rule, QsfStackPlace back) {
    void *mem = a->wants;
    const uint32_t rank = a->g->rank[rule];
    const bool ok = qsf_automaton_space(a, &mem, a->n_wants + 1, &a->cap_wants, sizeof *a->wants);
    a->wants = mem;
    if (!ok) return;
    uint32_t i = a->n_wants++;
    for (; i > 0 && a->wants[(i - 1) / 2].rank > rank; i = (i - 1) / 2) a->wants[i] = a->wants[(i - 1) / 2];
    a->wants[i] = (QsfWant){ rank, rule, back };
}

static QsfWant take_want(QsfAutomaton *a) {
    const QsfWant top = a->wants[0], last = a->wants[--a->n_wants];
    uint32_t i = 0;
    for (uint32_t c; (c = 2 * i + 1) < a->n_wants; i = c) {
        if (c + 1 < a->n_wants && a->wants[c + 1].rank < a->wants[c].rank) c++;
        if (a->wants[c].rank >= last.rank) break;
        a->wants[i] = a->wants[c];
    }
    a->wants[i] = last;
    return top;
}

static void pop(QsfAutomaton *a, uint32_t node) {
    const QsfStack s = a->stacks[node];
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        if (a->places[i].at == QSF_ACCEPT)
            a->ends = true;
        else
            qsf_closure_add(a, a->places[i].at, a->places[i].node);
    }
}

/* Looks at the places with an index of `from` or more; those of bytes and tokens stay, at the front. Returns
 * how many stay in all. */
static uint32_t follow(QsfAutomaton *a, uint32_t from) {
    const QsfGrammar *g = a->g;
    uint32_t kept = from;
    for (uint32_t i = from; i < a->n_work && !failed(a); i++) {
        const QsfStackPlace p = a->work[i];
        if (i % 4096 == 4095 && qsf_interrupted()) a->many = true; /* the caller sees why */
        const QsfInstr *in = &g->code[p.at];
        switch (in->op) {
        case QSF_OP_BYTE:
        case QSF_OP_TOKEN: a->work[kept++] = p; break;
        case QSF_OP_SPLIT: qsf_closure_add(a, in->y, p.node); /* fall through */
        case QSF_OP_JUMP: qsf_closure_add(a, in->x, p.node); break;
        case QSF_OP_CALL:
            qsf_closure_want(a, in->x, (QsfStackPlace){ in->y, p.node });
            if (g->cost[g->start[in->x]] == 0) qsf_closure_add(a, in->y, p.node);
            break;
        case QSF_OP_RETURN:
            if (a->pops) pop(a, p.node);
            break;
        default: break;
        }
    }
    a->n_work = kept;
    return kept;
}

#define AT_BITS 19 /* QSF_CODE_SIZE is less */
_Static_assert(QSF_CODE_SIZE < (1u << AT_BITS) - 1, "an instruction has AT_BITS bits");

/* The lists of many calls have the same places: those of the rule that is entered now are looked up like the
 * places of the step, under other names. */
static bool is_new_back(QsfAutomaton *a, QsfStackPlace p) {
    const uint32_t at = p.at == QSF_ACCEPT ? (1u << AT_BITS) - 1 : p.at;
    if (a->n_entered >= 1u << (32 - AT_BITS)) return true; /* sorting drops it */
    return is_new(a, a->n_entered << AT_BITS | at, p.node);
}

static void add_back(QsfAutomaton *a, QsfStackPlace p) {
    if (++a->n_adds > QSF_ADDS_MOST) a->many = true;
    if (a->many || !is_new_back(a, p)) return;
    void *mem = a->list;
    const bool ok = qsf_automaton_space(a, &mem, a->n_list + 1, &a->cap_list, sizeof *a->list);
    a->list = mem;
    if (ok) a->list[a->n_list++] = p;
}

/* The places that a call returns to. */
static void add_backs(QsfAutomaton *a, QsfStackPlace p) {
    if (p.at == QSF_ACCEPT || !a->g->tail[p.at]) {
        add_back(a, p);
        return;
    }
    const QsfStack s = a->stacks[p.node];
    for (uint32_t i = 0; i < s.n; i++) add_back(a, a->places[s.from + i]);
}

/* Enters the rule with the lowest rank. */
static void enter(QsfAutomaton *a) {
    const QsfWant w = take_want(a);
    a->n_list = 0;
    a->n_entered++;
    add_backs(a, w.back);
    while (a->n_wants > 0 && a->wants[0].rank == w.rank) add_backs(a, take_want(a).back);
    a->n_list = qsf_places_sort(a->list, a->n_list);
    if (failed(a)) return;
    const uint32_t node = qsf_stack_of(a, a->list, a->n_list), from = a->n_work;
    if (node == UINT32_MAX) return;
    qsf_closure_add(a, a->g->start[w.rule], node);
    (void)follow(a, from);
}

uint32_t qsf_closure_end(QsfAutomaton *a) {
    (void)follow(a, 0);
    a->pops = false;
    for (uint32_t k = 0; a->n_wants > 0 && !failed(a); k++) {
        enter(a);
        if (k % 1024 == 1023 && qsf_interrupted()) return 0;
    }
    if (failed(a)) return 0;
    a->n_work = qsf_places_sort(a->work, a->n_work);
    if (a->n_work == 0 && !a->ends) return 0;
    const uint32_t state = qsf_state_of(a, a->work, a->n_work, a->ends);
    return state == UINT32_MAX ? 0 : state;
}
