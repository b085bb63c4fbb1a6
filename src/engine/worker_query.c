/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the engine thread publishes, as events and as values, and what the owner asks: settings, statistics,
 * descriptions, prompts as readable text, and whether settings would be accepted. The engine thread waits for
 * an answer only when it replaces a model or a template. */
#include "src/engine/worker_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/adapters.h"
#include "src/engine/draft_model.h"
#include "src/engine/model_info.h"
#include "src/engine/quality/quality.h"
#include "src/forward/forward.h"
#include "src/plan/budget.h"

/* ---- events ---- */

void qsf_worker_emit(QSFWorker *w, QSFEventType type, const char *text) {
    QSFEvent e = { .type = type, .request = w->running, .text = text, .text_len = strlen(text) };
    qsf_events_push(&w->events, &e, NULL);
}

void qsf_worker_end(QSFWorker *w, QSFEvent *e, QSFState state) {
    e->request = w->running;
    qsf_live_stats_state(&w->stats, state);
    qsf_events_push(&w->events, e, &w->busy);
}

void qsf_worker_fail(QSFWorker *w, const QsfErr *err) {
    QSFEvent e = { .type = QSF_EVENT_ERROR,
                   .code = err->code,
                   .file = err->file,
                   .own = err->file || err->memory || err->numbers,
                   .needed = err->code == QSF_E_BUDGET ? w->rt.needed : 0,
                   .left = err->code == QSF_E_BUDGET ? w->rt.left : 0,
                   .text = err->msg,
                   .text_len = strlen(err->msg) };
    qsf_worker_end(w, &e, w->loaded ? QSF_STATE_IDLE : QSF_STATE_EMPTY);
}

/* ---- values written by the engine thread ---- */

void qsf_worker_set_settings(QSFWorker *w, const QSFSettings *s) {
    pthread_mutex_lock(&w->lock);
    w->settings = *s;
    pthread_mutex_unlock(&w->lock);
}

void qsf_worker_set_advice(QSFWorker *w, const QSFSettings *advice) {
    pthread_mutex_lock(&w->lock);
    w->advice = *advice;
    pthread_mutex_unlock(&w->lock);
}

void qsf_worker_set_text(QSFWorker *w, char **slot, char *text) {
    pthread_mutex_lock(&w->lock);
    char *old = *slot;
    *slot = text;
    pthread_mutex_unlock(&w->lock);
    free(old);
}

void qsf_worker_publish_plan(QSFWorker *w) {
    pthread_mutex_lock(&w->lock);
    w->plan_options = w->rt.plan_options;
    w->plan_options.kv_now = w->rt.plan.kv;
    pthread_mutex_unlock(&w->lock);
    qsf_worker_set_text(w, &w->text_plan, qsf_plan_text(&w->rt.plan));
    (void)qsf_worker_publish_ahead(w);
}

/* Why nothing is evaluated ahead; NULL = it is. */
static const char *ahead_reason(QSFWorker *w) {
    const QsfForward *f = w->rt.fwd;
    QSFParams p;
    qsf_worker_get_params(w, &p);
    if (qsf_forward_evicts(f)) return "an eviction policy chooses among what is evaluated\n";
    if (qsf_quality_of(&p).value < 1 || qsf_quality_measures(&w->rt, &p))
        return "with a quality below 1, what is read is measured\n";
    if (!qsf_forward_cuts(f))
        return "the model has recurrent layers, or its KV cache has two bits or was converted: what was "
               "evaluated cannot be taken back\n";
    return NULL;
}

bool qsf_worker_publish_ahead(QSFWorker *w) {
    const char *why = ahead_reason(w);
    qsf_worker_set_text(w, &w->text_ahead, strdup(why != NULL ? why : ""));
    return why == NULL;
}

void qsf_worker_lend(QSFWorker *w, bool lent) {
    pthread_mutex_lock(&w->lend_lock);
    w->lent = lent;
    pthread_mutex_unlock(&w->lend_lock);
}

/* ---- settings ---- */

