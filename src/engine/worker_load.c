/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The model of a worker: loading and freeing it, changing its plan, and snapshots of its
 * conversation. Engine thread. */
#include "src/base/interrupt.h"
#include "src/engine/open_model.h"
#include "src/engine/worker_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/utf8.h"
#include "src/engine/adapters.h"
#include "src/engine/draft_model.h"
#include "src/engine/model_info.h"
#include "src/engine/quality/quality.h"

/* ---- the model ---- */

#define NOTE_MAX    512
#define QUICK_UNITS 4096u      /* with more, the table of qualities follows after the load */
#define PROBE_BYTES (1u << 20) /* part of every plan's slack for code and small allocations */

static char *template_text(const QsfRuntime *rt) {
    return strdup(rt->tmpl != NULL ? qsf_chat_template_source(rt->tmpl)
                                   : "no chat template: the messages are continued as they are");
}

/* Stores the model's recommended settings; src NULL: there is no model. */
static void store_advice(QSFWorker *w, const QsfSource *src) {
    QSFSettings advice;
    if (src != NULL)
        qsf_model_defaults_read(src, &advice);
    else
        qsf_settings_default(&advice);
    qsf_worker_set_advice(w, &advice);
}

static void set_snapshot_path(QsfWorkerSnapshot *s, const char *path) {
    if (path != NULL && s->path != NULL && strcmp(path, s->path) == 0) return;
    free(s->path);
    s->path = path != NULL ? strdup(path) : NULL;
    s->reported = s->fresh = s->due = false;
}

/* Forgets the conversation and the identity of the model. */
static void drop_snapshot(QsfWorkerSnapshot *s) {
    set_snapshot_path(s, NULL);
    s->key = (QsfSnapKey){ 0 };
}

void qsf_worker_learn(QSFWorker *w, uint32_t least) {
    char note[NOTE_MAX];
    if (!w->loaded || w->stale != NULL) return;
    qsf_learning_save(&w->rt, least);
    if (!qsf_learning_take_note(&w->rt, note, sizeof note)) return;
    note[qsf_utf8_clean(note, strlen(note), false)] = '\0';
    qsf_worker_emit(w, QSF_EVENT_NOTICE, note);
}

void qsf_worker_drop_model(QSFWorker *w) {
    qsf_worker_learn(w, QSF_HABITS_LEAST);
    qsf_worker_lend(w, false);
    store_advice(w, NULL);
    qsf_live_stats_model(&w->stats, NULL, NULL, &w->settings);
    qsf_worker_set_text(w, &w->text_model, NULL);
    qsf_worker_set_text(w, &w->text_plan, NULL);
    qsf_worker_set_text(w, &w->text_template, NULL);
    qsf_worker_set_text(w, &w->text_quality, NULL);
    qsf_worker_set_text(w, &w->text_answer, NULL);
    qsf_worker_set_text(w, &w->text_ahead, NULL);
    w->ahead_from = UINT32_MAX;
    free(w->path);
    w->path = NULL;
    drop_snapshot(&w->snap);
    if (!w->loaded) return;
    w->loaded = false;
    qsf_timeline_free(&w->timeline);
    qsf_answer_tokens_close(&w->tokens, &w->rt.ledger);
    qsf_runtime_close(&w->rt);
}

/* Returns the memory for opening a second model: the unused part of the loaded model's budget. */
static uint64_t free_bytes(QSFWorker *w) {
    QsfLedger l;
    qsf_ledger_snapshot(&w->rt.ledger, &l);
    uint64_t left = l.limit > l.total ? l.limit - l.total : 0;
    return left > PROBE_BYTES ? left : PROBE_BYTES;
}

/* Checks whether the file can be opened before the loaded model is freed for it. A model whose metadata does
 * not fit beside the loaded one is opened after that is freed. */
