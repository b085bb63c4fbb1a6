/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a grammar over bytes. A state is a set of places in the grammar, each with a stack of what its rules
 * return to; stacks share their common parts in a graph (Tomita 1985; Scott and Johnstone, "GLL parsing",
 * 2010), so that the number of readings of a text does not matter. States are numbered when they are found
 * first, and know where a byte leads: a second time costs a load. State 0 matches nothing; every other state
 * can be completed to a text that matches.
 *
 * Memory is limited: qsf_automaton_trim forgets all states but one. One thread at a time. */
#ifndef QSF_GRAMMAR_AUTOMATON_H
#define QSF_GRAMMAR_AUTOMATON_H

#include <stdbool.h>

#include "src/base/strbuf.h"
#include "src/grammar/grammar.h"

#define QSF_AUTOMATON_BYTES (24u << 20) /* a limit that is enough for all but strange grammars */

typedef struct QsfAutomaton QsfAutomaton;

/* Opens an automaton that takes at most about max_bytes from the heap. g is borrowed. QSF_E_RUNTIME. */
int qsf_automaton_new(QsfAutomaton **out, const QsfGrammar *g, size_t max_bytes, QsfErr *err);
void qsf_automaton_free(QsfAutomaton *a); /* NULL is allowed */

/* The state before the first byte. */
uint32_t qsf_automaton_start(const QsfAutomaton *a);
/* Sets *next to the state after a byte. QSF_E_RUNTIME: the grammar is too ambiguous for the memory, or there
 * is none; QSF_E_INTERRUPTED. Then *next is 0. */
int qsf_automaton_step(QsfAutomaton *a, uint32_t state, unsigned char byte, uint32_t *next, QsfErr *err);
/* The same for bytes one after another; stops at 0. */
int qsf_automaton_feed(QsfAutomaton *a, uint32_t state, const char *bytes, size_t len, uint32_t *next,
                       QsfErr *err);
/* The state after a token with these bytes, which the grammar may name by its id instead. */
int qsf_automaton_token(QsfAutomaton *a, uint32_t state, int32_t id, const char *bytes, size_t len,
                        uint32_t *next, QsfErr *err);
/* May the text end in this state? */
bool qsf_automaton_ends(const QsfAutomaton *a, uint32_t state);
/* Can anything follow? */
bool qsf_automaton_goes_on(const QsfAutomaton *a, uint32_t state);
/* Bytes of the shortest text that completes a state, not 0: an upper limit where the grammar names tokens. */
uint32_t qsf_automaton_cost(const QsfAutomaton *a, uint32_t state);
/* Appends a shortest text that completes the state. QSF_E_RUNTIME: it has more than max bytes, or needs a
 * token that the grammar names by its id. */
int qsf_automaton_close(QsfAutomaton *a, uint32_t state, size_t max, QsfStrbuf *out, QsfErr *err);
/* Appends the bytes that have to follow a state, until there is a choice, the text may end, or max bytes; in
 * *state is the state after them. */
int qsf_automaton_forced(QsfAutomaton *a, uint32_t *state, size_t max, QsfStrbuf *out, QsfErr *err);

/* Is so much memory used that it should be trimmed? */
bool qsf_automaton_is_full(const QsfAutomaton *a);
/* Forgets all states but *state, whose number changes. QSF_E_RUNTIME. */
int qsf_automaton_trim(QsfAutomaton *a, uint32_t *state, QsfErr *err);
/* States that were found, and bytes that are used. */
uint32_t qsf_automaton_states(const QsfAutomaton *a);
uint64_t qsf_automaton_bytes(const QsfAutomaton *a);
/* Calls back for each token that the grammar names in this state; other: all but this one. */
void qsf_automaton_named(const QsfAutomaton *a, uint32_t state,
                         void (*put)(void *arg, int32_t id, bool other), void *arg);

#endif
