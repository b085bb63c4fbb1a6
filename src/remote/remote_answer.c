/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A remote engine: answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/remote/remote_impl.h"

#define END_NS     ((uint64_t)2000000000) /* that the end of a stream may take after that of the answer */
#define SPEED_NS   ((uint64_t)20000000)   /* an answer that arrives faster came at once: it has no speed */
#define TOLD_MOST  80u /* pieces of reasoning after the server was told to end it, with a sentence */
#define TOLD_NS    ((uint64_t)1000000000) /* in which those come that were on their way by then */
#define TRIES_MOST 8u                     /* requests with fewer and fewer fields */

static const char think_open[] = "<think>", think_close[] = "</think>";

/* ---- the beginning */

static void answer_reset(QsfRemoteAnswer *a) {
    qsf_delta_free(&a->delta);
    qsf_sse_free(&a->sse);
    qsf_inline_think_free(&a->split);
    *a = (QsfRemoteAnswer){ 0 };
    qsf_delta_begin(&a->delta);
}

void qsf_remote_answer_begin(QSFRemote *r) { answer_reset(&r->answer); }

void qsf_remote_answer_free(QSFRemote *r) {
    qsf_remote_asked_free(r);
    answer_reset(&r->answer);
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
    qsf_strbuf_add(&r->asked.thought, text, len);
    emit(r, QSF_EVENT_REASONING, text, len);
}

/* Empty lines between reasoning and answer belong to neither. */
static void emit_text(QSFRemote *r, const char *text, size_t len) {
    QsfRemoteAnswer *a = &r->answer;
    for (; len > 0 && *text == '\n' && !a->begun && (a->closed || !r->asked.go_on); text++) len--;
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
    if (a->part == 0) a->part = a->last;
    a->pieces++;
    a->reasoning_pieces += a->delta.text.len == 0;
}

uint32_t qsf_remote_answer_tokens(const QSFRemote *r) {
    const int64_t counted = r->answer.delta.usage.completion;
    return r->answer.spent + (counted >= 0 ? (uint32_t)counted : r->answer.pieces);
}

double qsf_remote_answer_tps(const QSFRemote *r) {
    const QsfRemoteAnswer *a = &r->answer;
    const uint32_t n = qsf_remote_answer_tokens(r) - a->spent;
    if (a->delta.usage.decode_tps > 0) return a->delta.usage.decode_tps;
    if (n < 2 || a->pieces < 2 || a->last - a->part < SPEED_NS) return 0;
    return (double)(n - 1) / ((double)(a->last - a->part) / 1e9);
}

/* ---- the end */

static QSFStop stop_of(const QSFRemote *r) {
    const QsfRemoteAnswer *a = &r->answer;
    const int64_t used = a->delta.usage.prompt + a->delta.usage.completion;
    if (a->delta.end == QSF_DELTA_STRING) return QSF_STOP_STRING;
    if (a->delta.end != QSF_DELTA_LENGTH) return QSF_STOP_EOS;
    return r->now.size.ctx > 0 && used >= (int64_t)r->now.size.ctx - 1 ? QSF_STOP_CONTEXT : QSF_STOP_LENGTH;
}

static uint32_t count_or_0(int64_t n) { return n > 0 ? (uint32_t)n : 0; }

/* Its reply may come later than the end of a short answer. */
static bool was_told(const QSFRemote *r) {
    return r->answer.told && !r->answer.thinking && (r->control_ok || r->control.pid != 0);
}

static void done(QSFRemote *r, QSFStop stop) {
    QsfRemoteAnswer *a = &r->answer;
    const QsfDeltaUsage *u = &a->delta.usage;
    const QSFParams *p = &r->settings.params;
    emit_split(r, "", 0, true);
    const uint32_t thought = u->reasoning >= 0 ? (uint32_t)u->reasoning : a->reasoning_pieces;
    a->end = (QSFEvent){ .type = QSF_EVENT_DONE,
                         .stop = stop,
                         .tokens = qsf_remote_answer_tokens(r),
                         .reasoning_tokens = a->spent + thought,
                         .prompt_tokens = count_or_0(u->prompt),
                         .reused_tokens = count_or_0(u->cached),
                         .seed = a->delta.seed > 0 ? a->delta.seed
                                 : p->seed_set     ? p->seed
                                                   : 0,
                         .thinking = a->thinking,
                         .reasoning_cut = a->closed || was_told(r) };
    if (a->delta.end == QSF_DELTA_FILTER && stop == QSF_STOP_EOS)
        qsf_remote_note(r, "the content filter of the server ended the answer");
    qsf_remote_stop(r);
    if (stop == QSF_STOP_INTERRUPTED || !qsf_remote_context_again(r)) qsf_remote_answer_done(r);
}

