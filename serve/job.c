/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements job.h. */
#include "serve/job.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/responses.h"
#include "src/base/clock.h"
#include "src/base/utf8.h"

#define CHUNK_TEXT (16u << 10) /* bytes of text in an event */

ServeJob *serve_job_new(const ServeRequest *r, char *body, uint64_t body_bytes, ServeMemory *memory) {
    ServeJob *job = calloc(1, sizeof *job);
    if (job == NULL) return NULL;
    job->refs = 1;
    job->request = *r;
    job->body = body;
    job->fd = -1;
    job->memory = memory;
    job->body_bytes = job->held = body_bytes;
    job->arrived_ns = qsf_now_ns();
    return job;
}

void serve_job_name(ServeJob *job, uint64_t id, const char *model, bool chat, bool responses) {
    const ServeRequest *r = &job->request;
    job->head = (ServeHead){ .chat = chat,
                             .responses = responses,
                             .tool_choice = r->call != NULL ? "required"
                                            : r->no_tools   ? "none"
                                                            : "auto",
                             .id = id,
                             .created = time(NULL),
                             .model = model };
}

static size_t texts(const ServeJob *job) {
    size_t n = job->text.cap + job->reasoning.cap + job->plain.cap + job->tools.cap + job->calls.cap +
               job->choices.cap + job->out.cap;
    for (size_t i = 0; i < SERVE_LOGPROBS; i++) n += job->logprobs[i].cap;
    return n;
}

bool serve_job_charge(ServeJob *job) {
    const uint64_t now = texts(job) + (job->body != NULL ? job->body_bytes : 0);
    if (now > job->held && !serve_memory_take(job->memory, now - job->held)) return false;
    if (now < job->held) serve_memory_give(job->memory, job->held - now);
    job->held = now;
    return true;
}

bool serve_job_charge_or_fail(ServeJob *job) {
    return serve_job_charge(job) ||
           serve_error_set(&job->error, 503, "answer_too_large", NULL, SERVE_TOO_LARGE);
}

void serve_job_drop_body(ServeJob *job) {
    if (job->request.tools != NULL) qsf_strbuf_add(&job->tools, job->request.tools, job->request.tools_len);
    serve_request_free(&job->request);
    free(job->body);
    job->body = NULL;
    (void)serve_job_charge(job);
}

void serve_job_release(ServeJob *job) {
    if (--job->refs > 0) return;
    serve_memory_give(job->memory, job->held);
    serve_request_free(&job->request);
    qsf_strbuf_free(&job->text);
    qsf_strbuf_free(&job->reasoning);
    qsf_strbuf_free(&job->plain);
    for (size_t i = 0; i < SERVE_LOGPROBS; i++) qsf_strbuf_free(&job->logprobs[i]);
    qsf_strbuf_free(&job->tools);
    qsf_strbuf_free(&job->calls);
    qsf_strbuf_free(&job->choices);
    qsf_strbuf_free(&job->out);
    free(job->body);
    free(job);
}

/* ---- what is sent ---- */

/* As much of the text as has whole characters, at most max bytes. */
static size_t whole(const QsfStrbuf *b, size_t from, size_t max) {
    const size_t left = b->len - from;
    return left <= max ? left : max - qsf_utf8_incomplete_tail(b->data + from, max);
}

bool serve_job_take(ServeJob *job, ServeText *t, ServePiece logprobs[SERVE_LOGPROBS]) {
    const size_t left = job->shown - job->sent_text,
                 thought = whole(&job->plain, job->sent_plain, CHUNK_TEXT);
    const size_t len = whole(&job->text, job->sent_text, left < CHUNK_TEXT ? left : CHUNK_TEXT);
    *t = (ServeText){ 0 };
    if (thought > 0) t->reasoning = job->plain.data + job->sent_plain;
    if (len > 0) t->text = job->text.data + job->sent_text;
    t->reasoning_len = thought;
    t->len = len;
    job->sent_plain += thought;
    job->sent_text += len;
    for (size_t i = 0; i < SERVE_LOGPROBS; i++) {
        logprobs[i] = (ServePiece){ qsf_strbuf_str(&job->logprobs[i]) + job->sent_logprobs[i],
                                    job->logprobs[i].len - job->sent_logprobs[i] };
        job->sent_logprobs[i] = job->logprobs[i].len;
    }
    if (logprobs[0].len > 0) t->logprobs = logprobs;
    if (job->request.timings && !job->counts.reading && job->counts.done > 0) t->counts = &job->counts;
    return len > 0 || thought > 0 || t->logprobs != NULL;
}

/* The end of an answer in a stream: its tool calls, and why it ended. */
static void put_last(ServeJob *job, bool usage) {
    const bool calls = job->calls.len > 0;
    ServeText t = { .calls = { job->calls.data, job->calls.len } };
    if (!calls) t.text = ""; /* an answer without text has a role, too */
    if (calls || !job->begun) serve_reply_chunk(&job->out, &job->head, &t, !job->begun);
    serve_reply_last(&job->out, &job->head, &job->end, usage);
}

static void put_end(ServeJob *job) {
    if (job->error.status != 0)
        serve_reply_broken(&job->out, &job->error);
    else
        put_last(job, job->request.usage);
    serve_reply_done(&job->out);
    job->begun = job->finished = true;
}

