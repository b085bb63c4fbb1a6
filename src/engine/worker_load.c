/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The worker's model: implements worker_load.h. */
#include "src/engine/worker_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/engine/advice.h"
#include "src/engine/check.h"
#include "src/engine/describe.h"
#include "src/engine/quality/quality.h"
#include "src/engine/worker_snapshot.h"

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

void qsf_worker_drop_model(QSFWorker *w) {
    qsf_worker_lend(w, false);
    store_advice(w, NULL);
    qsf_board_model(&w->board, NULL, NULL, &w->settings);
    qsf_worker_set_text(w, &w->text_model, NULL);
    qsf_worker_set_text(w, &w->text_plan, NULL);
    qsf_worker_set_text(w, &w->text_template, NULL);
    qsf_worker_set_text(w, &w->text_quality, NULL);
    qsf_worker_set_text(w, &w->text_answer, NULL);
    free(w->path);
    w->path = NULL;
    qsf_worker_snapshot_drop(w);
    if (!w->loaded) return;
    w->loaded = false;
    qsf_timeline_free(&w->timeline);
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
    rc = qsf_model_open(&m, path, w->overrides, &ledger, err);
    if (rc == QSF_OK) {
        rc = qsf_check_weights(&m, err);
        qsf_model_close(&m);
    }
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
        .stack_bytes = QSF_ENGINE_STACK,
        .transcript_bytes = 2 * QSF_EVENTS_HARD,
    };
    int rc = qsf_runtime_open(&w->rt, path, &o, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, 2 * QSF_EVENTS_HARD, "event queue", err);
    if (rc == QSF_OK) rc = qsf_timeline_init(&w->timeline, &w->rt, err);
    if (rc != QSF_OK) qsf_runtime_close(&w->rt);
    return rc;
}

static void emit_notices(QSFWorker *w) {
    const char *warning = qsf_tokenizer_warning(w->rt.tok);
    const char *notes[] = { w->rt.budget_notice,
                            w->rt.stream_notice,
                            w->rt.plan.note,
                            w->rt.ctx_notice,
                            w->rt.tmpl_notice,
                            w->rt.quality_notice,
                            warning != NULL ? warning : "" };
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        char text[QSF_ERR_MSG_MAX]; /* names from the file cannot add lines */
        snprintf(text, sizeof text, "%s", notes[i]);
        text[qsf_utf8_clean(text, strlen(text), false)] = '\0';
        if (text[0] != '\0') qsf_worker_emit(w, QSF_EVENT_NOTICE, text);
    }
}

static void end_loaded(QSFWorker *w) {
    QSFStats s;
    qsf_board_snapshot(&w->board, &s);
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
    qsf_board_template(&w->board);
    qsf_worker_set_text(w, &w->text_template, template_text(rt));
    if (rt->tmpl_notice[0] != '\0') qsf_worker_emit(w, QSF_EVENT_NOTICE, rt->tmpl_notice);
    end_loaded(w);
}

static void publish(QSFWorker *w, const char *path) {
    w->loaded = true;
    store_advice(w, w->rt.model.src);
    w->path = strdup(path);
    qsf_board_model(&w->board, &w->rt, path, &w->settings);
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
    qsf_board_state(&w->board, QSF_STATE_LOADING);
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
