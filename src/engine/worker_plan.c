/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Live plans: implements worker_plan.h. */
#include "src/engine/worker_plan.h"

#include <string.h>

#include "src/engine/runtime_replan.h"
#include "src/engine/worker_load.h"

#define NOTE_MAX 512

static void emit_plan(QSFWorker *w, int code, const char *text) {
    QSFEvent e = {
        .type = QSF_EVENT_PLAN, .request = w->running, .code = code, .text = text, .text_len = strlen(text)
    };
    qsf_events_push(&w->events, &e, NULL);
}

/* Stores the settings for the next model, because none is loaded. */
static void store_for_next(QSFWorker *w, const QSFSettings *s) {
    qsf_worker_set_settings(w, s);
    qsf_board_budget(&w->board, s);
    emit_plan(w, QSF_OK, "no model is loaded: applies to the next one");
}

/* A shorter context keeps what fits of the cache between two answers; during an answer the plan refuses it.
 * A new plan whose tokens have no memory is taken back. */
static int replan(QSFWorker *w, const QSFSettings *s, char note[NOTE_MAX], QsfErr *err) {
    const QSFSettings before = w->rt.settings;
    QsfErr none = { 0 };
    char old[NOTE_MAX];
    if (w->running == 0 && s->ctx != 0 && qsf_forward_kept(w->rt.fwd) >= s->ctx)
        qsf_timeline_cut(&w->timeline, s->ctx - 1);
    int rc = qsf_runtime_replan(&w->rt, s, note, NOTE_MAX, err);
    if (rc != QSF_OK || qsf_timeline_fit(&w->timeline, err) == QSF_OK) return rc;
    (void)qsf_runtime_replan(&w->rt, &before, old, sizeof old, &none);
    return err->code;
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
    if (!w->loaded) {
        store_for_next(w, &s);
        return;
    }
    const bool longer_before = w->rt.ctx_notice[0] != '\0';
    const int rc = is_allowed(w, &s, &err) ? replan(w, &s, note, &err) : err.code;
    if (rc != QSF_OK) {
        qsf_worker_check_stale(w);
        emit_plan(w, err.code, err.msg);
        return;
    }
    qsf_worker_set_settings(w, &s);
    qsf_board_plan(&w->board, qsf_forward_kept(w->rt.fwd));
    qsf_worker_publish_plan(w);
    emit_plan(w, QSF_OK, note);
    if (!longer_before && w->rt.ctx_notice[0] != '\0') qsf_worker_emit(w, QSF_EVENT_NOTICE, w->rt.ctx_notice);
}

void qsf_worker_do_pending_replan(QSFWorker *w) {
    QSFSettings s;
    pthread_mutex_lock(&w->lock);
    bool now = w->replan.pending && atomic_load(&w->cancel) == 0; /* otherwise after the answer, which is
                                                                     ending */
    if (now) s = w->replan.settings;
    if (now) w->replan.pending = false;
    pthread_mutex_unlock(&w->lock);
    if (now) qsf_worker_do_replan(w, &s);
}
