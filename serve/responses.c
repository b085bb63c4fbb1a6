/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests of /v1/responses: implements a part of responses.h. Values are copied as they are, JSON for JSON;
 * only what encloses them changes. */
#include "serve/responses.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/responses_impl.h"
#include "src/base/json.h"

void serve_responses_put(ServeTranslation *t, const char *text) { qsf_strbuf_adds(t->out, text); }

void serve_responses_put_raw(ServeTranslation *t, const ServeSlice *s) {
    qsf_strbuf_add(t->out, s->text, s->len);
}

void serve_responses_put_field(ServeTranslation *t, const char *name) {
    qsf_strbuf_addf(t->out, "%s\"%s\":", t->n_fields++ > 0 ? "," : "", name);
}

void serve_responses_enter(ServeTranslation *t, const ServeSlice *s, const char *where) {
    t->rd.scan.at = (size_t)(s->text - t->rd.body);
    (void)snprintf(t->rd.where, sizeof t->rd.where, "%s", where);
}

bool serve_responses_is(const ServeSlice *s, char first) { return s->text != NULL && *s->text == first; }

bool serve_responses_members(ServeReader *rd, const ServeMember *rows, size_t n, void *to) {
    bool first = true, more = true;
    uint32_t seen = 0; /* bits of rows */
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        size_t i = 0;
        while (i < n && strcmp(rows[i].name, qsf_strbuf_str(&rd->key)) != 0) i++;
        if (i == n)
            return serve_reader_fail(rd, "the member \"%.40s\" is not supported", qsf_strbuf_str(&rd->key));
        if ((seen >> i & 1) != 0)
            return serve_reader_fail(rd, "the member \"%s\" occurs twice", rows[i].name);
        seen |= 1u << i;
        if (!serve_reader_raw(rd, (ServeSlice *)(void *)((char *)to + rows[i].place))) return false;
    }
    return rd->error->status == 0;
}

bool serve_responses_type(ServeReader *rd, ServeSlice *type) {
    const size_t at = rd->scan.at;
    bool first = true, more = true;
    ServeSlice s;
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        if (!serve_reader_raw(rd, &s)) return false;
        if (strcmp(qsf_strbuf_str(&rd->key), "type") == 0) *type = s;
    }
    rd->scan.at = at;
    return rd->error->status == 0;
}

static void put(ServeTranslation *t, const char *text) { serve_responses_put(t, text); }

/* ---- tools ---- */

typedef struct Tool {
    ServeSlice type, name, description, parameters, strict;
} Tool;

static bool put_tool(ServeTranslation *t) {
    static const ServeMember members[] = { { "type", offsetof(Tool, type) },
                                           { "name", offsetof(Tool, name) },
                                           { "description", offsetof(Tool, description) },
                                           { "parameters", offsetof(Tool, parameters) },
                                           { "strict", offsetof(Tool, strict) } };
    Tool tool = { 0 };
    bool any = false;
    if (!serve_responses_type(&t->rd, &tool.type)) return false;
    if (!serve_slice_is(&tool.type, "\"function\""))
        return serve_reader_fail(&t->rd, "only tools of the type function are supported");
    if (!SERVE_READ(&t->rd, members, &tool)) return false;
    if (!serve_responses_is(&tool.name, '"'))
        return serve_reader_fail(&t->rd, "the name of a function is expected");
    put(t, "{\"type\":\"function\",\"function\":{");
    for (size_t i = 1; i < sizeof members / sizeof *members; i++) {
        const ServeSlice *s = (const ServeSlice *)(const void *)((const char *)&tool + members[i].place);
        if (s->text == NULL) continue;
        qsf_strbuf_addf(t->out, "%s\"%s\":", any ? "," : "", members[i].name);
        serve_responses_put_raw(t, s);
        any = true;
    }
    put(t, "}}");
    return true;
}

static bool put_tools(ServeTranslation *t) {
    bool first = true, more = true, any = false;
    if (t->fields.tools.text == NULL) return true;
    serve_responses_enter(t, &t->fields.tools, "tools");
    if (!serve_reader_enter(&t->rd, '[')) return false;
    serve_responses_put_field(t, "tools");
    put(t, "[");
    while (serve_reader_next(&t->rd, '[', &first, &more) && more) {
        if (any) put(t, ",");
        if (!put_tool(t)) return false;
        any = true;
    }
    put(t, "]");
    return t->rd.error->status == 0;
}

