/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the token loop: timeline.c evaluates tokens, timeline_choose.c chooses them,
 * timeline_output.c passes on their text. */
#ifndef QSF_ENGINE_TIMELINE_IMPL_H
#define QSF_ENGINE_TIMELINE_IMPL_H

#include "src/engine/reasoning_limit.h"
#include "src/engine/stopper.h"
#include "src/engine/timeline.h"
#include "src/engine/token_rules.h"

/* One running generation. */
typedef struct QsfRun {
    QsfTimeline *t;
    const QsfGenerate *g;
    QsfGeneration *out;
    QsfDetok detok;
    QsfThinkSplit split;
    bool splits; /* the output has more than an answer */
    QsfStopper stopper;
    QsfReasoningLimit limit;
    QsfTokenRules rules;
    QSFWhy why;
    QsfGrammarHold hold;
    bool held;  /* the next token belongs to the answer, which has to match a grammar */
    bool hides; /* reasoning was closed: more of it is not emitted */
    int32_t id; /* the token whose text is emitted next, -1 after it was emitted */
    QSFParams params;
    const float *logits; /* what the next token is chosen from */
    int32_t next;        /* a token that was chosen and emitted, and is not evaluated yet; -1 = none */
    bool verifies;       /* a pass with drafts is running, which began with n_ids = past and room for */
    uint32_t past, room; /* this many positions */
    bool first;          /* no token was sampled yet */
    uint64_t start_ns, evicted; /* evicted: positions, before this generation */
    bool done;                  /* out->stop says why */
    bool refused;               /* the text callback stopped the generation */
} QsfRun;

static inline bool qsf_run_cancelled(const QsfRun *r) {
    const atomic_int *c = r->t->rt->cancel;
    return c != NULL && atomic_load(c) != 0;
}

static inline const QsfThinkSplit *qsf_run_split(const QsfRun *r) { return r->splits ? &r->split : NULL; }

/* ---- timeline_choose.c ---- */

/* Fills ids[0..*n) with the tokens that a grammar leaves no choice about, at most QSF_GRAMMAR_HOLD_IDS;
 * *n = 0: the next token is chosen, unless the generation has ended. Errors of a grammar. */
int qsf_run_turn(QsfRun *r, int32_t *ids, uint32_t *n, QsfErr *err);
/* Chooses the token after r->logits and emits its text; it is to be evaluated unless the generation has
 * ended. Errors of the sampler and of a grammar. */
int qsf_run_next(QsfRun *r, int32_t *id, QsfErr *err);
/* Counts a token of the answer and emits its text. QSF_E_USAGE: it does not match the grammar. */
int qsf_run_add(QsfRun *r, int32_t id, QsfErr *err);
/* Passes on what the model says about a token, given the logits before it. */
void qsf_run_look(QsfRun *r, const float *logits, int32_t id, float plain);
/* After a token: false if it was the last one, by the limits, the context or a cancel; the generation has
 * ended then. */
bool qsf_run_goes_on(QsfRun *r);
/* Returns how many tokens the answer may still have. */
uint32_t qsf_run_left(const QsfRun *r);
/* Is everything computed for the tokens of the answer? */
bool qsf_run_is_whole(const QsfRun *r);

/* ---- timeline_output.c ---- */

/* Ends the generation, unless it has ended. */
void qsf_run_end(QsfRun *r, QSFStop stop);
/* Passes on decided text. Only the first text of a token has its id. */
void qsf_run_emit(QsfRun *r, bool reasoning, const char *text, size_t len);
/* Passes on the text of a token, as far as it is decided. */
void qsf_run_deliver(QsfRun *r, int32_t id);
/* Passes on what the detokenizer, tags and stop strings still hold back; nothing after a stop string. */
void qsf_run_flush(QsfRun *r);
/* Is the next token reasoning, as far as is known? */
bool qsf_run_reasons(const QsfRun *r);

#endif