void qsf_worker_set_params(QSFWorker *w, const QSFParams *p) {
    if (w == NULL || p == NULL) return;
    pthread_mutex_lock(&w->lock);
    w->params = *p;
    pthread_mutex_unlock(&w->lock);
}

void qsf_worker_get_params(QSFWorker *w, QSFParams *p) {
    if (w == NULL || p == NULL) return;
    pthread_mutex_lock(&w->lock);
    *p = w->params;
    pthread_mutex_unlock(&w->lock);
}

void qsf_worker_settings(QSFWorker *w, QSFSettings *s) {
    if (w == NULL || s == NULL) return;
    pthread_mutex_lock(&w->lock);
    *s = w->settings;
    s->params = w->params;
    pthread_mutex_unlock(&w->lock);
}

void qsf_worker_model_defaults(QSFWorker *w, QSFSettings *s) {
    if (w == NULL || s == NULL) return;
    pthread_mutex_lock(&w->lock);
    QSFSettings advice = w->advice;
    pthread_mutex_unlock(&w->lock);
    qsf_model_defaults_apply(s, &advice);
}

#define BYTES_PER_TEXT_BYTE 8u          /* rendered text, ids, and the text made of them */
#define BUSY_MAX            (96u << 10) /* bytes of messages that fit into the slack of every plan */
#define BUSY_TOKENIZING     (1u << 20)  /* bytes for tokenizing them */

/* ---- statistics and descriptions ---- */

void qsf_worker_stats(QSFWorker *w, QSFStats *out) {
    if (w != NULL && out != NULL) qsf_live_stats_snapshot(&w->stats, out);
}

uint32_t qsf_worker_layers(QSFWorker *w, QSFLayerStats *out, uint32_t max) {
    uint32_t n = w != NULL ? qsf_live_stats_layers(&w->stats, NULL, 0) : 0;
    if (n == 0 || out == NULL || max == 0) return n;
    return qsf_live_stats_layers(&w->stats, out, max < n ? max : n); /* max may be any number and is not an
                                                                        allocated size */
}

/* All experts are in memory: a plan with half of it tells how many would be there. */
static void plan_fewer(QSFWorker *w, QsfExpertFacts *f) {
    QsfPlan p;
    QsfErr err = { 0 };
    pthread_mutex_lock(&w->lock);
    QsfPlanOptions o = w->plan_options;
    pthread_mutex_unlock(&w->lock);
    f->from_slots = 0;
    o.budget = (qsf_plan_smallest(&w->rt.model, &o) + f->slot_bytes * f->n / 2) >> 20 << 20;
    if (qsf_plan_make(&p, &w->rt.model, &o, &err) != QSF_OK) return;
    f->from = o.budget;
    f->from_slots = p.expert_slots + (uint32_t)(p.lent_weight / (p.expert_bytes / p.n_experts));
    if (p.expert_slots == 0) f->from_slots = 0;
    qsf_plan_free(&p);
}

/* Some are not in memory: finds the budget with which all are. */
static void plan_full(QSFWorker *w, QsfExpertFacts *f) {
    QsfPlan p;
    QsfErr err = { 0 };
    pthread_mutex_lock(&w->lock);
    QsfPlanOptions o = w->plan_options;
    pthread_mutex_unlock(&w->lock);
    o.available = qsf_planning_memory(&w->rt.facts).available;
    if (qsf_plan_make(&p, &w->rt.model, &o, &err) != QSF_OK) return;
    f->full = qsf_plan_full_budget(&w->rt.model, &o, &p);
    qsf_plan_free(&p);
}

uint32_t qsf_worker_expert_budgets(QSFWorker *w, QSFExpertBudget *out, uint32_t max) {
    QsfForwardStats s;
    QsfExpertFacts f;
    uint32_t n = 0;
    if (w == NULL || out == NULL || !qsf_live_stats_experts(&w->stats, &s, &f) || f.n == 0) return 0;
    pthread_mutex_lock(&w->lend_lock);
    if (w->lent && f.slots == f.n) plan_fewer(w, &f);
    if (w->lent && f.slots < f.n) plan_full(w, &f);
    if (w->lent) n = qsf_expert_budgets(&f, out, max);
    pthread_mutex_unlock(&w->lend_lock);
    return n;
}

