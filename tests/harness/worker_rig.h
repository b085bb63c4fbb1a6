/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The background engine under test: starts, loads, and collects the events of one request until it ends. */
#ifndef QSF_TESTS_WORKER_RIG_H
#define QSF_TESTS_WORKER_RIG_H

#include "qsf_engine.h"

#define QSF_RIG_BUDGET (2048ull << 20) /* generous: sanitizers keep freed memory resident */

/* The events of one request. */
typedef struct QsfSeen {
    QSFEvent end; /* LOADED, DONE or ERROR; text is not valid */
    char end_text[1024];
    char text[65536]; /* its beginning: an answer that is read late may be longer */
    size_t len;
    char reasoning[4096];
    size_t reasoning_len;
    uint32_t tokens, text_events, notices;
    char notice[512]; /* the last one */
    uint32_t plans;   /* QSF_EVENT_PLAN among them */
    int plan_code;    /* of the last one */
    char plan_text[1024];
} QsfSeen;

/* Two threads, QSF_RIG_BUDGET, greedy, no end-of-answer token. */
QSFSettings qsf_rig_settings(void);
QSFWorker *qsf_rig_worker(void);
/* Fails the test if the model is not loaded. */
void qsf_rig_load(QSFWorker *w, const char *path, const QSFSettings *s);
QSFWorker *qsf_rig_worker_with(const char *path, int32_t max_tokens);
/* One user message. */
uint64_t qsf_rig_submit(QSFWorker *w, const char *text);
void qsf_rig_set_max(QSFWorker *w, int32_t n);

/* The next event, within a minute. */
void qsf_rig_wait(QSFWorker *w, QSFEvent *e);
/* Adds one event of the request to s; false at its end. */
bool qsf_rig_take(QSFWorker *w, uint64_t id, QsfSeen *s);
/* All of them; static storage. */
QsfSeen *qsf_rig_finish(QSFWorker *w, uint64_t id);
/* The QSF_EVENT_PLAN of an idle worker. */
QsfSeen *qsf_rig_plan(QSFWorker *w);

#endif
