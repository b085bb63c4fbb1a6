/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers of /v1/responses, whole and as events: implements a part of responses.h. An answer has up to three
 * kinds of items: its reasoning, a message, and calls. */
#include <inttypes.h>
#include <string.h>

#include "serve/responses.h"
#include "src/base/json.h"
#include "src/base/jsonscan.h"

static void put_json(QsfStrbuf *b, const char *text, size_t len) {
    qsf_json_put_string(b, text != NULL ? text : "", text != NULL ? len : 0);
}

/* ---- items ---- */

static void put_reasoning_part(QsfStrbuf *b, const char *text, size_t len) {
    qsf_strbuf_adds(b, "{\"type\": \"reasoning_text\", \"text\": ");
    put_json(b, text, len);
    qsf_strbuf_adds(b, "}");
}

/* done: with its text. */
static void put_reasoning(QsfStrbuf *b, const ServeJob *job, bool done) {
    qsf_strbuf_addf(b, "{\"type\": \"reasoning\", \"id\": \"rs_%016" PRIx64 "\", \"status\": \"%s\", ",
                    job->head.id, done ? "completed" : "in_progress");
    qsf_strbuf_adds(b, "\"summary\": [], \"content\": [");
    if (done) put_reasoning_part(b, job->plain.data, job->plain.len);
    qsf_strbuf_adds(b, "]}");
}

static void put_probabilities(QsfStrbuf *b, const char *json, size_t len) {
    qsf_strbuf_adds(b, "[");
    if (len > 2) qsf_strbuf_add(b, json, len - 2); /* without the comma at its end */
    qsf_strbuf_adds(b, "]");
}

static void put_text_part(QsfStrbuf *b, const char *text, size_t len, const QsfStrbuf *logprobs) {
    qsf_strbuf_adds(b, "{\"type\": \"output_text\", \"text\": ");
    put_json(b, text, len);
    qsf_strbuf_adds(b, ", \"annotations\": [], \"logprobs\": ");
    put_probabilities(b, logprobs != NULL ? logprobs->data : NULL, logprobs != NULL ? logprobs->len : 0);
    qsf_strbuf_adds(b, "}");
}

static bool is_cut(const ServeJob *job) {
    return job->end.finish != NULL && strcmp(job->end.finish, "length") == 0;
}

static void put_message(QsfStrbuf *b, const ServeJob *job, bool done) {
    const char *status = !done ? "in_progress" : is_cut(job) ? "incomplete" : "completed";
    qsf_strbuf_addf(b,
                    "{\"type\": \"message\", \"id\": \"msg_%016" PRIx64
                    "\", \"status\": \"%s\", \"role\": \"assistant\", \"content\": [",
                    job->head.id, status);
    if (done) put_text_part(b, job->text.data, job->shown, &job->logprobs[0]);
    qsf_strbuf_adds(b, "]}");
}

/* A call as chats have it, read again. */
typedef struct Call {
    QsfJson *root;
    const char *id, *name, *arguments; /* borrowed */
} Call;

/* Call i of the answer; false: there are no more. Free its root. */
static bool find_call(const ServeJob *job, uint32_t i, Call *c) {
    QsfJsonScan scan;
    QsfErr ignored = { 0 };
    size_t begin = 0, end = 0;
    *c = (Call){ 0 };
    qsf_jscan_init(&scan, qsf_strbuf_str(&job->calls), job->calls.len);
    for (uint32_t k = 0; k <= i; k++) {
        if (qsf_jscan_peek(&scan) == '\0' || qsf_jscan_skip(&scan, &begin, &end, &ignored) != QSF_OK)
            return false;
        if (qsf_jscan_peek(&scan) == ',') scan.at++;
    }
    c->root = qsf_json_parse(job->calls.data + begin, end - begin, &ignored);
    const QsfJson *function = qsf_json_get(c->root, "function");
    c->id = qsf_json_string(qsf_json_get(c->root, "id"), NULL);
    c->name = qsf_json_string(qsf_json_get(function, "name"), NULL);
    c->arguments = qsf_json_string(qsf_json_get(function, "arguments"), NULL);
    if (c->id != NULL && c->name != NULL && c->arguments != NULL) return true;
    qsf_json_free(c->root);
    return false;
}