/* Ollama leaves out what does not fit, and says nothing (ollama/ollama server/prompt.go). */
static void note_nearly_full(QSFRemote *r) {
    const QsfDeltaUsage *u = &r->answer.delta.usage;
    const int64_t used = u->prompt + u->completion, size = r->now.size.ctx;
    const bool full = r->now.server == QSF_SERVER_OLLAMA && size > 0 && u->prompt >= 0 &&
                      used >= size * 7 / 8;
    if (full && !r->now.full_said)
        qsf_remote_note(r,
                        "%lld of %lld tokens of the context are used: Ollama leaves out the oldest messages "
                        "when it is full; /compact or /forget makes room",
                        (long long)used, (long long)size);
    r->now.full_said = full;
}

void qsf_remote_answer_done(QSFRemote *r) {
    qsf_remote_stop(r);
    qsf_remote_asked_free(r);
    r->job = QSF_JOB_NONE;
    qsf_remote_push_event(r, &r->answer.end, "", 0);
    note_nearly_full(r);
}

void qsf_remote_answer_split(QSFRemote *r) {
    QsfRemoteAnswer *a = &r->answer;
    emit(r, QSF_EVENT_REASONING, think_close, sizeof think_close - 1);
    a->spent = qsf_remote_answer_tokens(r);
    a->used = a->delta.usage.prompt >= 0 ? (uint32_t)a->delta.usage.prompt + a->spent : 0;
    a->pieces = a->reasoning_pieces = 0;
    a->thinking = a->close = false;
    a->closed = true;
    a->complete = a->part = 0;
    qsf_delta_begin(&a->delta);
    qsf_sse_free(&a->sse);
    qsf_inline_think_free(&a->split);
    a->split.state = QSF_INLINE_ANSWER;
}

static void failed(QSFRemote *r, QsfErr *err) {
    emit_split(r, "", 0, true);
    qsf_remote_asked_free(r);
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

/* llama.cpp also reports success where it does not see the beginning of the reasoning in the tokens of its
 * prompt (ggml-org/llama.cpp common/reasoning-budget.cpp). qsf-serve ends what it sends as reasoning: more of
 * that is older, however much and late. */
static bool thinks_on(const QSFRemote *r) {
    const QsfRemoteAnswer *a = &r->answer;
    const bool ends = r->now.server == QSF_SERVER_QSF && a->split.state != QSF_INLINE_INSIDE;
    return a->told && r->control_ok && r->control.pid == 0 && !ends &&
           a->reasoning_pieces > a->told_at + TOLD_MOST && qsf_now_ns() - a->told_ns > TOLD_NS;
}

static bool take_json(QSFRemote *r, const char *json, size_t len) {
    QsfRemoteAnswer *a = &r->answer;
    QsfErr err = { 0 };
    if (qsf_delta_parse(&a->delta, json, len, &err) != QSF_OK) {
        qsf_err_prefix(&err, "%s", r->now.url.name);
        failed(r, &err);
        return false;
    }
    const bool before = r->now.server == QSF_SERVER_LLAMA && a->delta.usage.live &&
                        a->delta.usage.completion == 0;
    if (r->asked.go_on && before) {
        qsf_strbuf_clear(&a->delta.text); /* llama.cpp may repeat what it continues, before its first token */
        qsf_strbuf_clear(&a->delta.reasoning);
    }
    count_piece(a);
    emit_reasoning(r, qsf_strbuf_str(&a->delta.reasoning), a->delta.reasoning.len);
    emit_split(r, qsf_strbuf_str(&a->delta.text), a->delta.text.len, false);
    if (!check_error(r)) return false;
    if (a->delta.end != QSF_DELTA_GOES_ON && a->complete == 0) a->complete = qsf_now_ns();
    if (a->thinking && a->complete == 0 && (a->close || thinks_on(r)) && qsf_remote_close(r)) return false;
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
        qsf_remote_note(r, "the server refuses %s: it is no longer sent%s%s%s", qsf_strbuf_str(&names),
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
    const bool ok = qsf_remote_ask(r, &err);
    note_refused(r, named, by_value, qsf_strbuf_str(said));
    if (!ok) qsf_remote_fail(r, &err);
    return true;
}

/* A server that is not ready yet is asked again later. */
static bool wait_and_ask(QSFRemote *r) {
    QsfErr err = { 0 };
    if (!qsf_remote_waits(r, r->now.url.name)) return false;
    if (!qsf_remote_ask(r, &err)) failed(r, &err);
    return true;
}

static void refused(QSFRemote *r) {
    QsfErr err = { 0 };
    QsfStrbuf said = QSF_STRBUF_INIT;
    qsf_problem(&r->head, r->now.url.name, qsf_strbuf_str(&r->body), r->body.len, &said, &err);
    if (r->answer.closed) qsf_err_prefix(&err, "the answer does not follow the reasoning");
    if (!wait_and_ask(r) && !repeat(r, &said)) failed(r, &err);
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
