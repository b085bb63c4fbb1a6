/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/draft_model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/drafters.h"
#include "src/engine/setting_kinds.h"
#include "src/token/vocab_compare.h"

/* With "auto", it takes at most this part of a budget in which weights stream. */
#define SHARE   16u
#define HEADERS (16u << 20) /* of a model that is opened beside the one in use */

/* ---- as a setting ---- */

/* A session finds it from other folders, too. */
static bool set_path(const QSFSetting *row, QSFSettings *s, void *p, const char *value) {
    char full[PATH_MAX], own[PATH_MAX];
    value = qsf_home_path(value, own);
    const bool found = strcmp(value, "off") != 0 && realpath(value, full) != NULL;
    return qsf_kind_file.set(row, s, p, found ? full : value);
}

static void get_path(const QSFSettings *s, const void *p, char *dst, size_t cap) {
    qsf_kind_file.get(s, p, dst, cap);
}

const QsfSettingKind qsf_kind_path = { set_path, get_path,
                                       "the name of a file, 1 to 255 bytes, or off (./off is a file)" };

/* ---- opening ---- */

static int open_file(QsfDraftModel **out, const QsfModel *m, const char *file, QsfLedger *ledger,
                     QsfErr *err) {
    uint32_t n;
    QsfErr why = { 0 };
    int rc = qsf_setting_check_file(file, &why);
    *out = NULL;
    if (rc == QSF_OK) rc = qsf_draft_model_create(out, file, ledger, &why);
    if (rc == QSF_OK) rc = qsf_vocab_compare(m->src, qsf_draft_model_source(*out), &n, &why);
    if (rc == QSF_OK) {
        qsf_draft_model_set_vocab(*out, n);
        return QSF_OK;
    }
    qsf_draft_model_destroy(*out);
    *out = NULL;
    if (rc != QSF_E_INTERRUPTED) qsf_err_prefix(&why, "draft-model");
    return qsf_err_pass(err, &why);
}

static bool wants(QsfDrafting drafting, bool may_draft) {
    return drafting == QSF_DRAFTING_DRAFT || (drafting == QSF_DRAFTING_AUTO && may_draft);
}

int qsf_draft_model_check(const QsfModel *m, const QSFSettings *s, QsfLedger *ledger, QsfErr *err) {
    QsfDraftModel *x;
    if (s->draft_model[0] == '\0' || !wants(qsf_drafting_parse(s->speculate), true)) return QSF_OK;
    int rc = open_file(&x, m, s->draft_model, ledger, err);
    if (rc == QSF_OK) qsf_draft_model_destroy(x);
    return rc;
}

#define PROBE_BYTES (1u << 20) /* part of every plan's slack for code and small allocations */

int qsf_draft_model_probe(const QsfModel *m, const QSFSettings *s, QsfErr *err) {
    QsfLedger ledger;
    qsf_ledger_init(&ledger, PROBE_BYTES);
    const int rc = qsf_draft_model_check(m, s, &ledger, err);
    qsf_ledger_destroy(&ledger);
    if (rc != QSF_E_BUDGET) return rc;
    qsf_err_clear(err);
    return QSF_OK;
}

/* The one in use, or a new one. */
static int candidate(QsfRuntime *r, QsfDraftModel **out, QsfErr *err) {
    *out = r->draft;
    if (r->draft != NULL && strcmp(r->draft_file, r->draft_used) == 0) return QSF_OK;
    const uint64_t limit = r->ledger.limit;
    if (limit > 0) qsf_ledger_set_limit(&r->ledger, limit + HEADERS);
    int rc = open_file(out, &r->model, r->draft_file, &r->ledger, err);
    qsf_ledger_set_limit(&r->ledger, limit);
    if (rc == QSF_OK) memcpy(r->draft_used, r->draft_file, sizeof r->draft_used);
    return rc;
}

/* ---- plans ---- */

/* Nothing that a token depends on is given up for drafts; nor many pins, unless the user asks for them. */
static bool is_worth(const QsfPlan *alone, const QsfPlan *both, uint64_t bytes, bool asked) {
    const bool same = both->ctx >= alone->ctx && qsf_kv_types_equal(both->kv, alone->kv) &&
                      qsf_kv_types_equal(both->kv_most, alone->kv_most),
               cheap = !qsf_plan_streams(both) || (qsf_plan_streams(alone) && bytes <= alone->budget / SHARE);
    return same && both->draft_cols > 1 && (asked || cheap);
}

/* true: *p is the plan with it. */
static bool plan_way(const QsfRuntime *r, QsfDraftModel *x, unsigned way, bool asked, QsfPlanOptions *o,
                     QsfPlan *p) {
    QsfErr none = { 0 };
    QsfPlan both;
    if (qsf_draft_model_plan(x, o, p->ctx, p->kv, way, o->beside, &none) != QSF_OK) return false;
    if (qsf_planning_make(&both, &r->model, o, &r->facts, &none) != QSF_OK) return false;
    if (!is_worth(p, &both, qsf_draft_model_bytes(x), asked)) {
        qsf_plan_free(&both);
        return false;
    }
    qsf_plan_free(p);
    *p = both;
    return true;
}

