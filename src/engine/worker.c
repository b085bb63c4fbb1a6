/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The engine thread: its queue, its loop, and how it answers a request. */
#include "src/engine/worker_impl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/engine/prompt.h"
#include "src/engine/quality/quality.h"

/* ---- engine thread: answers ---- */

static void on_params(void *arg, QSFParams *out) { qsf_worker_get_params(arg, out); }

static int emit_text(QSFWorker *w, QSFEventType type, int32_t id, const char *text, size_t len) {
    if (id >= 0) w->unreported++;
    if (len == 0) return 0;
    QSFEvent e = {
        .type = type, .request = w->running, .text = text, .text_len = len, .tokens = w->unreported
    };
    w->unreported = 0;
    qsf_events_push(&w->events, &e, NULL);
    return 0;
}

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    return emit_text(arg, QSF_EVENT_TEXT, id, text, len);
}

static int on_reasoning(void *arg, int32_t id, const char *text, size_t len) {
    return emit_text(arg, QSF_EVENT_REASONING, id, text, len);
}

static void on_tick(void *arg, const QsfSample *s) {
    QSFWorker *w = arg;
    QSFParams p;
    if (s == NULL) {
        qsf_live_stats_decode(&w->stats, qsf_forward_kept(w->rt.fwd));
        return;
    }
    qsf_worker_get_params(w, &p);
    qsf_live_stats_token(&w->stats, s, qsf_forward_kept(w->rt.fwd), p.max_tokens);
}

/* A sentence about positions that were evicted. */
static void emit_evicted(QSFWorker *w, uint64_t n) {
    char text[96];
    const int len = snprintf(text, sizeof text, "%llu tokens left the context (%s)", (unsigned long long)n,
                             w->rt.settings.eviction);
    QSFEvent e = { .type = QSF_EVENT_EVICTED,
                   .request = w->running,
                   .text = text,
                   .text_len = (size_t)len,
                   .evicted = (uint32_t)n };
    qsf_events_push(&w->events, &e, NULL);
}

static void on_evicted(void *arg, uint64_t n) { emit_evicted(arg, n); }

static void on_memory(void *arg, const char *text) { qsf_worker_emit(arg, QSF_EVENT_NOTICE, text); }

static bool on_answer_now(void *arg) { return atomic_load(&((QSFWorker *)arg)->answer_now); }

static void on_reasoning_cut(void *arg, uint32_t tokens) {
    char text[96];
    snprintf(text, sizeof text, "thinking was cut after %u tokens", tokens);
    qsf_worker_emit(arg, QSF_EVENT_NOTICE, text);
}

static void on_between(void *arg) { qsf_worker_do_pending_replan(arg); }

static void on_quality(void *arg) {
    QSFWorker *w = arg;
    qsf_live_stats_plan(&w->stats, qsf_forward_kept(w->rt.fwd));
    qsf_worker_publish_plan(w);
}

/* Reports, once per template, that the setting reasoning does not do what it says. */
static void note_reasoning(QSFWorker *w, const QSFParams *p) {
    const char *note = qsf_chat_reasoning_note(w->rt.tmpl, p->reasoning);
    if (note == NULL || w->rt.reasoning_noted) return;
    w->rt.reasoning_noted = true;
    qsf_worker_emit(w, QSF_EVENT_NOTICE, note);
}

/* Reports that the template leaves out a message: the newest one always, others once per template. */
static void note_lost(QSFWorker *w, const QsfRequestCopy *r, size_t lost) {
    char text[400];
    if (lost == 0 || (lost < r->n_messages && w->rt.lost_noted)) return;
    w->rt.lost_noted = w->rt.lost_noted || lost < r->n_messages;
    qsf_chat_lost_note(w->rt.tmpl, r->messages, r->n_messages, lost, text, sizeof text);
    qsf_worker_emit(w, QSF_EVENT_NOTICE, text);
}

