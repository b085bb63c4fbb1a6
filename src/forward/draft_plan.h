/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans of forward passes that run beside a model's in one budget: next-token blocks and draft models. What
 * exists once, such as the program's code and its threads, is in the model's plan. Pure functions. */
#ifndef QSF_FORWARD_DRAFT_PLAN_H
#define QSF_FORWARD_DRAFT_PLAN_H

#include "src/plan/plan.h"

/* A budget that is never exceeded: everything is in RAM. */
#define QSF_DRAFT_PLAN_WITHOUT_LIMIT (1ull << 46)

/* Returns the options for a plan beside a plan with options o: everything in RAM, for ctx positions and these
 * types of the KV cache, prompts in passes of at most `batch` positions, and no drafts. */
QsfPlanOptions qsf_draft_plan_options(const QsfPlanOptions *o, uint32_t ctx, QsfKvTypes kv, uint32_t batch);
/* Returns the bytes that a plan with such options takes beside the model's. */
uint64_t qsf_draft_plan_bytes(const QsfPlan *p);
/* Adds them to rows (QSF_MEM_N), with the stacks of its loader. */
void qsf_draft_plan_add(const QsfPlan *p, const QsfPlanOptions *o, uint64_t *rows);

#endif