int qsf_worker_forget_experts(QSFWorker *w, char *err, size_t cap) {
    QsfErr e = { 0 };
    if (err == NULL) cap = 0;
    if (w == NULL) {
        snprintf(err, cap, "the worker is NULL");
        return QSF_E_USAGE;
    }
    pthread_mutex_lock(&w->lend_lock);
    int rc = w->lent ? qsf_learning_forget(&w->rt, &e) : qsf_err_set(&e, QSF_E_MODEL, "no model is loaded");
    pthread_mutex_unlock(&w->lend_lock);
    if (rc != QSF_OK) snprintf(err, cap, "%s", e.msg);
    return rc;
}

char *qsf_worker_describe(QSFWorker *w, const char *what) {
    if (w == NULL || what == NULL) return NULL;
    if (strcmp(what, "memory") == 0) return qsf_live_stats_memory(&w->stats);
    if (strcmp(what, "threads") == 0) return qsf_live_stats_threads(&w->stats);
    pthread_mutex_lock(&w->lock);
    const char *text = strcmp(what, "model") == 0      ? w->text_model
                       : strcmp(what, "plan") == 0     ? w->text_plan
                       : strcmp(what, "template") == 0 ? w->text_template
                       : strcmp(what, "quality") == 0  ? w->text_quality
                       : strcmp(what, "ahead") == 0    ? w->text_ahead
                       : strcmp(what, "answer") == 0   ? w->text_answer
                                                       : NULL;
    char *copy = text != NULL ? strdup(text) : NULL;
    pthread_mutex_unlock(&w->lock);
    return copy;
}

/* ---- tokens of the last answer ---- */

void qsf_worker_tokens(QSFWorker *w, QSFTokens *out) {
    if (w != NULL && out != NULL) qsf_answer_tokens_info(&w->tokens, out);
}

uint32_t qsf_worker_token_ids(QSFWorker *w, uint32_t first, int32_t *out, uint32_t max) {
    return w != NULL && out != NULL ? qsf_answer_tokens_ids(&w->tokens, first, out, max) : 0;
}

uint32_t qsf_worker_token_rows(QSFWorker *w, uint32_t first, QSFToken *out, uint32_t max) {
    return w != NULL && out != NULL ? qsf_answer_tokens_rows(&w->tokens, first, out, max) : 0;
}

bool qsf_worker_token_why(QSFWorker *w, uint32_t i, QSFWhy *out) {
    return w != NULL && out != NULL && qsf_answer_tokens_get_why(&w->tokens, i, out);
}

size_t qsf_worker_token_text(QSFWorker *w, int32_t id, char *dst, size_t cap, bool *special) {
    size_t n = 0;
    if (special != NULL) *special = false;
    if (w == NULL || (dst == NULL && cap > 0)) return 0;
    pthread_mutex_lock(&w->lend_lock);
    if (w->lent && id >= 0 && (uint32_t)id < qsf_tokenizer_n_vocab(w->rt.tok)) {
        n = qsf_tokenizer_piece(w->rt.tok, id, true, dst, cap);
        if (special != NULL) *special = qsf_tokenizer_type(w->rt.tok, id) == QSF_TOKEN_CONTROL;
    }
    pthread_mutex_unlock(&w->lend_lock);
    return n;
}

/* ---- prompts ---- */

/* out: the prompt as text; NULL: only count it. */
typedef struct Prompt {
    QsfStrbuf *out;
    size_t tokens;
    QsfLedger *ledger; /* for tokenizing */
} Prompt;

