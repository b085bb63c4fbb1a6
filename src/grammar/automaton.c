/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The states of a grammar and the way from one to the next: implements automaton.h. */
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/grammar/automaton_impl.h"

#define PLACES_FEW 64u /* of a state whose bytes are compared */

static int failure(QsfAutomaton *a, QsfErr *err) {
    const bool no_memory = a->no_memory, many = a->many;
    a->no_memory = a->many = a->full = false;
    if (qsf_interrupt_check(err) != QSF_OK) return QSF_E_INTERRUPTED;
    if (no_memory) return qsf_err_memory(err, "the states of the grammar");
    if (many)
        return qsf_err_set(err, QSF_E_RUNTIME,
                           "the grammar has too many readings of this text: a byte takes more than %u steps",
                           QSF_ADDS_MOST);
    return qsf_err_set(err, QSF_E_RUNTIME,
                       "the grammar has too many readings of this text: its states need more than %llu MB",
                       (unsigned long long)(a->max_bytes >> 20));
}

static uint32_t make_start(QsfAutomaton *a) {
    const QsfGrammar *g = a->g;
    qsf_closure_begin(a);
    a->ends = g->cost[g->start[g->root]] == 0;
    qsf_closure_want(a, g->root, (QsfStackPlace){ QSF_ACCEPT, 0 });
    return qsf_closure_end(a);
}

int qsf_automaton_new(QsfAutomaton **out, const QsfGrammar *g, size_t max_bytes, QsfErr *err) {
    QsfAutomaton *a = calloc(1, sizeof *a);
    *out = NULL;
    if (a == NULL) return qsf_err_memory(err, "the states of the grammar");
    a->g = g;
    a->max_bytes = max_bytes;
    a->bytes = sizeof *a;
    (void)qsf_state_of(a, NULL, 0, false); /* state 0 */
    a->start = make_start(a);
    if (a->start == 0) {
        int rc = failure(a, err);
        qsf_automaton_free(a);
        return rc;
    }
    *out = a;
    return QSF_OK;
}

void qsf_automaton_free(QsfAutomaton *a) {
    if (a == NULL) return;
    free(a->places);
    free(a->stacks);
    free(a->states);
    free(a->next);
    free(a->stack_table.slot);
    free(a->state_table.slot);
    free(a->work);
    free(a->seen);
    free(a->seen_step);
    free(a->wants);
    free(a->list);
    free(a);
}

/* The index of the state's row of next states; UINT32_MAX without memory. */
static uint32_t row_of(QsfAutomaton *a, uint32_t state) {
    const uint32_t n = a->g->n_classes;
    if (a->states[state].next > 0) return a->states[state].next - 1;
    void *mem = a->next;
    const bool ok = qsf_automaton_space(a, &mem, a->n_next + n, &a->cap_next, sizeof *a->next);
    a->next = mem;
    if (!ok) return UINT32_MAX;
    memset(a->next + a->n_next, 0, n * sizeof *a->next);
    a->states[state].next = a->n_next + 1;
    a->n_next += n;
    return a->n_next - n;
}

static uint32_t after_byte(QsfAutomaton *a, uint32_t state, unsigned char byte) {
    const QsfState s = a->states[state];
    qsf_closure_begin(a);
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        const QsfStackPlace p = a->places[i];
        const QsfInstr *in = &a->g->code[p.at];
        if (in->op == QSF_OP_BYTE && byte >= in->lo && byte <= in->hi) qsf_closure_add(a, in->x, p.node);
    }
    return qsf_closure_end(a);
}

/* Do all places of a state treat two bytes alike? */
static bool alike(const QsfAutomaton *a, const QsfState *s, unsigned char x, unsigned char y) {
    for (uint32_t i = s->from; i < s->from + s->n; i++) {
        const QsfInstr *in = &a->g->code[a->places[i].at];
        if (in->op == QSF_OP_BYTE && (x >= in->lo && x <= in->hi) != (y >= in->lo && y <= in->hi))
            return false;
    }
    return true;
}

/* The state after a byte becomes that of all bytes of which this one is an example, because finding it takes
 * longer than all comparisons. */
static void put_next(QsfAutomaton *a, uint32_t state, uint32_t row, unsigned char byte, uint32_t to) {
    const QsfState s = a->states[state];
    a->next[row + a->g->class_of[byte]] = to + 1;
    for (uint32_t k = 0; s.n <= PLACES_FEW && k < a->g->n_classes; k++)
        if (a->next[row + k] == 0 && alike(a, &s, byte, a->g->byte_of[k])) a->next[row + k] = to + 1;
}

int qsf_automaton_step(QsfAutomaton *a, uint32_t state, unsigned char byte, uint32_t *next, QsfErr *err) {
    *next = 0;
    if (state == 0) return QSF_OK;
    const uint32_t row = row_of(a, state);
    if (row == UINT32_MAX) return failure(a, err);
    const uint32_t at = row + a->g->class_of[byte];
    if (a->next[at] == 0) {
        const uint32_t to = after_byte(a, state, byte);
        if (a->full || a->many || a->no_memory || qsf_interrupted()) return failure(a, err);
        put_next(a, state, row, byte, to);
    }
    *next = a->next[at] - 1;
    return QSF_OK;
}

int qsf_automaton_feed(QsfAutomaton *a, uint32_t state, const char *bytes, size_t len, uint32_t *next,
                       QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && state > 0 && i < len; i++)
        rc = qsf_automaton_step(a, state, (unsigned char)bytes[i], &state, err);
    *next = state;
    return rc;
}

