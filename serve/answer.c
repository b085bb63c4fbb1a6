/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests to the engine, and its events: implements answer.h. */
#include "serve/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_log.h"
#include "serve/calls.h"
#include "serve/responses.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/plural.h"

#define PIECE 1024u /* bytes of a token in the text of a prompt */

/* ---- the end of a job ---- */

static void lock(ServeAnswer *a) { pthread_mutex_lock(&a->server->lock); }
static void unlock(ServeAnswer *a) { pthread_mutex_unlock(&a->server->lock); }

/* Under the lock. */
static void finish(ServeAnswer *a) {
    ServeJob *job = a->job;
    job->state = SERVE_ENDED;
    job->ended_ns = qsf_now_ns();
    if (a->server->running == job) a->server->running = NULL;
    serve_http_wake(job);
    serve_job_release(job);
    a->job = NULL;
}

/* Clients know the model by its name, not by its file. */
static void fail_at(ServeAnswer *a, int status, const char *code, const char *param, const char *message) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    serve_reply_hide_paths(&text, message, a->server->options->model, a->server->model.id);
    lock(a);
    serve_error_set(&a->job->error, status, code, param, "%s",
                    qsf_strbuf_ok(&text) ? qsf_strbuf_str(&text) : "out of memory");
    if (a->job->head.responses) serve_responses_rename(&a->job->error);
    finish(a);
    unlock(a);
    qsf_strbuf_free(&text);
}

static void fail(ServeAnswer *a, int status, const char *code, const char *message) {
    fail_at(a, status, code, NULL, message);
}

/* In the log, and on stderr with --verbose. */
static void report(const ServeAnswer *a, const char *kind, const char *text) {
    qsf_log(kind, "%s", text);
    if (a->server->options->verbose && !a->server->options->quiet) qsf_cli_error_text(&serve_cli, text);
}

/* ---- the beginning ---- */

static QSFRequest request_of(const ServeAnswer *a, const ServeRequest *r) {
    const char *from, *snapshot = serve_slots_choose(a->slots, r, &from);
    return (QSFRequest){ .messages = r->messages,
                         .n_messages = r->ids != NULL ? 0 : r->n_messages,
                         .raw = !r->chat,
                         .tokens = r->ids,
                         .n_tokens = r->n_ids,
                         .tools = r->tools,
                         .tools_len = r->tools_len,
                         .call = r->call,
                         .one_call = r->one_call,
                         .continue_last = r->continue_last,
                         .stop = r->stop,
                         .n_stop = r->call != NULL ? 0 : r->n_stop, /* a part of a call is none */
                         .snapshot = snapshot,
                         .snapshot_from = from,
                         .snapshot_limit = a->slots->limit,
                         .grammar_kind = r->grammar_kind,
                         .grammar = r->grammar,
                         .grammar_len = r->grammar_len };
}

/* Before the prompt is answered, its own tokens are evaluated for their logprobs. */
static QSFRequest scoring_of(ServeAnswer *a, const ServeRequest *r) {
    return (QSFRequest){ .messages = r->messages,
                         .n_messages = r->ids != NULL ? 0 : 1,
                         .raw = true,
                         .tokens = r->ids,
                         .n_tokens = r->n_ids,
                         .score = true,
                         .scored = serve_logprobs_scored,
                         .scored_arg = a };
}

/* Does another answer to the same request follow this one? */
static bool follows(const ServeJob *job) { return job->head.index + 1 < job->request.n; }

/* The engine, which is idle, has the request then; or the job has ended with an error. */
static void submit(ServeAnswer *a) {
    ServeJob *job = a->job;
    const QSFRequest q = a->scoring ? scoring_of(a, &job->request) : request_of(a, &job->request);
    a->id = qsf_worker_submit(a->server->worker, &q);
    if (a->id == 0) {
        fail(a, 500, NULL, "out of memory");
        return;
    }
    lock(a);
    if (!a->scoring && !follows(job)) serve_job_drop_body(job);
    unlock(a);
}