static int make(QSFWorker *w, const QsfRequestCopy *r, Prompt *p, QsfErr *err) {
    QsfIds ids = { .ledger = p->ledger };
    size_t special = 0;
    QsfThinkPrompt where;
    QSFParams params;
    qsf_worker_get_params(w, &params);
    int rc = qsf_request_encode(&w->rt, r, qsf_request_chat_flags(r, &params), &ids, &where, err);
    if (rc == QSF_OK && p->out != NULL) {
        rc = qsf_chat_show(w->rt.tok, &ids, p->out, &special, err);
        qsf_strbuf_addf(p->out,
                        "\n%zu tokens, %zu of them special (between " QSF_CHAT_MARK_OPEN
                        " and " QSF_CHAT_MARK_CLOSE ")\n",
                        ids.n, special);
    }
    p->tokens = ids.n;
    qsf_ids_free(&ids);
    return rc;
}

static int copy_and_make(QSFWorker *w, const QSFRequest *r, Prompt *p, QsfErr *err) {
    QsfRequestCopy *copy = qsf_request_copy(r, 0);
    if (copy == NULL) return qsf_err_memory(err, "the prompt as text");
    int rc = make(w, copy, p, err);
    free(copy);
    return rc;
}

static int refuse_busy(QsfErr *err) {
    return qsf_err_set(err, QSF_E_BUDGET,
                       "the conversation is too long to be shown while an answer is generated");
}

/* A ledger of its own keeps this within the slack of the plan. */
static int make_busy(QSFWorker *w, const QSFRequest *r, Prompt *p, QsfErr *err) {
    QsfLedger slack;
    QsfErr why = { 0 };
    qsf_ledger_init(&slack, BUSY_TOKENIZING);
    p->ledger = &slack;
    int rc = copy_and_make(w, r, p, &why);
    qsf_ledger_destroy(&slack);
    return rc == QSF_E_BUDGET ? refuse_busy(err) : qsf_err_pass(err, &why);
}

/* While an answer is generated nothing may be charged, so long conversations are rejected. */
static int charge_and_make(QSFWorker *w, const QSFRequest *r, Prompt *p, QsfErr *err) {
    const size_t text = qsf_request_text_bytes(r);
    const uint64_t bytes = (uint64_t)text * BYTES_PER_TEXT_BYTE;
    if (!w->lent) return qsf_err_set(err, QSF_E_MODEL, "no model is loaded: /model FILE opens one");
    if (atomic_load(&w->busy)) {
        return text <= BUSY_MAX ? make_busy(w, r, p, err) : refuse_busy(err);
    }
    int rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes, "the text of the prompt", err);
    if (rc != QSF_OK) return rc;
    p->ledger = &w->rt.ledger;
    rc = copy_and_make(w, r, p, err);
    qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes);
    return rc;
}

static int prompt(QSFWorker *w, const QSFRequest *r, Prompt *p, QsfErr *err) {
    pthread_mutex_lock(&w->lend_lock);
    int rc = charge_and_make(w, r, p, err);
    pthread_mutex_unlock(&w->lend_lock);
    return rc;
}

/* Takes a text that may contain NULs, which are ^@ in the string. NULL without memory. */
static char *take_string(QsfStrbuf *b) {
    QsfStrbuf whole = QSF_STRBUF_INIT;
    const char *s = qsf_strbuf_str(b), *end = s + b->len, *nul;
    for (; (nul = memchr(s, '\0', (size_t)(end - s))) != NULL; s = nul + 1) {
        qsf_strbuf_add(&whole, s, (size_t)(nul - s));
        qsf_strbuf_adds(&whole, "^@");
    }
    if (whole.len == 0) return qsf_strbuf_take(b, NULL);
    qsf_strbuf_add(&whole, s, (size_t)(end - s));
    return qsf_strbuf_take(&whole, NULL);
}

char *qsf_worker_prompt(QSFWorker *w, const QSFRequest *r, char *err, size_t cap) {
    QsfErr e = { 0 };
    QsfStrbuf out = QSF_STRBUF_INIT;
    Prompt p = { .out = &out };
    if (err == NULL) cap = 0;
    if (w == NULL || !qsf_request_ok(r)) {
        snprintf(err, cap, "the worker, the request or a string in it is NULL");
        return NULL;
    }
    int rc = prompt(w, r, &p, &e);
    char *text = rc == QSF_OK ? take_string(&out) : NULL;
    if (text == NULL) snprintf(err, cap, "%s", rc == QSF_OK ? "out of memory" : e.msg);
    qsf_strbuf_free(&out);
    return text;
}