static void put_call(QsfStrbuf *b, const ServeJob *job, uint32_t i, const Call *c, bool done) {
    qsf_strbuf_addf(b, "{\"type\": \"function_call\", \"id\": \"fc_%016" PRIx64 "_%u\", \"status\": \"%s\", ",
                    job->head.id, i, done ? "completed" : "in_progress");
    qsf_strbuf_adds(b, "\"call_id\": ");
    put_json(b, c->id, strlen(c->id));
    qsf_strbuf_adds(b, ", \"name\": ");
    put_json(b, c->name, strlen(c->name));
    qsf_strbuf_adds(b, ", \"arguments\": ");
    put_json(b, done ? c->arguments : "", done ? strlen(c->arguments) : 0);
    qsf_strbuf_adds(b, "}");
}

/* ---- the response ---- */

static void put_output(QsfStrbuf *b, const ServeJob *job) {
    const char *comma = "";
    Call c;
    if (job->plain.len > 0) put_reasoning(b, job, true), comma = ", ";
    if (job->shown > 0 || job->calls.len == 0) {
        qsf_strbuf_adds(b, comma);
        put_message(b, job, true);
        comma = ", ";
    }
    for (uint32_t i = 0; find_call(job, i, &c); i++, comma = ", ") {
        qsf_strbuf_adds(b, comma);
        put_call(b, job, i, &c, true);
        qsf_json_free(c.root);
    }
}

static void put_usage(QsfStrbuf *b, const ServeEnd *end) {
    qsf_strbuf_addf(b,
                    "{\"input_tokens\": %u, \"input_tokens_details\": {\"cached_tokens\": %u}, "
                    "\"output_tokens\": %u, \"output_tokens_details\": {\"reasoning_tokens\": %u}, "
                    "\"total_tokens\": %u}, \"seed\": %" PRIu64,
                    end->prompt_tokens, end->cached_tokens, end->tokens, end->reasoning_tokens,
                    end->prompt_tokens + end->tokens, end->seed);
}

static void put_error(QsfStrbuf *b, const ServeError *e) {
    qsf_strbuf_addf(b, "{\"code\": \"%s\", \"message\": ", e->code != NULL ? e->code : "server_error");
    put_json(b, e->message, strlen(e->message));
    qsf_strbuf_adds(b, "}");
}

/* What the request asked for, as far as it is kept until the end. */
static void put_request(QsfStrbuf *b, const ServeJob *job) {
    const QSFParams *p = &job->request.settings.params;
    const bool limited = job->request.max_tokens_set;
    qsf_strbuf_addf(b,
                    "\"temperature\": %.6g, \"top_p\": %.6g, \"max_output_tokens\": ", (double)p->temperature,
                    (double)p->top_p);
    limited ? qsf_strbuf_addf(b, "%d", (int)p->max_tokens) : qsf_strbuf_adds(b, "null");
    qsf_strbuf_addf(b,
                    ", \"top_logprobs\": %u, \"parallel_tool_calls\": %s, \"tool_choice\": \"%s\", "
                    "\"tools\": [], \"instructions\": null, \"metadata\": {}, \"background\": false, "
                    "\"previous_response_id\": null, \"store\": false, \"truncation\": \"disabled\"",
                    job->request.top_logprobs, job->request.one_call ? "false" : "true",
                    job->head.tool_choice);
}

/* status: "in_progress" without an output. */
static void put_response(QsfStrbuf *b, const ServeJob *job, const char *status) {
    const bool begins = strcmp(status, "in_progress") == 0, failed = strcmp(status, "failed") == 0;
    qsf_strbuf_addf(b,
                    "{\"id\": \"resp_%016" PRIx64 "\", \"object\": \"response\", \"created_at\": %" PRId64
                    ", \"status\": \"%s\", \"model\": ",
                    job->head.id, job->head.created, status);
    put_json(b, job->head.model, strlen(job->head.model));
    qsf_strbuf_adds(b, ", \"error\": ");
    failed ? put_error(b, &job->error) : qsf_strbuf_adds(b, "null");
    qsf_strbuf_addf(b, ", \"incomplete_details\": %s, ",
                    strcmp(status, "incomplete") == 0 ? "{\"reason\": \"max_output_tokens\"}" : "null");
    put_request(b, job);
    qsf_strbuf_adds(b, ", \"output\": [");
    if (!begins) put_output(b, job);
    qsf_strbuf_adds(b, "], \"usage\": ");
    begins || failed ? qsf_strbuf_adds(b, "null") : put_usage(b, &job->end);
    qsf_strbuf_adds(b, "}");
}

