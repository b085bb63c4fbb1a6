/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/nextn.h"

#include <stdio.h>
#include <string.h>

#include "src/engine/drafters.h"
#include "src/model/nextn.h"

/* ---- plans ---- */

/* How they are planned, the first way for which the model has a plan beside them: with a sketch of the head,
 * and with a part of the budget for their weights; 1: everything is in RAM. "auto" tries those. */
static const struct {
    bool sketch;
    uint32_t part;
} ways[] = { { true, 1 }, { false, 1 }, { false, 4 }, { false, 16 }, { false, 64 } };
#define N_WAYS (sizeof ways / sizeof *ways)

/* With "auto", blocks take at most this part of a budget in which weights stream. */
#define SHARE 16u

/* Makes a plan of the model beside x, for the context and the types of the KV cache that it has alone. With a
 * head that is lent to the blocks, all of it is pinned. */
static int plan_both(const QsfRuntime *r, QsfNextn *x, const QsfPlan *alone, bool sketch, uint64_t most,
                     QsfPlanOptions *o, QsfPlan *p, QsfErr *err) {
    memset(o->beside, 0, sizeof o->beside);
    int rc = qsf_nextn_plan(x, o, alone->ctx, alone->kv, sketch, most, o->beside, err);
    if (rc != QSF_OK) return rc;
    o->hold_head = qsf_nextn_borrows(x);
    return qsf_planning_make(p, &r->model, o, &r->facts, err);
}

/* Nothing that a token depends on is given up for drafts. */
static bool is_same(const QsfPlan *alone, const QsfPlan *both) {
    return both->ctx >= alone->ctx && qsf_kv_types_equal(both->kv, alone->kv) &&
           qsf_kv_types_equal(both->kv_most, alone->kv_most);
}

/* Nor many pins, unless the user asks for them. */
static bool is_cheap(const QsfPlan *alone, const QsfPlan *both, const QsfPlanOptions *o) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < QSF_MEM_N; i++) sum += o->beside[i];
    return !qsf_plan_streams(both) || (qsf_plan_streams(alone) && sum <= alone->budget / SHARE);
}

/* asked: the user wants them. */
static int plan_ways(const QsfRuntime *r, QsfNextn *x, const QsfPlan *alone, bool asked, bool compared,
                     QsfPlanOptions *o, QsfPlan *p, QsfErr *err) {
    int rc = QSF_E_BUDGET;
    for (size_t i = 0; rc == QSF_E_BUDGET && i < N_WAYS; i++) {
        const uint64_t most = ways[i].part == 1 ? UINT64_MAX : alone->budget / ways[i].part;
        if ((ways[i].sketch && compared) || (most != UINT64_MAX && !asked)) continue;
        rc = plan_both(r, x, alone, ways[i].sketch, most, o, p, err);
        if (rc != QSF_OK || compared || (is_same(alone, p) && (asked || is_cheap(alone, p, o)))) continue;
        qsf_plan_free(p);
        rc = QSF_E_BUDGET;
    }
    return rc;
}

/* ---- which blocks ---- */

static bool wants(const QsfRuntime *r, const QsfPlanOptions *o) {
    return o->drafting == QSF_DRAFTING_NEXTN || (o->drafting == QSF_DRAFTING_AUTO && r->may_draft);
}

/* Blocks that may be loaded, or new ones. borrow: which read the model's head. NULL: there are none. */
static QsfNextn *candidate(const QsfRuntime *r, const QsfPlanOptions *o, bool borrow) {
    QsfErr none = { 0 };
    QsfNextn *x = NULL;
    const uint32_t n = wants(r, o) ? qsf_nextn_count(&r->model) : 0;
    if (r->nextn != NULL && borrow && (r->nextn_compared || n > 0)) return r->nextn;
    return n > 0 && qsf_nextn_create(&x, &r->model, 0, n, borrow, &none) == QSF_OK ? x : NULL;
}

/* Plans beside a candidate, if that is possible and worth it; *x NULL: not. */
static void plan_candidate(const QsfRuntime *r, bool borrow, bool asked, const QsfPlan *alone,
                           QsfPlanOptions *o, QsfPlan *p, QsfNextn **x) {
    QsfErr none = { 0 };
    QsfNextn *try = candidate(r, o, borrow);
    *x = NULL;
    if (try != NULL && plan_ways(r, try, alone, asked, r->nextn_compared, o, p, &none) == QSF_OK) {
        *x = try;
        return;
    }
    if (try != r->nextn) qsf_nextn_destroy(try);
    qsf_plan_options_alone(o);
}

