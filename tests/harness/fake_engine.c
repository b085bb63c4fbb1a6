/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A scripted engine. */
#include "tests/harness/fake_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/model_info.h"

static uint64_t fake_load(void *self, const char *path, const QSFSettings *s) {
    FakeEngine *f = self;
    if (f->busy) return 0;
    f->busy = true;
    f->n_loads++;
    f->settings = f->in_force = *s;
    (void)snprintf(f->path, sizeof f->path, "%s", path);
    return ++f->request;
}

static uint64_t fake_submit(void *self, const QSFRequest *r) {
    FakeEngine *f = self;
    if (f->busy) return 0;
    f->busy = true;
    f->n_submits++;
    f->go_on = r->continue_last;
    f->branch = r->branch;
    f->branch_id = r->branch_id;
    f->score = r->score;
    f->n_tokens = r->n_tokens < 16 ? (uint32_t)r->n_tokens : 16;
    for (uint32_t i = 0; i < f->n_tokens; i++) f->given[i] = r->tokens[i];
    f->tokens = (QSFTokens){ 0 };
    (void)snprintf(f->snapshot, sizeof f->snapshot, "%s", r->snapshot ? r->snapshot : "");
    memset(f->roles, 0, sizeof f->roles);
    f->reasoning[0] = '\0';
    f->max_tokens = r->max_tokens;
    f->n_stop = r->n_stop < 8 ? r->n_stop : 8;
    for (size_t i = 0; i < f->n_stop; i++) f->stop[i] = r->stop[i];
    for (size_t i = 0; i < r->n_messages && i + 1 < sizeof f->roles; i++) {
        f->roles[i] = r->messages[i].role[0];
        (void)snprintf(f->last_content, sizeof f->last_content, "%s", r->messages[i].content);
        if (r->messages[i].reasoning_len > 0)
            (void)snprintf(f->reasoning, sizeof f->reasoning, "%s", r->messages[i].reasoning);
    }
    return ++f->request;
}

static void fake_answer_now(void *self) {
    FakeEngine *f = self;
    f->n_answer_now++;
}

static bool fake_ahead(void *self, const QSFRequest *r) {
    FakeEngine *f = self;
    f->n_aheads_stopped += r == NULL;
    if (r == NULL || f->busy) return false;
    const QSFMessage *last = &r->messages[r->n_messages - 1];
    f->n_aheads++;
    (void)snprintf(f->ahead, sizeof f->ahead, "%.*s", (int)last->len, last->content);
    return true;
}

static void fake_cancel(void *self) {
    FakeEngine *f = self;
    f->n_cancels++;
}

static void fake_set_params(void *self, const QSFSettings *s) {
    FakeEngine *f = self;
    f->params = s->params;
    f->n_params++;
}

static bool fake_next(void *self, QSFEvent *e) {
    FakeEngine *f = self;
    if (f->taken == f->n_events) return false;
    const FakeEvent *v = &f->events[f->taken++];
    uint64_t request = v->type == QSF_EVENT_PLAN && !f->busy ? 0 : f->request;
    *e = (QSFEvent){ .type = v->type, .request = request, .text = v->text, .text_len = strlen(v->text) };
    e->stop = v->stop;
    e->code = v->code;
    e->file = v->file;
    e->tokens = v->tokens;
    e->thinking = v->thinking;
    e->reasoning_cut = v->cut;
    e->hidden_tokens = v->hidden;
    e->seed = 7;
    return true;
}

static void fake_replan(void *self, const QSFSettings *s) {
    FakeEngine *f = self;
    f->n_replans++;
    f->wanted = *s;
}

static void fake_settings(void *self, QSFSettings *out) { *out = ((FakeEngine *)self)->in_force; }

static void fake_advise(void *self, QSFSettings *s) {
    qsf_model_defaults_apply(s, &((FakeEngine *)self)->advice);
}

static uint32_t fake_layers(void *self, QSFLayerStats *out, uint32_t max) {
    FakeEngine *f = self;
    for (uint32_t i = 0; i < f->n_layers && i < max; i++) out[i] = f->layers[i];
    return f->n_layers;
}

static uint32_t fake_expert_budgets(void *self, QSFExpertBudget *out, uint32_t max) {
    FakeEngine *f = self;
    for (uint32_t i = 0; i < f->n_expert_budgets && i < max; i++) out[i] = f->expert_budgets[i];
    return f->n_expert_budgets;
}

static int fake_forget_experts(void *self, char *err, size_t cap) {
    FakeEngine *f = self;
    f->n_forgets++;
    if (f->stats.expert.n > 0) return 0;
    (void)snprintf(err, cap, "the model has no experts");
    return 2;
}

static void fake_stats(void *self, QSFStats *out) { *out = ((FakeEngine *)self)->stats; }