/* More of the prompt was read than the client knows. */
static bool has_read(const ServeJob *job) {
    return job->request.progress && job->counts.reading && job->counts.done > job->sent_done;
}

bool serve_job_ready(const ServeJob *job) {
    return job->state == SERVE_ENDED || has_read(job) || job->out_at < job->out.len ||
           job->shown > job->sent_text || job->plain.len > job->sent_plain ||
           job->logprobs[0].len > job->sent_logprobs[0];
}

/* Fills the empty buffer. */
static void refill(ServeJob *job) {
    ServePiece logprobs[SERVE_LOGPROBS];
    ServeText t;
    qsf_strbuf_clear(&job->out);
    job->out_at = 0;
    if (job->finished) return;
    if (job->head.responses) {
        serve_responses_next(job);
        return;
    }
    if (serve_job_take(job, &t, logprobs)) {
        serve_reply_chunk(&job->out, &job->head, &t, !job->begun);
        job->begun = true;
    } else if (job->state == SERVE_ENDED && !job->finished) {
        put_end(job);
    } else if (has_read(job)) {
        t = (ServeText){ .counts = &job->counts };
        job->sent_done = job->counts.done;
        serve_reply_chunk(&job->out, &job->head, &t, !job->begun);
        job->begun = true;
    }
}

long serve_job_read(ServeJob *job, char *dst, size_t max) {
    if (job->out_at == job->out.len) {
        const ServeEvents before = job->events;
        const bool first = !job->begun;
        refill(job);
        /* Events of responses repeat texts. One that does not fit is not sent, but for the first ones. */
        if (job->head.responses && !serve_job_charge_or_fail(job) && !first) {
            job->events = before;
            serve_responses_break(job);
        }
    }
    if (!qsf_strbuf_ok(&job->out)) return -1;
    size_t n = job->out.len - job->out_at;
    if (n == 0) return job->finished ? -1 : 0;
    if (n > max) n = max;
    memcpy(dst, job->out.data + job->out_at, n);
    job->out_at += n;
    return (long)n;
}

/* All texts of the answer. */
static ServeText texts_of(const ServeJob *job, ServePiece logprobs[SERVE_LOGPROBS]) {
    ServeText t = { .calls = { job->calls.data, job->calls.len } };
    if (job->shown > 0 || job->calls.len == 0) t.text = qsf_strbuf_str(&job->text);
    t.len = job->shown;
    if (job->plain.len > 0) t.reasoning = job->plain.data;
    t.reasoning_len = job->plain.len;
    for (size_t i = 0; i < SERVE_LOGPROBS; i++)
        logprobs[i] = (ServePiece){ qsf_strbuf_str(&job->logprobs[i]), job->logprobs[i].len };
    if (job->request.logprobs) t.logprobs = logprobs;
    return t;
}

void serve_job_whole(const ServeJob *job, QsfStrbuf *b) {
    ServePiece logprobs[SERVE_LOGPROBS];
    if (job->error.status != 0) {
        serve_reply_error(b, &job->error);
        return;
    }
    if (job->head.responses) {
        serve_responses_whole(job, b);
        return;
    }
    const ServeText t = texts_of(job, logprobs);
    const ServePiece before = { qsf_strbuf_str(&job->choices), job->choices.len };
    serve_reply_answer(b, &job->head, &before, &t, &job->end);
}

/* ---- several answers ---- */

void serve_job_sum(ServeJob *job) {
    const ServeEnd *before = &job->before;
    if (job->head.index == 0) return;
    job->end.tokens += before->tokens;
    job->end.reasoning_tokens += before->reasoning_tokens;
    job->end.prompt_tokens = before->prompt_tokens; /* it is read once */
    job->end.cached_tokens = before->cached_tokens;
    job->end.prompt_tps = before->prompt_tps;
}

static void forget_texts(ServeJob *job) {
    qsf_strbuf_clear(&job->text);
    qsf_strbuf_clear(&job->reasoning);
    qsf_strbuf_clear(&job->plain);
    qsf_strbuf_clear(&job->calls);
    for (size_t i = 0; i < SERVE_LOGPROBS; i++) qsf_strbuf_clear(&job->logprobs[i]);
    for (size_t i = 0; i < SERVE_LOGPROBS; i++) job->sent_logprobs[i] = 0;
    job->shown = job->sent_text = job->sent_plain = 0;
    job->counts = (ServeCounts){ 0 };
    job->sent_done = 0;
    job->begun = false;
}

void serve_job_next(ServeJob *job) {
    ServePiece logprobs[SERVE_LOGPROBS];
    ServeText t;
    while (job->request.stream && serve_job_take(job, &t, logprobs)) {
        serve_reply_chunk(&job->out, &job->head, &t, !job->begun);
        job->begun = true;
    }
    if (job->request.stream) {
        put_last(job, false);
    } else {
        t = texts_of(job, logprobs);
        serve_reply_choice(&job->choices, &job->head, &t, &job->end);
        qsf_strbuf_adds(&job->choices, ", ");
    }
    serve_job_sum(job);
    job->before = job->end;
    job->head.index++;
    forget_texts(job);
}

bool serve_job_failed(const ServeJob *job) {
    return job->state == SERVE_ENDED && job->error.status != 0 && !job->begun && job->text.len == 0 &&
           job->head.index == 0;
}
