/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the automaton: its tables. */
#ifndef QSF_GRAMMAR_AUTOMATON_IMPL_H
#define QSF_GRAMMAR_AUTOMATON_IMPL_H

#include "src/grammar/automaton.h"
#include "src/grammar/program.h"

#define QSF_ACCEPT UINT32_MAX /* in place of an instruction to return to: the end of the text */
/* Places that are reached after one byte, each as often as it is; then the grammar has so many readings that
 * the next bytes, whose time grows with the square of the length, would take more than some milliseconds. */
#define QSF_ADDS_MOST 1000000u

/* An instruction and the stack below it. */
typedef struct QsfStackPlace {
    uint32_t at, node;
} QsfStackPlace;

/* A stack, or several with the same top: the places to return to, at from..from+n in places. A stack has a
 * higher number than those below it. */
typedef struct QsfStack {
    uint32_t from, n;
    uint32_t cost; /* bytes to the end of the text after the return */
} QsfStack;

typedef struct QsfState {
    uint32_t from, n; /* of places: bytes and tokens that may come next */
    uint32_t cost;
    uint32_t next; /* index + 1 of its row in next; 0 = it has none */
    bool ends;
} QsfState;

/* A table of numbers by the hash of what they stand for; 0 = empty. */
typedef struct QsfTable {
    uint32_t *slot;
    uint32_t n_slots, used;
} QsfTable;

typedef struct QsfWant {
    uint32_t rank, rule;
    QsfStackPlace back;
} QsfWant;

struct QsfAutomaton {
    const QsfGrammar *g;
    QsfStackPlace *places;
    QsfStack *stacks;
    QsfState *states; /* state 0: nothing */
    uint32_t *next;   /* rows of n_classes: the state after a byte + 1, 0 = not known */
    uint32_t n_places, cap_places, n_stacks, cap_stacks, n_states, cap_states, n_next, cap_next;
    QsfTable stack_table, state_table;

    /* while a state is made */
    QsfStackPlace *work; /* to be looked at; what stays is moved to the front */
    uint32_t n_work, cap_work;
    uint64_t *seen; /* (n_seen) places that were added, by hash; with the number of the step */
    uint32_t *seen_step;
    uint32_t n_seen, used_seen, step;
    QsfWant *wants; /* a heap by rank: rules to be called */
    uint32_t n_wants, cap_wants;
    QsfStackPlace *list;
    uint32_t n_list, cap_list, n_adds, n_entered;
    bool ends, pops;

    uint64_t bytes, max_bytes;
    uint32_t start, generation;
    bool full, many, no_memory; /* why a step failed */
};

/* closure.c: makes the state after what was put into work by qsf_closure_add; 0 if there is none. A failure
 * is in a->full, a->many or a->no_memory. */
void qsf_closure_begin(QsfAutomaton *a);
void qsf_closure_add(QsfAutomaton *a, uint32_t at, uint32_t node);
void qsf_closure_want(QsfAutomaton *a, uint32_t rule, QsfStackPlace back);
uint32_t qsf_closure_end(QsfAutomaton *a);

/* tables.c */
/* Makes space for n elements of that size, within the limit; false without it. */
bool qsf_automaton_space(QsfAutomaton *a, void **p, uint32_t n, uint32_t *cap, size_t size);
/* Returns the number of a stack or state with these places, which are copied if it is new; UINT32_MAX
 * without memory. */
uint32_t qsf_stack_of(QsfAutomaton *a, const QsfStackPlace *p, uint32_t n);
uint32_t qsf_state_of(QsfAutomaton *a, const QsfStackPlace *p, uint32_t n, bool ends);
/* Sorts, and drops duplicates; returns how many are left. */
uint32_t qsf_places_sort(QsfStackPlace *p, uint32_t n);

#endif
