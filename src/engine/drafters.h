/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What runs beside the model of a runtime, in its budget, and drafts: next-token blocks and a draft model;
 * and layers that are pinned for drafts. */
#ifndef QSF_ENGINE_DRAFTERS_H
#define QSF_ENGINE_DRAFTERS_H

#include "src/engine/runtime.h"

/* What a plan has memory for: NULL = not. */
typedef struct QsfDrafters {
    struct QsfNextn *nextn;
    struct QsfDraftModel *draft;
    bool new_nextn, new_draft; /* not those of the runtime: to be loaded, or given up */
} QsfDrafters;

/* Makes a plan with these options, which get the memory of what runs beside the model. Errors of
 * qsf_nextn_planning and qsf_draft_model_planning. */
int qsf_drafters_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, QsfDrafters *b, QsfErr *err);
/* The plan is about to be in force: gives up what is not in it. */
void qsf_drafters_leave(QsfRuntime *r, const QsfDrafters *b);
/* What stays follows the plan, with this pool, and is given up if that fails. */
void qsf_drafters_follow(QsfRuntime *r, QsfPool *pool);
/* The plan is in force: loads what is new in it; or it is not (ok false): closes that. */
void qsf_drafters_take(QsfRuntime *r, const QsfDrafters *b, bool ok);
/* Returns the smallest budget above this one, in bytes and a multiple of 1 MiB, with which something works
 * that works with every larger one; 0 = with none below 64 times as much. */
uint64_t qsf_drafters_budget(uint64_t budget, bool (*works)(void *arg, uint64_t budget), void *arg);
/* Gives everything up. */
void qsf_drafters_close(QsfRuntime *r);

#endif
