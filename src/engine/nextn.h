/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Next-token blocks (src/forward/nextn.h) in the plan of a runtime. They share its budget, and are given up
 * where a plan has no memory for them. */
#ifndef QSF_ENGINE_NEXTN_H
#define QSF_ENGINE_NEXTN_H

#include "src/engine/runtime.h"
#include "src/forward/nextn.h"

/* With a plan that has no such blocks yet: opens those that the options ask for, and plans them and the model
 * again in the same budget. QSF_E_MODEL: the model has no such block. QSF_E_BUDGET: nor is there memory for
 * it. */
int qsf_nextn_beside(QsfRuntime *r, const QsfRuntimeOptions *o, QsfErr *err);

/* Makes a plan with these options, which get the memory for the blocks of r, if it has any. *keep: the plan
 * has room for them. Errors of qsf_plan_make. */
int qsf_nextn_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, bool *keep, QsfErr *err);
/* The plan is in force, with this pool: the blocks follow it. They are given up if that fails. */
void qsf_nextn_follow(QsfRuntime *r, QsfPool *pool);
/* Gives the blocks up, and their memory back. */
void qsf_nextn_close(QsfRuntime *r);

#endif
