/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes plan options from settings, checks whether settings would work, and makes a plan's notices about free
 * memory and long contexts. Pure: the caller provides facts about the machine. Any thread. */
#ifndef QSF_PLAN_OPTIONS_H
#define QSF_PLAN_OPTIONS_H

#include "qsf_engine.h"
#include "src/plan/plan.h"
#include "src/token/tokenizer.h"

#define QSF_TIMELINE_PIECE \
    (QSF_PIECE_MAX + 64) /* the longest token with all that a detokenizer may hold back */

/* Facts that do not depend on settings; constant while a model is loaded. */
typedef struct QsfPlanFacts {
    uint64_t resident;         /* bytes before anything was opened */
    uint64_t stack_bytes;      /* of the engine thread, if it is not the main one */
    uint64_t tokenizer_bytes;  /* upper bound */
    uint64_t meta_bytes;       /* charged to META so far */
    uint64_t transcript_bytes; /* that the caller will charge to TRANSCRIPT besides the tokens of a
                                  conversation */
    bool exact;                /* float activations, f32 KV */
} QsfPlanFacts;

/* The memory of the machine for this process, in bytes (base/clock.h). */
typedef struct QsfPlanMemory {
    uint64_t available; /* free, with what this process has besides facts->resident */
    uint64_t limit;     /* the most that it could have: a larger budget is lowered to this; 0 or UINT64_MAX:
                           not known */
} QsfPlanMemory;

/* For figures that are compared with others: types of the KV cache that would be chosen become f16, so that
 * they do not depend on the budget. */
void qsf_plan_fix_types(QSFSettings *s);
/* Makes the options of a model's first plan. */
void qsf_plan_options_first(QsfPlanOptions *o, const QSFSettings *s, const QsfPlanFacts *f,
                            QsfPlanMemory memory);
/* Makes the options of the next plan: those of `from`, with everything that QSF_SETTING_REPLAN settings
 * determine from s. The past tokens of a context of ctx are kept, and s->ctx_tokens that fit
 * in it: a shorter context is refused. Types of the
 * KV cache that are chosen, now kv, stay for them as long as the plan fits, and are chosen again without them
 * or when a type set before is auto now. */
void qsf_plan_options_next(QsfPlanOptions *o, const QsfPlanOptions *from, const QSFSettings *s, QsfKvTypes kv,
                           uint32_t past, uint32_t ctx, QsfPlanMemory memory);
/* Checks whether a plan with these options is possible. Codes of qsf_plan_make. */
int qsf_plan_check(const QsfModel *m, const QsfPlanOptions *o, QsfErr *err);

/* Returns the bytes of TRANSCRIPT for the tokens of a conversation over ctx positions; a plan
 * has room for its wanted_ctx. */
uint64_t qsf_plan_timeline_bytes(uint32_t ctx);

/* Returns the RAM budget that settings ask for, in bytes, but not more than the limit; 0 is auto. */
uint64_t qsf_settings_budget(const QSFSettings *s, QsfPlanMemory memory);
/* Writes a notice, with the budget that would pin them, if weights stream although memory is
 * free; else "". */
void qsf_plan_stream_notice(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p, char *dst,
                            size_t cap);
/* Writes a notice about a budget that was chosen (auto) and how to change it, or about one that is clearly
 * more than is available, or was limited to what the machine has; "" for other budgets. */
void qsf_plan_budget_notice(const QsfPlanOptions *o, const QsfPlan *p, char *dst, size_t cap);
/* Returns the budget that would pin everything; 0 if nothing streams, pins are limited, or it is more than
 * nine tenths of what is available. */
uint64_t qsf_plan_full_budget(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p);
/* Returns the bytes that p uses of its budget, with a small margin: the row of the kernel grows with the
 * budget, even if the rest does not use it. */
uint64_t qsf_plan_used_bytes(const QsfPlan *p);
/* Writes a notice if the context is longer than the model was trained for; else "". */
void qsf_plan_ctx_notice(const QsfModel *m, const QsfPlan *p, char *dst, size_t cap);
/* Summarizes plan p in one sentence; io: how weights are read, as in qsf_io_name. */
void qsf_plan_summary(const QsfPlan *p, const char *io, char *dst, size_t cap);

#endif
