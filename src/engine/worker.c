/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The engine thread: its queue and its loop. */
#include "src/engine/worker_impl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/engine/prompt.h"
#include "src/engine/quality/quality.h"

/* ---- engine thread: commands ---- */

static void command_free(QsfCommand *c) {
    free(c->path);
    free(c->request);
    memset(c, 0, sizeof *c);
}

static bool nothing_to_do(const QSFWorker *w) {
    return !w->quit && !w->replan.pending && w->command.kind == QSF_COMMAND_NONE;
}

/* Keeps the order in which the owner asked. A cancellation left over from an earlier request does not apply
 * to a change of the plan. */
static bool replan_is_next(QSFWorker *w) {
    bool idle = w->command.kind == QSF_COMMAND_NONE;
    if (!w->replan.pending || (!idle && !w->replan.first)) return false;
    if (idle && !atomic_load(&w->busy)) atomic_store(&w->cancel, 0);
    w->replan.pending = false;
    return true;
}

/* Waits for the next command, for a replan, or for something to evaluate ahead when there is neither; false
 * when the worker has to stop. */
static bool wait_command(QSFWorker *w, QsfCommand *c) {
    memset(c, 0, sizeof *c);
    pthread_mutex_lock(&w->lock);
    while (nothing_to_do(w) && w->ahead == NULL && !w->filling) pthread_cond_wait(&w->wake, &w->lock);
    bool go = !w->quit;
    if (go && replan_is_next(w)) {
        c->kind = QSF_COMMAND_REPLAN;
        c->settings = w->replan.settings;
    } else if (nothing_to_do(w) && w->ahead == NULL) {
        c->kind = QSF_COMMAND_FILL;
    } else if (nothing_to_do(w)) {
        c->kind = QSF_COMMAND_AHEAD;
        c->request = qsf_worker_begin_ahead(w);
    } else {
        *c = w->command;
        memset(&w->command, 0, sizeof w->command);
    }
    pthread_mutex_unlock(&w->lock);
    return go;
}

#define FILL_PIECE (8u << 20) /* bytes that are read before the next request begins */

/* A read that fails is reported by the pass that needs the expert. */
static void do_fill(QSFWorker *w) {
    QsfErr ignored = { 0 };
    if (!w->loaded || w->stale != NULL ||
        qsf_forward_fill_experts(w->rt.fwd, FILL_PIECE, &w->filling, &ignored) != QSF_OK)
        w->filling = false;
    qsf_err_clear(&ignored);
}

static void run_command(QSFWorker *w, const QsfCommand *c) {
    w->running = c->id;
    switch (c->kind) {
    case QSF_COMMAND_LOAD: qsf_worker_do_load(w, c->path, &c->settings); break;
    case QSF_COMMAND_UNLOAD: qsf_worker_do_unload(w); break;
    case QSF_COMMAND_SUBMIT: qsf_worker_do_submit(w, c->request); break;
    case QSF_COMMAND_REPLAN: qsf_worker_do_replan(w, &c->settings); break;
    case QSF_COMMAND_AHEAD: qsf_worker_do_ahead(w, c->request); break;
    case QSF_COMMAND_FILL: do_fill(w); break;
    case QSF_COMMAND_NONE: break;
    }
    w->running = 0;
}

static void *engine(void *arg) {
    QSFWorker *w = arg;
    QsfCommand c;
    (void)qsf_interrupt_watch(&w->cancel);
    while (wait_command(w, &c)) {
        run_command(w, &c);
        const bool idle = c.kind == QSF_COMMAND_AHEAD || c.kind == QSF_COMMAND_FILL;
        command_free(&c);
        if (idle) continue;
        w->filling = w->loaded;
        /* For a large sparse model that streams the plans take a while; the request has ended by then. */
        if (w->loaded) qsf_worker_set_text(w, &w->text_quality, qsf_quality_text(&w->rt));
        qsf_worker_snapshot_save(w);
        qsf_worker_learn(w, QSF_HABITS_SOON);
    }
    command_free(&c);
    qsf_worker_drop_model(w);
    free(w->stale);
    return NULL;
}

/* ---- owner ---- */