/* The text of ids: of control tokens there is none. Token by token, since a list is short for its text. */
static bool echo_ids(ServeAnswer *a) {
    char piece[PIECE];
    bool special = false, ok = true;
    ServeJob *job = a->job;
    for (size_t i = 0; i < job->request.n_ids && ok; i++) {
        const int32_t id = job->request.ids[i];
        const size_t len = qsf_worker_token_text(a->server->worker, id, piece, sizeof piece, &special);
        if (!special) qsf_strbuf_add(&job->text, piece, len < sizeof piece ? len : sizeof piece);
        ok = qsf_strbuf_ok(&job->text) && serve_job_charge(job);
    }
    return ok;
}

/* The answer begins with the prompt. Under the lock. */
static bool echo(ServeAnswer *a) {
    const ServeRequest *r = &a->job->request;
    if (r->ids != NULL) return echo_ids(a);
    qsf_strbuf_add(&a->job->text, r->messages[0].content, r->messages[0].len);
    return true;
}

/* The first answer, or the next of several. */
static void begin_one(ServeAnswer *a) {
    ServeJob *job = a->job;
    const ServeRequest *r = &job->request;
    a->scoring = r->echo && r->logprobs;
    a->row = a->text_begin = a->text_end = a->reasoning_end = 0;
    qsf_worker_set_params(a->server->worker, &r->settings.params);
    lock(a);
    const bool ok = !r->echo || echo(a);
    job->shown = a->echoed = job->text.len;
    unlock(a);
    if (ok)
        submit(a);
    else
        fail(a, 503, "answer_too_large", SERVE_TOO_LARGE);
}

void serve_answer_begin(ServeAnswer *a, ServeJob *job) {
    a->job = job;
    a->cancelled = false;
    job->began_ns = qsf_now_ns();
    qsf_worker_model_defaults(a->server->worker, &job->request.settings);
    begin_one(a);
}

/* ---- events ---- */

static void cancel(ServeAnswer *a) {
    if (!a->cancelled) qsf_worker_cancel(a->server->worker);
    a->cancelled = true;
}

/* What clients get of the reasoning: it only grows. */
static void update_plain(ServeJob *job) {
    char *plain = malloc(job->reasoning.len + 1);
    if (plain == NULL) return;
    const size_t len = qsf_reasoning_plain(qsf_strbuf_str(&job->reasoning), job->reasoning.len, plain);
    if (len > job->plain.len && memcmp(plain, qsf_strbuf_str(&job->plain), job->plain.len) == 0)
        qsf_strbuf_add(&job->plain, plain + job->plain.len, len - job->plain.len);
    free(plain);
}

static void take_text(ServeAnswer *a, const QSFEvent *e) {
    ServeJob *job = a->job;
    lock(a);
    if (e->type == QSF_EVENT_REASONING) {
        qsf_strbuf_add(&job->reasoning, e->text, e->text_len);
        update_plain(job);
    } else {
        qsf_strbuf_add(&job->text, e->text, e->text_len);
        job->shown = job->request.tools != NULL
                         ? serve_calls_before(qsf_strbuf_str(&job->text), job->text.len)
                         : job->text.len;
    }
    const bool ok = serve_job_charge(job) && qsf_strbuf_ok(&job->text) && qsf_strbuf_ok(&job->reasoning);
    if (!ok) serve_error_set(&job->error, 503, "answer_too_large", NULL, SERVE_TOO_LARGE);
    unlock(a);
    if (!ok) cancel(a);
}

/* With tools: the calls in the text, which is cut before them. */
static void take_calls(ServeJob *job) {
    size_t before;
    if (job->request.tools == NULL) return;
    ServeCallTools tools = { qsf_strbuf_str(&job->tools), job->tools.len };
    if (job->body != NULL) tools = (ServeCallTools){ job->request.tools, job->request.tools_len };
    const size_t n = serve_calls_read(qsf_strbuf_str(&job->text), job->text.len, &tools,
                                      job->request.one_call, job->request.stream, &before, &job->calls);
    job->shown = n > 0 ? before : job->text.len;
    if (job->shown < job->sent_text) job->shown = job->sent_text;
    if (n > 0) job->end.finish = "tool_calls";
}

