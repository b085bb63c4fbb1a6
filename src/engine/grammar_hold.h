/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Holds an answer to a grammar (src/grammar): which tokens may come next, stretches without a choice, and
 * the end in time when the limit of tokens is near. Reasoning is free: the grammar begins with the text of
 * the answer. One thread. */
#ifndef QSF_ENGINE_GRAMMAR_HOLD_H
#define QSF_ENGINE_GRAMMAR_HOLD_H

#include "src/engine/token_rules.h"

#define QSF_GRAMMAR_HOLD_IDS 1024u /* tokens of a stretch or of an end */

/* A compiled grammar with what belongs to the vocabulary; kept for the next answer. */
typedef struct QsfConstraint QsfConstraint;

/* The grammar of one answer; zeroed there is none. */
typedef struct QsfGrammarHold {
    QsfConstraint *c;     /* of the runtime; NULL = the answer is free */
    QsfTokenRules *rules; /* hold for tokens that are not sampled, too; borrowed, NULL = none */
    uint32_t state;
    uint32_t blanks;                   /* tokens of white space between reasoning and answer */
    int32_t ids[QSF_GRAMMAR_HOLD_IDS]; /* ids[at..n) come next: they close what is open */
    uint32_t at, n;
    bool drops;             /* a space at the beginning of the next token is not text of the answer: the
                               tokenizer drops it, or it separates reasoning and answer, */
    bool spaced;            /* and the detokenizer passes it on: it belongs to the reasoning */
    bool took;              /* the grammar counted text of the last token */
    bool closing, finished; /* the limit was near; nothing is left to close */
} QsfGrammarHold;

/* A text instead of the settings, or NULL. */
typedef struct QsfGrammarText {
    uint8_t kind; /* QSFGrammarKind */
    const char *text;
    size_t len;
} QsfGrammarText;

/* Bytes that a grammar takes beside a model with this vocabulary, at most. */
uint64_t qsf_grammar_hold_bytes(uint32_t n_vocab);
/* Compiles the grammar that given or, if it is NULL, the parameters name. written[0..len): what the answer
 * has so far. QSF_E_USAGE: the grammar is wrong, or does not match that; QSF_E_BUDGET, QSF_E_RUNTIME,
 * QSF_E_INTERRUPTED; QSF_E_MODEL: its file cannot be read. Not while the ledger is frozen. */
int qsf_grammar_hold_begin(QsfGrammarHold *h, QsfRuntime *rt, const QSFParams *p, const QsfGrammarText *given,
                           const char *written, size_t len, QsfErr *err);
/* After QSF_E_BUDGET: makes a plan that keeps memory free for a grammar. false: there is none, or it was
 * made before. The context may be shorter. Between two answers. */
bool qsf_grammar_hold_make_room(QsfRuntime *rt);
/* Frees what the runtime keeps. */
void qsf_grammar_hold_close(QsfRuntime *rt);

/* Looks at the next token: does it belong to the answer, so that the grammar counts? split NULL: there is no
 * reasoning; detok: what makes the text. */
bool qsf_grammar_hold_counts(QsfGrammarHold *h, const QsfThinkSplit *split, const QsfDetok *detok);
/* Before a token that counts: the set of tokens that may come (sampler.h). */
int qsf_grammar_hold_allowed(QsfGrammarHold *h, const QsfThinkSplit *split, const uint64_t **set,
                             QsfErr *err);
/* The grammar has ended, and nothing can follow. */
bool qsf_grammar_hold_is_over(const QsfGrammarHold *h);
/* Where it may end now. */
bool qsf_grammar_hold_may_end(const QsfGrammarHold *h);
/* After *id was chosen, when it and what follows may have `left` tokens: if what is open could then no longer
 * be closed, another token begins to close it: *id changes, or h->finished says that there is none. What the
 * rules forbid closes nothing. */
int qsf_grammar_hold_limit(QsfGrammarHold *h, const QsfRuntime *rt, uint32_t left, int32_t *id, QsfErr *err);
/* Takes a token, before it is passed to split and detok; h->took: it is text of the answer, and a part of
 * no tag. piece (cap): scratch. QSF_E_USAGE: it does not match. */
int qsf_grammar_hold_take(QsfGrammarHold *h, const QsfRuntime *rt, const QsfThinkSplit *split,
                          const QsfDetok *detok, int32_t id, char *piece, size_t cap, QsfErr *err);
/* The tokens without a choice that come next, at most max, up to one that the rules forbid: *n, 0 if there
 * are few. */
int qsf_grammar_hold_forced(QsfGrammarHold *h, const QsfRuntime *rt, int32_t *ids, uint32_t max, uint32_t *n,
                            QsfErr *err);

#endif
