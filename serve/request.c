/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A body as a whole: implements request.h. */
#include "serve/request.h"

#include <stdlib.h>
#include <string.h>

#include "serve/reader.h"

#define DEFAULT_TEXT_TOKENS 16 /* of /v1/completions, as in OpenAI's interface */

/* What the members say together. */
static bool check(ServeReader *rd) {
    ServeRequest *r = rd->r;
    char err[400];
    rd->where[0] = '\0';
    if (r->n_messages == 0)
        return serve_error_set(rd->error, 400, NULL, r->chat ? "messages" : "prompt",
                               "%s is missing or empty", r->chat ? "messages" : "prompt");
    const QSFMessage *last = &r->messages[r->n_messages - 1];
    if (r->continue_last && strcmp(last->role, "assistant") != 0)
        return serve_error_set(rd->error, 400, NULL, "continue_final_message",
                               "continue_final_message: the last message is not the assistant's");
    if (r->chat && r->top_logprobs > 0 && !r->logprobs)
        return serve_error_set(rd->error, 400, NULL, "top_logprobs", "top_logprobs needs logprobs");
    if (r->usage && !r->stream)
        return serve_error_set(rd->error, 400, NULL, "stream_options", "stream_options needs stream");
    if (r->no_answer && !(r->echo && r->logprobs))
        return serve_error_set(rd->error, 400, NULL, "max_tokens",
                               "max_tokens: 0 is for echo with logprobs; expected 1 or more");
    if (r->call != NULL && r->tools == NULL)
        return serve_error_set(rd->error, 400, NULL, "tool_choice", "tool_choice needs tools");
    if (r->call != NULL && r->continue_last)
        return serve_error_set(rd->error, 400, NULL, "tool_choice",
                               "an answer that is continued cannot be made to call a tool");
    const bool free_form = r->grammar_kind != QSF_GRAMMAR_NONE && r->grammar_kind != QSF_GRAMMAR_SCHEMA;
    if (r->tools != NULL && free_form && !r->no_tools)
        return serve_error_set(rd->error, 400, NULL, "tools",
                               "tools cannot be combined with grammar, regex or only");
    if (qsf_settings_check(&r->settings, err, sizeof err) != 0)
        return serve_error_set(rd->error, 400, NULL, NULL, "%s", err);
    return true;
}

/* Reasoning comes without tags. A text of the answer follows it. */
static void fill_thought(ServeRequest *r) {
    QSFMessage *last = &r->messages[r->n_messages - 1];
    if (!r->continue_last) return;
    last->thought = r->thought != QSF_THOUGHT_MARKED ? r->thought
                    : last->len > 0                  ? QSF_THOUGHT_CLOSED
                                                     : QSF_THOUGHT_OPEN;
}

/* What was not said. */
static void fill(ServeRequest *r) {
    fill_thought(r);
    if (r->no_tools) r->tools = NULL;
    if (r->no_tools) r->tools_len = 0;
    if (r->call != NULL)
        r->grammar_kind = QSF_GRAMMAR_NONE; /* response_format is about answers without calls */
    if (r->call != NULL) r->grammar = NULL;
    if (!r->chat && !r->max_tokens_set && r->settings.params.max_tokens == 0)
        r->settings.params.max_tokens = DEFAULT_TEXT_TOKENS;
}

static bool read_body(ServeReader *rd) {
    bool first = true, more = true;
    if (!serve_reader_begin_body(rd)) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more)
        if (!serve_fields_read(rd)) return false;
    return serve_reader_end_body(rd);
}

bool serve_request_parse(ServeRequest *r, bool chat, char *body, size_t len, const QSFSettings *base,
                         ServeError *e) {
    *r = (ServeRequest){ .chat = chat, .settings = *base };
    ServeReader rd = { .body = body, .r = r, .error = e };
    qsf_jscan_init(&rd.scan, body, len);
    const bool ok = read_body(&rd) && check(&rd);
    qsf_strbuf_free(&rd.word);
    qsf_strbuf_free(&rd.key);
    if (ok) fill(r);
    return ok;
}

void serve_request_free(ServeRequest *r) {
    free(r->messages);
    r->messages = NULL;
    r->n_messages = 0;
    free(r->ids);
    r->ids = NULL;
    r->n_ids = 0;
}

/* A message has at least as many bytes as {"role":"user","content":""}; their array, which grows by doubling,
 * is copied when it grows. The longest string and the longest key are decoded beside the body, in buffers
 * that grow by doubling, too. A token id of a prompt takes 4 bytes; of its JSON, at least 2 bytes, no string
 * is decoded. */
#define MESSAGE_JSON 28u

size_t serve_request_room(size_t len) {
    size_t n = len / MESSAGE_JSON + 8;
    if (n > SERVE_MESSAGES) n = SERVE_MESSAGES;
    return 3 * n * sizeof(QSFMessage) + 4 * len;
}

size_t serve_request_held(const ServeRequest *r) {
    return 2 * r->n_messages * sizeof(QSFMessage) + r->n_ids * sizeof *r->ids;
}
