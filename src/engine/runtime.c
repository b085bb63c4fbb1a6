/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the parts of a loaded model, cheapest checks first, and changes the plan of a running
 * one: what the new plan does not use is freed before anything is allocated, and the old plan
 * is restored when that fails. */
#include "src/engine/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/platform.h"
#include "src/engine/adapters.h"
#include "src/engine/draft_model.h"
#include "src/engine/drafters.h"
#include "src/engine/grammar_hold.h"
#include "src/engine/model_info.h"
#include "src/engine/nextn.h"
#include "src/engine/open_model.h"
#include "src/engine/quality/quality.h"
#include "src/forward/routes.h"
#include "src/model/purpose.h"

#define HEADERS   (16u << 20) /* of adapters that are opened beside those in use */
#define WAYS_FROM (64u << 20) /* smaller models: the ways of reading are not measured */

/* ---- a plan and the process ---- */

QsfPlanMemory qsf_planning_memory(const QsfPlanFacts *facts) {
    const uint64_t rss = qsf_rss_bytes(), own = rss > facts->resident ? rss - facts->resident : 0;
    return (QsfPlanMemory){ qsf_available_bytes() + own, qsf_limit_below("") };
}

int qsf_planning_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o, const QsfPlanFacts *facts,
                      QsfErr *err) {
    int rc = qsf_plan_make(p, m, o, err);
    if (rc != QSF_OK) return rc;
    p->rows[QSF_MEM_CODE] -= facts->stack_bytes;
    p->rows[QSF_MEM_STACKS] += facts->stack_bytes;
    return QSF_OK;
}

static const QsfMemCat charged[] = { QSF_MEM_CODE, QSF_MEM_KERNEL };
#define N_CHARGED (sizeof charged / sizeof *charged)

/* Charges the stack and the rows of p that do not correspond to an allocation. QSF_E_BUDGET. */
static int charge(QsfLedger *l, const QsfPlan *p, const QsfPlanFacts *facts, QsfErr *err) {
    int rc = qsf_ledger_reserve(l, QSF_MEM_STACKS, facts->stack_bytes, "engine stack", err);
    for (size_t i = 0; rc == QSF_OK && i < N_CHARGED; i++)
        rc = qsf_ledger_reserve(l, charged[i], p->rows[charged[i]], qsf_mem_cat_name(charged[i]), err);
    return rc;
}

static void uncharge(QsfLedger *l, const QsfPlan *p, const QsfPlanFacts *facts) {
    qsf_ledger_release(l, QSF_MEM_STACKS, facts->stack_bytes);
    for (size_t i = 0; i < N_CHARGED; i++) qsf_ledger_release(l, charged[i], p->rows[charged[i]]);
}

/* Resets the recent peak that the kernel reports if it is above budget and the resident set is not: it
 * belongs to an earlier, larger budget. */
static void settle_peak(uint64_t budget) {
    if (qsf_recent_peak_rss_bytes() > budget && qsf_rss_bytes() <= budget) qsf_peak_rss_reset();
}

/* ---- opening ---- */

int qsf_runtime_level(const QSFSettings *s, qk_level *out, QsfErr *err) {
    const char *word = s->cpu_mask, *from = "cpu-mask";
    if (*word == '\0') {
        word = getenv("QSF_CPU_MASK");
        from = "QSF_CPU_MASK";
    }
    *out = qk_cpu_best();
    if (word == NULL || *word == '\0') return QSF_OK;
    qk_level level = qk_level_parse(word);
    if (level == QK_LEVEL_UNKNOWN)
        return qsf_err_set(err, QSF_E_USAGE, "%s: unknown level '%.40s'", from, word);
    if (!qk_cpu_has(level))
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: this CPU, or this build, has no %s; the best level is %s",
                           from, qk_level_name(level), qk_level_name(*out));
    *out = level;
    return QSF_OK;
}