int64_t qsf_worker_count(QSFWorker *w, const QSFRequest *r) {
    QsfErr e = { 0 };
    Prompt p = { 0 };
    if (w == NULL || !qsf_request_ok(r)) return -1;
    return prompt(w, r, &p, &e) == QSF_OK ? (int64_t)p.tokens : -1;
}

char *qsf_worker_templates(QSFWorker *w) {
    if (w == NULL) return NULL;
    pthread_mutex_lock(&w->lend_lock);
    char *names = w->lent ? qsf_chat_template_variants(w->rt.model.src) : calloc(1, 1);
    pthread_mutex_unlock(&w->lend_lock);
    return names;
}

void qsf_text_size_add(QSFTextSize *size, const char *text, size_t len) {
    if (size == NULL || text == NULL) return;
    QsfWords words = { .longest = size->longest, .run = size->run, .blank = size->blank };
    qsf_words_feed(&words, text, len);
    *size = (QSFTextSize){ size->bytes + len, words.longest, words.run, words.blank };
}

/* As qsf_prompt_need, of a text that is not known. */
static uint64_t size_need(const QsfRuntime *r, const QSFTextSize *size) {
    const uint64_t copies = size->bytes * QSF_REQUEST_BYTES;
    const bool tokenized = r->fwd == NULL || qsf_forward_evicts(r->fwd) ||
                           qsf_tokenizer_least(r->tok, NULL, size->bytes) <= qsf_forward_ctx(r->fwd);
    return copies + (tokenized ? qsf_tokenizer_need(r->tok, size->bytes, size->longest) : 0);
}

uint64_t qsf_worker_text_budget(QSFWorker *w, const QSFTextSize *size, uint64_t held) {
    uint64_t bytes = 0;
    if (w == NULL || size == NULL || pthread_mutex_trylock(&w->lend_lock) != 0) return 0;
    if (w->lent) {
        pthread_mutex_lock(&w->lock);
        const QsfPlanOptions from = w->plan_options;
        pthread_mutex_unlock(&w->lock);
        bytes = qsf_prompt_budget(&w->rt.model, &from, size_need(&w->rt, size) + held);
    }
    pthread_mutex_unlock(&w->lend_lock);
    return bytes;
}

/* ---- would these settings be accepted? ---- */

/* Tokens that a new plan must keep: between two answers those that do not fit are dropped (worker_load.c). */
static uint32_t kept_tokens(QSFWorker *w, const QSFSettings *s, const QSFStats *st) {
    if (atomic_load(&w->busy) || s->ctx == 0 || st->ctx_used < s->ctx) return st->ctx_used;
    return s->ctx - 1;
}

static int check_plan(QSFWorker *w, const QSFSettings *s, QsfErr *err) {
    QSFStats st;
    QsfPlanOptions from, o;
    qsf_worker_stats(w, &st);
    pthread_mutex_lock(&w->lock);
    from = w->plan_options;
    bool load = (qsf_settings_differ(&w->settings, s) & QSF_SETTING_RELOAD) != 0;
    pthread_mutex_unlock(&w->lock);
    const QsfPlanMemory memory = qsf_planning_memory(&w->rt.facts);
    if (load)
        qsf_plan_options_first(&o, s, &w->rt.facts, memory);
    else
        qsf_plan_options_next(&o, &from, s, from.kv_now, kept_tokens(w, s, &st), st.ctx_size, memory);
    return qsf_plan_check(&w->rt.model, &o, err);
}

