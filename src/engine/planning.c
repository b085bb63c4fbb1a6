/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan and the process: implements planning.h. */
#include "src/engine/planning.h"

#include "src/base/clock.h"

uint64_t qsf_planning_available(const QsfPlanFacts *facts) {
    uint64_t rss = qsf_rss_bytes();
    return qsf_available_bytes() + (rss > facts->resident ? rss - facts->resident : 0);
}

int qsf_planning_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o, const QsfPlanFacts *facts,
                      QsfErr *err) {
    int rc = qsf_plan_make(p, m, o, err);
    if (rc != QSF_OK) return rc;
    p->rows[QSF_MEM_CODE] -= facts->stack_bytes;
    p->rows[QSF_MEM_STACKS] += facts->stack_bytes;
    return QSF_OK;
}

static const QsfMemCat charged[] = { QSF_MEM_CODE, QSF_MEM_KERNEL };
#define N_CHARGED (sizeof charged / sizeof *charged)

int qsf_planning_charge(QsfLedger *l, const QsfPlan *p, const QsfPlanFacts *facts, QsfErr *err) {
    int rc = qsf_ledger_reserve(l, QSF_MEM_STACKS, facts->stack_bytes, "engine stack", err);
    for (size_t i = 0; rc == QSF_OK && i < N_CHARGED; i++)
        rc = qsf_ledger_reserve(l, charged[i], p->rows[charged[i]], qsf_mem_cat_name(charged[i]), err);
    return rc;
}

void qsf_planning_uncharge(QsfLedger *l, const QsfPlan *p, const QsfPlanFacts *facts) {
    qsf_ledger_release(l, QSF_MEM_STACKS, facts->stack_bytes);
    for (size_t i = 0; i < N_CHARGED; i++) qsf_ledger_release(l, charged[i], p->rows[charged[i]]);
}

void qsf_planning_settle_peak(uint64_t budget) {
    if (qsf_recent_peak_rss_bytes() > budget && qsf_rss_bytes() <= budget) qsf_peak_rss_reset();
}
