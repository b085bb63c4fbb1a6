/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Live plans, on the engine thread: between two tokens, or when idle. */
#include <stdio.h>
#include <string.h>

#include "src/engine/planning.h"
#include "src/engine/runtime_replan.h"
#include "src/engine/worker_impl.h"

#define NOTE_MAX 512

void qsf_worker_set_settings(QSFWorker *w, const QSFSettings *s) {
    pthread_mutex_lock(&w->lock);
    w->settings = *s;
    pthread_mutex_unlock(&w->lock);
}

void qsf_worker_describe_plan(QSFWorker *w) {
    pthread_mutex_lock(&w->lock);
    w->plan_options = w->rt.plan_options;
    w->plan_options.kv = (int)w->rt.plan.kv;
    pthread_mutex_unlock(&w->lock);
    qsf_worker_set_text(w, &w->text_plan, qsf_plan_text(&w->rt.plan));
}

static void tell(QSFWorker *w, int code, const char *text) {
    QSFEvent e = {
        .type = QSF_EVENT_PLAN, .request = w->running, .code = code, .text = text, .text_len = strlen(text)
    };
    qsf_events_push(&w->events, &e, NULL);
}

/* Stores the settings for the next model, because none is loaded. */
static void keep_for_later(QSFWorker *w, const QSFSettings *s) {
    qsf_worker_set_settings(w, s);
    qsf_board_budget(&w->board, s);
    tell(w, QSF_OK, "no model is loaded: applies to the next one");
}

void qsf_worker_do_replan(QSFWorker *w, const QSFSettings *wanted) {
    char note[NOTE_MAX];
    QsfErr err = { 0 };
    QSFSettings s = w->settings; /* written by this thread only */
    qsf_settings_take(&s, wanted, QSF_SETTING_REPLAN);
    if (!w->loaded) {
        keep_for_later(w, &s);
        return;
    }
    int rc = qsf_runtime_replan(&w->rt, &s, note, sizeof note, &err);
    if (rc != QSF_OK) {
        qsf_worker_check_stale(w);
        tell(w, err.code, err.msg);
        return;
    }
    qsf_worker_set_settings(w, &s);
    qsf_board_plan(&w->board);
    qsf_worker_describe_plan(w);
    tell(w, QSF_OK, note);
}

void qsf_worker_take_replan(QSFWorker *w) {
    QSFSettings s;
    pthread_mutex_lock(&w->lock);
    bool waits = w->replan.waits && atomic_load(&w->cancel) == 0; /* otherwise after the answer, which is
                                                                     ending */
    if (waits) s = w->replan.settings;
    if (waits) w->replan.waits = false;
    pthread_mutex_unlock(&w->lock);
    if (waits) qsf_worker_do_replan(w, &s);
}

void qsf_worker_replan(QSFWorker *w, const QSFSettings *s) {
    if (w == NULL || s == NULL) return;
    pthread_mutex_lock(&w->lock);
    w->replan = (QsfReplan){ .waits = true, .first = w->command.kind == QSF_COMMAND_NONE, .settings = *s };
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static int check_plan(QSFWorker *w, const QSFSettings *s, QsfErr *err) {
    QSFStats st;
    QsfPlanOptions from, o;
    qsf_worker_stats(w, &st);
    pthread_mutex_lock(&w->lock);
    from = w->plan_options;
    bool load = (qsf_settings_differ(&w->settings, s) & QSF_SETTING_RELOAD) != 0;
    pthread_mutex_unlock(&w->lock);
    uint64_t available = qsf_planning_available(&w->rt.facts);
    if (load)
        qsf_plan_options_first(&o, &w->rt.model, s, &w->rt.facts, available);
    else
        qsf_plan_options_next(&o, &from, s, (qk_kv)from.kv, st.ctx_used, st.ctx_size, available);
    return qsf_plan_check(&w->rt.model, &o, err);
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
    qsf_worker_settings(w, &now);
    pthread_mutex_lock(&w->text_lock);
    int rc = QSF_OK;
    if (w->text_ready) rc = qsf_runtime_level(s, &level, &e);
    if (w->text_ready && rc == QSF_OK) rc = check_plan(w, s, &e);
    if (w->text_ready && rc == QSF_OK && strcmp(s->chat_template, now.chat_template) != 0)
        rc = check_template(w, s, &e);
    pthread_mutex_unlock(&w->text_lock);
    if (rc != QSF_OK) snprintf(err, cap, "%s", e.msg);
    return rc == QSF_OK ? 0 : e.code;
}

void qsf_worker_settings(QSFWorker *w, QSFSettings *s) {
    if (w == NULL || s == NULL) return;
    pthread_mutex_lock(&w->lock);
    *s = w->settings;
    s->params = w->params;
    pthread_mutex_unlock(&w->lock);
}
