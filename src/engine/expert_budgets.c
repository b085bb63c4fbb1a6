/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/expert_budgets.h"

#include <string.h>

#include "src/plan/plan.h"

#define MIB       (1ull << 20)
#define ROUND     7u    /* round budgets at most */
#define KEPT      0.997 /* of memory that is added; the kernel takes the rest */
#define NO_MISSES 0.002 /* share of misses that says nothing about the time of one */

_Static_assert(ROUND + 2 <= QSF_EXPERT_BUDGETS, "there is room for all of them");

/* Slots with another budget; may be negative. */
static double slots_at(const QsfExpertFacts *f, uint64_t budget) {
    return f->from_slots + ((double)budget - (double)f->from) * KEPT / (double)f->slot_bytes;
}

/* The least budget, in MiB, with this number of slots. */
static uint64_t budget_of(const QsfExpertFacts *f, uint32_t slots) {
    const double more = ((double)slots - f->from_slots) * (double)f->slot_bytes / KEPT,
                 b = (double)f->from + more;
    return b > 0 ? (uint64_t)(b / (double)MIB) + 1 : 1;
}

/* The waiting of a token that reads `times` as much. What is read less shortens it in proportion; what is
 * read more is waited for, because computing hides nothing more than now. */
static double wait_of(const QsfExpertFacts *f, double times) {
    return times <= 1 ? f->wait_ns * times : f->wait_ns + f->read_ns * (times - 1);
}

static bool fill(const QsfExpertFacts *f, uint64_t budget, QSFExpertBudget *out) {
    const double s = slots_at(f, budget);
    const bool all = f->full > 0 ? budget >= f->full : s >= f->n;
    const uint32_t slots = budget == f->budget ? f->slots
                           : all               ? f->n
                           : s < 0             ? 0
                           : s >= f->n         ? f->n - 1
                                               : (uint32_t)s;
    const double hits = qsf_expert_hits_of(f->depth, slots, f->n),
                 now = qsf_expert_hits_of(f->depth, f->slots, f->n);
    *out = (QSFExpertBudget){ .budget = budget, .resident = (double)slots / f->n, .hits = hits };
    if (f->token_ns <= 0 || (now > 1 - NO_MISSES && hits < now)) return hits >= 0;
    const double wait = now > 1 - NO_MISSES ? 0 : wait_of(f, (1 - hits) / (1 - now));
    out->tps = 1e9 / (f->token_ns - f->wait_ns + wait);
    return hits >= 0;
}

/* Steps such that at most ROUND of them are between two budgets in MiB. */
static uint64_t step_of(uint64_t from, uint64_t to) {
    uint64_t step = 32;
    while (to > from && (to - from) / step > ROUND - 1) step *= 2;
    return step;
}

typedef struct List {
    uint64_t budget[ROUND + 2];
    uint32_t n;
} List;

/* Keeps the order; what is there already is not added again. */
static void add(List *l, uint64_t budget) {
    uint32_t at = l->n;
    while (at > 0 && l->budget[at - 1] > budget) at--;
    if (at > 0 && l->budget[at - 1] == budget) return;
    memmove(l->budget + at + 1, l->budget + at, (l->n - at) * sizeof *l->budget);
    l->budget[at] = budget;
    l->n++;
}

uint32_t qsf_expert_budgets(const QsfExpertFacts *f, QSFExpertBudget *out, uint32_t max) {
    List l = { .n = 0 };
    uint32_t n = 0;
    if (f->n == 0 || f->slot_bytes == 0 || f->slots == 0 || f->slots > f->n || f->from_slots == 0) return 0;
    const uint64_t least = budget_of(f, 2 * f->used), most = f->full > 0 ? f->full / MIB : budget_of(f, f->n),
                   step = step_of(least, most);
    for (uint64_t mb = (least + step - 1) / step * step; mb < most && l.n < ROUND; mb += step)
        add(&l, mb * MIB);
    add(&l, most * MIB);
    add(&l, f->budget);
    for (uint32_t i = 0; i < l.n && n < max; i++)
        if (fill(f, l.budget[i], &out[n])) n++;
    return n;
}