/* Says why the messages were not copied. */
static int refuse_text(QSFWorker *w, const QsfRequestCopy *r, QsfErr *err) {
    const uint64_t bytes = (uint64_t)r->text_bytes * QSF_REQUEST_BYTES + r->held;
    int rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes, "the text of the conversation",
                                err);
    if (rc != QSF_OK) return rc;
    qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes); /* there is space now */
    return qsf_err_set(err, QSF_E_BUDGET,
                       "the text of the conversation did not fit in the RAM budget: ask again");
}

/* The prompt, while the texts of the owner are charged. */
static int encode_beside(QSFWorker *w, const QsfRequestCopy *r, unsigned flags, QsfIds *ids,
                         QsfThinkPrompt *where, QsfErr *err) {
    if (r->refused > 0) {
        (void)refuse_text(w, r, err);
        return qsf_prompt_advise(&w->rt, r->refused, err);
    }
    int rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, r->held, "the text of the conversation",
                                err);
    if (rc != QSF_OK) return qsf_prompt_advise(&w->rt, r->text_bytes * (uint64_t)QSF_REQUEST_BYTES, err);
    rc = qsf_prompt_encode(&w->rt, r->messages, r->n_messages, flags, ids, where, err);
    qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, r->held);
    return rc;
}

static int encode(QSFWorker *w, const QsfRequestCopy *r, QsfIds *ids, QsfThinkPrompt *where, QsfErr *err) {
    QSFParams p;
    qsf_worker_get_params(w, &p);
    if (r->refused == 0) note_reasoning(w, &p);
    w->rt.text_held = r->held;
    int rc = encode_beside(w, r, qsf_request_chat_flags(r, &p), ids, where, err);
    w->rt.text_held = 0;
    if (rc == QSF_OK) note_lost(w, r, where->lost);
    if (rc == QSF_OK)
        qsf_runtime_protect(&w->rt, qsf_system_tokens(&w->rt, r->messages, r->n_messages,
                                                      qsf_request_chat_flags(r, &p), ids));
    return rc;
}

/* Memory per token while the exact text is made. */
#define BYTES_PER_TOKEN 32u

/* Appends the exact text of the tokens that were generated. false: there is none, or no memory. */
static bool add_generated(QSFWorker *w, const QsfIds *prompt, const QsfGeneration *g, bool continues,
                          QsfStrbuf *out, bool *special) {
    const QsfTimeline *t = &w->timeline;
    QsfIds ids = { 0 };
    QsfErr err = { 0 };
    const size_t cached = t->n_ids > prompt->n ? t->n_ids - prompt->n : 0;
    const size_t n = cached < g->tokens ? cached : g->tokens;
    if (n + 1 < g->tokens) return false; /* a context that became smaller lost some */
    bool ok = qsf_ids_append(&ids, t->ids + prompt->n, n, &err) == QSF_OK &&
              (n == g->tokens || qsf_ids_push(&ids, g->last_id, &err) == QSF_OK) &&
              qsf_exact_add(w->rt.tok, ids.data, ids.n, continues, t->piece, QSF_TIMELINE_PIECE, out,
                            special);
    qsf_ids_free(&ids);
    return ok;
}

/* Appends the exact text that the prompt ends with, if it continues an answer. false: it is not known. */
static bool add_continued(const QsfMsg *last, const QsfThinkPrompt *where, QsfStrbuf *out) {
    const QsfThinkFormat format = where->split.t->format;
    if (where->exact) {
        qsf_strbuf_add(out, last->exact, last->exact_len);
    } else if (last != NULL) {
        if (last->reasoning_len > 0 || (format != QSF_THINK_NONE && format != QSF_THINK_TAGS)) return false;
        if (last->len > 0) qsf_strbuf_add(out, last->content, last->len);
    }
    return qsf_strbuf_ok(out);
}

