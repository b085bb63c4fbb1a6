/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the worker share: worker.c is the owner's side, worker_load.c and worker_answer.c
 * are what the engine thread does. */
#ifndef QSF_ENGINE_WORKER_IMPL_H
#define QSF_ENGINE_WORKER_IMPL_H

#include "src/engine/events.h"
#include "src/engine/request.h"
#include "src/engine/stats.h"

#define QSF_ENGINE_STACK (512u << 10) /* bytes; templates and expressions of strangers run on it */

typedef enum QsfCommandKind {
    QSF_COMMAND_NONE,
    QSF_COMMAND_LOAD,
    QSF_COMMAND_UNLOAD,
    QSF_COMMAND_SUBMIT
} QsfCommandKind;

/* At most one waits or runs: a second is refused while the worker is busy. */
typedef struct QsfCommand {
    QsfCommandKind kind;
    uint64_t id;
    char *path;              /* LOAD; owned */
    QSFSettings settings;    /* LOAD */
    QsfRequestCopy *request; /* SUBMIT; owned */
} QsfCommand;

struct QSFWorker {
    pthread_t thread;
    pthread_mutex_t lock; /* command, quit, params, texts; held for copies only */
    pthread_cond_t wake;
    QsfCommand command;
    bool quit;
    QSFParams params;
    char *text_model, *text_plan, *text_template; /* answers of qsf_worker_describe, or NULL */
    uint64_t last_id;                             /* owner */

    atomic_int cancel;
    atomic_bool busy;
    QsfEvents events;
    QsfBoard board;

    /* Engine thread only. */
    bool loaded;
    QsfRuntime rt;
    QsfTimeline timeline;
    QSFSettings settings; /* that the model was loaded with */
    char *path;
    uint64_t running; /* id of the request */
    uint32_t unsaid;  /* tokens since the last text event */
};

/* Each ends its request with exactly one LOADED, DONE or ERROR event. */
void qsf_worker_do_load(QSFWorker *w, const QsfCommand *c);
void qsf_worker_do_unload(QSFWorker *w);
void qsf_worker_do_submit(QSFWorker *w, const QsfCommand *c);
/* Frees the model without an event. */
void qsf_worker_drop_model(QSFWorker *w);

/* Events of the running request; an end makes the worker free for the next. */
void qsf_worker_say(QSFWorker *w, QSFEventType type, const char *text);
void qsf_worker_end(QSFWorker *w, QSFEvent *e, QSFState state);
void qsf_worker_fail(QSFWorker *w, const QsfErr *err);

#endif