/* The places after a token that is named, and those of the state after its bytes. */
static uint32_t after_name(QsfAutomaton *a, uint32_t state, int32_t id, uint32_t bytes) {
    const QsfState s = a->states[state], other = a->states[bytes];
    qsf_closure_begin(a);
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        const QsfStackPlace p = a->places[i];
        const QsfInstr *in = &a->g->code[p.at];
        if (in->op == QSF_OP_TOKEN && (in->x == (uint32_t)id) != in->other) qsf_closure_add(a, in->y, p.node);
    }
    a->ends = other.ends;
    for (uint32_t i = other.from; i < other.from + other.n; i++)
        qsf_closure_add(a, a->places[i].at, a->places[i].node);
    return qsf_closure_end(a);
}

int qsf_automaton_token(QsfAutomaton *a, uint32_t state, int32_t id, const char *bytes, size_t len,
                        uint32_t *next, QsfErr *err) {
    uint32_t after = 0;
    int rc = len > 0 ? qsf_automaton_feed(a, state, bytes, len, &after, err) : QSF_OK;
    *next = after;
    if (rc != QSF_OK || !a->g->has_tokens) return rc;
    *next = after_name(a, state, id, after);
    return a->full || a->many || a->no_memory || qsf_interrupted() ? failure(a, err) : QSF_OK;
}

void qsf_automaton_named(const QsfAutomaton *a, uint32_t state,
                         void (*put)(void *arg, int32_t id, bool other), void *arg) {
    const QsfState s = a->states[state];
    if (!a->g->has_tokens) return;
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        const QsfInstr *in = &a->g->code[a->places[i].at];
        if (in->op == QSF_OP_TOKEN) put(arg, (int32_t)in->x, in->other);
    }
}

uint32_t qsf_automaton_start(const QsfAutomaton *a) { return a->start; }
bool qsf_automaton_ends(const QsfAutomaton *a, uint32_t state) { return a->states[state].ends; }
bool qsf_automaton_goes_on(const QsfAutomaton *a, uint32_t state) { return a->states[state].n > 0; }
uint32_t qsf_automaton_cost(const QsfAutomaton *a, uint32_t state) { return a->states[state].cost; }
bool qsf_automaton_is_full(const QsfAutomaton *a) { return a->bytes > a->max_bytes / 2; }
uint32_t qsf_automaton_states(const QsfAutomaton *a) { return a->n_states; }
uint64_t qsf_automaton_bytes(const QsfAutomaton *a) { return a->bytes; }

/* --- the memory --- */

/* Marks the stacks that the places need, from the newest: those below a stack are older. */
static bool mark_stacks(const QsfAutomaton *a, const QsfState *s, uint8_t *used) {
    for (uint32_t i = s->from; i < s->from + s->n; i++) used[a->places[i].node] = 1;
    for (uint32_t k = a->n_stacks; k-- > 0;) {
        const QsfStack *t = &a->stacks[k];
        for (uint32_t i = t->from; used[k] && i < t->from + t->n; i++)
            if (a->places[i].at != QSF_ACCEPT) used[a->places[i].node] = 1;
    }
    return true;
}

/* Puts a copy of the places of old into out, with new numbers of stacks. */
static uint32_t renumber(const QsfAutomaton *old, uint32_t from, uint32_t n, const uint32_t *now,
                         QsfStackPlace *out) {
    for (uint32_t i = 0; i < n; i++) {
        out[i] = old->places[from + i];
        if (out[i].at != QSF_ACCEPT) out[i].node = now[out[i].node];
    }
    return qsf_places_sort(out, n);
}

/* Copies what state needs from old to the empty a; false without memory. */
static bool copy_state(QsfAutomaton *a, const QsfAutomaton *old, uint32_t state, uint32_t *out) {
    const QsfState *s = &old->states[state];
    uint8_t *used = calloc((size_t)old->n_stacks + 1, 1);
    uint32_t *now = calloc((size_t)old->n_stacks + 1, sizeof *now);
    QsfStackPlace *list = malloc(((size_t)old->n_places + 1) * sizeof *list);
    bool ok = used != NULL && now != NULL && list != NULL && mark_stacks(old, s, used);
    for (uint32_t k = 0; ok && k < old->n_stacks; k++) {
        const QsfStack *t = &old->stacks[k];
        if (!used[k]) continue;
        now[k] = qsf_stack_of(a, list, renumber(old, t->from, t->n, now, list));
        ok = now[k] != UINT32_MAX;
    }
    if (ok) *out = qsf_state_of(a, list, renumber(old, s->from, s->n, now, list), s->ends);
    ok = ok && *out != UINT32_MAX;
    free(used);
    free(now);
    free(list);
    return ok;
}

int qsf_automaton_trim(QsfAutomaton *a, uint32_t *state, QsfErr *err) {
    QsfAutomaton *fresh;
    int rc = qsf_automaton_new(&fresh, a->g, a->max_bytes, err);
    if (rc != QSF_OK) return rc;
    if (!copy_state(fresh, a, *state, state)) {
        rc = failure(fresh, err);
        qsf_automaton_free(fresh);
        return rc;
    }
    QsfAutomaton old = *a;
    *a = *fresh;
    a->generation = old.generation + 1;
    *fresh = old;
    qsf_automaton_free(fresh);
    return QSF_OK;
}
