/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The items of a conversation of /v1/responses as messages: implements a part of responses_impl.h. */
#include <stddef.h>
#include <string.h>

#include "serve/responses_impl.h"

/* An item of the input; JSON. */
typedef struct Item {
    ServeSlice type, role, content, call_id, name, arguments, output, ignored;
} Item;

static void put(ServeTranslation *t, const char *text) { serve_responses_put(t, text); }
static void put_raw(ServeTranslation *t, const ServeSlice *s) { serve_responses_put_raw(t, s); }

static void close_message(ServeTranslation *t) {
    static const char *const ends[] = { [SERVE_OPEN_NONE] = "",
                                        [SERVE_OPEN_THOUGHT] = ",\"content\":\"\"}",
                                        [SERVE_OPEN_TEXT] = "}",
                                        [SERVE_OPEN_CALLS] = "]}" };
    put(t, ends[t->open]);
    t->open = SERVE_OPEN_NONE;
}

static void begin_message(ServeTranslation *t, const char *text) {
    close_message(t);
    if (t->n_messages++ > 0) put(t, ",");
    put(t, text);
}

static bool put_message(ServeTranslation *t, const Item *m) {
    const bool answer = serve_slice_is(&m->role, "\"assistant\"");
    if (m->role.text == NULL || m->content.text == NULL)
        return serve_reader_fail(&t->rd, "a message needs the members role and content");
    if (!answer || t->open != SERVE_OPEN_THOUGHT) {
        begin_message(t, "{\"role\":");
        put_raw(t, &m->role);
    }
    put(t, ",\"content\":");
    put_raw(t, &m->content);
    if (!answer) put(t, "}");
    t->open = answer ? SERVE_OPEN_TEXT : SERVE_OPEN_NONE;
    return true;
}

static bool put_call(ServeTranslation *t, const Item *c) {
    if (!serve_responses_is(&c->call_id, '"') || !serve_responses_is(&c->name, '"') ||
        !serve_responses_is(&c->arguments, '"'))
        return serve_reader_fail(&t->rd,
                                 "a function_call needs call_id, name and arguments, which are strings");
    if (t->open == SERVE_OPEN_NONE) begin_message(t, "{\"role\":\"assistant\"");
    put(t, t->open == SERVE_OPEN_CALLS ? ",{\"id\":" : ",\"tool_calls\":[{\"id\":");
    put_raw(t, &c->call_id);
    put(t, ",\"type\":\"function\",\"function\":{\"name\":");
    put_raw(t, &c->name);
    put(t, ",\"arguments\":");
    put_raw(t, &c->arguments);
    put(t, "}}");
    t->open = SERVE_OPEN_CALLS;
    return true;
}

static bool put_result(ServeTranslation *t, const Item *m) {
    if (!serve_responses_is(&m->call_id, '"') || m->output.text == NULL)
        return serve_reader_fail(&t->rd, "a function_call_output needs call_id and output");
    begin_message(t, "{\"role\":\"tool\",\"tool_call_id\":");
    put_raw(t, &m->call_id);
    put(t, ",\"content\":");
    put_raw(t, &m->output);
    put(t, "}");
    return true;
}

/* The texts of the parts, joined. A summary is not what was said, and nothing is encrypted here. */
static bool put_thought(ServeTranslation *t, const Item *m) {
    static const ServeMember members[] = { { "type", offsetof(Item, type) },
                                           { "text", offsetof(Item, content) } };
    ServeReader *rd = &t->rd;
    const size_t after = rd->scan.at;
    bool first = true, more = true, any = false;
    if (m->content.text == NULL) return true;
    serve_responses_enter(t, &m->content, "input");
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more) {
        Item part = { 0 };
        if (!SERVE_READ(rd, members, &part)) return false;
        if (!serve_responses_is(&part.content, '"'))
            return serve_reader_fail(rd, "a part of reasoning needs a text");
        if (!any) begin_message(t, "{\"role\":\"assistant\",\"reasoning_content\":\"");
        qsf_strbuf_add(t->out, part.content.text + 1, part.content.len - 2);
        any = true;
    }
    if (any) put(t, "\"");
    if (any) t->open = SERVE_OPEN_THOUGHT;
    rd->scan.at = after;
    return rd->error->status == 0;
}

static const ServeMember members[] = {
    { "type", offsetof(Item, type) },
    { "role", offsetof(Item, role) },
    { "content", offsetof(Item, content) },
    { "call_id", offsetof(Item, call_id) },
    { "name", offsetof(Item, name) },
    { "arguments", offsetof(Item, arguments) },
    { "output", offsetof(Item, output) },
    { "summary", offsetof(Item, ignored) },
    { "id", offsetof(Item, ignored) },
    { "status", offsetof(Item, ignored) },
    { "phase", offsetof(Item, ignored) },
    { "encrypted_content", offsetof(Item, ignored) },
    { "parsed_arguments", offsetof(Item, ignored) }, /* added by OpenAI's packages */
};

static const struct {
    const char *type;
    bool (*put)(ServeTranslation *t, const Item *m);
} types[] = { { "\"message\"", put_message },
              { "\"function_call\"", put_call },
              { "\"function_call_output\"", put_result },
              { "\"reasoning\"", put_thought } };
#define TYPES (sizeof types / sizeof *types)

static bool put_item(ServeTranslation *t) {
    Item m = { 0 };
    size_t i = 0;
    if (!serve_responses_type(&t->rd, &m.type)) return false;
    while (m.type.text != NULL && i < TYPES && !serve_slice_is(&m.type, types[i].type)) i++;
    if (i == TYPES)
        return serve_reader_fail(&t->rd, "items of the type %.*s are not supported",
                                 (int)(m.type.len < 40 ? m.type.len : 40), m.type.text);
    return SERVE_READ(&t->rd, members, &m) && types[i].put(t, &m);
}

static bool put_input(ServeTranslation *t) {
    ServeReader *rd = &t->rd;
    const ServeSlice *input = &t->fields.input;
    bool first = true, more = true;
    if (input->text == NULL) return serve_error_set(rd->error, 400, NULL, "input", "input is missing");
    serve_responses_enter(t, input, "input");
    if (serve_responses_is(input, '"')) {
        begin_message(t, "{\"role\":\"user\",\"content\":");
        put_raw(t, input);
        put(t, "}");
        return true;
    }
    if (!serve_reader_is(rd, '[')) return serve_reader_fail(rd, "expected a string or an array of items");
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more)
        if (!put_item(t)) return false;
    return rd->error->status == 0;
}

bool serve_responses_messages(ServeTranslation *t) {
    const ServeSlice *instructions = &t->fields.instructions;
    serve_responses_put_field(t, "messages");
    put(t, "[");
    if (instructions->text != NULL) {
        serve_responses_enter(t, instructions, "instructions");
        if (!serve_reader_is(&t->rd, '"')) return serve_reader_fail(&t->rd, "expected a string");
        begin_message(t, "{\"role\":\"system\",\"content\":");
        put_raw(t, instructions);
        put(t, "}");
    }
    if (!put_input(t)) return false;
    close_message(t);
    put(t, "]");
    return true;
}