static const char *status_of(const ServeJob *job) {
    if (job->error.status != 0) return "failed";
    return is_cut(job) ? "incomplete" : "completed";
}

void serve_responses_whole(const ServeJob *job, QsfStrbuf *b) { put_response(b, job, status_of(job)); }

/* ---- events, of which each has its number ---- */

static QsfStrbuf *begin_event(ServeJob *job, const char *type) {
    qsf_strbuf_addf(&job->out,
                    "event: response.%s\ndata: {\"type\": \"response.%s\", \"sequence_number\": %u", type,
                    type, job->events.number++);
    return &job->out;
}

static void end_event(ServeJob *job) { qsf_strbuf_adds(&job->out, "}\n\n"); }

static void put_state(ServeJob *job, const char *type, const char *status) {
    QsfStrbuf *b = begin_event(job, type);
    qsf_strbuf_adds(b, ", \"response\": ");
    put_response(b, job, status);
    end_event(job);
}

/* An event about the item that is written; part: about its content, too. */
static QsfStrbuf *begin_item_event(ServeJob *job, const char *type, const char *prefix, bool part) {
    QsfStrbuf *b = begin_event(job, type);
    qsf_strbuf_addf(b, ", \"output_index\": %u, \"item_id\": \"%s_%016" PRIx64, job->events.item, prefix,
                    job->head.id);
    if (strcmp(prefix, "fc") == 0) qsf_strbuf_addf(b, "_%u", job->events.call);
    qsf_strbuf_adds(b, part ? "\", \"content_index\": 0" : "\"");
    return b;
}

static QsfStrbuf *begin_item(ServeJob *job, const char *type) {
    QsfStrbuf *b = begin_event(job, type);
    qsf_strbuf_addf(b, ", \"output_index\": %u, \"item\": ", job->events.item);
    return b;
}

/* ---- reasoning */

static void open_reasoning(ServeJob *job) {
    put_reasoning(begin_item(job, "output_item.added"), job, false);
    end_event(job);
    QsfStrbuf *b = begin_item_event(job, "content_part.added", "rs", true);
    qsf_strbuf_adds(b, ", \"part\": ");
    put_reasoning_part(b, "", 0);
    end_event(job);
}

static void add_reasoning(ServeJob *job, const ServeText *t) {
    QsfStrbuf *b = begin_item_event(job, "reasoning_text.delta", "rs", true);
    qsf_strbuf_adds(b, ", \"delta\": ");
    put_json(b, t->reasoning, t->reasoning_len);
    end_event(job);
}

static void close_reasoning(ServeJob *job) {
    QsfStrbuf *b = begin_item_event(job, "reasoning_text.done", "rs", true);
    qsf_strbuf_adds(b, ", \"text\": ");
    put_json(b, job->plain.data, job->plain.len);
    end_event(job);
    b = begin_item_event(job, "content_part.done", "rs", true);
    qsf_strbuf_adds(b, ", \"part\": ");
    put_reasoning_part(b, job->plain.data, job->plain.len);
    end_event(job);
    put_reasoning(begin_item(job, "output_item.done"), job, true);
    end_event(job);
    job->events.item++;
}

/* ---- the message */

static void open_message(ServeJob *job) {
    put_message(begin_item(job, "output_item.added"), job, false);
    end_event(job);
    QsfStrbuf *b = begin_item_event(job, "content_part.added", "msg", true);
    qsf_strbuf_adds(b, ", \"part\": ");
    put_text_part(b, "", 0, NULL);
    end_event(job);
}

static void add_text(ServeJob *job, const ServeText *t) {
    QsfStrbuf *b = begin_item_event(job, "output_text.delta", "msg", true);
    qsf_strbuf_adds(b, ", \"delta\": ");
    put_json(b, t->text, t->len);
    qsf_strbuf_adds(b, ", \"logprobs\": ");
    put_probabilities(b, t->logprobs != NULL ? t->logprobs[0].json : NULL,
                      t->logprobs != NULL ? t->logprobs[0].len : 0);
    end_event(job);
}

