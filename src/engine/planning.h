/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan of a runtime and its charges: what opening a model and changing its plan later have in common.
 * One thread at a time. */
#ifndef QSF_ENGINE_PLANNING_H
#define QSF_ENGINE_PLANNING_H

#include "src/engine/runtime.h"

/* Fills r->facts, and r->plan_options for a first plan. resident: the resident set before anything was opened. */
void qsf_planning_first(QsfRuntime *r, const QsfRuntimeOptions *o, uint64_t resident);
/* Free memory if r held nothing: what was free for the first plan stays free for the next. Any thread. */
uint64_t qsf_planning_available(const QsfRuntime *r);
/* Options of the next plan: r's own, with everything that QSF_SETTING_REPLAN settings decide taken from s. */
void qsf_planning_next(const QsfRuntime *r, const QSFSettings *s, QsfPlanOptions *o);

/* The engine thread's stack was measured as part of what is resident before loading; its row is another. */
void qsf_planning_move_stack(const QsfRuntime *r, QsfPlan *p);
/* Charges the categories of r->plan that belong to no allocation of ours. QSF_E_BUDGET. */
int qsf_planning_charge(QsfRuntime *r, QsfErr *err);
void qsf_planning_uncharge(QsfRuntime *r);

/* Writes r->stream_notice (weights stream although memory is free, and the budget that would keep them) and
 * r->ctx_notice. */
void qsf_planning_note(QsfRuntime *r);
/* After a switch to a smaller budget: the peak that the kernel reports begins anew, once no more is resident
 * than the budget allows. */
void qsf_planning_settle_peak(const QsfRuntime *r);

#endif
