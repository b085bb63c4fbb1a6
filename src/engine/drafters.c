/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/drafters.h"

#include "src/engine/draft_model.h"
#include "src/engine/nextn.h"
#include "src/engine/pinned.h"

int qsf_drafters_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, QsfDrafters *b, QsfErr *err) {
    b->draft = NULL;
    int rc = qsf_nextn_planning(r, o, p, &b->nextn, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_draft_model_planning(r, o, p, &b->draft, err);
    if (rc == QSF_OK) qsf_pinned_planning(r, o, p);
    b->new_nextn = b->nextn != r->nextn;
    b->new_draft = b->draft != r->draft;
    if (rc == QSF_OK) return QSF_OK;
    qsf_plan_free(p);
    if (b->new_nextn) qsf_nextn_destroy(b->nextn);
    b->nextn = NULL;
    return rc;
}

void qsf_drafters_leave(QsfRuntime *r, const QsfDrafters *b) {
    if (b->new_nextn) qsf_nextn_close(r);
    if (b->new_draft) qsf_draft_model_close(r);
}

void qsf_drafters_follow(QsfRuntime *r, QsfPool *pool) {
    qsf_nextn_follow(r, pool);
    qsf_draft_model_follow_plan(r, pool);
}

void qsf_drafters_take(QsfRuntime *r, const QsfDrafters *b, bool ok) {
    if (b->new_nextn && ok) qsf_nextn_take(r, b->nextn);
    if (b->new_nextn && !ok) qsf_nextn_destroy(b->nextn);
    if (b->new_draft && ok) qsf_draft_model_take(r, b->draft);
    if (b->new_draft && !ok) qsf_draft_model_destroy(b->draft);
}

uint64_t qsf_drafters_budget(uint64_t budget, bool (*works)(void *arg, uint64_t budget), void *arg) {
    const uint64_t from = budget >> 20;
    uint64_t lo = from + 1, hi = from + 1;
    while (!works(arg, hi << 20)) {
        lo = hi + 1;
        hi = from + 2 * (hi - from);
        if (hi > 64 * (from + 1)) return 0;
    }
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (works(arg, mid << 20))
            hi = mid;
        else
            lo = mid + 1;
    }
    return hi << 20;
}

void qsf_drafters_close(QsfRuntime *r) {
    qsf_nextn_close(r);
    qsf_draft_model_close(r);
}