static int probe(QSFWorker *w, const char *path, const QSFSettings *s, QsfErr *err) {
    QsfLedger ledger;
    QsfModel m;
    qk_level level;
    int rc = qsf_runtime_level(s, &level, err);
    if (rc != QSF_OK) return rc;
    qsf_ledger_init(&ledger, free_bytes(w));
    const QsfMemoryLimit before = qsf_memory_limit_begin(w->loaded ? w->rt.budget
                                                                   : qsf_opening_budget(s, qsf_rss_bytes()));
    rc = qsf_model_open(&m, path, w->overrides, &ledger, err);
    if (rc == QSF_OK) {
        rc = qsf_check_weights(&m, err);
        if (rc == QSF_OK) rc = qsf_adapters_check(&m, s, NULL, err);
        if (rc == QSF_OK) rc = qsf_draft_model_check(&m, s, &ledger, err);
        qsf_model_close(&m);
    }
    rc = qsf_memory_limit_end(&before, rc, path, qsf_option_name(QSF_OPTION_BUDGET, s->commands), err);
    qsf_ledger_destroy(&ledger);
    if (rc != QSF_E_BUDGET) return rc;
    qsf_err_clear(err);
    return QSF_OK;
}

static int load(QSFWorker *w, const char *path, QsfErr *err) {
    QsfRuntimeOptions o = {
        .settings = w->settings,
        .overrides = w->overrides,
        .cancel = &w->cancel,
        .learn = true,
        .may_draft = true,
        .stack_bytes = QSF_ENGINE_STACK,
        .transcript_bytes = 2 * QSF_EVENTS_HARD + qsf_answer_tokens_bytes(w->settings.candidates) +
                            w->settings.owner_bytes,
    };
    int rc = qsf_runtime_open(&w->rt, path, &o, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, 2 * QSF_EVENTS_HARD + w->settings.owner_bytes,
                            "event queue and program", err);
    if (rc == QSF_OK) rc = qsf_timeline_init(&w->timeline, &w->rt, err);
    if (rc == QSF_OK) rc = qsf_answer_tokens_open(&w->tokens, w->settings.candidates, &w->rt.ledger, err);
    if (rc == QSF_OK) return QSF_OK;
    if (w->timeline.piece != NULL) qsf_timeline_free(&w->timeline);
    qsf_runtime_close(&w->rt);
    return rc;
}

static void emit_notices(QSFWorker *w) {
    const char *warning = qsf_tokenizer_warning(w->rt.tok);
    char left_out[QSF_ERR_MSG_MAX];
    qsf_adapters_notice(w->rt.adapters, left_out, sizeof left_out);
    const char *notes[] = {
        left_out,           w->rt.budget_notice, w->rt.stream_notice,           w->rt.plan.note,
        w->rt.ctx_notice,   w->rt.tmpl_notice,   w->rt.quality_notice,          w->rt.trace_notice,
        w->rt.nextn_notice, w->rt.draft_notice,  warning != NULL ? warning : ""
    };
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        char text[QSF_ERR_MSG_MAX]; /* names from the file cannot add lines */
        snprintf(text, sizeof text, "%s", notes[i]);
        text[qsf_utf8_clean(text, strlen(text), false)] = '\0';
        if (text[0] != '\0') qsf_worker_emit(w, QSF_EVENT_NOTICE, text);
    }
}

static void end_loaded(QSFWorker *w) {
    QSFStats s;
    qsf_live_stats_snapshot(&w->stats, &s);
    QSFEvent e = { .type = QSF_EVENT_LOADED, .text = s.model_name, .text_len = strlen(s.model_name) };
    qsf_worker_end(w, &e, QSF_STATE_IDLE);
}

/* Does the load change only the template? Then the model stays open. */
static bool only_template_differs(const QSFWorker *w, const char *path, const QSFSettings *s) {
    const QSFSetting *row = qsf_setting_find("template");
    QSFSettings same = *s;
    if (!w->loaded || w->path == NULL || strcmp(w->path, path) != 0) return false;
    if (!qsf_setting_differs(&w->settings, s, row)) return false;
    memcpy(same.chat_template, w->settings.chat_template, sizeof same.chat_template);
    return (qsf_settings_differ(&w->settings, &same) & (QSF_SETTING_REPLAN | QSF_SETTING_RELOAD)) == 0;
}

