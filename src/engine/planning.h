/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan of a runtime and its charges, shared by opening a model and by replanning. One thread at a time. */
#ifndef QSF_ENGINE_PLANNING_H
#define QSF_ENGINE_PLANNING_H

#include "src/engine/runtime.h"

/* Fills r->facts, and r->plan_options for a first plan. resident: the resident set before anything was
 * opened. */
void qsf_planning_first(QsfRuntime *r, const QsfRuntimeOptions *o, uint64_t resident);
/* Returns the memory that would be available if r used none, so that later plans see what the first one saw.
 * Any thread. */
uint64_t qsf_planning_available(const QsfRuntime *r);
/* Makes the options of the next plan: r's own, with everything that QSF_SETTING_REPLAN settings determine
 * from s. */
void qsf_planning_next(const QsfRuntime *r, const QSFSettings *s, QsfPlanOptions *o);

/* Moves the engine thread's stack, which was measured as part of the resident set, to its own row of the
 * plan. */
void qsf_planning_move_stack(const QsfRuntime *r, QsfPlan *p);
/* Charges the categories of r->plan that do not correspond to an allocation. QSF_E_BUDGET. */
int qsf_planning_charge(QsfRuntime *r, QsfErr *err);
void qsf_planning_uncharge(QsfRuntime *r);

/* Fills r->stream_notice (weights stream although memory is free, and the budget that would pin them) and
 * r->ctx_notice. */
void qsf_planning_note(QsfRuntime *r);
/* After a switch to a smaller budget: resets the peak that the kernel reports, once the resident set is
 * within the budget. */
void qsf_planning_settle_peak(const QsfRuntime *r);

#endif
