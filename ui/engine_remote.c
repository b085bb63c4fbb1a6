/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements the table of ui/engine.h with the worker and with servers. */
#include "ui/engine_remote.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMPTY_MS   20 /* between two looks at whether the worker is empty */
#define EMPTY_MOST 50 /* such looks */

static const char decides[] = "the model runs on a server, which decides this";

/* What a request or a question is for: while something is loaded, the engine that loads it. */
static bool on_server(const UiEngines *e) { return e->load ? e->load_on_server : e->on_server; }

/* ---- loading ---- */

/* Events of a worker that is being emptied mean nothing to the chat. */
static void drop_unload(UiEngines *e) {
    QSFEvent v;
    while (e->unload && qsf_worker_next(e->worker, &v))
        if (v.request == e->unload && (v.type == QSF_EVENT_DONE || v.type == QSF_EVENT_ERROR)) e->unload = 0;
    if (e->unload && !qsf_worker_busy(e->worker)) e->unload = 0;
}

/* The worker takes one request at a time, and to free a model takes a moment. */
static void wait_until_empty(UiEngines *e) {
    struct pollfd p = { .fd = qsf_worker_fd(e->worker), .events = POLLIN };
    for (int i = 0; e->unload && i < EMPTY_MOST; i++) {
        (void)poll(&p, 1, EMPTY_MS);
        drop_unload(e);
    }
}

static uint64_t both_load(void *self, const char *path, const QSFSettings *s) {
    UiEngines *e = self;
    const bool server = qsf_connect_is(path);
    if (!server) wait_until_empty(e);
    e->load = server ? qsf_remote_load(e->remote, path, s) : e->local.load(e->local.self, path, s);
    e->load_on_server = server;
    return e->load;
}

/* A load that fails leaves the engine that was in use. The memory of a model that a server replaces is given
 * back. */
static void load_ended(UiEngines *e, bool loaded) {
    const bool was = e->on_server;
    e->load = 0;
    if (loaded) e->on_server = e->load_on_server;
    if (e->on_server && !was) e->unload = qsf_worker_unload(e->worker);
}

static bool both_next(void *self, QSFEvent *v) {
    UiEngines *e = self;
    drop_unload(e);
    if (e->plans > 0) {
        e->plans--;
        *v = (QSFEvent){ .type = QSF_EVENT_PLAN, .text = "" };
        return true;
    }
    if (!(on_server(e) ? qsf_remote_next(e->remote, v) : e->local.next(e->local.self, v))) return false;
    if (e->load && v->request == e->load && (v->type == QSF_EVENT_LOADED || v->type == QSF_EVENT_ERROR))
        load_ended(e, v->type == QSF_EVENT_LOADED);
    return true;
}

static int both_fd(void *self) {
    UiEngines *e = self;
    return on_server(e) ? qsf_remote_fd(e->remote) : e->local.fd(e->local.self);
}

/* ---- answers ---- */

static uint64_t both_submit(void *self, const QSFRequest *r) {
    UiEngines *e = self;
    return on_server(e) ? qsf_remote_submit(e->remote, r) : e->local.submit(e->local.self, r);
}

static bool both_ahead(void *self, const QSFRequest *r) {
    UiEngines *e = self;
    return !on_server(e) && e->local.ahead(e->local.self, r);
}

static void both_cancel(void *self) {
    UiEngines *e = self;
    if (on_server(e))
        qsf_remote_cancel(e->remote);
    else
        e->local.cancel(e->local.self);
}

static void both_answer_now(void *self) {
    UiEngines *e = self;
    if (on_server(e))
        qsf_remote_answer_now(e->remote);
    else
        e->local.answer_now(e->local.self);
}

/* ---- settings ---- */

static void both_set_params(void *self, const QSFSettings *s) {
    UiEngines *e = self;
    qsf_remote_set(e->remote, s);
    e->local.set_params(e->local.self, s);
}

static void both_replan(void *self, const QSFSettings *s) {
    UiEngines *e = self;
    if (on_server(e)) {
        qsf_remote_set(e->remote, s);
        e->plans++;
    } else {
        e->local.replan(e->local.self, s);
    }
}

static void both_settings(void *self, QSFSettings *out) {
    UiEngines *e = self;
    if (on_server(e))
        qsf_remote_settings(e->remote, out);
    else
        e->local.settings(e->local.self, out);
}

static void both_advise(void *self, QSFSettings *s) {
    UiEngines *e = self;
    if (!on_server(e)) e->local.advise(e->local.self, s);
}

static int both_check(void *self, const QSFSettings *s, char *err, size_t cap) {
    UiEngines *e = self;
    if (!on_server(e)) return e->local.check(e->local.self, s, err, cap);
    (void)snprintf(err, cap, "%s", decides);
    return 2;
}

static UiEffect both_effect(void *self, const QSFSetting *row) {
    static const UiEffect effects[] = { [QSF_REMOTE_SENT] = UI_EFFECT_SENT,
                                        [QSF_REMOTE_OWN] = UI_EFFECT_OWN,
                                        [QSF_REMOTE_REFUSED] = UI_EFFECT_REFUSED,
                                        [QSF_REMOTE_NONE] = UI_EFFECT_NONE,
                                        [QSF_REMOTE_LOCAL] = UI_EFFECT_USUAL };
    const UiEngines *e = self;
    return on_server(e) ? effects[qsf_remote_effect(e->remote, row)] : UI_EFFECT_USUAL;
}

