/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/nextn.h"

#include <string.h>

/* Their weights may take this part of the budget, the first for which the model has a plan beside them;
 * 1: everything is in RAM. */
static const uint64_t parts[] = { 1, 4, 16, 64 };

/* Makes a plan of the model beside x, for the context and the types of the KV cache that it has alone. With a
 * head that is lent to the blocks, all of it is pinned. */
static int plan_both(const QsfRuntime *r, QsfNextn *x, const QsfPlan *alone, uint64_t most, QsfPlanOptions *o,
                     QsfPlan *p, QsfErr *err) {
    memset(o->beside, 0, sizeof o->beside);
    int rc = qsf_nextn_plan(x, o, alone->ctx, alone->kv, most, o->beside, err);
    if (rc != QSF_OK) return rc;
    o->hold_head = qsf_nextn_borrows(x);
    return qsf_planning_make(p, &r->model, o, &r->facts, err);
}

static int plan_parts(const QsfRuntime *r, QsfNextn *x, const QsfPlan *alone, QsfPlanOptions *o, QsfPlan *p,
                      QsfErr *err) {
    int rc = QSF_E_BUDGET;
    for (size_t i = 0; rc == QSF_E_BUDGET && i < sizeof parts / sizeof *parts; i++)
        rc = plan_both(r, x, alone, parts[i] == 1 ? UINT64_MAX : alone->budget / parts[i], o, p, err);
    return rc;
}

static void without(QsfPlanOptions *o) {
    memset(o->beside, 0, sizeof o->beside);
    o->hold_head = false;
}

/* ---- opening ---- */

static int open_blocks(QsfRuntime *r, const QsfRuntimeOptions *o, bool borrow, QsfErr *err) {
    QsfPlanOptions next = r->plan_options;
    QsfPlan plan;
    QsfNextn *x;
    int rc = qsf_nextn_create(&x, &r->model, o->nextn_first, o->nextn, borrow, err);
    if (rc != QSF_OK) return rc;
    rc = plan_parts(r, x, &r->plan, &next, &plan, err);
    if (rc != QSF_OK) {
        qsf_nextn_destroy(x);
        return rc;
    }
    qsf_plan_free(&r->plan);
    r->plan = plan;
    r->plan_options = next;
    r->nextn = x;
    return QSF_OK;
}

/* A head that may not be pinned is read twice. */
int qsf_nextn_beside(QsfRuntime *r, const QsfRuntimeOptions *o, QsfErr *err) {
    if (o->nextn == 0) return QSF_OK;
    int rc = open_blocks(r, o, true, err);
    return rc == QSF_E_BUDGET || rc == QSF_E_USAGE ? open_blocks(r, o, false, err) : rc;
}

/* ---- other plans ---- */

int qsf_nextn_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, bool *keep, QsfErr *err) {
    QsfPlan alone;
    QsfErr none = { 0 };
    *keep = false;
    without(o);
    int rc = qsf_planning_make(&alone, &r->model, o, &r->facts, err);
    if (rc != QSF_OK) return rc;
    *keep = r->nextn != NULL && plan_parts(r, r->nextn, &alone, o, p, &none) == QSF_OK;
    if (*keep) {
        qsf_plan_free(&alone);
        return QSF_OK;
    }
    without(o);
    *p = alone;
    return QSF_OK;
}

void qsf_nextn_close(QsfRuntime *r) {
    qsf_nextn_destroy(r->nextn);
    r->nextn = NULL;
}

void qsf_nextn_follow(QsfRuntime *r, QsfPool *pool) {
    QsfErr none = { 0 };
    if (r->nextn != NULL && qsf_nextn_replan(r->nextn, pool, &none) != QSF_OK) qsf_nextn_close(r);
}