static void change_template(QSFWorker *w, const QSFSettings *s) {
    QsfErr err = { 0 };
    QsfRuntime *rt = &w->rt;
    pthread_mutex_lock(&w->lend_lock);
    int rc = qsf_runtime_template(rt, s->chat_template, &err);
    pthread_mutex_unlock(&w->lend_lock);
    if (rc != QSF_OK) {
        qsf_worker_fail(w, &err);
        return;
    }
    qsf_worker_set_settings(w, s);
    qsf_live_stats_template(&w->stats);
    qsf_worker_set_text(w, &w->text_template, template_text(rt));
    if (rt->tmpl_notice[0] != '\0') qsf_worker_emit(w, QSF_EVENT_NOTICE, rt->tmpl_notice);
    end_loaded(w);
}

static void publish(QSFWorker *w, const char *path) {
    w->loaded = true;
    store_advice(w, w->rt.model.src);
    w->path = strdup(path);
    qsf_live_stats_model(&w->stats, &w->rt, path, &w->settings);
    qsf_worker_set_text(w, &w->text_model, qsf_model_text(&w->rt.model));
    qsf_worker_publish_plan(w);
    qsf_worker_set_text(w, &w->text_template, template_text(&w->rt));
    if (w->rt.model.prog.n_units < QUICK_UNITS)
        qsf_worker_set_text(w, &w->text_quality, qsf_quality_text(&w->rt));
    qsf_worker_lend(w, true);
}

/* Replaces the loaded model, if any, by the one at path, with the settings in force. */
static int replace(QSFWorker *w, const char *path, QsfErr *err) {
    qsf_worker_drop_model(w);
    qsf_live_stats_state(&w->stats, QSF_STATE_LOADING);
    int rc = load(w, path, err);
    if (rc == QSF_E_INTERRUPTED) {
        qsf_err_clear(err);
        qsf_err_set(err, QSF_E_INTERRUPTED, "loading was cancelled");
    }
    if (rc != QSF_OK) return rc;
    publish(w, path);
    emit_notices(w);
    return QSF_OK;
}

static void clear_stale(QSFWorker *w) {
    free(w->stale);
    w->stale = NULL;
}

void qsf_worker_check_stale(QSFWorker *w) {
    bool gone = w->rt.lost || qsf_forward_stale(w->rt.fwd);
    if (gone && w->stale == NULL && w->path != NULL) w->stale = strdup(w->path);
}

int qsf_worker_reload(QSFWorker *w, QsfErr *err) {
    char text[QSF_ERR_MSG_MAX];
    int rc = replace(w, w->stale, err);
    if (rc != QSF_OK) return rc;
    snprintf(text, sizeof text, "%.*s was reloaded", QSF_ERR_MSG_MAX - 64, w->stale);
    text[qsf_utf8_clean(text, strlen(text), false)] = '\0';
    qsf_worker_emit(w, QSF_EVENT_NOTICE, text);
    clear_stale(w);
    return QSF_OK;
}

void qsf_worker_do_load(QSFWorker *w, const char *path, const QSFSettings *s) {
    QsfErr err = { 0 };
    if (w->stale == NULL && only_template_differs(w, path, s)) {
        change_template(w, s);
        return;
    }
    if (w->loaded && probe(w, path, s, &err) != QSF_OK) {
        qsf_worker_fail(w, &err);
        return;
    }
    clear_stale(w);
    qsf_worker_set_settings(w, s);
    if (replace(w, path, &err) == QSF_OK)
        end_loaded(w);
    else
        qsf_worker_fail(w, &err);
}

void qsf_worker_do_unload(QSFWorker *w) {
    QSFEvent e = { .type = QSF_EVENT_DONE };
    clear_stale(w);
    qsf_worker_drop_model(w);
    qsf_worker_end(w, &e, QSF_STATE_EMPTY);
}

/* ---- live plans ---- */

static void emit_plan(QSFWorker *w, int code, const char *text) {
    QSFEvent e = {
        .type = QSF_EVENT_PLAN, .request = w->running, .code = code, .text = text, .text_len = strlen(text)
    };
    qsf_events_push(&w->events, &e, NULL);
}

/* Stores the settings for the next model, because none is loaded. */
static void store_for_next(QSFWorker *w, const QSFSettings *s) {
    qsf_worker_set_settings(w, s);
    qsf_live_stats_budget(&w->stats, s);
    emit_plan(w, QSF_OK, "no model is loaded: applies to the next one");
}

