/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A remote engine: answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/remote/remote_impl.h"

#define END_NS     ((uint64_t)2000000000) /* that the end of a stream may take after that of the answer */
#define SPEED_NS   ((uint64_t)20000000)   /* an answer that arrives faster came at once: it has no speed */
#define TRIES_MOST 8u                     /* requests with fewer and fewer fields */

static const char think_open[] = "<think>", think_close[] = "</think>";

/* ---- the request */

static void asked_free(QsfRemoteAsked *q) {
    qsf_strbuf_free(&q->head);
    qsf_strbuf_free(&q->grammar);
    for (size_t i = 0; i < q->n_stop; i++) free(q->stop[i]);
    free(q->stop);
    *q = (QsfRemoteAsked){ 0 };
}

static void answer_reset(QsfRemoteAnswer *a) {
    qsf_delta_free(&a->delta);
    qsf_sse_free(&a->sse);
    qsf_inline_think_free(&a->split);
    *a = (QsfRemoteAnswer){ 0 };
    qsf_delta_begin(&a->delta);
}

void qsf_remote_answer_free(QSFRemote *r) {
    asked_free(&r->asked);
    answer_reset(&r->answer);
}

static bool copy_request(QSFRemote *r, const QSFRequest *q, QsfErr *err) {
    QsfRemoteAsked *to = &r->asked;
    asked_free(to);
    to->max_tokens = q->max_tokens;
    to->go_on = q->continue_last;
    to->grammar_kind = q->grammar_kind;
    if (q->grammar_kind) qsf_strbuf_add(&to->grammar, q->grammar, q->grammar_len);
    to->stop = q->n_stop > 0 ? calloc(q->n_stop, sizeof *to->stop) : NULL;
    bool ok = q->n_stop == 0 || to->stop;
    for (; ok && to->n_stop < q->n_stop; to->n_stop++)
        ok = (to->stop[to->n_stop] = strdup(q->stop[to->n_stop])) != NULL;
    if (!ok || !qsf_strbuf_ok(&to->grammar)) return qsf_err_memory(err, "a request"), false;
    return qsf_body_head(r->now.model, r->now.server, q, &to->head, err) == QSF_OK;
}

static bool send(QSFRemote *r, QsfErr *err) {
    QsfRemoteAsked *q = &r->asked;
    QsfStrbuf body = QSF_STRBUF_INIT;
    const QsfFieldInput in = { .settings = &r->settings,
                               .server = r->now.server,
                               .refused = r->now.refused,
                               .stop = (const char *const *)q->stop,
                               .n_stop = q->n_stop,
                               .max_tokens = q->max_tokens,
                               .grammar_kind = q->grammar_kind,
                               .grammar = qsf_strbuf_str(&q->grammar),
                               .grammar_len = q->grammar.len };
    qsf_strbuf_add(&body, qsf_strbuf_str(&q->head), q->head.len);
    bool ok = qsf_fields_put(&in, &body, &q->sent, err) == QSF_OK;
    qsf_strbuf_addc(&body, '}');
    if (ok && !qsf_strbuf_ok(&body)) ok = qsf_err_memory(err, "a request") == QSF_OK;
    ok = ok &&
         qsf_remote_start(r, QSF_JOB_ANSWER, &r->now.url, r->now.url.base, "/chat/completions", &body, err);
    qsf_strbuf_free(&body);
    return ok;
}

uint64_t qsf_remote_submit(QSFRemote *r, const QSFRequest *q) {
    QsfErr err = { 0 };
    if (r->job != QSF_JOB_NONE || !r->now.model || q->score || q->branch > 0) return 0;
    answer_reset(&r->answer);
    r->request++;
    r->job_begun = r->answer.asked = qsf_now_ns();
    if (!copy_request(r, q, &err) || !send(r, &err)) qsf_remote_fail(r, &err);
    return r->request;
}

/* ---- text */

