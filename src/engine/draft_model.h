/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The draft model (src/forward/draft_model.h) that the setting "draft-model" names, in the plan of a runtime:
 * opened where drafts may come from it, and given up where a plan has no memory for it. */
#ifndef QSF_ENGINE_DRAFT_MODEL_H
#define QSF_ENGINE_DRAFT_MODEL_H

#include "src/engine/runtime.h"
#include "src/forward/draft_model.h"

/* Checks whether the draft model of s, if there is one that would be used, can be opened and has the
 * vocabulary of m. QSF_E_MODEL, QSF_E_RUNTIME, QSF_E_INTERRUPTED; the message begins with the setting. */
int qsf_draft_model_check(const QsfModel *m, const QSFSettings *s, QsfLedger *ledger, QsfErr *err);
/* The same within 1 MB, by any thread while m is not changed: QSF_OK for a file whose metadata needs more,
 * which is checked when it is opened for a plan. */
int qsf_draft_model_probe(const QsfModel *m, const QSFSettings *s, QsfErr *err);

/* After a plan p was made with these options: makes one with the draft model beside the model, if drafts of
 * o->drafting may come from it and nothing that matters is given up for it. *x: the draft model in the plan,
 * which is r->draft or is not loaded yet (qsf_draft_model_take); NULL: none, and o and p are as before.
 * Writes r->draft_notice. Errors of qsf_draft_model_check, if r->draft_file is not the one in use. */
int qsf_draft_model_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, QsfDraftModel **x, QsfErr *err);

/* As qsf_nextn_follow, qsf_nextn_take and qsf_nextn_close. */
void qsf_draft_model_follow_plan(QsfRuntime *r, QsfPool *pool);
void qsf_draft_model_take(QsfRuntime *r, QsfDraftModel *x);
void qsf_draft_model_close(QsfRuntime *r);

#endif