/* A head that may not be pinned is read twice, if the user asks for these drafts. */
int qsf_nextn_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, QsfNextn **x, QsfErr *err) {
    QsfPlan alone;
    const bool asked = o->drafting == QSF_DRAFTING_NEXTN || r->nextn_compared;
    *x = NULL;
    qsf_plan_options_alone(o);
    int rc = qsf_planning_make(&alone, &r->model, o, &r->facts, err);
    if (rc != QSF_OK) return rc;
    plan_candidate(r, true, asked, &alone, o, p, x);
    if (*x == NULL && asked && !r->nextn_compared) plan_candidate(r, false, true, &alone, o, p, x);
    if (*x == NULL)
        *p = alone;
    else
        qsf_plan_free(&alone);
    return QSF_OK;
}

static int compare(const QsfRuntime *r, uint32_t first, uint32_t n, bool borrow, const QsfPlan *alone,
                   QsfPlanOptions *o, QsfPlan *p, QsfNextn **x, QsfErr *err) {
    int rc = qsf_nextn_create(x, &r->model, first, n, borrow, err);
    if (rc == QSF_OK) rc = plan_ways(r, *x, alone, true, true, o, p, err);
    if (rc == QSF_OK) return rc;
    qsf_nextn_destroy(*x);
    *x = NULL;
    return rc;
}

/* A head that may not be pinned is read twice. */
int qsf_nextn_compare(QsfRuntime *r, uint32_t first, uint32_t n, QsfPlanOptions *o, QsfPlan *p, QsfNextn **x,
                      QsfErr *err) {
    QsfPlan alone;
    *x = NULL;
    qsf_plan_options_alone(o);
    int rc = qsf_planning_make(&alone, &r->model, o, &r->facts, err);
    if (rc != QSF_OK) return rc;
    rc = compare(r, first, n, true, &alone, o, p, x, err);
    if (rc == QSF_E_BUDGET || rc == QSF_E_USAGE) rc = compare(r, first, n, false, &alone, o, p, x, err);
    qsf_plan_free(&alone);
    r->nextn_compared = rc == QSF_OK;
    return rc;
}

/* ---- blocks in use ---- */

void qsf_nextn_close(QsfRuntime *r) {
    if (r->nextn == NULL) return;
    qsf_speculate_close(&r->speculator); /* a source drafts with them */
    qsf_nextn_destroy(r->nextn);
    r->nextn = NULL;
}

void qsf_nextn_follow(QsfRuntime *r, QsfPool *pool) {
    QsfErr none = { 0 };
    if (r->nextn != NULL && qsf_nextn_replan(r->nextn, pool, &none) != QSF_OK) qsf_nextn_close(r);
}

void qsf_nextn_take(QsfRuntime *r, QsfNextn *x) {
    const QsfForwardOptions fo = {
        .table = &r->table, .pool = r->pool, .ledger = &r->ledger, .cancel = r->cancel
    };
    QsfErr none = { 0 };
    if (x == NULL) return;
    r->nextn = x;
    if (qsf_nextn_load(x, r->fwd, &fo, &none) != QSF_OK) qsf_nextn_close(r);
}

static bool is_enough(void *arg, uint64_t budget) {
    QsfRuntime *r = arg;
    QsfPlanOptions at = r->plan_options;
    QsfPlan p;
    QsfNextn *x;
    QsfErr none = { 0 };
    at.budget = budget;
    if (qsf_nextn_planning(r, &at, &p, &x, &none) != QSF_OK) return false;
    qsf_plan_free(&p);
    qsf_nextn_destroy(x);
    return x != NULL;
}

static void note_no_room(QsfRuntime *r) {
    char *dst = r->nextn_notice;
    const size_t cap = sizeof r->nextn_notice;
    const uint64_t enough = qsf_drafters_budget(r->plan.budget, is_enough, r) >> 20;
    const size_t n = (size_t)snprintf(
        dst, cap, "speculate: the budget has no room for the next-token %s, so there are no drafts",
        qsf_nextn_count(&r->model) == 1 ? "block" : "blocks");
    if (enough > 0)
        snprintf(dst + n, cap - n, "; %s %llu has",
                 qsf_option_name(QSF_OPTION_BUDGET, r->plan_options.commands), (unsigned long long)enough);
}

void qsf_nextn_explain(QsfRuntime *r) {
    char *dst = r->nextn_notice;
    const size_t cap = sizeof r->nextn_notice;
    qsf_nextn_notice(&r->model, dst, cap);
    if (dst[0] != '\0' || r->plan_options.drafting != QSF_DRAFTING_NEXTN || r->nextn != NULL) return;
    if (qsf_nextn_count(&r->model) > 0)
        note_no_room(r);
    else
        snprintf(dst, cap, "speculate: the model has no next-token block, so there are no drafts");
}
