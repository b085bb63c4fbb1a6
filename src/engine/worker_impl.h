/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the worker share: worker.c is the owner's side; worker_load.c, worker_answer.c and
 * worker_plan.c are what the engine thread does. */
#ifndef QSF_ENGINE_WORKER_IMPL_H
#define QSF_ENGINE_WORKER_IMPL_H

#include "src/engine/events.h"
#include "src/engine/request.h"
#include "src/engine/board.h"

#define QSF_ENGINE_STACK (512u << 10) /* bytes; templates and expressions of strangers run on it */

typedef enum QsfCommandKind {
    QSF_COMMAND_NONE,
    QSF_COMMAND_LOAD,
    QSF_COMMAND_UNLOAD,
    QSF_COMMAND_SUBMIT,
    QSF_COMMAND_REPLAN
} QsfCommandKind;

/* At most one waits or runs: a second is refused while the worker is busy. */
typedef struct QsfCommand {
    QsfCommandKind kind;
    uint64_t id;
    char *path;              /* LOAD; owned */
    QSFSettings settings;    /* LOAD, REPLAN */
    QsfRequestCopy *request; /* SUBMIT; owned */
} QsfCommand;

/* What qsf_worker_replan asked for and the engine has not taken yet. */
typedef struct QsfReplan {
    bool waits;
    bool first; /* it came before the command that waits, if one does */
    QSFSettings settings;
} QsfReplan;

struct QSFWorker {
    pthread_t thread;
    pthread_mutex_t lock; /* command, replan, quit, params, settings, advice, plan_options, texts; held for copies only */
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

    /* Held while rt.tok and rt.tmpl are used by the owner, or replaced; they are there when text_ready. */
    pthread_mutex_t text_lock;
    bool text_ready;

    /* Engine thread only. */
    bool loaded;
    QsfRuntime rt;
    QsfTimeline timeline;
    char *path;
    char *stale;      /* the model of this path has to be loaded anew before the next answer; NULL = none */
    uint64_t running; /* id of the request; 0 = none */
    uint32_t unsaid;  /* tokens since the last text event */
};

/* Each ends its request with exactly one LOADED, DONE or ERROR event. */
void qsf_worker_do_load(QSFWorker *w, const QsfCommand *c);
void qsf_worker_do_unload(QSFWorker *w);
void qsf_worker_do_submit(QSFWorker *w, const QsfCommand *c);
/* Frees the model without an event. */
void qsf_worker_drop_model(QSFWorker *w);
/* After a failure: whether the model has to be loaded anew before the next answer. */
void qsf_worker_check_stale(QSFWorker *w);
/* Loads the model at w->stale again; then nothing is stale any more. */
int qsf_worker_reload(QSFWorker *w, QsfErr *err);

/* Takes what qsf_worker_replan asked for, if anything, between two tokens. */
void qsf_worker_take_replan(QSFWorker *w);
/* The same for settings that were taken out already. Ends in a QSF_EVENT_PLAN. */
void qsf_worker_do_replan(QSFWorker *w, const QSFSettings *s);
void qsf_worker_set_settings(QSFWorker *w, const QSFSettings *s);
/* The plan that holds now, for qsf_worker_describe and qsf_worker_check. */
void qsf_worker_describe_plan(QSFWorker *w);
/* Replaces one of the texts; text is taken over. */
void qsf_worker_set_text(QSFWorker *w, char **slot, char *text);
/* From here on the owner may use tokenizer and template; or may not any more, and does not. */
void qsf_worker_lend_text(QSFWorker *w, bool ready);

/* How the template is to render the request, QSF_CHAT_*. Any thread. */
unsigned qsf_worker_chat_flags(QSFWorker *w, const QsfRequestCopy *r);

/* Events of the running request; an end makes the worker free for the next. */
void qsf_worker_emit(QSFWorker *w, QSFEventType type, const char *text);
void qsf_worker_end(QSFWorker *w, QSFEvent *e, QSFState state);
void qsf_worker_fail(QSFWorker *w, const QsfErr *err);

#endif
