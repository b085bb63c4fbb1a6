/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Next-token blocks (src/forward/nextn.h) in the plan of a runtime: opened where drafts may come from them,
 * and given up where a plan has no memory for them. */
#ifndef QSF_ENGINE_NEXTN_H
#define QSF_ENGINE_NEXTN_H

#include "src/engine/runtime.h"
#include "src/forward/nextn.h"

/* Makes a plan with these options, which get the memory of the blocks that drafts of o->drafting may come
 * from. *x: the blocks in the plan, which are r->nextn or are not loaded yet (qsf_nextn_take); NULL: none.
 * Errors of qsf_plan_make; there are then no new blocks. */
int qsf_nextn_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, QsfNextn **x, QsfErr *err);
/* The same for a comparison, of n blocks from `first`: an error if the model has no such blocks
 * (QSF_E_MODEL), or there is no memory (QSF_E_BUDGET). Not loaded yet. */
int qsf_nextn_compare(QsfRuntime *r, uint32_t first, uint32_t n, QsfPlanOptions *o, QsfPlan *p, QsfNextn **x,
                      QsfErr *err);

/* The plan is about to be in force, with this pool: the blocks of r follow it. They are given up if that
 * fails. */
void qsf_nextn_follow(QsfRuntime *r, QsfPool *pool);
/* The plan is in force, and r has no blocks: x, of qsf_nextn_planning, is loaded, and given up if that
 * fails. x NULL: nothing. */
void qsf_nextn_take(QsfRuntime *r, QsfNextn *x);
/* Gives the blocks up, and their memory back. */
void qsf_nextn_close(QsfRuntime *r);

/* Writes why there are no drafts of blocks although the settings ask for them, or what else there is to say
 * about the model's, to r->nextn_notice. */
void qsf_nextn_explain(QsfRuntime *r);

#endif