static bool put_tool_choice(ServeTranslation *t) {
    static const ServeMember members[] = { { "type", offsetof(Tool, type) },
                                           { "name", offsetof(Tool, name) } };
    Tool tool = { 0 };
    if (t->fields.tool_choice.text == NULL) return true;
    serve_responses_put_field(t, "tool_choice");
    if (!serve_responses_is(&t->fields.tool_choice, '{')) {
        serve_responses_put_raw(t, &t->fields.tool_choice);
        return true;
    }
    serve_responses_enter(t, &t->fields.tool_choice, "tool_choice");
    if (!serve_responses_type(&t->rd, &tool.type)) return false;
    if (!serve_slice_is(&tool.type, "\"function\""))
        return serve_reader_fail(&t->rd, "only the type function is supported");
    if (!SERVE_READ(&t->rd, members, &tool)) return false;
    if (!serve_responses_is(&tool.name, '"'))
        return serve_reader_fail(&t->rd, "the name of a function is expected");
    put(t, "{\"type\":\"function\",\"function\":{\"name\":");
    serve_responses_put_raw(t, &tool.name);
    put(t, "}}");
    return true;
}

/* ---- the form of the answer ---- */

typedef struct Format {
    ServeSlice type, name, schema, strict, description;
} Format;

static bool put_format(ServeTranslation *t, const ServeSlice *json) {
    static const ServeMember members[] = { { "type", offsetof(Format, type) },
                                           { "name", offsetof(Format, name) },
                                           { "schema", offsetof(Format, schema) },
                                           { "strict", offsetof(Format, strict) },
                                           { "description", offsetof(Format, description) } };
    Format f = { 0 };
    serve_responses_enter(t, json, "text.format");
    if (!SERVE_READ(&t->rd, members, &f)) return false;
    if (!serve_responses_is(&f.type, '"')) return serve_reader_fail(&t->rd, "the type is missing");
    serve_responses_put_field(t, "response_format");
    put(t, "{\"type\":");
    serve_responses_put_raw(t, &f.type);
    if (f.schema.text != NULL) put(t, ",\"json_schema\":{\"schema\":");
    if (f.schema.text != NULL) serve_responses_put_raw(t, &f.schema);
    put(t, f.schema.text != NULL ? "}}" : "}");
    return true;
}

typedef struct Text {
    ServeSlice format, verbosity;
} Text;

static bool put_text(ServeTranslation *t) {
    static const ServeMember members[] = { { "format", offsetof(Text, format) },
                                           { "verbosity", offsetof(Text, verbosity) } };
    Text text = { 0 };
    if (t->fields.text.text == NULL) return true;
    serve_responses_enter(t, &t->fields.text, "text");
    if (!SERVE_READ(&t->rd, members, &text)) return false;
    return text.format.text == NULL || put_format(t, &text.format);
}

typedef struct Reasoning {
    ServeSlice effort, summary;
} Reasoning;

static bool put_reasoning(ServeTranslation *t) {
    static const ServeMember members[] = { { "effort", offsetof(Reasoning, effort) },
                                           { "summary", offsetof(Reasoning, summary) },
                                           { "generate_summary", offsetof(Reasoning, summary) } };
    Reasoning r = { 0 };
    if (t->fields.reasoning.text == NULL) return true;
    serve_responses_enter(t, &t->fields.reasoning, "reasoning");
    if (!SERVE_READ(&t->rd, members, &r)) return false;
    if (r.effort.text == NULL) return true;
    serve_responses_put_field(t, "reasoning_effort");
    serve_responses_put_raw(t, &r.effort);
    return true;
}

