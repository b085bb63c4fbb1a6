/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Errors, models, answers and events: implements reply.h. */
#include "serve/reply.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/plural.h"
#include "src/base/utf8.h"

/* ---- errors ---- */

static const char *type_of(int status) {
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
    }
}

bool serve_error_set(ServeError *e, int status, const char *code, const char *param, const char *fmt, ...) {
    va_list ap;
    if (e->status != 0) return false;
    va_start(ap, fmt);
    (void)qsf_plural_vsnprintf(e->message, sizeof e->message, fmt, ap);
    va_end(ap);
    e->message[qsf_utf8_clean(e->message, strlen(e->message), true)] = '\0';
    e->status = status;
    e->type = type_of(status);
    e->code = code;
    (void)snprintf(e->param, sizeof e->param, "%s", param != NULL ? param : "");
    e->param[qsf_utf8_clean(e->param, strlen(e->param), true)] = '\0';
    return false;
}

#define AROUND " \t'\"(),;:=" /* a path in a message */

static bool ends_path(const char *text, size_t i) {
    return text[i] == '\0' || strchr(AROUND, text[i]) != NULL;
}

/* Is this the "//" of a URL? It comes from the client, and is not the path of a file. */
static bool is_host(const char *text, size_t i) {
    return i > 1 && text[i - 1] == ':' && isalpha((unsigned char)text[i - 2]) && text[i] == '/' &&
           text[i + 1] == '/';
}

/* Where the path that begins at i ends: names of folders may have spaces, so later words with a slash belong
 * to it. */
static size_t path_end(const char *text, size_t i) {
    const size_t from = i;
    while (!ends_path(text, i)) i++;
    size_t end = i;
    while (end > from + 1 && text[i] == ' ' && text[i + 1] != '/') {
        bool slash = false;
        for (i++; !ends_path(text, i); i++) slash |= text[i] == '/';
        if (slash) end = i;
    }
    return end;
}

void serve_reply_hide_paths(QsfStrbuf *b, const char *text, const char *file, const char *id) {
    const size_t n = strlen(file);
    for (size_t i = 0; text[i] != '\0';) {
        const bool begins = (i == 0 || ends_path(text, i - 1)) && !is_host(text, i);
        if (begins && n > 0 && strncmp(text + i, file, n) == 0 &&
            (text[i + n] == '/' || ends_path(text, i + n))) {
            qsf_strbuf_adds(b, id);
            i += n;
        } else if (begins && text[i] == '/') {
            const size_t from = i;
            i = path_end(text, i);
            size_t name = i;
            while (name > from + 1 && text[name - 1] != '/') name--;
            qsf_strbuf_add(b, text + (name < i ? name : from), i - (name < i ? name : from));
        } else {
            qsf_strbuf_addc(b, text[i++]);
        }
    }
}

static void put(QsfStrbuf *b, const char *text, size_t len) {
    if (text == NULL)
        qsf_strbuf_adds(b, "null");
    else
        qsf_json_put_string(b, text, len);
}

static void put_text(QsfStrbuf *b, const char *text) { put(b, text, text != NULL ? strlen(text) : 0); }

void serve_reply_error(QsfStrbuf *b, const ServeError *e) {
    qsf_strbuf_adds(b, "{\"error\": {\"message\": ");
    put_text(b, e->message);
    qsf_strbuf_adds(b, ", \"type\": ");
    put_text(b, e->type);
    qsf_strbuf_adds(b, ", \"param\": ");
    put_text(b, e->param[0] != '\0' ? e->param : NULL);
    qsf_strbuf_adds(b, ", \"code\": ");
    put_text(b, e->code);
    qsf_strbuf_adds(b, "}}");
}

/* ---- models ---- */

void serve_reply_model(QsfStrbuf *b, const ServeModel *m) {
    qsf_strbuf_adds(b, "{\"id\": ");
    put_text(b, m->id);
    /* The length of the context, as vllm-project/vllm and as OpenRouter name it: clients read one of them. */
    qsf_strbuf_addf(b,
                    ", \"object\": \"model\", \"created\": %" PRId64
                    ", \"owned_by\": \"qsf\", \"max_model_len\": %u, \"context_length\": %u}",
                    m->created, (unsigned)m->ctx, (unsigned)m->ctx);
}