/* ---- what is known ---- */

static void both_stats(void *self, QSFStats *out) {
    UiEngines *e = self;
    if (on_server(e))
        qsf_remote_stats(e->remote, out);
    else
        e->local.stats(e->local.self, out);
}

static uint32_t both_layers(void *self, QSFLayerStats *out, uint32_t max) {
    UiEngines *e = self;
    return on_server(e) ? 0 : e->local.layers(e->local.self, out, max);
}

static uint32_t both_expert_budgets(void *self, QSFExpertBudget *out, uint32_t max) {
    UiEngines *e = self;
    return on_server(e) ? 0 : e->local.expert_budgets(e->local.self, out, max);
}

static int both_forget_experts(void *self, char *err, size_t cap) {
    UiEngines *e = self;
    if (!on_server(e)) return e->local.forget_experts(e->local.self, err, cap);
    (void)snprintf(err, cap, "%s", decides);
    return 2;
}

static char *both_describe(void *self, const char *what) {
    UiEngines *e = self;
    return on_server(e) ? qsf_remote_describe(e->remote, what) : e->local.describe(e->local.self, what);
}

static char *both_prompt(void *self, const QSFRequest *r, char *err, size_t cap) {
    UiEngines *e = self;
    if (!on_server(e)) return e->local.prompt(e->local.self, r, err, cap);
    (void)snprintf(err, cap, "the server makes it");
    return NULL;
}

static int64_t both_count(void *self, const QSFRequest *r) {
    UiEngines *e = self;
    return on_server(e) ? -1 : e->local.count(e->local.self, r);
}

static void both_budget_step(void *self, const QSFSettings *s, bool more, QSFBudgetStep *out) {
    UiEngines *e = self;
    *out = (QSFBudgetStep){ 0 };
    if (!on_server(e)) e->local.budget_step(e->local.self, s, more, out);
}

static uint64_t both_text_budget(void *self, const QSFTextSize *size, uint64_t held) {
    UiEngines *e = self;
    return on_server(e) ? 0 : e->local.text_budget(e->local.self, size, held);
}

static char *both_templates(void *self) {
    UiEngines *e = self;
    return on_server(e) ? calloc(1, 1) : e->local.templates(e->local.self);
}

static void both_tokens(void *self, QSFTokens *out) {
    UiEngines *e = self;
    *out = (QSFTokens){ 0 };
    if (!on_server(e)) e->local.tokens(e->local.self, out);
}

static uint32_t both_token_ids(void *self, uint32_t first, int32_t *out, uint32_t max) {
    UiEngines *e = self;
    return on_server(e) ? 0 : e->local.token_ids(e->local.self, first, out, max);
}

static uint32_t both_token_rows(void *self, uint32_t first, QSFToken *out, uint32_t max) {
    UiEngines *e = self;
    return on_server(e) ? 0 : e->local.token_rows(e->local.self, first, out, max);
}

static bool both_token_why(void *self, uint32_t i, QSFWhy *out) {
    UiEngines *e = self;
    return !on_server(e) && e->local.token_why(e->local.self, i, out);
}

static size_t both_token_text(void *self, int32_t id, char *dst, size_t cap, bool *special) {
    UiEngines *e = self;
    return on_server(e) ? 0 : e->local.token_text(e->local.self, id, dst, cap, special);
}

static bool both_has(void *self, UiNeed need) {
    const UiEngines *e = self;
    if (need == UI_NEEDS_NOTHING || !on_server(e)) return true;
    return (need == UI_NEEDS_CLOSE && qsf_remote_closes(e->remote)) ||
           (need == UI_NEEDS_RESUME && qsf_remote_resumes(e->remote));
}

static bool both_model(void *self, size_t i, UiEngineModel *out) {
    const UiEngines *e = self;
    QSFRemoteModel m;
    if (!on_server(e) || !qsf_remote_model(e->remote, i, &m)) return false;
    *out = (UiEngineModel){ m.name, m.ctx, m.bytes, m.loaded };
    return true;
}

static bool both_counted(void *self) {
    const UiEngines *e = self;
    return !on_server(e) || qsf_remote_counted(e->remote);
}

UiEngine ui_engine_both(UiEngines *e) {
    e->local = ui_engine_worker(e->worker);
    return (UiEngine){
        .self = e,
        .load = both_load,
        .submit = both_submit,
        .ahead = both_ahead,
        .cancel = both_cancel,
        .answer_now = both_answer_now,
        .set_params = both_set_params,
        .next = both_next,
        .replan = both_replan,
        .settings = both_settings,
        .advise = both_advise,
        .stats = both_stats,
        .layers = both_layers,
        .expert_budgets = both_expert_budgets,
        .forget_experts = both_forget_experts,
        .describe = both_describe,
        .prompt = both_prompt,
        .check = both_check,
        .count = both_count,
        .budget_step = both_budget_step,
        .text_budget = both_text_budget,
        .templates = both_templates,
        .tokens = both_tokens,
        .token_ids = both_token_ids,
        .token_rows = both_token_rows,
        .token_why = both_token_why,
        .token_text = both_token_text,
        .fd = both_fd,
        .has = both_has,
        .effect = both_effect,
        .model = both_model,
        .counted = both_counted,
    };
}