/* The first way that works; false: none, and o is what it was. */
static bool plan_ways(const QsfRuntime *r, QsfDraftModel *x, bool asked, QsfPlanOptions *o, QsfPlan *p) {
    uint64_t beside[QSF_MEM_N];
    memcpy(beside, o->beside, sizeof beside);
    for (unsigned way = 0; way < QSF_DRAFT_MODEL_WAYS; way++) {
        if (plan_way(r, x, way, asked, o, p)) return true;
        memcpy(o->beside, beside, sizeof beside);
    }
    return false;
}

/* ---- what would be enough ---- */

typedef struct Enough {
    const QsfRuntime *r;
    const QsfPlanOptions *o;
    QsfDraftModel *x;
    bool asked;
} Enough;

static bool is_enough(void *arg, uint64_t budget) {
    const Enough *e = arg;
    QsfPlanOptions at = *e->o;
    QsfPlan p;
    QsfErr none = { 0 };
    at.budget = budget;
    if (qsf_planning_make(&p, &e->r->model, &at, &e->r->facts, &none) != QSF_OK) return false;
    const bool ok = plan_ways(e->r, e->x, e->asked, &at, &p);
    qsf_plan_free(&p);
    return ok;
}

static void note_no_room(QsfRuntime *r, const QsfPlanOptions *o, QsfDraftModel *x, uint64_t budget) {
    const bool asked = o->drafting == QSF_DRAFTING_DRAFT;
    Enough e = { r, o, x, true };
    const bool helps = !asked && is_enough(&e, budget);
    e.asked = asked;
    const uint64_t enough = qsf_drafters_budget(budget, is_enough, &e) >> 20;
    const size_t cap = sizeof r->draft_notice;
    size_t n = (size_t)snprintf(r->draft_notice, cap,
                                "draft-model: not used: the budget has no room for it beside the model%s",
                                asked ? "" : " with all that it has now");
    if (enough > 0)
        n += (size_t)snprintf(r->draft_notice + n, cap - n, "; %s %llu has",
                              qsf_option_name(QSF_OPTION_BUDGET, o->commands), (unsigned long long)enough);
    if (helps)
        snprintf(r->draft_notice + n, cap - n, "; %s draft gives up pinned weights for it",
                 o->commands ? "/speculate" : "--speculate");
}

static int plan_candidate(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, QsfDraftModel **x, QsfErr *err) {
    QsfDraftModel *try;
    int rc = candidate(r, &try, err);
    if (rc != QSF_OK) return rc;
    if (plan_ways(r, try, o->drafting == QSF_DRAFTING_DRAFT, o, p)) {
        *x = try;
        return QSF_OK;
    }
    note_no_room(r, o, try, p->budget);
    if (try != r->draft) qsf_draft_model_destroy(try);
    return QSF_OK;
}

int qsf_draft_model_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p, QsfDraftModel **x, QsfErr *err) {
    QsfErr why = { 0 };
    *x = NULL;
    r->draft_notice[0] = '\0';
    if (!wants(o->drafting, r->may_draft)) return QSF_OK;
    if (r->draft_file[0] == '\0') {
        if (o->drafting == QSF_DRAFTING_DRAFT)
            snprintf(r->draft_notice, sizeof r->draft_notice,
                     "speculate: there is no draft model, so there are no drafts: %s FILE sets one",
                     o->commands ? "/set draft-model" : "--draft-model");
        return QSF_OK;
    }
    int rc = plan_candidate(r, o, p, x, &why);
    if (rc == QSF_OK) return QSF_OK;
    if (strcmp(r->draft_file, r->draft_used) != 0) return qsf_err_pass(err, &why);
    snprintf(r->draft_notice, sizeof r->draft_notice, "%.*s", (int)sizeof r->draft_notice - 1, why.msg);
    return QSF_OK;
}

/* ---- in use ---- */

void qsf_draft_model_close(QsfRuntime *r) {
    if (r->draft == NULL) return;
    qsf_speculate_close(&r->speculator); /* a source drafts with it */
    qsf_draft_model_destroy(r->draft);
    r->draft = NULL;
}

void qsf_draft_model_follow_plan(QsfRuntime *r, QsfPool *pool) {
    QsfErr none = { 0 };
    if (r->draft != NULL && qsf_draft_model_replan(r->draft, pool, &none) != QSF_OK) qsf_draft_model_close(r);
}

void qsf_draft_model_take(QsfRuntime *r, QsfDraftModel *x) {
    const QsfForwardOptions fo = {
        .table = &r->table, .pool = r->pool, .ledger = &r->ledger, .cancel = r->cancel
    };
    QsfErr err = { 0 };
    if (x == NULL) return;
    r->draft = x;
    if (qsf_draft_model_load(x, &fo, &err) == QSF_OK) return;
    snprintf(r->draft_notice, sizeof r->draft_notice, "draft-model: %.*s", 400, err.msg);
    qsf_draft_model_close(r);
}