static void count(ServeAnswer *a, const QSFEvent *e) {
    char line[200];
    ServeCounters *c = &a->server->counters;
    const uint64_t took = qsf_now_ns() - a->job->began_ns;
    c->answers++;
    c->prompt_tokens += e->prompt_tokens;
    c->cached_tokens += e->reused_tokens;
    c->tokens += e->tokens;
    c->answer_ns += took;
    (void)qsf_plural_snprintf(line, sizeof line,
                              "prompt %u tokens (%u reused), answer %u tokens in %.3f s, stop %s, seed %llu",
                              e->prompt_tokens, e->reused_tokens, e->tokens, (double)took / 1e9,
                              qsf_stop_name(e->stop), (unsigned long long)e->seed);
    report(a, "answer", line);
}

/* Is the answer still wanted, and without an error? */
static bool goes_on(ServeAnswer *a) {
    lock(a);
    const bool ok = !a->cancelled && a->job->error.status == 0;
    unlock(a);
    return ok;
}

/* The prompt has its logprobs. */
static void take_scored(ServeAnswer *a) {
    a->scoring = false;
    a->text_begin = (uint32_t)a->echoed;
    a->text_end = 0;
    submit(a);
}

/* Prepares the answer that follows. Under the lock; false: there is none. */
static bool next(ServeAnswer *a, const QSFEvent *e) {
    ServeJob *job = a->job;
    QSFParams *p = &job->request.settings.params;
    if (a->cancelled || job->error.status != 0 || !follows(job)) return false;
    serve_job_next(job);
    p->seed = e->seed + 1;
    p->seed_set = true;
    if (serve_job_charge(job) && qsf_strbuf_ok(&job->choices) && qsf_strbuf_ok(&job->out)) return true;
    return serve_error_set(&job->error, 503, "answer_too_large", NULL, SERVE_TOO_LARGE);
}

static void take_done(ServeAnswer *a, const QSFEvent *e) {
    ServeJob *job = a->job;
    const bool ended = !a->scoring && (e->stop == QSF_STOP_EOS || e->stop == QSF_STOP_STRING);
    QSFStats st;
    qsf_worker_stats(a->server->worker, &st);
    if (ended) serve_slots_answered(a->slots, qsf_strbuf_str(&job->text), job->text.len);
    lock(a);
    job->end = (ServeEnd){ .finish = ended ? "stop" : "length",
                           .prompt_tokens = e->prompt_tokens,
                           .cached_tokens = e->reused_tokens,
                           .tokens = a->scoring ? 0 : e->tokens,
                           .reasoning_tokens = e->reasoning_tokens,
                           .seed = e->seed - job->head.index, /* that of the first */
                           .prompt_tps = st.prefill_tps,
                           .tps = st.decode_tps };
    take_calls(job);
    /* Not a complete answer; an error that was the reason is kept. */
    if (e->stop == QSF_STOP_INTERRUPTED)
        serve_error_set(&job->error, 503, "stopping", NULL, "the server is stopping");
    count(a, e);
    job->began_ns = qsf_now_ns();
    const bool more = next(a, e);
    if (!more) {
        serve_job_sum(job);
        (void)serve_job_charge(job);
        finish(a);
    }
    unlock(a);
    if (more) begin_one(a);
}

/* Advice about the budget is for those who start the server, and the log has it. */
static void fail_budget(ServeAnswer *a, const QSFEvent *e) {
    char line[600];
    const unsigned long long mib = 1u << 20;
    if (e->needed > 0)
        (void)snprintf(line, sizeof line,
                       "the request is too large for the memory of this server: it needs about %llu MB, and "
                       "%llu MB are left for it",
                       (e->needed + mib - 1) / mib, e->left / mib);
    else
        (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(e->text, "\n"), e->text);
    fail(a, 413, "ram_budget_exceeded", line);
}

/* The field that a message of the engine is about, or NULL. *named: bytes of the message that name it in
 * another way. */
