/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan of a runtime: its options, and the rows that do not correspond to an allocation. */
#include "src/engine/planning.h"

#include "src/base/clock.h"

void qsf_planning_first(QsfRuntime *r, const QsfRuntimeOptions *o, uint64_t resident) {
    r->facts = (QsfPlanFacts){
        .resident = resident,
        .stack_bytes = o->stack_bytes,
        .tokenizer_bytes = qsf_tokenizer_estimate(r->model.src),
        .meta_bytes = r->ledger.used[QSF_MEM_META],
        .transcript_bytes = o->transcript_bytes,
        .exact = o->exact,
    };
    qsf_plan_options_first(&r->plan_options, &r->model, &o->settings, &r->facts, qsf_available_bytes());
}

uint64_t qsf_planning_available(const QsfRuntime *r) {
    uint64_t rss = qsf_rss_bytes();
    return qsf_available_bytes() + (rss > r->facts.resident ? rss - r->facts.resident : 0);
}

void qsf_planning_next(const QsfRuntime *r, const QSFSettings *s, QsfPlanOptions *o) {
    qsf_plan_options_next(o, &r->plan_options, s, r->plan.kv, qsf_forward_n_past(r->fwd),
                          qsf_forward_ctx(r->fwd), qsf_planning_available(r));
}

void qsf_planning_move_stack(const QsfRuntime *r, QsfPlan *p) {
    p->rows[QSF_MEM_CODE] -= r->facts.stack_bytes;
    p->rows[QSF_MEM_STACKS] += r->facts.stack_bytes;
}

static const QsfMemCat charged[] = { QSF_MEM_CODE, QSF_MEM_KERNEL };
#define N_CHARGED (sizeof charged / sizeof *charged)

int qsf_planning_charge(QsfRuntime *r, QsfErr *err) {
    int rc = qsf_ledger_reserve(&r->ledger, QSF_MEM_STACKS, r->facts.stack_bytes, "engine stack", err);
    for (size_t i = 0; rc == QSF_OK && i < N_CHARGED; i++)
        rc = qsf_ledger_reserve(&r->ledger, charged[i], r->plan.rows[charged[i]],
                                qsf_mem_cat_name(charged[i]), err);
    return rc;
}

void qsf_planning_uncharge(QsfRuntime *r) {
    qsf_ledger_release(&r->ledger, QSF_MEM_STACKS, r->facts.stack_bytes);
    for (size_t i = 0; i < N_CHARGED; i++)
        qsf_ledger_release(&r->ledger, charged[i], r->plan.rows[charged[i]]);
}

void qsf_planning_note(QsfRuntime *r) {
    qsf_plan_ctx_notice(&r->model, &r->plan, r->ctx_notice, sizeof r->ctx_notice);
    qsf_plan_stream_notice(&r->model, &r->plan_options, &r->plan, r->stream_notice, sizeof r->stream_notice);
}

void qsf_planning_settle_peak(const QsfRuntime *r) {
    if (qsf_peak_rss_bytes() > r->budget && qsf_rss_bytes() <= r->budget) qsf_peak_rss_reset();
}
