/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What ten budgets buy: plans from the smallest budget that works to the one that keeps all weights in RAM,
 * and the speeds that the prediction gives them. */
#include <stdlib.h>
#include <string.h>

#include "src/run/picture.h"

#define MB_BYTES 1048576.0

/* ---- the budgets, in MB ---- */

/* The largest power of ten that is at most v. */
static uint64_t power_below(uint64_t v) {
    uint64_t p = 1;
    while (p <= v / 10) p *= 10;
    return p;
}

/* The n budgets from least to the first round one of at least full: equal steps, as what streams shrinks by
 * as much as the budget grows. Returns how many differ. */
static unsigned steps(uint64_t least, uint64_t full, unsigned n, uint64_t *out) {
    const uint64_t round = power_below((full - least) / (RUN_BUDGETS - 1));
    const uint64_t top = full > least ? (full + round - 1) / round * round : least;
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t v = least + (top - least) / (n - 1) * i + (top - least) % (n - 1) * i / (n - 1);
        if (i > 0 && i + 1 < n) v = (v + round / 2) / round * round;
        if (v < least) v = least;
        if (count == 0 || v > out[count - 1]) out[count++] = v;
    }
    return count;
}

/* Where chosen is among n budgets, or would be inserted. */
static unsigned place(const uint64_t *out, unsigned n, uint64_t chosen) {
    unsigned i = 0;
    while (i < n && out[i] < chosen) i++;
    return i;
}

/* Sets out to budgets in MB, ascending: `least`, round numbers, one of `full` or a little more, and `chosen`,
 * which may be more. All of them at least 1, least <= full, least <= chosen. Returns how many: RUN_BUDGETS,
 * or fewer where there are not that many whole numbers. *at is the index of chosen. */
static unsigned choose_budgets(uint64_t least, uint64_t full, uint64_t chosen, uint64_t out[RUN_BUDGETS],
                               unsigned *at) {
    if (chosen < least) least = chosen;
    if (full < least) full = least;
    unsigned n = steps(least, full, RUN_BUDGETS, out);
    unsigned i = place(out, n, chosen);
    *at = i;
    if (i < n && out[i] == chosen) return n;
    if (n < RUN_BUDGETS || i == n) { /* there is room, or it is larger than all of them */
        if (n == RUN_BUDGETS) {
            n = steps(least, full, RUN_BUDGETS - 1, out);
            i = *at = n;
        }
        memmove(out + i + 1, out + i, (n - i) * sizeof *out);
        out[i] = chosen;
        return n + 1;
    }
    /* It takes the place of the nearer neighbor that is not the first or the last one. */
    const bool lower = i > 1 && (i == n - 1 || chosen - out[i - 1] < out[i] - chosen);
    *at = lower ? i - 1 : i;
    out[*at] = chosen;
    return n;
}

/* ---- plans ---- */

static const RunOwner owners[QSF_MEM_N] = {
    [QSF_MEM_PINNED] = RUN_OWNER_WEIGHTS,
    [QSF_MEM_SLOTS] = RUN_OWNER_SLOTS,
    [QSF_MEM_KV] = RUN_OWNER_KV,
    [QSF_MEM_ACTIVATIONS] = RUN_OWNER_COMPUTING,
    [QSF_MEM_LOGITS] = RUN_OWNER_COMPUTING,
    [QSF_MEM_EMBED] = RUN_OWNER_TEXT,
    [QSF_MEM_TOKENIZER] = RUN_OWNER_TEXT,
    [QSF_MEM_META] = RUN_OWNER_TEXT,
    [QSF_MEM_TRANSCRIPT] = RUN_OWNER_TEXT,
    [QSF_MEM_STACKS] = RUN_OWNER_PROGRAM,
    [QSF_MEM_CODE] = RUN_OWNER_PROGRAM,
    [QSF_MEM_KERNEL] = RUN_OWNER_PROGRAM,
};

