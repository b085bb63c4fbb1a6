/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a plan meets the process: the memory that is available for it, the rows that no allocation charges,
 * and the peak that the kernel reports. Used to open a model and to replan. One thread at a time. */
#ifndef QSF_ENGINE_PLANNING_H
#define QSF_ENGINE_PLANNING_H

#include "src/plan/options.h"

/* Returns the memory that would be available without what was allocated since facts->resident was measured,
 * so that later plans see what the first one saw. Any thread. */
uint64_t qsf_planning_available(const QsfPlanFacts *facts);

/* Like qsf_plan_make, but the engine thread's stack, which facts->resident contains, is in its own row. */
int qsf_planning_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o, const QsfPlanFacts *facts,
                      QsfErr *err);

/* Charges the stack and the rows of p that do not correspond to an allocation. QSF_E_BUDGET. */
int qsf_planning_charge(QsfLedger *l, const QsfPlan *p, const QsfPlanFacts *facts, QsfErr *err);
void qsf_planning_uncharge(QsfLedger *l, const QsfPlan *p, const QsfPlanFacts *facts);

/* Resets the recent peak that the kernel reports if it is above budget and the resident set is not: it belongs to an
 * earlier, larger budget. */
void qsf_planning_settle_peak(uint64_t budget);

#endif
