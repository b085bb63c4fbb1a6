/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the token loop: timeline.c chooses and evaluates tokens, timeline_output.c passes
 * on their text. */
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
    QsfHold hold;
    bool held;  /* the next token belongs to the answer, which has to match a grammar */
    bool hides; /* reasoning was closed: more of it is not emitted */
    int32_t id; /* the token whose text is emitted next, -1 after it was emitted */
    QSFParams params;
    bool first;                 /* no token was sampled yet */
    uint64_t start_ns, evicted; /* evicted: positions, before this generation */
    bool done;                  /* out->stop says why */
    bool refused;               /* the text callback stopped the generation */
} QsfRun;

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