static char *fake_describe(void *self, const char *what) {
    FakeEngine *f = self;
    char text[160];
    if (strcmp(what, "ahead") == 0) return strdup(f->why_not_ahead);
    if (strcmp(what, "threads") == 0)
        return strdup("threads: 4 + 4 cores (cpu_capacity)\nthreads: 4 for tokens; not measured: 4, 8\n");
    (void)snprintf(text, sizeof text, "%s of %.40s\n  a region of %.40s\n", what, f->path, f->path);
    return f->stats.state == QSF_STATE_EMPTY ? NULL : strdup(text);
}

/* "role: content" of each message, and whether the last one is continued. */
static char *fake_prompt(void *self, const QSFRequest *r, char *err, size_t cap) {
    FakeEngine *f = self;
    char text[1000] = "";
    if (f->stats.state == QSF_STATE_EMPTY) {
        (void)snprintf(err, cap, "no model");
        return NULL;
    }
    for (size_t i = 0; i < r->n_messages; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s: %.*s\n", r->messages[i].role,
                       (int)r->messages[i].len, r->messages[i].content);
    }
    size_t at = strlen(text);
    (void)snprintf(text + at, sizeof text - at, r->continue_last ? "open" : "asked");
    return strdup(text);
}

static char *fake_templates(void *self) {
    (void)self;
    static const char names[] = "model:rag\0";
    char *copy = malloc(sizeof names);
    if (copy) memcpy(copy, names, sizeof names);
    return copy;
}

static int fake_check(void *self, const QSFSettings *s, char *err, size_t cap) {
    FakeEngine *f = self;
    (void)s;
    if (f->check_code) (void)snprintf(err, cap, "%s", f->check_text);
    return f->check_code;
}

/* A byte is a token, and each message has one additional token. */
static int64_t fake_count(void *self, const QSFRequest *r) {
    FakeEngine *f = self;
    int64_t n = 0;
    f->n_counts++;
    for (size_t i = 0; i < r->n_messages; i++) n += (int64_t)r->messages[i].len + 1;
    return f->stats.state == QSF_STATE_EMPTY ? -1 : n;
}

static void fake_budget_step(void *self, const QSFSettings *s, bool more, QSFBudgetStep *out) {
    FakeEngine *f = self;
    (void)s;
    *out = f->step[more];
}

/* Ten bytes for each. */
static uint64_t fake_text_budget(void *self, const QSFTextSize *size, uint64_t held) {
    FakeEngine *f = self;
    return f->stats.state == QSF_STATE_EMPTY ? 0 : f->stats.budget + size->bytes * 10 + held;
}

static void fake_tokens_of(void *self, QSFTokens *out) { *out = ((FakeEngine *)self)->tokens; }

static uint32_t fake_token_ids(void *self, uint32_t first, int32_t *out, uint32_t max) {
    const FakeEngine *f = self;
    uint32_t n = 0;
    for (; first + n < f->tokens.n && n < max; n++) out[n] = f->rows[first + n].id;
    return n;
}

static uint32_t fake_token_rows(void *self, uint32_t first, QSFToken *out, uint32_t max) {
    const FakeEngine *f = self;
    uint32_t n = 0;
    for (; first + n < f->tokens.n && n < max; n++) out[n] = f->rows[first + n];
    return n;
}

static bool fake_token_why(void *self, uint32_t i, QSFWhy *out) {
    const FakeEngine *f = self;
    *out = f->why;
    return i < f->tokens.n && f->why.n_stages > 0 && f->rows[i].id == f->why.id;
}

/* 200: a control token, 201: a part of a character, 202: a line end, 203 and 204: no name of
 * their own; otherwise its number. */
static size_t fake_token_text(void *self, int32_t id, char *dst, size_t cap, bool *special) {
    char text[24];
    (void)self;
    if (special) *special = id == 200;
    (void)snprintf(text, sizeof text,
                   id == 200   ? "<end>"
                   : id == 201 ? "\xE2\x82"
                   : id == 202 ? "a\n"
                   : id == 203 ? "<unk>"
                               : "t%d",
                   (int)id);
    const size_t n = id == 204 ? 0 : strlen(text);
    memcpy(dst, text, n < cap ? n : cap);
    return n;
}

static int fake_fd(void *self) {
    (void)self;
    return -1;
}

static bool fake_has(void *self, UiNeed need) { return !(((FakeEngine *)self)->lacks & (1u << need)); }

static UiEffect fake_effect(void *self, const QSFSetting *row) {
    const FakeEngine *f = self;
    return f->effect_of && strcmp(row->name, f->effect_of) == 0 ? f->effect : UI_EFFECT_USUAL;
}

