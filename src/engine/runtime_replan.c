/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes the plan of a running model: what the new plan does not use is freed before anything is allocated,
 * and the old plan is restored when that fails. */
#include "src/engine/runtime_replan.h"

#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "src/engine/planning.h"

static void trim_heap(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* Raises the ledger's limits to the larger of both plans, plus the threads of both pools while both exist. */
static void widen(QsfRuntime *r, const QsfPlan *p) {
    uint64_t limit = p->budget > r->budget ? p->budget : r->budget;
    qsf_ledger_set_limit(&r->ledger, limit + p->rows[QSF_MEM_STACKS]);
}

/* Commits plan p and enforces its budget. Takes ownership of p's memory. */
static void adopt(QsfRuntime *r, const QsfPlan *p) {
    QsfErr none = { 0 };
    qsf_planning_uncharge(&r->ledger, &r->plan, &r->facts);
    qsf_plan_free(&r->plan);
    r->plan = *p;
    r->budget = p->budget;
    r->threads = p->threads;
    qsf_ledger_set_limit(&r->ledger, 0); /* the plan fits, so its rows cannot fail */
    qsf_planning_charge(&r->ledger, &r->plan, &r->facts, &none);
    qsf_ledger_set_limit(&r->ledger, r->budget);
}

/* Restores the old plan; the forward pass may be between two plans. */
static void roll_back(QsfRuntime *r, QsfErr *err) {
    QsfErr second = { 0 };
    r->lost = qsf_forward_replan(r->fwd, &r->plan, r->pool, &second) != QSF_OK;
    if (r->lost) qsf_err_prefix(err, "the model must be reloaded");
    qsf_ledger_set_limit(&r->ledger, r->budget);
}

static int change(QsfRuntime *r, const QsfPlan *p, QsfErr *err) {
    QsfPool *pool = r->pool;
    int rc = QSF_OK;
    widen(r, p);
    if (p->threads != r->threads) rc = qsf_pool_create(&pool, p->threads, &r->ledger, err);
    if (rc != QSF_OK) {
        qsf_ledger_set_limit(&r->ledger, r->budget);
        return rc;
    }
    rc = qsf_forward_replan(r->fwd, p, pool, err);
    if (rc != QSF_OK) roll_back(r, err);
    QsfPool *idle = rc == QSF_OK ? r->pool : pool;
    if (pool != r->pool) qsf_pool_destroy(idle);
    if (rc != QSF_OK) return rc;
    r->pool = pool;
    r->lost = false;
    adopt(r, p);
    return QSF_OK;
}

static void write_note(const QsfRuntime *r, char *note, size_t cap) {
    char io[32], reason[160];
    qsf_forward_io(r->fwd, io, sizeof io, reason, sizeof reason);
    qsf_plan_summary(&r->plan, io, note, cap);
    const size_t n = strlen(note);
    if (r->plan_options.budget != 0 && r->budget_notice[0] != '\0')
        snprintf(note + n, cap - n, "; %s", r->budget_notice);
}

int qsf_runtime_apply(QsfRuntime *r, const QsfPlanOptions *next, QsfErr *err) {
    QsfPlan plan;
    int rc = qsf_planning_make(&plan, &r->model, next, &r->facts, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_forward_catch_up(r->fwd, err);
    if (rc == QSF_OK) rc = change(r, &plan, err);
    trim_heap();
    if (rc != QSF_OK) {
        qsf_plan_free(&plan);
        return rc;
    }
    r->plan_options = *next;
    qsf_planning_settle_peak(r->budget);
    if (r->prediction.compute_bps > 0)
        qsf_predict_from(&r->prediction, r->plan.disk_bytes, r->plan.active_bytes, r->prediction.disk_bps,
                         r->prediction.compute_bps);
    return QSF_OK;
}

int qsf_runtime_replan(QsfRuntime *r, const QSFSettings *s, char *note, size_t cap, QsfErr *err) {
    QsfErr own = { 0 };
    QsfPlanOptions next;
    if (err == NULL) err = &own;
    qsf_plan_options_next(&next, &r->plan_options, s, r->plan.kv, qsf_forward_kept(r->fwd),
                          qsf_forward_ctx(r->fwd), qsf_planning_available(&r->facts));
    int rc = qsf_runtime_apply(r, &next, err);
    if (rc != QSF_OK) return rc;
    const QSFSettings old = r->settings;
    qsf_settings_take(&r->settings, s, QSF_SETTING_REPLAN);
    r->settings.text_bytes = s->text_bytes;
    rc = qsf_runtime_evict(r, s, err);
    if (rc != QSF_OK) { /* the rest of the plan is in force */
        memcpy(r->settings.eviction, old.eviction, sizeof old.eviction);
        r->settings.eviction_window = old.eviction_window;
        r->settings.protected_prefix = old.protected_prefix;
    }
    qsf_runtime_update_notices(r);
    write_note(r, note, cap);
    return rc;
}