void serve_reply_models(QsfStrbuf *b, const ServeModel *m) {
    qsf_strbuf_adds(b, "{\"object\": \"list\", \"data\": [");
    serve_reply_model(b, m);
    qsf_strbuf_adds(b, "]}");
}

/* ---- answers ---- */

static void put_head(QsfStrbuf *b, const ServeHead *h, const char *object) {
    qsf_strbuf_addf(b,
                    "{\"id\": \"%s-%016" PRIx64 "\", \"object\": \"%s\", \"created\": %" PRId64
                    ", \"model\": ",
                    h->chat ? "chatcmpl" : "cmpl", h->id, object, h->created);
    put_text(b, h->model);
    qsf_strbuf_adds(b, ", \"system_fingerprint\": \"qsf-" QSF_VERSION "\", \"choices\": [");
}

static void put_usage(QsfStrbuf *b, const ServeEnd *end) {
    qsf_strbuf_addf(b,
                    "\"usage\": {\"prompt_tokens\": %u, \"completion_tokens\": %u, \"total_tokens\": %u, "
                    "\"prompt_tokens_details\": {\"cached_tokens\": %u}, "
                    "\"completion_tokens_details\": {\"reasoning_tokens\": %u}}, \"seed\": %" PRIu64,
                    end->prompt_tokens, end->tokens, end->prompt_tokens + end->tokens, end->cached_tokens,
                    end->reasoning_tokens, end->seed);
    if (end->tps <= 0 && end->prompt_tps <= 0) return;
    const char *comma = end->tps > 0 && end->prompt_tps > 0 ? ", " : "";
    qsf_strbuf_adds(b, ", \"timings\": {"); /* as llama.cpp calls it: clients show it */
    if (end->prompt_tps > 0) qsf_strbuf_addf(b, "\"prompt_per_second\": %.3f", end->prompt_tps);
    if (end->tps > 0) qsf_strbuf_addf(b, "%s\"predicted_per_second\": %.3f", comma, end->tps);
    qsf_strbuf_adds(b, "}");
}

static void put_array(QsfStrbuf *b, const char *name, const ServePiece *p) {
    qsf_strbuf_addf(b, "\"%s\": [", name);
    if (p->len > 2) qsf_strbuf_add(b, p->json, p->len - 2);
    qsf_strbuf_adds(b, "]");
}

static void put_logprobs(QsfStrbuf *b, bool chat, const ServeText *t) {
    static const char *const names[SERVE_LOGPROBS] = { "tokens", "token_logprobs", "top_logprobs",
                                                       "text_offset" };
    qsf_strbuf_adds(b, "\"logprobs\": ");
    if (t->logprobs == NULL) {
        qsf_strbuf_adds(b, "null");
        return;
    }
    qsf_strbuf_adds(b, "{");
    if (chat) put_array(b, "content", &t->logprobs[0]);
    for (size_t i = 0; !chat && i < SERVE_LOGPROBS; i++) {
        if (i > 0) qsf_strbuf_adds(b, ", ");
        put_array(b, names[i], &t->logprobs[i]);
    }
    qsf_strbuf_adds(b, chat ? ", \"refusal\": null}" : "}");
}

/* The members of a message or of a delta. */
static void put_message(QsfStrbuf *b, const ServeText *t, bool role, bool whole) {
    const char *comma = "";
    if (role) {
        qsf_strbuf_adds(b, "\"role\": \"assistant\"");
        comma = ", ";
    }
    if (t->text != NULL || whole) {
        qsf_strbuf_addf(b, "%s\"content\": ", comma);
        put(b, t->text, t->len);
        comma = ", ";
    }
    if (t->reasoning != NULL) {
        qsf_strbuf_addf(b, "%s\"reasoning_content\": ", comma);
        put(b, t->reasoning, t->reasoning_len);
        comma = ", ";
    }
    if (t->calls.json != NULL) {
        qsf_strbuf_adds(b, comma);
        put_array(b, "tool_calls", &t->calls);
    }
}