static int check_cancel(const QsfRuntimeOptions *o, QsfErr *err) {
    if (o->cancel == NULL || atomic_load(o->cancel) == 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_INTERRUPTED, "loading was cancelled");
}

static int open_source(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err) {
    int rc = qsf_source_open_tokens(&r->model.src, path, &r->ledger, err);
    for (size_t i = 0; rc == QSF_OK && o->overrides != NULL && o->overrides[i] != NULL; i++)
        rc = qsf_source_override(r->model.src, o->overrides[i], err);
    if (rc == QSF_OK) rc = qsf_purpose_check(r->model.src, err);
    if (rc == QSF_OK) rc = qsf_tokenizer_open(&r->tok, r->model.src, &r->ledger, err);
    return rc == QSF_OK && o->with_template ? qsf_runtime_template(r, o->settings.chat_template, err) : rc;
}

/* resident: the resident set before anything was opened. */
static QsfPlanFacts measure_facts(const QsfRuntime *r, const QsfRuntimeOptions *o, uint64_t resident) {
    return (QsfPlanFacts){
        .resident = resident,
        .stack_bytes = o->stack_bytes,
        .tokenizer_bytes = qsf_tokenizer_estimate(r->model.src),
        .meta_bytes = r->ledger.used[QSF_MEM_META],
        .transcript_bytes = o->transcript_bytes +
                            (o->settings.trace_experts[0] != '\0' ? QSF_ROUTES_BYTES : 0) + r->hold_reserved,
        .exact = o->exact,
    };
}

/* Fills r->budget_notice, r->stream_notice and r->ctx_notice for the plan in force. */
static void update_notices(QsfRuntime *r) {
    qsf_nextn_explain(r);
    qsf_plan_budget_notice(&r->plan_options, &r->plan, r->budget_notice, sizeof r->budget_notice);
    qsf_plan_ctx_notice(&r->model, &r->plan, r->ctx_notice, sizeof r->ctx_notice);
    qsf_plan_stream_notice(&r->model, &r->plan_options, &r->plan, r->stream_notice, sizeof r->stream_notice);
}

