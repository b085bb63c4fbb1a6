/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which tokens of a vocabulary may come next: sets of bits, computed by a walk through the trie of the
 * tokens and kept by state. A branch of the trie is decided as a whole where the automaton takes all its
 * characters alike, as in a string. One thread. */
#ifndef QSF_GRAMMAR_MASK_H
#define QSF_GRAMMAR_MASK_H

#include "src/grammar/automaton.h"
#include "src/grammar/token_trie.h"

typedef struct QsfMasks QsfMasks;

/* What the sets are made for. */
typedef struct QsfMaskTokens {
    const QsfTokenTrie *trie; /* borrowed */
    uint32_t n_vocab;
    const int32_t *ends; /* (n_ends) tokens that end a text, borrowed: allowed where the grammar may end */
    size_t n_ends;
} QsfMaskTokens;

/* Bytes that qsf_masks_new charges for a vocabulary. */
uint64_t qsf_masks_bytes(uint32_t n_vocab);
/* Sets for the states of a, which is borrowed. Charged to LOGITS. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_masks_new(QsfMasks **out, const QsfMaskTokens *t, QsfAutomaton *a, QsfLedger *ledger, QsfErr *err);
void qsf_masks_free(QsfMasks *m); /* NULL is allowed */
/* Sets *set to the tokens (bit id % 64 of word id / 64) that may follow a state, valid until the next call.
 * drops_space: a space at the beginning of the next token is not part of the text; a token that is nothing
 * else is allowed where a space that is may follow it. Errors of qsf_automaton_step. */
int qsf_masks_get(QsfMasks *m, uint32_t state, bool drops_space, const uint64_t **set, QsfErr *err);
/* Nodes of the trie that the last call looked at; 0: the set was known. */
uint32_t qsf_masks_visited(const QsfMasks *m);

#endif