/* A shorter context keeps what fits of the cache between two answers; during an answer the plan refuses it.
 * A new plan whose tokens have no memory is taken back. */
static int replan(QSFWorker *w, const QSFSettings *s, char note[NOTE_MAX], QsfErr *err) {
    const QSFSettings before = w->rt.settings;
    const bool adapters = qsf_adapters_differ(&before, s);
    QsfErr none = { 0 };
    char old[NOTE_MAX];
    if (w->running == 0 && s->ctx != 0 && qsf_forward_kept(w->rt.fwd) >= s->ctx)
        qsf_timeline_cut(&w->timeline, s->ctx - 1);
    int rc = qsf_runtime_replan(&w->rt, s, note, NOTE_MAX, err);
    if (rc == QSF_OK && adapters) qsf_timeline_cut(&w->timeline, qsf_forward_keeps(w->rt.fwd, UINT32_MAX));
    if (rc != QSF_OK || qsf_timeline_fit(&w->timeline, err) == QSF_OK) return rc;
    (void)qsf_runtime_replan(&w->rt, &before, old, sizeof old, &none);
    return err->code;
}

/* A plan is made for the conversation, not for what is typed. */
static void cut_ahead(QSFWorker *w) {
    if (w->running != 0 || w->timeline.n_ids <= w->ahead_from) return;
    qsf_timeline_cut(&w->timeline, w->ahead_from);
    qsf_live_stats_ahead(&w->stats, 0, 0);
}

/* With the quality that is in force. */
static bool is_allowed(QSFWorker *w, const QSFSettings *s, QsfErr *err) {
    QSFSettings all = *s;
    char text[NOTE_MAX];
    qsf_worker_get_params(w, &all.params);
    if (qsf_settings_check(&all, text, sizeof text) == 0) return true;
    qsf_err_set(err, QSF_E_USAGE, "%s", text);
    return false;
}

void qsf_worker_do_replan(QSFWorker *w, const QSFSettings *wanted) {
    char note[NOTE_MAX];
    QsfErr err = { 0 };
    QSFSettings s = w->settings; /* written by this thread only */
    qsf_settings_take(&s, wanted, QSF_SETTING_REPLAN);
    s.text_bytes = wanted->text_bytes;
    s.ctx_tokens = wanted->ctx_tokens;
    if (!w->loaded) {
        store_for_next(w, &s);
        return;
    }
    const bool longer_before = w->rt.ctx_notice[0] != '\0';
    cut_ahead(w);
    const int rc = is_allowed(w, &s, &err) ? replan(w, &s, note, &err) : err.code;
    if (rc != QSF_OK) {
        qsf_worker_check_stale(w);
        emit_plan(w, err.code, err.msg);
        return;
    }
    qsf_worker_set_settings(w, &s);
    qsf_live_stats_plan(&w->stats, qsf_forward_kept(w->rt.fwd));
    qsf_worker_publish_plan(w);
    emit_plan(w, QSF_OK, note);
    if (!longer_before && w->rt.ctx_notice[0] != '\0') qsf_worker_emit(w, QSF_EVENT_NOTICE, w->rt.ctx_notice);
}

void qsf_worker_do_pending_replan(QSFWorker *w) {
    QSFSettings s;
    pthread_mutex_lock(&w->lock);
    bool now = w->replan.pending && atomic_load(&w->cancel) == 0; /* otherwise after the answer, which is
                                                                     ending */
    /* Keys and values of an answer are of one set of adapters: others wait for its end. */
    if (now && qsf_adapters_differ(&w->settings, &w->replan.settings)) now = false;
    if (now) s = w->replan.settings;
    if (now) w->replan.pending = false;
    pthread_mutex_unlock(&w->lock);
    if (now) qsf_worker_do_replan(w, &s);
}

/* ---- snapshots of the conversation ---- */

#define QUIT_NS 5000000000u /* that saving may take when the worker must stop */

static void report(QSFWorker *w, const char *text) {
    if (!w->snap.reported) qsf_worker_emit(w, QSF_EVENT_NOTICE, text);
    w->snap.reported = true;
}