/* Blocks signals in the engine thread: the owner's threads handle them. */
static int start_thread(QSFWorker *w) {
    sigset_t all, old;
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) return rc;
    pthread_attr_setstacksize(&attr, QSF_ENGINE_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    rc = pthread_create(&w->thread, &attr, engine, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

static void worker_free(QSFWorker *w) {
    free(w->ahead);
    qsf_events_free(&w->events);
    qsf_live_stats_free(&w->stats);
    qsf_answer_tokens_destroy(&w->tokens);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lend_lock);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

QSFWorker *qsf_worker_start(const QSFSettings *s, char *err, size_t cap) {
    QsfErr e = { 0 };
    QSFWorker *w = calloc(1, sizeof *w);
    if (err == NULL) cap = 0;
    if (w == NULL) {
        snprintf(err, cap, "out of memory for the engine");
        return NULL;
    }
    if (s != NULL)
        w->settings = *s;
    else
        qsf_settings_default(&w->settings);
    w->params = w->settings.params;
    w->ahead_from = UINT32_MAX;
    qsf_settings_default(&w->advice);
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->lend_lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    qsf_live_stats_init(&w->stats, &w->settings);
    qsf_answer_tokens_init(&w->tokens);
    int rc = qsf_events_init(&w->events, &w->cancel, &e);
    if (rc == QSF_OK) {
        int t = start_thread(w);
        if (t != 0) rc = qsf_err_set(&e, QSF_E_RUNTIME, "cannot start the engine thread: %s", strerror(t));
    }
    if (rc == QSF_OK) return w;
    snprintf(err, cap, "%s", e.msg);
    worker_free(w);
    return NULL;
}

void qsf_worker_stop(QSFWorker *w) {
    if (w == NULL) return;
    pthread_mutex_lock(&w->lock);
    w->quit = true;
    atomic_fetch_or(&w->cancel, QSF_CANCEL_REQUEST);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    worker_free(w);
}

void qsf_worker_override(QSFWorker *w, const char *const *specs) {
    if (w != NULL) w->overrides = specs;
}

int qsf_worker_fd(const QSFWorker *w) { return w != NULL ? w->events.wake.fd[0] : -1; }

/* Passes c to the engine thread and takes ownership of it. Clears older cancellations, which were for earlier
 * requests. Returns 0 when the worker is busy; c is freed then. */
static uint64_t send_command(QSFWorker *w, QsfCommand *c) {
    if (atomic_load(&w->busy) || qsf_events_full(&w->events)) {
        command_free(c);
        return 0;
    }
    c->id = ++w->last_id;
    atomic_fetch_and(&w->cancel, ~QSF_CANCEL_REQUEST);
    atomic_store(&w->answer_now, false);
    atomic_store(&w->busy, true);
    pthread_mutex_lock(&w->lock);
    qsf_worker_stop_ahead(w, true);
    w->command = *c;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    return w->last_id;
}

uint64_t qsf_worker_load(QSFWorker *w, const char *path, const QSFSettings *s) {
    if (w == NULL || path == NULL || s == NULL || atomic_load(&w->busy)) return 0;
    QsfCommand c = { .kind = QSF_COMMAND_LOAD, .path = strdup(path), .settings = *s };
    if (c.path == NULL) return 0;
    qsf_worker_set_params(w, &s->params);
    return send_command(w, &c);
}

uint64_t qsf_worker_unload(QSFWorker *w) {
    QsfCommand c = { .kind = QSF_COMMAND_UNLOAD };
    return w != NULL ? send_command(w, &c) : 0;
}

static uint64_t request_need(const QsfRuntime *r, const QSFRequest *q) {
    uint64_t sum = q->n_tokens * (uint64_t)QSF_REQUEST_BYTES;
    for (size_t i = 0; i < q->n_messages; i++) {
        const QSFMessage *m = &q->messages[i];
        if (m->len > 0) sum += qsf_prompt_need(r, m->content, m->len);
        sum += (m->reasoning_len + m->exact_len + m->calls_len) * (uint64_t)QSF_REQUEST_BYTES;
    }
    return sum;
}

/* A text that the ledger will refuse is not copied: what its prompt needs, 0 = it fits. Where that cannot be
 * known now, because the model is being replaced, it is copied. */
static uint64_t too_much(QSFWorker *w, const QSFRequest *r) {
    QsfErr e = { 0 };
    uint64_t need = 0;
    const uint64_t bytes = (uint64_t)qsf_request_text_bytes(r) * QSF_REQUEST_BYTES + r->held;
    if (pthread_mutex_trylock(&w->lend_lock) != 0) return 0;
    if (w->lent && qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes, "text", &e) == QSF_OK)
        qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes);
    else if (w->lent)
        need = request_need(&w->rt, r);
    pthread_mutex_unlock(&w->lend_lock);
    return need;
}

uint64_t qsf_worker_submit(QSFWorker *w, const QSFRequest *r) {
    if (w == NULL || !qsf_request_ok(r) || atomic_load(&w->busy)) return 0;
    QsfCommand c = { .kind = QSF_COMMAND_SUBMIT, .request = qsf_request_copy(r, too_much(w, r)) };
    return c.request != NULL ? send_command(w, &c) : 0;
}

static bool is_typed(const QSFRequest *r) {
    return qsf_request_ok(r) && r->n_messages > 0 && !r->continue_last &&
           strcmp(r->messages[r->n_messages - 1].role, "user") == 0;
}

bool qsf_worker_ahead(QSFWorker *w, const QSFRequest *r) {
    if (w == NULL) return false;
    const bool ok = r != NULL && is_typed(r) && !atomic_load(&w->busy) && too_much(w, r) == 0;
    QsfRequestCopy *copy = ok ? qsf_request_copy(r, 0) : NULL;
    pthread_mutex_lock(&w->lock);
    if (r == NULL) qsf_worker_stop_ahead(w, true);
    if (copy != NULL) {
        free(w->ahead);
        w->ahead = copy;
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    return copy != NULL;
}

void qsf_worker_replan(QSFWorker *w, const QSFSettings *s) {
    if (w == NULL || s == NULL) return;
    pthread_mutex_lock(&w->lock);
    qsf_worker_stop_ahead(w, false);
    w->replan = (QsfReplan){ .pending = true, .first = w->command.kind == QSF_COMMAND_NONE, .settings = *s };
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void qsf_worker_cancel(QSFWorker *w) {
    if (w != NULL) atomic_fetch_or(&w->cancel, QSF_CANCEL_REQUEST);
}

void qsf_worker_answer_now(QSFWorker *w) {
    if (w != NULL) atomic_store(&w->answer_now, true);
}

bool qsf_worker_busy(const QSFWorker *w) { return w != NULL && atomic_load(&w->busy); }

bool qsf_worker_next(QSFWorker *w, QSFEvent *e) {
    return w != NULL && e != NULL && qsf_events_next(&w->events, e);
}
