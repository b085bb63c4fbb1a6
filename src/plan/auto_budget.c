/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Budgets that the planner finds: the smallest that works, and automatic ones. */
#include <string.h>

#include "src/plan/plan_impl.h"

/* An automatic budget has room for long messages: copies, rendered text and ids of all tokens that
 * the context holds; and of all messages of a conversation that is resumed, even if they turn out to
 * be too many for the context. */
#define AUTO_ROOM      (8 * QSF_MIB)
#define AUTO_PER_TOKEN 96u
#define AUTO_PER_BYTE  10u
/* The smallest plan is a poor one: this fraction is added to it. */
#define AUTO_PER_SMALLEST 16u

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- the smallest budget ---- */

/* Whether the plan of this budget leaves so much for a prompt. What streams takes the rest for
 * pins, up to their limit. */
static bool leaves(const QsfPricing *s, uint64_t text) {
    QsfConfig c;
    bool lowered;
    uint64_t rows[QSF_MEM_N], pins = 0;
    if (!qsf_plan_search(s, &c, &lowered)) return false;
    if (text <= QSF_PLAN_MESSAGE) return true;
    const uint64_t left = s->budget - qsf_pricing_rows(s, &c, rows) + QSF_PLAN_MESSAGE;
    if (c.n_slots > 0 && s->o->pin_cap == UINT64_MAX) return false;
    if (c.n_slots > 0) pins = min_u64(s->o->pin_cap, s->shape.pinned_units_bytes) + s->budget / 16;
    return left >= pins && left - pins >= text;
}

void qsf_plan_options_alone(QsfPlanOptions *o) {
    memset(o->beside, 0, sizeof o->beside);
    o->hold_head = o->holds = false;
}

static uint64_t smallest(const QsfModel *m, const QsfPlanOptions *o, uint64_t text) {
    QsfPlanOptions alone = *o;
    QsfPricing s;
    qsf_plan_options_alone(&alone);
    qsf_pricing_init(&s, m, &alone);
    s.adapters_stream = qsf_adapters_stream(o->adapters);
    uint64_t lo = 1, hi = 1; /* MiB */
    for (s.budget = QSF_MIB; !leaves(&s, text) && hi < (1ull << 40); s.budget = hi * QSF_MIB) {
        lo = hi + 1;
        hi *= 2;
    }
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        s.budget = mid * QSF_MIB;
        if (leaves(&s, text))
            hi = mid;
        else
            lo = mid + 1;
    }
    const uint64_t opening = (o->opening_bytes + QSF_MIB - 1) / QSF_MIB;
    return (hi > opening ? hi : opening) * QSF_MIB;
}

uint64_t qsf_plan_smallest(const QsfModel *m, const QsfPlanOptions *o) { return smallest(m, o, 0); }

uint64_t qsf_plan_smallest_beside(const QsfModel *m, const QsfPlanOptions *o, uint64_t text) {
    QsfPlanOptions next = *o;
    next.base_bytes += QSF_BASE_JITTER + o->base_bytes / QSF_BASE_PER_JITTER;
    return smallest(m, &next, text);
}

/* ---- automatic budgets ---- */

uint64_t qsf_plan_auto_half(const QsfPlanOptions *o) {
    uint64_t half = o->available / 2 / QSF_MIB * QSF_MIB;
    return half != 0 ? half : QSF_BUDGET_DEFAULT;
}

uint64_t qsf_plan_auto_most(const QsfPlanOptions *o) {
    const uint64_t most = (o->available - o->available / 4) / QSF_MIB * QSF_MIB;
    return most != 0 ? most : QSF_BUDGET_DEFAULT;
}

uint64_t qsf_plan_auto_more(const QsfModel *m, const QsfPlanOptions *o) {
    const uint64_t least = qsf_plan_smallest_beside(m, o, 0), most = qsf_plan_auto_most(o);
    return least < most ? min_u64((least + least / AUTO_PER_SMALLEST) / QSF_MIB * QSF_MIB, most) : most;
}

void qsf_plan_auto_trim(QsfPlan *p, uint64_t text_bytes) {
    const uint64_t text = text_bytes < p->budget ? text_bytes * AUTO_PER_BYTE : p->budget;
    uint64_t rest = p->total - p->rows[QSF_MEM_KERNEL] + AUTO_ROOM + (uint64_t)p->ctx * AUTO_PER_TOKEN + text;
    uint64_t b = (rest + QSF_MIB) / 997 * 1000 + 2 * QSF_MIB;
    b = b / QSF_MIB * QSF_MIB;
    if (b >= p->budget) return;
    p->budget = b;
    p->total -= p->rows[QSF_MEM_KERNEL];
    p->rows[QSF_MEM_KERNEL] = QSF_MIB + b / 1000 * 3;
    p->total += p->rows[QSF_MEM_KERNEL];
}
