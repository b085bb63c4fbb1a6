/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals shared by the files of the worker: worker.c is the engine thread and its queue; worker_answer.c
 * answers requests; worker_ahead.c evaluates what is being typed; worker_load.c changes its model and its
 * plan; worker_query.c reports its state to the owner. */
#ifndef QSF_ENGINE_WORKER_IMPL_H
#define QSF_ENGINE_WORKER_IMPL_H

#include "src/base/sanitizer.h"
#include "src/engine/answer_tokens.h"
#include "src/engine/events.h"
#include "src/engine/prompt.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/engine/stats.h"
#include "src/engine/timeline.h"

/* Bytes of the engine thread's stack, which is part of every plan; untrusted templates and regular
 * expressions run on it. What the thread sanitizer keeps of a thread is on its stack, too. */
#define QSF_ENGINE_STACK ((QSF_THREAD_SANITIZER ? 2048u : 512u) << 10)

typedef enum QsfCommandKind {
    QSF_COMMAND_NONE,
    QSF_COMMAND_LOAD,
    QSF_COMMAND_UNLOAD,
    QSF_COMMAND_SUBMIT,
    QSF_COMMAND_REPLAN,
    QSF_COMMAND_AHEAD,
    QSF_COMMAND_FILL /* nothing else is to be done: experts are read into free slots */
} QsfCommandKind;

/* At most one is pending or running: a second is rejected while the worker is busy. AHEAD is not one of
 * the owner: the worker is not busy with it. */
typedef struct QsfCommand {
    QsfCommandKind kind;
    uint64_t id;
    char *path;              /* LOAD; owned */
    QSFSettings settings;    /* LOAD, REPLAN */
    QsfRequestCopy *request; /* SUBMIT, AHEAD; owned */
} QsfCommand;

/* A request of qsf_worker_replan that the engine has not received yet. */
typedef struct QsfReplan {
    bool pending;
    bool first; /* it came before the pending command, if there is one */
    QSFSettings settings;
} QsfReplan;

/* The snapshot of the conversation in the timeline; path NULL: there is none. Engine thread only. */
typedef struct QsfWorkerSnapshot {
    char *path;
    uint64_t limit; /* as in the request */
    QsfSnapKey key;
    bool due, fresh, reported; /* to be saved; as a new file; a notice was sent */
} QsfWorkerSnapshot;

/* Bits of the flag that stops computations. */
#define QSF_CANCEL_REQUEST 1 /* the running request, or the next one */
#define QSF_CANCEL_AHEAD   2 /* what is evaluated ahead */

struct QSFWorker {
    pthread_t thread;
    /* Protects command, replan, quit, ahead, aheading, params, settings, advice, plan_options and texts; held
     * for copies only. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    QsfCommand command;
    QsfReplan replan;
    bool quit;
    QsfRequestCopy *ahead; /* to be evaluated when nothing else is to be done; NULL = nothing */
    bool filling;          /* the engine thread's: slots for experts may be free */
    bool aheading;         /* something is being evaluated ahead; QSF_CANCEL_AHEAD is set only then */
    QSFParams params;
    QSFSettings settings; /* in force: of the model, or for the next one; written by the engine thread only */
    QSFSettings advice;   /* of the model, or the program's defaults; written by the engine thread only */
    QsfPlanOptions plan_options; /* of the plan in force; written by the engine thread only */
    char *text_model, *text_plan, *text_template, *text_quality, *text_ahead,
        *text_answer;             /* answers of qsf_worker_describe, or NULL */
    uint64_t last_id;             /* owner */
    const char *const *overrides; /* set by the owner while no load is pending or running */

    atomic_int cancel;
    atomic_bool busy;
    atomic_bool answer_now; /* qsf_worker_answer_now, for the running answer */
    QsfEvents events;
    QsfLiveStats stats;
    QsfAnswerTokens tokens; /* its memory: while a model is loaded */

    /* Held while the owner uses the model, tokenizer and template of rt, or while the engine thread replaces
     * them; they are valid while lent. */
    pthread_mutex_t lend_lock;
    bool lent;

    /* Engine thread only. */
    bool loaded;
    QsfRuntime rt;
    QsfTimeline timeline;
    char *path;
    char *stale; /* path of a model that must be reloaded before the next answer; NULL = none */
    const QsfRequestCopy *scoring; /* whose function gets the tokens; engine thread only */
    uint64_t running;              /* id of the request; 0 = none */
    uint32_t unreported;           /* tokens not yet reported in a text event */
    QsfWorkerSnapshot snap;
    uint32_t ahead_from; /* positions of the KV cache that were not evaluated ahead, if there are more */
};