static bool fake_model(void *self, size_t i, UiEngineModel *out) {
    const FakeEngine *f = self;
    if (i < f->n_models) *out = f->models[i];
    return i < f->n_models;
}

static bool fake_counted(void *self) { return !((FakeEngine *)self)->guesses; }

UiEngine fake_engine(FakeEngine *f) {
    *f = (FakeEngine){ 0 };
    qsf_settings_default(&f->in_force);
    qsf_settings_default(&f->advice);
    return (UiEngine){ .self = f,
                       .load = fake_load,
                       .submit = fake_submit,
                       .ahead = fake_ahead,
                       .cancel = fake_cancel,
                       .answer_now = fake_answer_now,
                       .set_params = fake_set_params,
                       .next = fake_next,
                       .replan = fake_replan,
                       .settings = fake_settings,
                       .advise = fake_advise,
                       .stats = fake_stats,
                       .layers = fake_layers,
                       .expert_budgets = fake_expert_budgets,
                       .forget_experts = fake_forget_experts,
                       .describe = fake_describe,
                       .prompt = fake_prompt,
                       .check = fake_check,
                       .count = fake_count,
                       .budget_step = fake_budget_step,
                       .text_budget = fake_text_budget,
                       .templates = fake_templates,
                       .tokens = fake_tokens_of,
                       .token_ids = fake_token_ids,
                       .token_rows = fake_token_rows,
                       .token_why = fake_token_why,
                       .token_text = fake_token_text,
                       .fd = fake_fd,
                       .has = fake_has,
                       .effect = fake_effect,
                       .model = fake_model,
                       .counted = fake_counted };
}

static void put(FakeEngine *f, FakeEvent e) {
    if (f->n_events < (int)(sizeof f->events / sizeof f->events[0])) f->events[f->n_events++] = e;
}

void fake_loaded(FakeEngine *f) {
    FakeEvent e = { .type = QSF_EVENT_LOADED, .text = "tiny" };
    f->busy = false;
    f->stats.state = QSF_STATE_IDLE;
    (void)snprintf(f->stats.model_name, sizeof f->stats.model_name, "tiny");
    (void)snprintf(f->stats.model_path, sizeof f->stats.model_path, "%s", f->path);
    put(f, e);
}

void fake_text(FakeEngine *f, const char *text) {
    FakeEvent e = { .type = QSF_EVENT_TEXT, .tokens = 1 };
    (void)snprintf(e.text, sizeof e.text, "%s", text);
    put(f, e);
}

void fake_reasoning(FakeEngine *f, const char *text) {
    FakeEvent e = { .type = QSF_EVENT_REASONING, .tokens = 1 };
    (void)snprintf(e.text, sizeof e.text, "%s", text);
    put(f, e);
}

void fake_done(FakeEngine *f, QSFStop stop, uint32_t tokens) {
    const FakeEvent *last = f->n_events > 0 ? &f->events[f->n_events - 1] : NULL;
    FakeEvent e = { .type = QSF_EVENT_DONE, .stop = stop, .tokens = tokens };
    e.thinking = last != NULL && last->type == QSF_EVENT_REASONING && strstr(last->text, "</think>") == NULL;
    e.cut = f->cut;
    e.hidden = f->hidden;
    f->busy = false;
    put(f, e);
}

void fake_tokens(FakeEngine *f, const char *texts, float p) {
    uint32_t end = 0;
    f->tokens = (QSFTokens){ .request = f->request };
    for (const char *s = texts; *s && f->tokens.n < 16; s += *s == '|') {
        const size_t n = strcspn(s, "|");
        QSFToken *t = &f->rows[f->tokens.n];
        end += (uint32_t)n;
        *t = (QSFToken){ .id = 100 + (int32_t)f->tokens.n, .p = p, .entropy = 1, .text_end = end, .n = 8 };
        for (int i = 0; i < 8; i++)
            t->top[i] = (QSFCandidate){ i == 0 ? t->id : 199 + i, i == 0 ? p : 0.01f };
        f->tokens.n++;
        s += n;
    }
}

void fake_error(FakeEngine *f, int code, const char *text) {
    FakeEvent e = { .type = QSF_EVENT_ERROR, .code = code };
    (void)snprintf(e.text, sizeof e.text, "%s", text);
    f->busy = false;
    put(f, e);
}

void fake_read_error(FakeEngine *f, const char *text) {
    fake_error(f, 1, text);
    f->events[f->n_events - 1].file = true;
}

void fake_plan(FakeEngine *f, int code, const char *text) {
    FakeEvent e = { .type = QSF_EVENT_PLAN, .code = code };
    (void)snprintf(e.text, sizeof e.text, "%s", text);
    if (code == 0) f->in_force = f->wanted;
    put(f, e);
}
