/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The shared state of a worker: implements worker_state.h, and the functions of qsf_engine.h that set and get
 * settings. */
#include "src/engine/worker_state.h"

#include <stdlib.h>
#include <string.h>

#include "src/engine/advice.h"

/* ---- events ---- */

void qsf_worker_emit(QSFWorker *w, QSFEventType type, const char *text) {
    QSFEvent e = { .type = type, .request = w->running, .text = text, .text_len = strlen(text) };
    qsf_events_push(&w->events, &e, NULL);
}

void qsf_worker_end(QSFWorker *w, QSFEvent *e, QSFState state) {
    e->request = w->running;
    qsf_board_state(&w->board, state);
    qsf_events_push(&w->events, e, &w->busy);
}

void qsf_worker_fail(QSFWorker *w, const QsfErr *err) {
    QSFEvent e = { .type = QSF_EVENT_ERROR,
                   .code = err->code,
                   .file = err->file,
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