/* Publishes what an unfinished answer consists of, if its text does not tell. */
static void publish_exact(QSFWorker *w, const QsfRequestCopy *r, const QsfIds *ids,
                          const QsfThinkPrompt *where, const QsfGeneration *g) {
    const QsfMsg *last = r->continue_last && r->n_messages > 0 ? &r->messages[r->n_messages - 1] : NULL;
    uint64_t bytes = (uint64_t)g->tokens * BYTES_PER_TOKEN + (last != NULL ? last->len + last->exact_len : 0);
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    bool special = false;
    if (g->stop == QSF_STOP_EOS || g->stop == QSF_STOP_STRING || g->tokens == 0) return;
    if (qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes, "the text of the answer", &err) !=
        QSF_OK)
        return;
    bool ok = add_continued(last, where, &b) &&
              add_generated(w, ids, g, w->rt.tmpl == NULL || last != NULL, &b, &special);
    if (ok && (where->exact || special)) qsf_worker_set_text(w, &w->text_answer, qsf_strbuf_take(&b, NULL));
    qsf_strbuf_free(&b);
    qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes);
}

static void answer(QSFWorker *w, const QsfRequestCopy *r, const QsfIds *ids, const QsfThinkPrompt *where) {
    QsfGenerate g = {
        .prompt = ids->data,
        .n_prompt = ids->n,
        .continues = w->rt.tmpl == NULL || r->continue_last,
        .stop = r->stop,
        .n_stop = r->n_stop,
        .max_tokens = r->max_tokens,
        .params = on_params,
        .text = on_text,
        .reasoning = on_reasoning,
        .think = *where,
        .tick = on_tick,
        .between = on_between,
        .evicted = on_evicted,
        .memory = on_memory,
        .quality = on_quality,
        .answer_now = on_answer_now,
        .reasoning_cut = on_reasoning_cut,
        .arg = w,
    };
    QsfGeneration out;
    QsfErr err = { 0 };
    QSFParams p;
    qsf_worker_get_params(w, &p);
    qsf_forward_stats_reset(w->rt.fwd);
    qsf_worker_snapshot_load(w, r, ids);
    qsf_live_stats_prefill(&w->stats, (uint32_t)ids->n,
                           qsf_timeline_reusable(&w->timeline, ids->data, ids->n), p.max_tokens);
    int rc = qsf_timeline_generate(&w->timeline, &g, &out, &err);
    qsf_live_stats_done(&w->stats, qsf_forward_kept(w->rt.fwd));
    w->snap.due = w->snap.path != NULL;
    if (rc != QSF_OK) {
        qsf_worker_check_stale(w);
        qsf_worker_fail(w, &err);
        return;
    }
    publish_exact(w, r, ids, where, &out);
    QSFEvent e = {
        .type = QSF_EVENT_DONE,
        .stop = out.stop,
        .tokens = out.tokens,
        .reasoning_tokens = out.reasoning_tokens,
        .thinking = out.thinking,
        .reasoning_cut = out.reasoning_cut,
        .hidden_tokens = out.hidden_tokens,
        .prompt_tokens = out.prompt_tokens,
        .reused_tokens = out.reused_tokens,
        .seed = out.seed,
        .evicted = (uint32_t)out.evicted,
    };
    qsf_worker_end(w, &e, QSF_STATE_IDLE);
}

/* Reloads the model first if it is stale, and applies pending replans between two tokens. Ends in one DONE or
 * ERROR event. */
static void submit(QSFWorker *w, const QsfRequestCopy *r) {
    QsfErr err = { 0 };
    QsfIds ids = { 0 };
    QsfThinkPrompt where;
    w->unreported = 0;
    qsf_worker_set_text(w, &w->text_answer, NULL);
    if (w->stale != NULL && qsf_worker_reload(w, &err) != QSF_OK) {
        qsf_worker_fail(w, &err);
        return;
    }
    if (!w->loaded) {
        qsf_err_set(&err, QSF_E_MODEL, "no model is loaded: /model FILE");
        qsf_worker_fail(w, &err);
        return;
    }
    QSFEvent stopped = { .type = QSF_EVENT_DONE, .stop = QSF_STOP_INTERRUPTED };
    switch (encode(w, r, &ids, &where, &err)) {
    case QSF_OK: answer(w, r, &ids, &where); break;
    case QSF_E_INTERRUPTED: qsf_worker_end(w, &stopped, QSF_STATE_IDLE); break;
    default: qsf_worker_fail(w, &err);
    }
    qsf_ids_free(&ids);
}

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