static void find_step(QSFWorker *w, const QSFSettings *s, bool more, QSFBudgetStep *out) {
    QSFStats st;
    QsfPlanOptions from, o;
    QsfPlan plan;
    QsfErr err = { 0 };
    qsf_worker_stats(w, &st);
    pthread_mutex_lock(&w->lock);
    from = w->plan_options;
    pthread_mutex_unlock(&w->lock);
    const QsfPlanMemory memory = qsf_planning_memory(&w->rt.facts);
    out->available = memory.available;
    qsf_plan_options_next(&o, &from, s, from.kv_now, kept_tokens(w, s, &st), st.ctx_size, memory);
    o.budget = st.budget;
    if (qsf_plan_make(&plan, &w->rt.model, &o, &err) != QSF_OK) return;
    qsf_plan_next_budget(&w->rt.model, &o, &plan, more, out);
    out->ctx_now = st.ctx_size;
    if (out->budget == 0) out->ctx = st.ctx_size;
    qsf_plan_free(&plan);
}

void qsf_worker_budget_step(QSFWorker *w, const QSFSettings *s, bool more, QSFBudgetStep *out) {
    if (out != NULL) *out = (QSFBudgetStep){ 0 };
    if (w == NULL || s == NULL || out == NULL) return;
    pthread_mutex_lock(&w->lend_lock);
    if (w->lent) find_step(w, s, more, out);
    pthread_mutex_unlock(&w->lend_lock);
}

/* As set_eviction of runtime.c, but for the system prompt of the next request, which is not known. */
static int check_policy(QSFWorker *w, const QSFSettings *s, QsfErr *err) {
    QSFStats st;
    qsf_worker_stats(w, &st);
    const uint32_t ctx = s->ctx > 0 ? s->ctx : st.ctx_size;
    const QsfEvictKind kind = qsf_evict_parse(s->eviction);
    const QsfEvict e = { .kind = kind == QSF_EVICT_N ? QSF_EVICT_NONE : kind,
                         .protect = s->protected_prefix == QSF_PROTECT_NOTHING ? 0
                                    : s->protected_prefix > 0                  ? s->protected_prefix
                                    : ctx / 2 < QSF_EVICT_SINKS                ? ctx / 2
                                                                               : QSF_EVICT_SINKS };
    return qsf_evict_check(&w->rt.model, &e, ctx / QK_KV_TILE * QK_KV_TILE, err);
}

static int check_template(QSFWorker *w, const QSFSettings *s, QsfErr *err) {
    QsfChatTemplate *t = NULL;
    const char *name = s->chat_template[0] != '\0' ? s->chat_template : NULL;
    int rc = qsf_chat_template_open(&t, w->rt.model.src, w->rt.tok, name, NULL, 0, err);
    if (rc == QSF_OK) qsf_chat_template_close(t);
    return rc;
}

int qsf_worker_check(QSFWorker *w, const QSFSettings *s, char *err, size_t cap) {
    QsfErr e = { 0 };
    qk_level level;
    QSFSettings now;
    if (err == NULL) cap = 0;
    if (w == NULL || s == NULL) {
        snprintf(err, cap, "the worker or the settings are NULL");
        return QSF_E_USAGE;
    }
    if (qsf_settings_check(s, err, cap) != 0) return QSF_E_USAGE;
    qsf_worker_settings(w, &now);
    pthread_mutex_lock(&w->lend_lock);
    int rc = QSF_OK;
    if (w->lent) rc = qsf_runtime_level(s, &level, &e);
    if (w->lent && rc == QSF_OK) rc = check_plan(w, s, &e);
    if (w->lent && rc == QSF_OK) rc = qsf_adapters_check(&w->rt.model, s, &now, &e);
    if (w->lent && rc == QSF_OK && strcmp(s->eviction, now.eviction) != 0) rc = check_policy(w, s, &e);
    if (w->lent && rc == QSF_OK && strcmp(s->chat_template, now.chat_template) != 0)
        rc = check_template(w, s, &e);
    if (w->lent && rc == QSF_OK && strcmp(s->draft_model, now.draft_model) != 0)
        rc = qsf_draft_model_probe(&w->rt.model, s, &e);
    pthread_mutex_unlock(&w->lend_lock);
    if (rc != QSF_OK) snprintf(err, cap, "%s", e.msg);
    return rc == QSF_OK ? 0 : e.code;
}
