/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/plan/budget.h"

#include "src/plan/options.h"

#define MIB (1ull << 20)

/* What another plan must have. */
typedef struct Goal {
    uint32_t ctx;
    uint64_t streamed; /* at most */
    bool same_types;   /* those of positions in the cache */
} Goal;

/* What a budget buys, as far as a step depends on it. */
typedef struct Brings {
    bool works, same_types;
    uint32_t ctx;
    uint64_t streamed; /* for a token at the start of a conversation */
} Brings;

static uint64_t streamed(const QsfPlan *p) { return p->streamed_bytes - p->lent_active; }

static Brings try_budget(const QsfModel *m, const QsfPlanOptions *o, uint64_t budget) {
    QsfPlanOptions next = *o;
    QsfPlan p;
    QsfErr err = { 0 };
    next.budget = budget;
    if (qsf_plan_make(&p, m, &next, &err) != QSF_OK) return (Brings){ .works = false };
    const bool kept = (!o->keep_k || p.kv.k == o->kv_now.k) && (!o->keep_v || p.kv.v == o->kv_now.v);
    const Brings b = { true, kept, p.ctx, streamed(&p) };
    qsf_plan_free(&p);
    return b;
}

static bool meets(const QsfModel *m, const QsfPlanOptions *o, uint64_t budget, const Goal *g) {
    const Brings b = try_budget(m, o, budget);
    return b.works && b.ctx >= g->ctx && b.streamed <= g->streamed && (b.same_types || !g->same_types);
}

/* Returns the smallest budget from low to high that meets the goal, which high does; multiples of 1 MiB. */
static uint64_t smallest_for(const QsfModel *m, const QsfPlanOptions *o, uint64_t low, uint64_t high,
                             const Goal *g) {
    if (low >= high || meets(m, o, low, g)) return low < high ? low : high;
    uint64_t lo = low / MIB, hi = high / MIB; /* lo does not meet it */
    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (meets(m, o, mid * MIB, g))
            hi = mid;
        else
            lo = mid;
    }
    return hi * MIB;
}

static bool ctx_is_short(const QsfPlanOptions *o, const QsfPlan *p) {
    return o->ctx == 0 && p->ctx < p->wanted_ctx;
}

static void offer(const QsfModel *m, const QsfPlanOptions *o, uint64_t budget, QSFBudgetStep *out) {
    const Brings b = try_budget(m, o, budget);
    if (!b.works) return;
    out->budget = budget;
    out->streamed = b.streamed;
    out->ctx = b.ctx;
}

static void larger(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p, QSFBudgetStep *out) {
    const uint64_t most = o->available / 10 * 9 / MIB * MIB, full = qsf_plan_full_budget(m, o, p);
    const bool capped = p->streamed_bytes > 0 && o->pin_cap != UINT64_MAX, is_short = ctx_is_short(o, p);
    out->end = capped ? QSF_BUDGET_PIN : is_short || p->streamed_bytes > 0 ? QSF_BUDGET_FREE : QSF_BUDGET_ALL;
    if (full > p->budget) {
        offer(m, o, full, out);
        return;
    }
    if (most <= p->budget || (p->streamed_bytes == 0 && !is_short)) return;
    const Brings b = try_budget(m, o, most);
    const bool better = b.streamed < streamed(p) || (b.ctx > p->ctx && b.streamed == streamed(p));
    if (!b.works || !better) return;
    const Goal same = { .ctx = b.ctx, .streamed = b.streamed };
    const bool needs_all = p->streamed_bytes > 0 && !capped; /* more pins take whatever there is */
    offer(m, o, needs_all ? most : smallest_for(m, o, p->budget / MIB * MIB + MIB, most, &same), out);
}

static void smaller(const QsfModel *m, const QsfPlanOptions *from, const QsfPlan *p, QSFBudgetStep *out) {
    QsfPlanOptions alone = *from;
    const QsfPlanOptions *o = &alone;
    qsf_plan_options_alone(&alone);
    const uint64_t uses = qsf_plan_used_bytes(p), least = qsf_plan_smallest_beside(m, o, 0),
                   now = p->budget / MIB * MIB;
    const uint32_t room = o->ctx_room < p->ctx ? o->ctx_room : p->ctx;
    const Goal keeps = { .ctx = o->ctx == 0 ? room : p->ctx, .streamed = UINT64_MAX, .same_types = true };
    uint64_t budget = (uses < p->budget ? uses : p->budget) / 4 * 3 / MIB * MIB;
    if (budget < least) budget = least;
    out->end = QSF_BUDGET_LEAST;
    if (budget >= now) return;
    budget = smallest_for(m, o, budget, now, &keeps);
    if (budget < now)
        offer(m, o, budget, out);
    else
        out->end = QSF_BUDGET_KEEP;
}

void qsf_plan_next_budget(const QsfModel *m, const QsfPlanOptions *o, const QsfPlan *p, bool more,
                          QSFBudgetStep *out) {
    out->budget = out->streamed = 0;
    out->ctx = out->ctx_now = p->ctx;
    out->now = streamed(p);
    if (more)
        larger(m, o, p, out);
    else
        smaller(m, o, p, out);
}