/* ---- worker_query.c: what the engine thread tells the owner ---- */

/* Appends one event with text, NUL-terminated. */
void qsf_worker_emit(QSFWorker *w, QSFEventType type, const char *text);
/* Ends the request: sets the state, appends e, and makes the worker free for the next request. */
void qsf_worker_end(QSFWorker *w, QSFEvent *e, QSFState state);
/* Ends the request with an ERROR event. */
void qsf_worker_fail(QSFWorker *w, const QsfErr *err);

void qsf_worker_set_settings(QSFWorker *w, const QSFSettings *s);
/* Sets the recommended settings of a model, or without one the program's defaults. */
void qsf_worker_set_advice(QSFWorker *w, const QSFSettings *advice);
/* Replaces *slot, one of the texts of w; takes ownership of text, which may be NULL. */
void qsf_worker_set_text(QSFWorker *w, char **slot, char *text);
/* Publishes the plan in force, for qsf_worker_describe and qsf_worker_check. */
void qsf_worker_publish_plan(QSFWorker *w);
/* Publishes why nothing is evaluated ahead; true if it is. Not without a model. */
bool qsf_worker_publish_ahead(QSFWorker *w);
/* Lends model, tokenizer and template to the owner. With lent false, takes them back: waits until the owner
 * has stopped using them. */
void qsf_worker_lend(QSFWorker *w, bool lent);

/* ---- worker_answer.c. Engine thread ---- */

/* Reloads the model first if it is stale, and applies pending replans between two tokens. Ends in one DONE or
 * ERROR event. */
void qsf_worker_do_submit(QSFWorker *w, const QsfRequestCopy *r);

/* The tokens of its prompt, while the texts of the owner are charged; codes of qsf_prompt_encode. A request
 * whose text was refused fails. */
int qsf_worker_encode(QSFWorker *w, const QsfRequestCopy *r, QsfIds *ids, QsfThinkPrompt *where, QsfErr *err);
/* What other conversations begin with, too, is protected from eviction, and the state after it is kept. That
 * takes its own pass, which a model that streams makes only for a whole batch. ids: of the prompt. */
void qsf_worker_set_lead(QSFWorker *w, const QsfRequestCopy *r, const QsfIds *ids);

/* ---- worker_ahead.c ---- */

/* Takes what is to be evaluated; w->lock is held. Engine thread. */
QsfRequestCopy *qsf_worker_begin_ahead(QSFWorker *w);
/* Evaluates it, until it is stopped. A failure is not reported: the request that follows fails in the same
 * way. Engine thread. */
void qsf_worker_do_ahead(QSFWorker *w, QsfRequestCopy *r);
/* Stops what is running, and with `all` drops what waits; w->lock is held. Any thread. */
void qsf_worker_stop_ahead(QSFWorker *w, bool all);

/* ---- worker_load.c: the model. Engine thread ---- */

/* Replaces the model, or only its template if nothing else differs. Ends in one LOADED or ERROR event. */
void qsf_worker_do_load(QSFWorker *w, const char *path, const QSFSettings *s);
/* Between two commands: writes which experts were used, for `least` tokens or more. A failure is a notice,
 * once. */
void qsf_worker_learn(QSFWorker *w, uint32_t least);
/* Ends in a DONE event. */
void qsf_worker_do_unload(QSFWorker *w);
/* Frees the model without an event. */
void qsf_worker_drop_model(QSFWorker *w);
/* After a failure: sets w->stale if the model must be reloaded before the next answer. */
void qsf_worker_check_stale(QSFWorker *w);
/* Reloads the model at w->stale and clears it; emits a notice. The codes of qsf_runtime_open. */
int qsf_worker_reload(QSFWorker *w, QsfErr *err);

/* Between two tokens or when idle: applies the QSF_SETTING_REPLAN settings of s. Ends in one PLAN event. */
void qsf_worker_do_replan(QSFWorker *w, const QSFSettings *s);
/* The same for a pending qsf_worker_replan, if there is one and the answer is not being cancelled. */
void qsf_worker_do_pending_replan(QSFWorker *w);

/* Before the prompt ids is evaluated: loads its first positions from the snapshot that r names, if any. A
 * damaged file is reported by a notice; no failure is an error of the request. */
void qsf_worker_snapshot_load(QSFWorker *w, const QsfRequestCopy *r, const QsfIds *ids);
/* Between two commands: saves the snapshot that is due. Gives up, to be called again, when another answer of
 * the same conversation or a replan waits, and when the worker must stop and that has taken some seconds. The
 * first failure of a conversation is reported by a notice. */
void qsf_worker_snapshot_save(QSFWorker *w);

#endif