static bool put_logprobs(ServeTranslation *t) {
    ServeReader *rd = &t->rd;
    bool first = true, more = true, wanted = false;
    const ServeSlice *top = &t->fields.top_logprobs;
    if (t->fields.include.text != NULL) {
        serve_responses_enter(t, &t->fields.include, "include");
        if (!serve_reader_enter(rd, '[')) return false;
        while (serve_reader_next(rd, '[', &first, &more) && more) {
            ServeSlice s;
            if (!serve_reader_raw(rd, &s)) return false;
            const bool probs = serve_slice_is(&s, "\"message.output_text.logprobs\"");
            if (!probs && !serve_slice_is(&s, "\"reasoning.encrypted_content\"")) /* it is not encrypted */
                return serve_reader_fail(rd, "%.*s is not supported", (int)(s.len < 60 ? s.len : 60), s.text);
            wanted = wanted || probs;
        }
        if (rd->error->status != 0) return false;
    }
    if (top->text != NULL && !serve_slice_is(top, "0")) {
        serve_responses_put_field(t, "top_logprobs");
        serve_responses_put_raw(t, top);
        wanted = true;
    }
    if (wanted) serve_responses_put_field(t, "logprobs"), put(t, "true");
    return true;
}

/* ---- fields ---- */

/* What only this interface has; place: in ServeResponseFields. */
static const ServeMember own[] = { { "input", offsetof(ServeResponseFields, input) },
                                   { "instructions", offsetof(ServeResponseFields, instructions) },
                                   { "tools", offsetof(ServeResponseFields, tools) },
                                   { "tool_choice", offsetof(ServeResponseFields, tool_choice) },
                                   { "text", offsetof(ServeResponseFields, text) },
                                   { "reasoning", offsetof(ServeResponseFields, reasoning) },
                                   { "include", offsetof(ServeResponseFields, include) },
                                   { "top_logprobs", offsetof(ServeResponseFields, top_logprobs) } };

/* ServeResponseFields with one value that is supported (JSON), or none. */
static const struct {
    const char *name, *value, *why;
} fixed[] = {
    { "previous_response_id", "", "this server keeps no responses; send the whole conversation as input" },
    { "conversation", "", "this server keeps no conversations; send the whole conversation as input" },
    { "prompt", "", "this server has no stored prompts; send instructions and input" },
    { "background", "false", "answers in the background are not supported" },
    { "truncation", "\"disabled\"", "only disabled is supported" },
};

/* Of /v1/chat/completions, under another name here, or about the form of its answers. */
static const char *const foreign[] = {
    "messages", "max_tokens", "max_completion_tokens",  "response_format", "reasoning_effort", "logprobs",
    "n",        "modalities", "continue_final_message", "return_progress", "timings_per_token"
};

static bool take_fixed(ServeTranslation *t, bool *taken) {
    ServeSlice s;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (strcmp(t->rd.where, fixed[i].name) != 0) continue;
        *taken = true;
        if (!serve_reader_raw(&t->rd, &s)) return false;
        return serve_slice_is(&s, fixed[i].value) || serve_reader_fail(&t->rd, "%s", fixed[i].why);
    }
    return true;
}

static bool take_own(ServeTranslation *t, bool *taken) {
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        ServeSlice *s = (ServeSlice *)(void *)((char *)&t->fields + own[i].place);
        if (strcmp(t->rd.where, own[i].name) != 0) continue;
        *taken = true;
        if (s->text != NULL) return serve_reader_fail(&t->rd, "the field occurs twice");
        return serve_reader_raw(&t->rd, s);
    }
    return true;
}

static bool take_field(ServeTranslation *t) {
    const char *key = qsf_strbuf_str(&t->rd.key), *name = key;
    bool taken = false;
    ServeSlice s;
    (void)snprintf(t->rd.where, sizeof t->rd.where, "%.40s", key);
    if (!take_fixed(t, &taken) || !take_own(t, &taken)) return false;
    if (taken) return true;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (strcmp(key, foreign[i]) == 0)
            return serve_error_set(t->rd.error, 400, "unsupported_parameter", key,
                                   "the field \"%s\" is not one of /v1/responses", key);
    if (!serve_reader_raw(&t->rd, &s)) return false;
    if (strcmp(key, "stream_options") == 0) return true; /* usage is always there */
    if (strcmp(key, "max_output_tokens") == 0) name = "max_completion_tokens";
    if (t->n_fields++ > 0) put(t, ",");
    qsf_json_put_string(t->out, name, name == key ? t->rd.key.len : strlen(name));
    put(t, ":");
    serve_responses_put_raw(t, &s);
    return true;
}

