/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which RAM budget to offer beside that of a plan: one that brings more, or one that gives memory back. Pure:
 * the caller provides facts about the machine. Any thread. */
#ifndef QSF_PLAN_BUDGET_H
#define QSF_PLAN_BUDGET_H

#include "qsf_engine.h"
#include "src/plan/plan.h"

/* Fills all of *out but `available` for options o, whose plan is p. out->budget: a multiple of 1 MiB, or 0
 * and why in out->end.
 * more: the smallest budget that keeps all weights in RAM; if they are, the smallest that has the whole
 * automatic context; where nine tenths of what is available are too little for that, these, if they bring
 * anything.
 * Not more: three quarters of what p uses, or the smallest above that keeps o->ctx_room of an automatic
 * context and the types of positions in the cache. */
void qsf_plan_next_budget(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p, bool more,
                          QSFBudgetStep *out);

#endif