/* Snapshots of other models and settings are not worth a word: the chat changes both. */
static void report_refused(QSFWorker *w, QsfSnapKind kind, const QsfErr *err) {
    QsfErr note = { 0 };
    w->snap.fresh = kind == QSF_SNAP_DAMAGED || kind == QSF_SNAP_CUT;
    if (!w->snap.fresh && kind != QSF_SNAP_ALIEN) return;
    qsf_err_set(&note, QSF_E_MODEL, "%s; the %s is evaluated again", err->msg,
                kind == QSF_SNAP_CUT ? "rest" : "conversation");
    report(w, note.msg);
}

/* Does a repetition of the prompt continue before its last token? That takes a state, and so a pass for one
 * token, which costs too much where all weights are read for it. */
static bool holds_last(const QsfRuntime *rt, const QsfRequestCopy *r) {
    return r->snapshot != NULL && qsf_forward_state_bytes(rt->fwd) > 0 && !qsf_forward_evicts(rt->fwd) &&
           !qsf_plan_streams(&rt->plan);
}

void qsf_worker_snapshot_load(QSFWorker *w, const QsfRequestCopy *r, const QsfIds *ids) {
    QsfWorkerSnapshot *s = &w->snap;
    QsfErr err = { 0 };
    QsfSnapKind kind = QSF_SNAP_MISSING;
    QSFParams p;
    uint32_t loaded;
    w->timeline.last_apart = holds_last(&w->rt, r);
    set_snapshot_path(s, r->snapshot);
    s->limit = r->snapshot_limit;
    if (s->path == NULL || ids->n == 0 || qsf_snapshot_key(&s->key, &w->rt, &err) != QSF_OK) return;
    qsf_worker_get_params(w, &p);
    if (qsf_quality_measures(&w->rt, &p)) return;
    int rc = qsf_snapshot_load(&w->timeline, s->path, &s->key, ids->data, ids->n, &loaded, &kind, &err);
    if (rc != QSF_OK || kind == QSF_SNAP_CUT) report_refused(w, kind, &err);
    if (rc != QSF_OK || r->snapshot_from == NULL) return;
    qsf_err_clear(&err);
    /* An error is reported when its own conversation continues. */
    (void)qsf_snapshot_load(&w->timeline, r->snapshot_from, &s->key, ids->data, ids->n, &loaded, NULL, &err);
}

typedef struct Saving {
    QSFWorker *w;
    uint64_t quit_ns; /* when the worker was told to stop; 0 = it was not */
    bool stopped;
} Saving;

/* Requests of other conversations, and loads, wait: afterwards there is nothing left to save. */
static bool must_stop(void *arg) {
    Saving *s = arg;
    QSFWorker *w = s->w;
    pthread_mutex_lock(&w->lock);
    const bool quit = w->quit;
    const QsfCommand *c = &w->command;
    s->stopped = w->replan.pending || (c->kind == QSF_COMMAND_SUBMIT && c->request->snapshot != NULL &&
                                       strcmp(c->request->snapshot, w->snap.path) == 0);
    pthread_mutex_unlock(&w->lock);
    if (quit && s->quit_ns == 0) s->quit_ns = qsf_now_ns();
    if (quit) s->stopped = qsf_now_ns() - s->quit_ns > QUIT_NS;
    return s->stopped;
}

void qsf_worker_snapshot_save(QSFWorker *w) {
    QsfWorkerSnapshot *s = &w->snap;
    Saving saving = { .w = w };
    QsfErr err = { 0 };
    if (!s->due || !w->loaded || w->stale != NULL) return;
    const uint64_t limit = s->limit > 0 ? s->limit : qsf_snapshot_default_limit(s->path);
    const QsfSnapSave o = {
        .fresh = s->fresh, .limit = limit, .prune = true, .stop = must_stop, .arg = &saving
    };
    int rc = qsf_snapshot_key(&s->key, &w->rt, &err);
    if (rc == QSF_OK) rc = qsf_snapshot_save(&w->timeline, s->path, &s->key, &o, &err);
    if (saving.stopped) return;
    s->due = false;
    if (rc == QSF_OK) s->fresh = false;
    if (rc == QSF_OK || qsf_forward_savable(w->rt.fwd, NULL) != QSF_OK) return; /* conversions are known */
    report(w, err.msg);
}