static bool translate(ServeTranslation *t) {
    ServeReader *rd = &t->rd;
    bool first = true, more = true;
    if (!serve_reader_begin_body(rd)) return false;
    put(t, "{");
    while (serve_reader_next(rd, '{', &first, &more) && more)
        if (!take_field(t)) return false;
    if (!serve_reader_end_body(rd)) return false;
    if (!serve_responses_messages(t) || !put_tools(t) || !put_tool_choice(t) || !put_text(t) ||
        !put_reasoning(t) || !put_logprobs(t))
        return false;
    put(t, "}");
    return true;
}

/* A call takes the most: of {"type":"function_call","call_id":"","name":"","arguments":""} a message of 103
 * bytes is made. */
static size_t room_of(size_t len) { return 2 * len + 512; }

/* Appends the body of a request of /v1/chat/completions with the same meaning. */
static bool translate_body(char *body, size_t len, QsfStrbuf *out, ServeError *e) {
    ServeTranslation t = { .rd = { .body = body, .error = e }, .out = out };
    qsf_jscan_init(&t.rd.scan, body, len);
    const bool ok = translate(&t);
    qsf_strbuf_free(&t.rd.word);
    qsf_strbuf_free(&t.rd.key);
    return ok && (qsf_strbuf_ok(out) || serve_error_set(e, 500, NULL, NULL, "out of memory"));
}

bool serve_responses_replace(char **body, size_t *len, size_t *cap, ServeMemory *memory,
                             pthread_mutex_t *lock, ServeError *e) {
    const size_t room = room_of(*len);
    pthread_mutex_lock(lock);
    const bool ok = serve_memory_take(memory, room);
    pthread_mutex_unlock(lock);
    if (!ok)
        return serve_error_set(e, 503, "server_busy", NULL,
                               "the server has no more memory for requests that wait");
    QsfStrbuf b = { .data = calloc(1, room), .cap = room };
    const bool done = b.data != NULL ? translate_body(*body != NULL ? *body : (char[1]){ 0 }, *len, &b, e)
                                     : serve_error_set(e, 500, NULL, NULL, "out of memory");
    pthread_mutex_lock(lock);
    serve_memory_give(memory, *cap);
    pthread_mutex_unlock(lock);
    free(*body);
    *body = b.data;
    *len = b.len;
    *cap = room;
    return done;
}

/* ---- errors ---- */

/* Replaces a name at the beginning of a text. */
static void rename_start(char *text, size_t cap, const char *from, const char *to) {
    char more[sizeof((ServeError *)NULL)->message];
    size_t n = strlen(from);
    if (strncmp(text, from, n) != 0 || (text[n] != '\0' && strchr(":[. ", text[n]) == NULL)) return;
    if (text[n] == '[') n += strcspn(text + n, "]") + 1; /* there are more messages than items, or fewer */
    (void)snprintf(more, sizeof more, "%s", text + n);
    (void)snprintf(text, cap, "%s%.*s", to, (int)(cap - strlen(to) - 1), more);
}

/* Removes N of "the body is not JSON: byte N: ...": strings are decoded in the other body. */
static void forget_place(char *text) {
    static const char start[] = "the body is not JSON: byte ";
    const size_t at = sizeof start - sizeof "byte ";
    const char *why = strstr(text, ": expected");
    if (strncmp(text, start, sizeof start - 1) == 0 && why != NULL)
        memmove(text + at, why + 2, strlen(why + 2) + 1);
}

void serve_responses_rename(ServeError *e) {
    static const char *const names[][2] = { { "messages", "input" },
                                            { "max_completion_tokens", "max_output_tokens" },
                                            { "response_format: json_schema", "text.format: schema" },
                                            { "response_format", "text.format" },
                                            { "reasoning_effort", "reasoning.effort" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rename_start(e->message, sizeof e->message, names[i][0], names[i][1]);
        rename_start(e->param, sizeof e->param, names[i][0], names[i][1]);
    }
    forget_place(e->message);
}