static void emit(QSFRemote *r, QSFEventType type, const char *text, size_t len) {
    if (len == 0) return;
    r->answer.bytes += len;
    qsf_remote_push(r, type, text, len);
}

static void emit_reasoning(QSFRemote *r, const char *text, size_t len) {
    QsfRemoteAnswer *a = &r->answer;
    if (len == 0) return;
    if (!a->thinking) emit(r, QSF_EVENT_REASONING, think_open, sizeof think_open - 1);
    a->thinking = a->thought = true;
    emit(r, QSF_EVENT_REASONING, text, len);
}

/* Empty lines between reasoning and answer belong to neither. */
static void emit_text(QSFRemote *r, const char *text, size_t len) {
    QsfRemoteAnswer *a = &r->answer;
    for (; len > 0 && *text == '\n' && !a->begun && !r->asked.go_on; text++) len--;
    if (len == 0) return;
    if (a->thinking) emit(r, QSF_EVENT_REASONING, think_close, sizeof think_close - 1);
    a->thinking = false;
    a->begun = true;
    emit(r, QSF_EVENT_TEXT, text, len);
}

static void emit_split(QSFRemote *r, const char *text, size_t len, bool end) {
    QsfStrbuf thought = QSF_STRBUF_INIT, answer = QSF_STRBUF_INIT;
    QsfInlineThink *t = &r->answer.split;
    if (r->answer.thought || r->asked.go_on)
        if (t->state == QSF_INLINE_START) t->state = QSF_INLINE_ANSWER;
    qsf_inline_think_add(t, text, len, &thought, &answer);
    if (end) qsf_inline_think_end(t, &thought, &answer);
    emit_reasoning(r, qsf_strbuf_str(&thought), thought.len);
    emit_text(r, qsf_strbuf_str(&answer), answer.len);
    if (!qsf_strbuf_ok(&thought) || !qsf_strbuf_ok(&answer)) r->events.lost = true;
    qsf_strbuf_free(&thought);
    qsf_strbuf_free(&answer);
}

/* A piece is about a token, with servers that do not count. */
static void count_piece(QsfRemoteAnswer *a) {
    if (a->delta.text.len == 0 && a->delta.reasoning.len == 0) return;
    a->last = qsf_now_ns();
    if (a->first == 0) a->first = a->last;
    a->pieces++;
    a->reasoning_pieces += a->delta.text.len == 0;
}

uint32_t qsf_remote_answer_tokens(const QSFRemote *r) {
    const int64_t counted = r->answer.delta.usage.completion;
    return counted >= 0 ? (uint32_t)counted : r->answer.pieces;
}

double qsf_remote_answer_tps(const QSFRemote *r) {
    const QsfRemoteAnswer *a = &r->answer;
    const uint32_t n = qsf_remote_answer_tokens(r);
    if (a->delta.usage.decode_tps > 0) return a->delta.usage.decode_tps;
    if (n < 2 || a->pieces < 2 || a->last - a->first < SPEED_NS) return 0;
    return (double)(n - 1) / ((double)(a->last - a->first) / 1e9);
}

/* ---- the end */

static QSFStop stop_of(const QSFRemote *r) {
    const QsfRemoteAnswer *a = &r->answer;
    const int64_t used = a->delta.usage.prompt + a->delta.usage.completion;
    if (a->delta.end == QSF_DELTA_STRING) return QSF_STOP_STRING;
    if (a->delta.end != QSF_DELTA_LENGTH) return QSF_STOP_EOS;
    return r->now.ctx > 0 && used >= (int64_t)r->now.ctx - 1 ? QSF_STOP_CONTEXT : QSF_STOP_LENGTH;
}

static uint32_t count_or_0(int64_t n) { return n > 0 ? (uint32_t)n : 0; }

