/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements the table of ui/engine.h with the worker of qsf_engine.h. */
#include "ui/engine.h"

static uint64_t worker_load(void *self, const char *path, const QSFSettings *s) {
    return qsf_worker_load(self, path, s);
}

static uint64_t worker_submit(void *self, const QSFRequest *r) { return qsf_worker_submit(self, r); }

static bool worker_ahead(void *self, const QSFRequest *r) { return qsf_worker_ahead(self, r); }

static void worker_cancel(void *self) { qsf_worker_cancel(self); }

static void worker_answer_now(void *self) { qsf_worker_answer_now(self); }

static void worker_set_params(void *self, const QSFSettings *s) { qsf_worker_set_params(self, &s->params); }

static bool worker_next(void *self, QSFEvent *e) { return qsf_worker_next(self, e); }

static void worker_replan(void *self, const QSFSettings *s) { qsf_worker_replan(self, s); }

static void worker_settings(void *self, QSFSettings *out) { qsf_worker_settings(self, out); }

static void worker_model_defaults(void *self, QSFSettings *s) { qsf_worker_model_defaults(self, s); }

static void worker_stats(void *self, QSFStats *out) { qsf_worker_stats(self, out); }

static uint32_t worker_layers(void *self, QSFLayerStats *out, uint32_t max) {
    return qsf_worker_layers(self, out, max);
}

static uint32_t worker_expert_budgets(void *self, QSFExpertBudget *out, uint32_t max) {
    return qsf_worker_expert_budgets(self, out, max);
}

static int worker_forget_experts(void *self, char *err, size_t cap) {
    return qsf_worker_forget_experts(self, err, cap);
}

static char *worker_describe(void *self, const char *what) { return qsf_worker_describe(self, what); }

static char *worker_prompt(void *self, const QSFRequest *r, char *err, size_t cap) {
    return qsf_worker_prompt(self, r, err, cap);
}

static int worker_check(void *self, const QSFSettings *s, char *err, size_t cap) {
    return qsf_worker_check(self, s, err, cap);
}

static int64_t worker_count(void *self, const QSFRequest *r) { return qsf_worker_count(self, r); }

static void worker_budget_step(void *self, const QSFSettings *s, bool more, QSFBudgetStep *out) {
    qsf_worker_budget_step(self, s, more, out);
}

static uint64_t worker_text_budget(void *self, const QSFTextSize *size, uint64_t held) {
    return qsf_worker_text_budget(self, size, held);
}

static char *worker_templates(void *self) { return qsf_worker_templates(self); }

static void worker_tokens(void *self, QSFTokens *out) { qsf_worker_tokens(self, out); }

static uint32_t worker_token_ids(void *self, uint32_t first, int32_t *out, uint32_t max) {
    return qsf_worker_token_ids(self, first, out, max);
}

static uint32_t worker_token_rows(void *self, uint32_t first, QSFToken *out, uint32_t max) {
    return qsf_worker_token_rows(self, first, out, max);
}

static bool worker_token_why(void *self, uint32_t i, QSFWhy *out) {
    return qsf_worker_token_why(self, i, out);
}

static size_t worker_token_text(void *self, int32_t id, char *dst, size_t cap, bool *special) {
    return qsf_worker_token_text(self, id, dst, cap, special);
}

static int worker_fd(void *self) { return qsf_worker_fd(self); }

static bool worker_has(void *self, UiNeed need) {
    (void)self, (void)need;
    return true;
}

static UiEffect worker_effect(void *self, const QSFSetting *row) {
    (void)self, (void)row;
    return UI_EFFECT_USUAL;
}

static bool worker_model(void *self, size_t i, UiEngineModel *out) {
    (void)self, (void)i, (void)out;
    return false;
}

static bool worker_counted(void *self) {
    (void)self;
    return true;
}

UiEngine ui_engine_worker(QSFWorker *w) {
    return (UiEngine){
        .self = w,
        .load = worker_load,
        .submit = worker_submit,
        .ahead = worker_ahead,
        .cancel = worker_cancel,
        .answer_now = worker_answer_now,
        .set_params = worker_set_params,
        .next = worker_next,
        .replan = worker_replan,
        .settings = worker_settings,
        .advise = worker_model_defaults,
        .stats = worker_stats,
        .layers = worker_layers,
        .expert_budgets = worker_expert_budgets,
        .forget_experts = worker_forget_experts,
        .describe = worker_describe,
        .prompt = worker_prompt,
        .check = worker_check,
        .count = worker_count,
        .budget_step = worker_budget_step,
        .text_budget = worker_text_budget,
        .templates = worker_templates,
        .tokens = worker_tokens,
        .token_ids = worker_token_ids,
        .token_rows = worker_token_rows,
        .token_why = worker_token_why,
        .token_text = worker_token_text,
        .fd = worker_fd,
        .has = worker_has,
        .effect = worker_effect,
        .model = worker_model,
        .counted = worker_counted,
    };
}