static int open_plan(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base,
                     QsfErr *err) {
    qk_level level;
    QsfDrafters beside = { 0 };
    uint64_t opening = 0;
    int rc = qsf_runtime_level(&o->settings, &level, err);
    if (rc == QSF_OK) rc = qsf_open_model(r, path, o, base, &opening, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_check_weights(&r->model, err);
    if (rc != QSF_OK) return rc;
    qk_table_init(&r->table, level);
    if (o->settings.params.grammar_kind != QSF_GRAMMAR_NONE)
        r->hold_reserved = qsf_grammar_hold_bytes(r->model.hp.n_vocab);
    r->facts = measure_facts(r, o, base);
    qsf_plan_options_first(&r->plan_options, &o->settings, &r->facts, qsf_planning_memory(&r->facts));
    r->plan_options.opening_bytes = opening;
    rc = qsf_open_adapters(&r->adapters, r, &o->settings, NULL,
                           opening > 0 ? opening : qsf_opening_budget(&o->settings, base), err);
    if (rc != QSF_OK) return rc;
    r->plan_options.adapters = r->adapters;
    if (o->learn) qsf_learning_open(r);
    r->plan_options.expert_depth = qsf_learning_depth(r);
    r->may_draft = o->may_draft;
    memcpy(r->draft_file, o->settings.draft_model, sizeof r->draft_file);
    if (o->nextn > 0)
        rc = qsf_nextn_compare(r, o->nextn_first, o->nextn, &r->plan_options, &r->plan, &r->nextn, err);
    else
        rc = qsf_drafters_planning(r, &r->plan_options, &r->plan, &beside, err);
    if (rc != QSF_OK) return rc;
    if (o->nextn == 0) r->nextn = beside.nextn;
    r->draft = beside.draft;
    r->budget = r->plan.budget;
    r->threads = r->plan.threads;
    settle_peak(r->budget);
    update_notices(r);
    qsf_ledger_set_limit(&r->ledger, r->budget);
    return charge(&r->ledger, &r->plan, &r->facts, err);
}

bool qsf_runtime_ends(const QsfRuntime *r, int32_t id) {
    if (qsf_tokenizer_is_eog(r->tok, id)) return true;
    for (size_t i = 0; i < r->n_eog; i++)
        if (r->eog[i] == id) return true;
    return false;
}

/* Collects the vocabulary's end tokens and the one that the template ends a turn with (-1 = none). */
static void collect_ends(QsfRuntime *r, int32_t turn_end) {
    uint32_t n = qsf_tokenizer_n_vocab(r->tok);
    r->n_eog = 0;
    for (uint32_t i = 0; i < n && r->n_eog < QSF_EOG_MAX - 1; i++)
        if (qsf_tokenizer_is_eog(r->tok, (int32_t)i)) r->eog[r->n_eog++] = (int32_t)i;
    if (turn_end >= 0 && !qsf_runtime_ends(r, turn_end)) r->eog[r->n_eog++] = turn_end;
}

int qsf_runtime_template(QsfRuntime *r, const char *name, QsfErr *err) {
    r->reasoning_noted = r->lost_noted = false;
    QsfChatTemplate *t;
    int32_t turn_end = -1;
    int rc = qsf_chat_template_open(&t, r->model.src, r->tok, *name != '\0' ? name : NULL, r->tmpl_notice,
                                    sizeof r->tmpl_notice, err);
    if (rc == QSF_OK && (rc = qsf_chat_turn_end(t, r->tok, &turn_end, err)) != QSF_OK)
        qsf_chat_template_close(t);
    if (rc != QSF_OK) return rc;
    qsf_chat_template_close(r->tmpl);
    r->tmpl = t;
    collect_ends(r, turn_end);
    qsf_grammar_hold_close(r); /* which tokens end an answer has changed */
    const char *text = t != NULL ? qsf_chat_template_source(t) : NULL;
    qsf_think_detect(&r->think, r->tok, text, text != NULL ? strlen(text) : 0);
    qsf_think_detect(&r->think_raw, r->tok, NULL, 0);
    return QSF_OK;
}

static int open_text(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err) {
    (void)path;
    int rc = qsf_tokenizer_open(&r->tok, r->model.src, &r->ledger, err);
    return rc == QSF_OK ? qsf_runtime_template(r, o->settings.chat_template, err) : rc;
}

/* Runs before the weights are loaded: the disk is idle, and the memory for the weights is free. */
static int open_pool(QsfRuntime *r, const QsfRuntimeOptions *o, QsfErr *err) {
    int rc = qsf_pool_create(&r->pool, r->threads, &r->ledger, err);
    /* A small model is in the caches. */
    if (rc == QSF_OK && !o->plan_only && !qk_ways_are_known() && r->plan.weight_bytes >= WAYS_FROM)
        qsf_measure_ways(&r->table, &r->plan, &r->model, r->pool);
    if (rc == QSF_OK && o->predict) qsf_predict(&r->prediction, &r->plan, &r->model, &r->table, r->pool);
    return rc;
}

/* Sets the eviction policy of these settings. Errors of qsf_forward_evict. */
static int set_eviction(QsfRuntime *r, const QSFSettings *s, QsfErr *err) {
    const QsfEvictKind kind = qsf_evict_parse(s->eviction);
    const uint32_t half = qsf_forward_ctx(r->fwd) / 2;
    uint32_t automatic = r->system_tokens > QSF_EVICT_SINKS ? r->system_tokens : QSF_EVICT_SINKS;
    if (automatic > half) automatic = half;
    const QsfEvict e = { .kind = kind == QSF_EVICT_N ? QSF_EVICT_NONE : kind,
                         .window = s->eviction_window,
                         .protect = s->protected_prefix == QSF_PROTECT_NOTHING ? 0
                                    : s->protected_prefix > 0                  ? s->protected_prefix
                                                                               : automatic };
    return qsf_forward_evict(r->fwd, &e, err);
}

void qsf_runtime_protect(QsfRuntime *r, uint32_t n) {
    QsfErr err = { 0 };
    if (n == r->system_tokens) return;
    r->system_tokens = n;
    if (!qsf_forward_evicts(r->fwd) || set_eviction(r, &r->settings, &err) == QSF_OK) return;
    r->system_tokens = 0; /* a context that is too small for it protects the first positions only */
    set_eviction(r, &r->settings, &err);
}

static int open_trace(QsfRuntime *r, const char *path, QsfErr *err) {
    if (path[0] == '\0') return QSF_OK;
    if (qsf_routes_has_experts(&r->model))
        return qsf_routes_open(&r->routes, &r->model, path, &r->ledger, err);
    snprintf(r->trace_notice, sizeof r->trace_notice,
             "trace-experts: the model has no experts, so no file is written");
    return QSF_OK;
}

static void plan_drafts(QsfRuntime *r) {
    const QsfDraftOpen o = {
        .fwd = r->fwd,
        .model = &r->model,
        .nextn = r->nextn,
        .draft = r->draft,
        .plan = &r->plan,
        .ledger = &r->ledger,
    };
    qsf_speculate_plan(&r->speculator, &o, r->plan_options.drafting);
}

void qsf_runtime_forget_drafts(QsfRuntime *r) {
    qsf_speculate_close(&r->speculator);
    plan_drafts(r);
}

static int open_weights(QsfRuntime *r, const QsfRuntimeOptions *o, QsfErr *err) {
    QsfForwardOptions fo = {
        .model = &r->model,
        .plan = &r->plan,
        .table = &r->table,
        .pool = r->pool,
        .ledger = &r->ledger,
        .cancel = o->cancel,
    };
    int rc = qsf_forward_create(&r->fwd, &fo, err);
    if (rc == QSF_OK && r->nextn != NULL) rc = qsf_nextn_load(r->nextn, r->fwd, &fo, err);
    if (rc == QSF_OK && r->draft != NULL) rc = qsf_draft_model_load(r->draft, &fo, err);
    if (rc == QSF_OK) qsf_forward_trace_experts(r->fwd, r->routes);
    if (rc == QSF_OK) qsf_learning_begin(r);
    if (rc == QSF_OK) rc = set_eviction(r, &o->settings, err);
    if (rc == QSF_OK) rc = qsf_quality_open(r, err);
    if (rc != QSF_OK) return rc;
    plan_drafts(r);
    /* Ids that the tokenizer does not know have logits in some models (padding), but no text. */
    uint32_t n = qsf_tokenizer_n_vocab(r->tok);
    return qsf_sampler_create(&r->sampler, n < r->model.hp.n_vocab ? n : r->model.hp.n_vocab, &r->table,
                              &r->ledger, err);
}

static int open_all(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, uint64_t base, QsfErr *err) {
    char text[300];
    if (qsf_settings_check(&o->settings, text, sizeof text) != 0)
        return qsf_err_set(err, QSF_E_USAGE, "%s", text);
    if (o->text_only) return qsf_open_text(r, path, o, base, open_source, err);
    int rc = open_plan(r, path, o, base, err);
    if (rc == QSF_OK && o->plan_only) return o->predict ? open_pool(r, o, err) : QSF_OK;
    if (rc == QSF_OK) rc = check_cancel(o, err);
    if (rc == QSF_OK) rc = qsf_open_part(r, path, o, r->budget, open_text, err);
    if (rc == QSF_OK) rc = check_cancel(o, err);
    if (rc == QSF_OK) rc = open_trace(r, o->settings.trace_experts, err);
    if (rc == QSF_OK) rc = open_pool(r, o, err);
    if (rc == QSF_OK) rc = open_weights(r, o, err);
    return rc;
}

int qsf_runtime_open(QsfRuntime *r, const char *path, const QsfRuntimeOptions *o, QsfErr *err) {
    uint64_t base = qsf_rss_bytes();
    memset(r, 0, sizeof *r);
    /* No limit until the plan is made, so that the plan reports an insufficient budget, with
     * the whole sum. */
    qsf_ledger_init(&r->ledger, 0);
    r->settings = o->settings;
    r->cancel = o->cancel;
    qsf_pressure_init(&r->pressure);
    int rc = open_all(r, path, o, base, err);
    if (rc != QSF_OK) qsf_runtime_close(r);
    return rc;
}

void qsf_runtime_close(QsfRuntime *r) {
    qsf_learning_close(r);
    qsf_grammar_hold_close(r);
    qsf_speculate_close(&r->speculator);
    qsf_sampler_destroy(r->sampler);
    qsf_drafters_close(r);
    qsf_forward_destroy(r->fwd);
    qsf_routes_close(r->routes);
    qsf_pool_destroy(r->pool);
    qsf_chat_template_close(r->tmpl);
    qsf_tokenizer_close(r->tok);
    qsf_plan_free(&r->plan);
    free(r->importance);
    free(r->quality_table);
    qsf_adapters_close(r->adapters);
    qsf_model_close(&r->model);
    qsf_ledger_destroy(&r->ledger);
    memset(r, 0, sizeof *r);
    qsf_os_trim_heap(); /* the resident set counts against the next model's budget */
}

/* ---- another plan ---- */

/* Raises the ledger's limits to the larger of both plans, plus the threads of both pools while both exist. */
static void widen(QsfRuntime *r, const QsfPlan *p) {
    uint64_t limit = p->budget > r->budget ? p->budget : r->budget;
    qsf_ledger_set_limit(&r->ledger, limit + p->rows[QSF_MEM_STACKS]);
}

/* Commits plan p and enforces its budget. Takes ownership of p's memory. */
static void adopt(QsfRuntime *r, const QsfPlan *p) {
    QsfErr none = { 0 };
    uncharge(&r->ledger, &r->plan, &r->facts);
    qsf_plan_free(&r->plan);
    r->plan = *p;
    r->budget = p->budget;
    r->threads = p->threads;
    qsf_ledger_set_limit(&r->ledger, 0); /* the plan fits, so its rows cannot fail */
    charge(&r->ledger, &r->plan, &r->facts, &none);
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
    const bool first = p->total <= r->plan.total; /* what gives memory back comes first */
    if (first) qsf_drafters_follow(r, pool);
    rc = qsf_forward_replan(r->fwd, p, pool, err);
    if (rc != QSF_OK) {
        qsf_drafters_close(r);
        roll_back(r, err);
    }
    if (rc == QSF_OK && !first) qsf_drafters_follow(r, pool);
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
    size_t n = strlen(note);
    if (r->draft_notice[0] != '\0') snprintf(note + n, cap - n, "; %s", r->draft_notice);
    n = strlen(note);
    if (r->plan_options.drafting == QSF_DRAFTING_NEXTN && r->nextn_notice[0] != '\0')
        snprintf(note + n, cap - n, "; %s", r->nextn_notice);
    n = strlen(note);
    if (r->plan_options.budget != 0 && r->budget_notice[0] != '\0')
        snprintf(note + n, cap - n, "; %s", r->budget_notice);
}

int qsf_runtime_apply(QsfRuntime *r, const QsfPlanOptions *next, QsfErr *err) {
    QsfPlanOptions own = *next;
    QsfPlan plan;
    QsfDrafters beside;
    int rc = qsf_drafters_planning(r, &own, &plan, &beside, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_forward_catch_up(r->fwd, err);
    if (rc == QSF_OK) {
        qsf_drafters_leave(r, &beside);
        qsf_speculate_shrink(&r->speculator, &plan);
        rc = change(r, &plan, err);
    }
    qsf_drafters_take(r, &beside, rc == QSF_OK);
    qsf_os_trim_heap();
    if (rc == QSF_OK) r->plan_options = own;
    plan_drafts(r);
    if (rc != QSF_OK) {
        qsf_plan_free(&plan);
        return rc;
    }
    settle_peak(r->budget);
    if (r->prediction.compute_bps > 0)
        qsf_predict_from(&r->prediction, r->plan.disk_bytes, r->plan.active_bytes, r->prediction.disk_bps,
                         r->prediction.compute_bps);
    return QSF_OK;
}

/* Opens the adapters of s and applies a plan with them. Both sets are open meanwhile, but only headers of
 * them. */
static int change_adapters(QsfRuntime *r, const QSFSettings *s, QsfPlanOptions *next, QsfErr *err) {
    QsfAdapterSet *set, *old = r->adapters;
    qsf_ledger_set_limit(&r->ledger, r->budget + HEADERS);
    int rc = qsf_open_adapters(&set, r, s, old, r->budget, err);
    if (rc == QSF_OK) {
        next->adapters = set;
        rc = qsf_runtime_apply(r, next, err);
    }
    if (rc == QSF_OK) {
        r->adapters = set;
        qsf_forward_adapted(r->fwd, old);
        qsf_adapters_take(set, old);
    }
    qsf_adapters_close(rc == QSF_OK ? old : set);
    qsf_ledger_set_limit(&r->ledger, r->budget);
    return rc;
}

/* Other scales of the same files: nothing is read. */
static int change_scales(QsfRuntime *r, const float *scale, const QsfPlanOptions *next, QsfErr *err) {
    float old[QSF_ADAPTERS_MAX];
    QsfErr none = { 0 };
    for (uint32_t i = 0; i < r->adapters->n; i++) old[i] = r->adapters->adapter[i].scale;
    int rc = qsf_forward_rescale(r->fwd, r->adapters, scale, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_runtime_apply(r, next, err);
    if (rc != QSF_OK) (void)qsf_forward_rescale(r->fwd, r->adapters, old, &none);
    return rc;
}

static int apply(QsfRuntime *r, const QSFSettings *s, QsfPlanOptions *next, QsfErr *err) {
    float scale[QSF_ADAPTERS_MAX];
    if (!qsf_adapters_differ(&r->settings, s)) return qsf_runtime_apply(r, next, err);
    return qsf_adapters_only_scales(r->adapters, s, scale) ? change_scales(r, scale, next, err)
                                                           : change_adapters(r, s, next, err);
}

int qsf_runtime_replan(QsfRuntime *r, const QSFSettings *s, char *note, size_t cap, QsfErr *err) {
    QsfErr own = { 0 };
    QsfPlanOptions next;
    if (err == NULL) err = &own;
    qsf_plan_options_next(&next, &r->plan_options, s, r->plan.kv, qsf_forward_kept(r->fwd),
                          qsf_forward_ctx(r->fwd), qsf_planning_memory(&r->facts));
    memcpy(r->draft_file, s->draft_model, sizeof r->draft_file);
    int rc = apply(r, s, &next, err);
    if (rc != QSF_OK) {
        memcpy(r->draft_file, r->settings.draft_model, sizeof r->draft_file);
        return rc;
    }
    const QSFSettings old = r->settings;
    qsf_settings_take(&r->settings, s, QSF_SETTING_REPLAN);
    r->settings.text_bytes = s->text_bytes;
    r->settings.ctx_tokens = s->ctx_tokens;
    rc = set_eviction(r, s, err);
    if (rc != QSF_OK) { /* the rest of the plan is in force */
        memcpy(r->settings.eviction, old.eviction, sizeof old.eviction);
        r->settings.eviction_window = old.eviction_window;
        r->settings.protected_prefix = old.protected_prefix;
    }
    update_notices(r);
    write_note(r, note, cap);
    return rc;
}