static void done(QSFRemote *r, QSFStop stop) {
    const QsfRemoteAnswer *a = &r->answer;
    const QsfDeltaUsage *u = &a->delta.usage;
    const QSFParams *p = &r->settings.params;
    emit_split(r, "", 0, true);
    QSFEvent e = { .type = QSF_EVENT_DONE,
                   .stop = stop,
                   .tokens = qsf_remote_answer_tokens(r),
                   .reasoning_tokens = u->reasoning >= 0 ? (uint32_t)u->reasoning : a->reasoning_pieces,
                   .prompt_tokens = count_or_0(u->prompt),
                   .reused_tokens = count_or_0(u->cached),
                   .seed = a->delta.seed > 0 ? a->delta.seed
                           : p->seed_set     ? p->seed
                                             : 0,
                   .thinking = a->thinking };
    if (a->delta.end == QSF_DELTA_FILTER && stop == QSF_STOP_EOS)
        qsf_remote_note(r, "the content filter of the server ended the answer");
    qsf_remote_stop(r);
    asked_free(&r->asked);
    r->job = QSF_JOB_NONE;
    qsf_remote_push_event(r, &e, "", 0);
}

static void failed(QSFRemote *r, QsfErr *err) {
    emit_split(r, "", 0, true);
    asked_free(&r->asked);
    qsf_remote_fail(r, err);
}

static void say_failed(QSFRemote *r, int code, const char *text) {
    QsfErr err = { 0 };
    qsf_err_set(&err, code, "%s: %s", r->now.url.name, text);
    failed(r, &err);
}

void qsf_remote_answer_cancel(QSFRemote *r) { done(r, QSF_STOP_INTERRUPTED); }

void qsf_remote_answer_tick(QSFRemote *r) {
    const uint64_t since = r->answer.complete;
    if (since > 0 && qsf_now_ns() - since > END_NS) done(r, stop_of(r));
}

/* The stream has an error, or gave up. */
static bool check_error(QSFRemote *r) {
    const QsfDelta *d = &r->answer.delta;
    const char *text = d->error.len > 0 ? qsf_strbuf_str(&d->error) : "the server failed without a reason";
    if (!d->is_error && d->end != QSF_DELTA_FAILED) return true;
    say_failed(r, d->context_full ? QSF_E_CONTEXT : QSF_E_RUNTIME, text);
    return false;
}

static bool take_json(QSFRemote *r, const char *json, size_t len) {
    QsfRemoteAnswer *a = &r->answer;
    QsfErr err = { 0 };
    if (qsf_delta_parse(&a->delta, json, len, &err) != QSF_OK) {
        qsf_err_prefix(&err, "%s", r->now.url.name);
        failed(r, &err);
        return false;
    }
    if (r->asked.go_on && a->delta.usage.live && a->delta.usage.completion == 0)
        qsf_strbuf_clear(&a->delta.text); /* llama.cpp may repeat what it continues, before its first token */
    count_piece(a);
    emit_reasoning(r, qsf_strbuf_str(&a->delta.reasoning), a->delta.reasoning.len);
    emit_split(r, qsf_strbuf_str(&a->delta.text), a->delta.text.len, false);
    if (!check_error(r)) return false;
    if (a->delta.end != QSF_DELTA_GOES_ON && a->complete == 0) a->complete = qsf_now_ns();
    if (a->bytes <= QSF_REMOTE_TEXT_MAX) return true;
    say_failed(r, QSF_E_RUNTIME, "the answer has more than 16 MB: stopped");
    return false;
}

/* false: the answer has ended. */
static bool take_event(QSFRemote *r) {
    const QsfStrbuf *data = &r->answer.sse.data;
    if (data->len == 0) return true; /* only to keep the connection alive */
    if (!qsf_strbuf_is(data, "[DONE]")) return take_json(r, data->data, data->len);
    if (r->answer.delta.any_choice)
        done(r, stop_of(r));
    else
        say_failed(r, QSF_E_RUNTIME, "the server sent an empty answer");
    return false;
}

