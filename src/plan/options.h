/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From settings to the options of a plan, the check whether other settings would work, and what a plan has to say about
 * free memory and a long context. Pure: facts about the machine come from the caller. Any thread. */
#ifndef QSF_PLAN_OPTIONS_H
#define QSF_PLAN_OPTIONS_H

#include "qsf_engine.h"
#include "src/plan/plan.h"
#include "src/text/tokenizer.h"

#define QSF_TIMELINE_PIECE (QSF_PIECE_MAX + 64) /* the longest token with all that a detokenizer may hold back */

/* What no setting decides; it stays the same while a model is loaded. */
typedef struct QsfPlanFacts {
    uint64_t resident;         /* bytes before anything was opened */
    uint64_t stack_bytes;      /* of the engine thread, if it is not the main one */
    uint64_t tokenizer_bytes;  /* upper bound */
    uint64_t meta_bytes;       /* charged to META so far */
    uint64_t transcript_bytes; /* that the caller will charge to TRANSCRIPT besides the tokens of a conversation */
    bool exact;                /* float activations, f32 KV */
} QsfPlanFacts;

/* Options of the first plan of a model. available: free memory in bytes. */
void qsf_plan_options_first(QsfPlanOptions *o, const QsfModel *m, const QSFSettings *s, const QsfPlanFacts *f,
                            uint64_t available);
/* Options of the next plan: those of `from`, with everything that QSF_SETTING_REPLAN settings decide taken from s. The KV
 * type kv and past tokens of a context of ctx stay as they are. */
void qsf_plan_options_next(QsfPlanOptions *o, const QsfPlanOptions *from, const QSFSettings *s, qk_kv kv, uint32_t past,
                           uint32_t ctx, uint64_t available);
/* Would a plan with these options be refused? Codes of qsf_plan_make. */
int qsf_plan_check(const QsfModel *m, const QsfPlanOptions *o, QsfErr *err);

/* The longest context that any plan may have: what the settings ask for, or what they leave to the plan. */
uint32_t qsf_plan_longest_ctx(const QsfModel *m, const QSFSettings *s);
/* Bytes of TRANSCRIPT that the tokens of a conversation over ctx positions take. */
uint64_t qsf_plan_timeline_bytes(uint32_t ctx);

/* Weights stream although memory is free: a sentence with the budget that would keep them, else "". */
void qsf_plan_stream_notice(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p, char *dst, size_t cap);
/* The context is longer than what the model was trained for: a sentence, else "". */
void qsf_plan_ctx_notice(const QsfModel *m, const QsfPlan *p, char *dst, size_t cap);
/* What holds with plan p in a sentence; io: how weights are read, as qsf_io_name. */
void qsf_plan_summary(const QsfPlan *p, const char *io, char *dst, size_t cap);

#endif
