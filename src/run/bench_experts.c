/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --bench of a sparse model: what other RAM budgets would mean, by the choices that were measured. */
#include "src/engine/expert_budgets.h"
#include "src/plan/options.h"
#include "src/run/run.h"

#define MIB 1048576.0

/* Returns how many there are; 0: too little is known, or the dense part does not fit. */
static uint32_t find_budgets(const QsfRuntime *rt, const RunFigures *f, double tokens,
                             QSFExpertBudget out[QSF_EXPERT_BUDGETS]) {
    const QsfPlan *p = &rt->plan;
    QsfForwardStats s;
    if (p->expert_slots == 0 || p->expert_slots >= p->n_experts) return 0;
    qsf_forward_stats(rt->fwd, &s);
    const QsfExpertFacts facts = { .budget = rt->budget,
                                   .from = rt->budget,
                                   .from_slots = s.expert_slots,
                                   .full = qsf_plan_full_budget(&rt->model, &rt->plan_options, p),
                                   .slot_bytes = p->expert_slot_bytes,
                                   .n = p->n_experts,
                                   .slots = s.expert_slots,
                                   .used = p->experts_used,
                                   .depth = s.expert_depth,
                                   .token_ns = f->decode_tps > 0 ? 1e9 / f->decode_tps : 0,
                                   .read_ns = f->io_gbps > 0 ? f->bytes_per_token / f->io_gbps : 0,
                                   .wait_ns = f->wait_ms * 1e6 / tokens };
    return qsf_expert_budgets(&facts, out, QSF_EXPERT_BUDGETS);
}

void run_put_expert_budgets(QsfStrbuf *b, const QsfRuntime *rt, const RunFigures *f, double tokens,
                            bool json) {
    QSFExpertBudget list[QSF_EXPERT_BUDGETS];
    const uint32_t n = tokens > 0 ? find_budgets(rt, f, tokens, list) : 0;
    if (n > 0 && json) qsf_strbuf_adds(b, ", \"expert_budgets\": [");
    for (uint32_t i = 0; i < n; i++) {
        const QSFExpertBudget *x = &list[i];
        const double mb = (double)x->budget / MIB;
        if (json) {
            qsf_strbuf_addf(b, "%s{\"budget_mb\": %.0f, \"expert_hit_rate\": %.4f, \"resident\": %.4f",
                            i > 0 ? ", " : "", mb, x->hits, x->resident);
            if (x->tps > 0) qsf_strbuf_addf(b, ", \"decode_tps\": %.4g", x->tps);
            qsf_strbuf_adds(b, "}");
            continue;
        }
        qsf_strbuf_addf(b, "%s at %.0f MB %.0f %%", i > 0 ? "\n        " : "budgets ", mb, 100 * x->hits);
        if (x->tps > 0) qsf_strbuf_addf(b, ", about %.3g tok/s", x->tps);
    }
    if (n > 0) qsf_strbuf_adds(b, json ? "]" : "\n");
}