void qsf_remote_answer_data(QSFRemote *r, const char *bytes, size_t len) {
    QsfSse *s = &r->answer.sse;
    for (size_t at = 0; at < len;) {
        bool event;
        at += qsf_sse_read(s, bytes + at, len - at, &event);
        if (event && !take_event(r)) return;
        if (!event && at < len) {
            say_failed(r, QSF_E_RUNTIME, "the server sent a line of more than 4 MB: stopped");
            return;
        }
    }
}

/* ---- replies that are not a stream, or whose stream ended */

static void note_refused(QSFRemote *r, QsfFieldSet named, bool by_value, const char *said) {
    QsfStrbuf names = QSF_STRBUF_INIT;
    const char *instead = qsf_fields_instead(named, r->asked.sent);
    qsf_fields_list(named, &names);
    if (by_value)
        qsf_remote_note(r, "the server refuses this value of %s: %s; it is not sent until it is changed",
                        qsf_strbuf_str(&names), said);
    else
        qsf_remote_note(r, "the server refuses %s: it is not sent any more%s%s%s", qsf_strbuf_str(&names),
                        instead ? ", but " : "", instead ? instead : "", instead ? " is" : "");
    qsf_strbuf_free(&names);
}

/* A 400 that names fields that were sent: the request is repeated without them. */
static bool repeat(QSFRemote *r, const QsfStrbuf *said) {
    QsfErr err = { 0 };
    bool by_value = false;
    const bool refuses = r->head.status == 400 || r->head.status == 422;
    const QsfFieldSet named = refuses ? qsf_fields_named(r->asked.sent, qsf_strbuf_str(said), &by_value) : 0;
    if (named == 0 || r->asked.tries >= TRIES_MOST) return false;
    r->asked.tries++;
    r->now.refused |= named;
    if (by_value) r->now.by_value |= named;
    const bool ok = send(r, &err);
    note_refused(r, named, by_value, qsf_strbuf_str(said));
    if (!ok) qsf_remote_fail(r, &err);
    return true;
}

static void refused(QSFRemote *r) {
    QsfErr err = { 0 };
    QsfStrbuf said = QSF_STRBUF_INIT;
    qsf_problem(&r->head, r->now.url.name, qsf_strbuf_str(&r->body), r->body.len, &said, &err);
    if (!repeat(r, &said)) failed(r, &err);
    qsf_strbuf_free(&said);
}

/* The whole answer at once, of a server that does not stream; some leave out its type. */
static void whole(QSFRemote *r) {
    if (!qsf_reply_is(&r->head, "application/json") && r->head.type[0]) {
        refused(r);
    } else if (take_json(r, qsf_strbuf_str(&r->body), r->body.len)) {
        if (r->answer.delta.any_choice)
            done(r, stop_of(r));
        else
            say_failed(r, QSF_E_RUNTIME, "the reply has no answer in it");
    }
}

static void cut(QSFRemote *r, const char *why, size_t len) {
    QsfErr err = { 0 };
    const bool any = r->answer.begun || r->answer.thought;
    const bool continues = r->answer.begun && qsf_kind(r->now.server)->continues;
    qsf_err_set(&err, QSF_E_RUNTIME, "%s: %s%s%.*s; %s/retry asks again", r->now.url.name,
                any ? "the answer was cut off" : "no answer", len > 0 ? ": " : "", (int)len, why,
                continues ? "/continue resumes it, " : "");
    failed(r, &err);
}

void qsf_remote_answer_end(QSFRemote *r, const char *why, size_t len) {
    QsfRemoteAnswer *a = &r->answer;
    if (r->headed && (r->head.status != 200 || (!a->stream && len == 0))) {
        if (r->head.status != 200)
            refused(r);
        else
            whole(r);
        return;
    }
    if (a->stream && qsf_sse_end(&a->sse) && !take_event(r)) return;
    if (a->stream && a->delta.end != QSF_DELTA_GOES_ON)
        done(r, stop_of(r));
    else
        cut(r, why, len);
}