static void close_message(ServeJob *job) {
    QsfStrbuf *b = begin_item_event(job, "output_text.done", "msg", true);
    qsf_strbuf_adds(b, ", \"text\": ");
    put_json(b, job->text.data, job->shown);
    qsf_strbuf_adds(b, ", \"logprobs\": ");
    put_probabilities(b, job->logprobs[0].data, job->logprobs[0].len);
    end_event(job);
    b = begin_item_event(job, "content_part.done", "msg", true);
    qsf_strbuf_adds(b, ", \"part\": ");
    put_text_part(b, job->text.data, job->shown, &job->logprobs[0]);
    end_event(job);
    put_message(begin_item(job, "output_item.done"), job, true);
    end_event(job);
    job->events.item++;
}

/* ---- calls: each is complete when it is sent */

static void put_call_events(ServeJob *job, const Call *c) {
    const uint32_t i = job->events.call;
    put_call(begin_item(job, "output_item.added"), job, i, c, false);
    end_event(job);
    QsfStrbuf *b = begin_item_event(job, "function_call_arguments.delta", "fc", false);
    qsf_strbuf_adds(b, ", \"delta\": ");
    put_json(b, c->arguments, strlen(c->arguments));
    end_event(job);
    b = begin_item_event(job, "function_call_arguments.done", "fc", false);
    qsf_strbuf_adds(b, ", \"name\": ");
    put_json(b, c->name, strlen(c->name));
    qsf_strbuf_adds(b, ", \"arguments\": ");
    put_json(b, c->arguments, strlen(c->arguments));
    end_event(job);
    put_call(begin_item(job, "output_item.done"), job, i, c, true);
    end_event(job);
    job->events.item++;
    job->events.call++;
}

/* ---- the stream */

/* Reasoning that comes after the text is only in the whole response. */
static void put_more(ServeJob *job, const ServeText *t) {
    uint8_t *stage = &job->events.stage;
    if (t->reasoning_len > 0 && *stage == SERVE_STAGE_BEGUN) {
        open_reasoning(job);
        *stage = SERVE_STAGE_REASONING;
    }
    if (t->reasoning_len > 0 && *stage == SERVE_STAGE_REASONING) add_reasoning(job, t);
    if (t->len == 0 && t->logprobs == NULL) return;
    if (*stage == SERVE_STAGE_REASONING) close_reasoning(job);
    if (*stage < SERVE_STAGE_TEXT) open_message(job);
    *stage = SERVE_STAGE_TEXT;
    add_text(job, t);
}

/* The next step of an answer that has ended: what is open is closed, then its calls follow. */
static void put_rest(ServeJob *job) {
    uint8_t *stage = &job->events.stage;
    Call c;
    if (job->error.status != 0) {
        put_state(job, "failed", "failed");
        job->finished = true;
    } else if (*stage == SERVE_STAGE_REASONING) {
        close_reasoning(job);
        *stage = SERVE_STAGE_BETWEEN;
    } else if (*stage < SERVE_STAGE_TEXT && job->calls.len == 0) {
        open_message(job); /* an answer without a text has an empty message */
        *stage = SERVE_STAGE_TEXT;
    } else if (*stage == SERVE_STAGE_TEXT) {
        close_message(job);
        *stage = SERVE_STAGE_CALLS;
    } else if (find_call(job, job->events.call, &c)) {
        *stage = SERVE_STAGE_CALLS;
        put_call_events(job, &c);
        qsf_json_free(c.root);
    } else {
        put_state(job, status_of(job), status_of(job));
        job->finished = true;
    }
}

void serve_responses_next(ServeJob *job) {
    ServePiece logprobs[SERVE_LOGPROBS];
    ServeText t;
    if (!job->begun) {
        put_state(job, "created", "in_progress");
        put_state(job, "in_progress", "in_progress");
        job->events.stage = SERVE_STAGE_BEGUN;
        job->begun = true;
    } else if (serve_job_take(job, &t, logprobs)) {
        put_more(job, &t);
    } else if (job->state == SERVE_ENDED && !job->finished) {
        put_rest(job);
    }
}

void serve_responses_break(ServeJob *job) {
    qsf_strbuf_free(&job->out);
    job->out_at = 0;
    for (size_t i = 0; i < SERVE_LOGPROBS; i++) qsf_strbuf_free(&job->logprobs[i]);
    for (size_t i = 0; i < SERVE_LOGPROBS; i++) job->sent_logprobs[i] = 0;
    put_state(job, "failed", "failed");
    job->finished = true;
    (void)serve_job_charge(job);
}