static const char *field_of(const ServeRequest *r, const char *message, size_t *named) {
    static const char *const rows[][2] = { { "tool_choice: the parameters of", "tools" },
                                           { "tool_choice", "tool_choice" },
                                           { "tools", "tools" },
                                           { "tool_calls", "messages" } };
    static const char grammar[] = "the grammar";
    static const char *const forms[QSF_GRAMMAR_N] = { NULL, "grammar", "response_format", "regex", "only" };
    const size_t n = strcspn(message, ":");
    *named = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(message, rows[i][0], strlen(rows[i][0])) == 0) return rows[i][1];
    if (!r->chat && strcmp(message, "the prompt is empty") == 0) return "prompt";
    if (!r->chat && strncmp(message, "token ", 6) == 0) return "prompt"; /* N is outside the vocabulary */
    const bool given = r->grammar_kind != QSF_GRAMMAR_NONE && n == sizeof grammar - 1 &&
                       memcmp(message, grammar, n) == 0;
    const char *field = given ? forms[r->grammar_kind] : serve_field_of_setting(message, n);
    if (field != NULL && message[n] == ':') *named = n;
    return field;
}

static void fail_request(ServeAnswer *a, const char *message) {
    char line[1024];
    size_t named;
    const char *field = field_of(&a->job->request, message, &named);
    (void)snprintf(line, sizeof line, "%s%s", named > 0 ? field : "", message + named);
    fail_at(a, 400, NULL, field, line);
}

/* Before a token was generated, what fails is the prompt: its template, its grammar, its length. */
static void take_error(ServeAnswer *a, const QSFEvent *e) {
    const bool prompt = a->job->text.len == a->echoed && a->job->reasoning.len == 0 && !e->own;
    switch (e->code) {
    case QSF_E_CONTEXT: fail(a, 400, "context_length_exceeded", e->text); break;
    case QSF_E_BUDGET: fail_budget(a, e); break;
    case QSF_E_USAGE: fail_request(a, e->text); break;
    case QSF_E_INTERRUPTED: fail(a, 503, "stopping", "the server is stopping"); break;
    default: fail(a, prompt && e->code == QSF_E_RUNTIME ? 400 : 500, NULL, e->text);
    }
}

void serve_answer_event(ServeAnswer *a, const QSFEvent *e) {
    if (e->type == QSF_EVENT_NOTICE) report(a, "notice", e->text);
    if (a->job == NULL || e->request != a->id) return;
    switch (e->type) {
    case QSF_EVENT_TEXT:
    case QSF_EVENT_REASONING: take_text(a, e); break;
    case QSF_EVENT_DONE:
        if (a->scoring && !a->job->request.no_answer && e->stop != QSF_STOP_INTERRUPTED && goes_on(a)) {
            take_scored(a);
            break;
        }
        serve_logprobs_add(a);
        take_done(a, e);
        break;
    case QSF_EVENT_ERROR:
        report(a, "error", e->text);
        take_error(a, e);
        break;
    default: break;
    }
}

/* The numbers of a client that shows them. Before its prompt is read, those of the last answer are left. */
static void observe(ServeAnswer *a) {
    QSFStats st;
    ServeCounts *c = &a->job->counts;
    if (!a->job->request.timings && !a->job->request.progress) return;
    qsf_worker_stats(a->server->worker, &st);
    lock(a);
    if (st.state == QSF_STATE_PREFILL) {
        const uint32_t there = st.ctx_used > st.prefill_done ? st.ctx_used - st.prefill_done : 0;
        *c = (ServeCounts){ .reading = true,
                            .prompt = there + st.prefill_total,
                            .cached = there,
                            .done = there + st.prefill_done,
                            .ms = st.elapsed_ns / 1000000u };
    } else if (st.state == QSF_STATE_DECODE) {
        const uint32_t before = st.ctx_used + 1 > st.out_tokens ? st.ctx_used + 1 - st.out_tokens : 0;
        if (!c->reading && c->prompt == 0) c->prompt = before;
        c->reading = false;
        c->done = st.out_tokens;
        c->prompt_tps = st.prefill_tps;
        c->tps = st.decode_tps;
    }
    unlock(a);
}

void serve_answer_deliver(ServeAnswer *a) {
    if (a->job == NULL) return;
    serve_logprobs_add(a);
    observe(a);
    lock(a);
    const bool gone = a->job->connection == NULL, failed = a->job->error.status != 0;
    if (!gone && a->job->request.stream && serve_job_ready(a->job)) serve_http_wake(a->job);
    unlock(a);
    if (gone || failed) cancel(a);
}