static void take_plan(RunSweep *s, unsigned i, const QsfPlan *p, const QsfPrediction *rates) {
    QsfPrediction guess;
    qsf_predict_from(&guess, p->disk_bytes, p->active_bytes, rates->disk_bps, rates->compute_bps);
    s->tps[i] = guess.tps;
    s->predicted = s->predicted && guess.tps > 0;
    s->read_mb[i] = (double)p->disk_bytes / MB_BYTES;
    s->context[i] = p->ctx;
    for (int c = 0; c < QSF_MEM_N; c++) s->owner_mb[owners[c]][i] += (double)p->rows[c] / MB_BYTES;
}

static int plan_with(QsfPlan *p, const QsfRuntime *rt, uint64_t bytes, QsfErr *err) {
    QsfPlanOptions o = rt->plan_options;
    o.budget = bytes;
    return qsf_planning_make(p, &rt->model, &o, &rt->facts, err);
}

/* Sets *full to the budget in bytes with which nothing streams, or to the chosen one if --pin forbids that;
 * and the speed of the disk in *rates, if it was not measured because nothing streams, to what it reads for
 * the plan of the smallest budget. */
static int look_below(const QsfRuntime *rt, uint64_t least, uint64_t *full, QsfPrediction *rates,
                      QsfErr *err) {
    QsfPlan p;
    QsfPlanOptions o = rt->plan_options;
    const int rc = plan_with(&p, rt, least, err);
    if (rc != QSF_OK) return rc;
    o.budget = least;
    o.available = UINT64_MAX; /* it is a picture of what would be */
    *full = qsf_plan_full_budget(&rt->model, &o, &p);
    /* What streams cannot become less than --pin allows, but the context can become longer. */
    if (*full == 0 && p.streamed_bytes > 0) *full = rt->plan.budget;
    if (*full < least) *full = least;
    if (rates->disk_bps <= 0 && p.streamed_bytes > 0) {
        QsfPrediction below;
        qsf_predict(&below, &p, &rt->model, &rt->table, rt->pool);
        rates->disk_bps = below.disk_bps;
    }
    qsf_plan_free(&p);
    return QSF_OK;
}

/* In whole MB; what a percentage gives is rounded. */
static uint64_t mb_of(uint64_t bytes) { return (uint64_t)((double)bytes / MB_BYTES + 0.5); }

static int plan_all(RunSweep *s, const QsfRuntime *rt, const uint64_t *mb, const QsfPrediction *rates,
                    QsfErr *err) {
    for (unsigned i = 0; i < s->n; i++) {
        QsfPlan p;
        s->budget_mb[i] = (double)mb[i];
        if (i == s->chosen) {
            take_plan(s, i, &rt->plan, rates);
            continue;
        }
        const int rc = plan_with(&p, rt, mb[i] << 20, err);
        if (rc != QSF_OK) return rc;
        take_plan(s, i, &p, rates);
        qsf_plan_free(&p);
    }
    return QSF_OK;
}

int run_sweep(RunSweep *s, const RunOptions *o, QsfRuntime *rt) {
    QsfErr err = { 0 };
    uint64_t mb[RUN_BUDGETS], full;
    QsfPrediction rates = rt->prediction;
    const uint64_t least = qsf_plan_smallest_beside(&rt->model, &rt->plan_options, 0);
    *s = (RunSweep){ .threads = rt->plan.threads, .predicted = true };
    run_model_title(o, rt, s->model, sizeof s->model);
    int rc = look_below(rt, least, &full, &rates, &err);
    if (rc != QSF_OK) return run_fail(&err);
    s->n = choose_budgets(least >> 20, mb_of(full), mb_of(rt->plan.budget), mb, &s->chosen);
    s->weights_mb = (double)rt->plan.weight_bytes / MB_BYTES;
    s->disk_gbps = rates.disk_bps / 1e9;
    rc = plan_all(s, rt, mb, &rates, &err);
    return rc == QSF_OK ? QSF_EXIT_OK : run_fail(&err);
}
