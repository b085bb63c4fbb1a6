/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals shared by the files of the worker: worker.c is the owner's side; worker_load.c, worker_answer.c
 * and worker_plan.c run on the engine thread. */
#ifndef QSF_ENGINE_WORKER_IMPL_H
#define QSF_ENGINE_WORKER_IMPL_H

#include "src/engine/board.h"
#include "src/engine/events.h"
#include "src/engine/request.h"
#include "src/engine/timeline.h"

#define QSF_ENGINE_STACK (512u << 10) /* bytes; templates and expressions of strangers run on it */

typedef enum QsfCommandKind {
    QSF_COMMAND_NONE,
    QSF_COMMAND_LOAD,
    QSF_COMMAND_UNLOAD,
    QSF_COMMAND_SUBMIT,
    QSF_COMMAND_REPLAN
} QsfCommandKind;

/* At most one is pending or running: a second is rejected while the worker is busy. */
typedef struct QsfCommand {
    QsfCommandKind kind;
    uint64_t id;
    char *path;              /* LOAD; owned */
    QSFSettings settings;    /* LOAD, REPLAN */
    QsfRequestCopy *request; /* SUBMIT; owned */
} QsfCommand;

/* A request of qsf_worker_replan that the engine has not received yet. */
typedef struct QsfReplan {
    bool waits;
    bool first; /* it came before the pending command, if there is one */
    QSFSettings settings;
} QsfReplan;

struct QSFWorker {
    pthread_t thread;
    pthread_mutex_t lock; /* command, replan, quit, params, settings, advice, plan_options, texts; held for
                             copies only */
    pthread_cond_t wake;
    QsfCommand command;
    QsfReplan replan;
    bool quit;
    QSFParams params;
    QSFSettings settings; /* in force: of the model, or for the next one; written by the engine thread only */
    QSFSettings advice;   /* of the model, or the program's defaults; written by the engine thread only */
    QsfPlanOptions plan_options; /* of the plan in force; written by the engine thread only */
    char *text_model, *text_plan, *text_template; /* answers of qsf_worker_describe, or NULL */
    uint64_t last_id;                             /* owner */
    const char *const *overrides;                 /* set by the owner while no load waits or runs */

    atomic_int cancel;
    atomic_bool busy;
    QsfEvents events;
    QsfBoard board;

    /* Held while rt.tok and rt.tmpl are used by the owner, or replaced; they are valid while text_ready. */
    pthread_mutex_t text_lock;
    bool text_ready;

    /* Engine thread only. */
    bool loaded;
    QsfRuntime rt;
    QsfTimeline timeline;
    char *path;
    char *stale;      /* path of a model that must be reloaded before the next answer; NULL = none */
    uint64_t running; /* id of the request; 0 = none */
    uint32_t unsaid;  /* tokens not yet reported in a text event */
};

/* Each ends its request with exactly one LOADED, DONE or ERROR event. */
void qsf_worker_do_load(QSFWorker *w, const QsfCommand *c);
void qsf_worker_do_unload(QSFWorker *w);
void qsf_worker_do_submit(QSFWorker *w, const QsfCommand *c);
/* Frees the model without an event. */
void qsf_worker_drop_model(QSFWorker *w);
/* After a failure: sets w->stale if the model must be reloaded before the next answer. */
void qsf_worker_check_stale(QSFWorker *w);
/* Reloads the model at w->stale and clears it. */
int qsf_worker_reload(QSFWorker *w, QsfErr *err);

/* Applies a pending qsf_worker_replan, if any, between two tokens. */
void qsf_worker_take_replan(QSFWorker *w);
/* Applies these settings. Ends in a QSF_EVENT_PLAN. */
void qsf_worker_do_replan(QSFWorker *w, const QSFSettings *s);
void qsf_worker_set_settings(QSFWorker *w, const QSFSettings *s);
/* Updates the description of the plan for qsf_worker_describe and qsf_worker_check. */
void qsf_worker_describe_plan(QSFWorker *w);
/* Replaces one of the texts; takes ownership of text. */
void qsf_worker_set_text(QSFWorker *w, char **slot, char *text);
/* ready: lets the owner use tokenizer and template. Otherwise waits until the owner has stopped using them. */
void qsf_worker_lend_text(QSFWorker *w, bool ready);

/* Returns the flags (QSF_CHAT_*) for rendering the request. Any thread. */
unsigned qsf_worker_chat_flags(QSFWorker *w, const QsfRequestCopy *r);

/* Emit events of the running request; its end makes the worker free for the next one. */
void qsf_worker_emit(QSFWorker *w, QSFEventType type, const char *text);
void qsf_worker_end(QSFWorker *w, QSFEvent *e, QSFState state);
void qsf_worker_fail(QSFWorker *w, const QsfErr *err);

#endif