/* Waits for the next command or for a replan; false when the worker has to stop. */
static bool wait_command(QSFWorker *w, QsfCommand *c) {
    memset(c, 0, sizeof *c);
    pthread_mutex_lock(&w->lock);
    while (nothing_to_do(w)) pthread_cond_wait(&w->wake, &w->lock);
    bool go = !w->quit;
    if (go && replan_is_next(w)) {
        c->kind = QSF_COMMAND_REPLAN;
        c->settings = w->replan.settings;
    } else {
        *c = w->command;
        memset(&w->command, 0, sizeof w->command);
    }
    pthread_mutex_unlock(&w->lock);
    return go;
}

static void run_command(QSFWorker *w, const QsfCommand *c) {
    w->running = c->id;
    switch (c->kind) {
    case QSF_COMMAND_LOAD: qsf_worker_do_load(w, c->path, &c->settings); break;
    case QSF_COMMAND_UNLOAD: qsf_worker_do_unload(w); break;
    case QSF_COMMAND_SUBMIT: submit(w, c->request); break;
    case QSF_COMMAND_REPLAN: qsf_worker_do_replan(w, &c->settings); break;
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
        command_free(&c);
        /* Of a large sparse model that streams, its plans take a moment: the request has ended already. */
        if (w->loaded) qsf_worker_set_text(w, &w->text_quality, qsf_quality_text(&w->rt));
        qsf_worker_snapshot_save(w);
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
    qsf_events_free(&w->events);
    qsf_live_stats_free(&w->stats);
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
    qsf_settings_default(&w->advice);
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->lend_lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    qsf_live_stats_init(&w->stats, &w->settings);
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
    atomic_store(&w->cancel, 1);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    worker_free(w);
}

void qsf_worker_override(QSFWorker *w, const char *const *specs) {
    if (w != NULL) w->overrides = specs;
}

int qsf_worker_fd(const QSFWorker *w) { return w != NULL ? w->events.fd[0] : -1; }

/* Passes c to the engine thread and takes ownership of it. Clears older cancellations, which were for earlier
 * requests. Returns 0 when the worker is busy; c is freed then. */
static uint64_t send_command(QSFWorker *w, QsfCommand *c) {
    if (atomic_load(&w->busy) || qsf_events_full(&w->events)) {
        command_free(c);
        return 0;
    }
    c->id = ++w->last_id;
    atomic_store(&w->cancel, 0);
    atomic_store(&w->answer_now, false);
    atomic_store(&w->busy, true);
    pthread_mutex_lock(&w->lock);
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
    uint64_t sum = 0;
    for (size_t i = 0; i < q->n_messages; i++) {
        const QSFMessage *m = &q->messages[i];
        if (m->len > 0) sum += qsf_prompt_need(r, m->content, m->len);
        sum += (m->reasoning_len + m->exact_len) * (uint64_t)QSF_REQUEST_BYTES;
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

void qsf_worker_replan(QSFWorker *w, const QSFSettings *s) {
    if (w == NULL || s == NULL) return;
    pthread_mutex_lock(&w->lock);
    w->replan = (QsfReplan){ .pending = true, .first = w->command.kind == QSF_COMMAND_NONE, .settings = *s };
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void qsf_worker_cancel(QSFWorker *w) {
    if (w != NULL) atomic_store(&w->cancel, 1);
}

void qsf_worker_answer_now(QSFWorker *w) {
    if (w != NULL) atomic_store(&w->answer_now, true);
}

bool qsf_worker_busy(const QSFWorker *w) { return w != NULL && atomic_load(&w->busy); }

bool qsf_worker_next(QSFWorker *w, QSFEvent *e) {
    return w != NULL && e != NULL && qsf_events_next(&w->events, e);
}