void serve_reply_choice(QsfStrbuf *b, const ServeHead *h, const ServeText *t, const ServeEnd *end) {
    qsf_strbuf_addf(b, "{\"index\": %u, ", (unsigned)h->index);
    if (h->chat) {
        qsf_strbuf_adds(b, "\"message\": {");
        put_message(b, t, true, true);
        qsf_strbuf_adds(b, ", \"refusal\": null}, ");
    } else {
        qsf_strbuf_adds(b, "\"text\": ");
        put(b, t->text != NULL ? t->text : "", t->len);
        qsf_strbuf_adds(b, ", ");
    }
    put_logprobs(b, h->chat, t);
    qsf_strbuf_addf(b, ", \"finish_reason\": \"%s\"}", end->finish);
}

void serve_reply_answer(QsfStrbuf *b, const ServeHead *h, const ServePiece *before, const ServeText *t,
                        const ServeEnd *end) {
    put_head(b, h, h->chat ? "chat.completion" : "text_completion");
    qsf_strbuf_add(b, before->json, before->len);
    serve_reply_choice(b, h, t, end);
    qsf_strbuf_adds(b, "], ");
    put_usage(b, end);
    qsf_strbuf_adds(b, "}");
}

/* ---- streams: server-sent events, of which each has one line ---- */

static void begin_event(QsfStrbuf *b, const ServeHead *h) {
    qsf_strbuf_adds(b, "data: ");
    put_head(b, h, h->chat ? "chat.completion.chunk" : "text_completion");
}

/* In the form of ggml-org/llama.cpp (tools/server/README.md). */
static void put_counts(QsfStrbuf *b, const ServeCounts *c) {
    if (c->reading) {
        qsf_strbuf_addf(b,
                        ", \"prompt_progress\": {\"total\": %u, \"cache\": %u, \"processed\": %u, "
                        "\"time_ms\": %" PRIu64 "}",
                        c->prompt, c->cached, c->done, c->ms);
        return;
    }
    qsf_strbuf_addf(b, ", \"timings\": {\"cache_n\": %u, \"prompt_n\": %u, \"predicted_n\": %u", c->cached,
                    c->prompt - c->cached, c->done);
    if (c->prompt_tps > 0) qsf_strbuf_addf(b, ", \"prompt_per_second\": %.3f", c->prompt_tps);
    if (c->tps > 0) qsf_strbuf_addf(b, ", \"predicted_per_second\": %.3f", c->tps);
    qsf_strbuf_adds(b, "}");
}

void serve_reply_chunk(QsfStrbuf *b, const ServeHead *h, const ServeText *t, bool first) {
    begin_event(b, h);
    qsf_strbuf_addf(b, "{\"index\": %u, ", (unsigned)h->index);
    if (h->chat) {
        qsf_strbuf_adds(b, "\"delta\": {");
        put_message(b, t, first, false);
        qsf_strbuf_adds(b, "}, ");
    } else {
        qsf_strbuf_adds(b, "\"text\": ");
        put(b, t->text != NULL ? t->text : "", t->len);
        qsf_strbuf_adds(b, ", ");
    }
    put_logprobs(b, h->chat, t);
    qsf_strbuf_adds(b, ", \"finish_reason\": null}]");
    if (t->counts != NULL) put_counts(b, t->counts);
    qsf_strbuf_adds(b, "}\n\n");
}

void serve_reply_last(QsfStrbuf *b, const ServeHead *h, const ServeEnd *end, bool usage) {
    begin_event(b, h);
    qsf_strbuf_addf(b,
                    "{\"index\": %u, %s, \"logprobs\": null, \"finish_reason\": \"%s\"}], \"seed\": %" PRIu64
                    "}\n\n",
                    (unsigned)h->index, h->chat ? "\"delta\": {}" : "\"text\": \"\"", end->finish, end->seed);
    if (!usage) return;
    begin_event(b, h);
    qsf_strbuf_adds(b, "], ");
    put_usage(b, end);
    qsf_strbuf_adds(b, "}\n\n");
}

void serve_reply_broken(QsfStrbuf *b, const ServeError *e) {
    qsf_strbuf_adds(b, "data: ");
    serve_reply_error(b, e);
    qsf_strbuf_adds(b, "\n\n");
}

void serve_reply_done(QsfStrbuf *b) { qsf_strbuf_adds(b, "data: [DONE]\n\n"); }
