/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The messages of a request, and its parts: implements a part of reader.h. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/reader.h"

/* One message as it is read. */
typedef struct Draft {
    ServeSlice role, content, reasoning, calls, call_id, name, ignored;
    size_t i;
    unsigned seen; /* a bit for each of its members */
} Draft;

static void set_where(ServeReader *rd, const Draft *d, const char *member) {
    (void)snprintf(rd->where, sizeof rd->where, "messages[%zu]%s%.20s", d->i, *member != '\0' ? "." : "",
                   member);
}

/* ---- contents ---- */

/* A part's type, looked at before a text is written over it: texts of several parts are one. */
static bool read_type(ServeReader *rd, bool *ok) {
    ServeSlice s;
    if (!serve_reader_raw(rd, &s)) return false;
    *ok = serve_slice_is(&s, "\"text\"") || serve_slice_is(&s, "\"input_text\"") ||
          serve_slice_is(&s, "\"output_text\"");
    if (*ok) return true;
    return serve_reader_fail(rd, "parts of the type %.*s are not supported, only text",
                             (int)(s.len < 40 ? s.len : 40), s.text);
}

/* {"type": "text", "text": ...}, in any order. */
static bool read_part(ServeReader *rd, ServeSlice *out) {
    bool first = true, more = true, text = false, typed = false;
    ServeSlice other;
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        const char *key = qsf_strbuf_str(&rd->key);
        const bool is_text = strcmp(key, "text") == 0, is_type = strcmp(key, "type") == 0;
        if ((is_text && text) || (is_type && typed)) return serve_reader_fail(rd, "%s occurs twice", key);
        if (is_text) {
            if (!serve_reader_append(rd, out)) return false;
            text = true;
        } else if (is_type) {
            if (!read_type(rd, &typed)) return false;
        } else if (!serve_reader_raw(rd, &other)) {
            return false;
        }
    }
    if (rd->error->status != 0) return false;
    return (text && typed) || serve_reader_fail(rd, "a part needs the members type and text");
}

static bool read_content(ServeReader *rd, ServeSlice *out) {
    bool first = true, more = true;
    if (serve_reader_is(rd, '"')) return serve_reader_string(rd, out);
    if (!serve_reader_is(rd, '[')) return serve_reader_fail(rd, "expected a string or an array of parts");
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more)
        if (!read_part(rd, out)) return false;
    return rd->error->status == 0;
}

/* ---- a message ---- */

static bool read_calls(ServeReader *rd, ServeSlice *out) {
    if (!serve_reader_is(rd, '[')) return serve_reader_fail(rd, "expected an array");
    if (!serve_reader_raw(rd, out)) return false;
    if (out->len == 2 + strspn(out->text + 1, " \t\r\n")) *out = (ServeSlice){ 0 };
    return true;
}

static const struct {
    const char *name;
    bool (*read)(ServeReader *rd, ServeSlice *out);
    size_t place; /* in Draft */
} members[] = {
    { "role", serve_reader_string, offsetof(Draft, role) },
    { "content", read_content, offsetof(Draft, content) },
    { "reasoning_content", serve_reader_string, offsetof(Draft, reasoning) },
    { "tool_calls", read_calls, offsetof(Draft, calls) },
    { "tool_call_id", serve_reader_string, offsetof(Draft, call_id) },
    { "name", serve_reader_string, offsetof(Draft, name) },
    { "refusal", serve_reader_raw, offsetof(Draft, ignored) },
    { "annotations", serve_reader_raw, offsetof(Draft, ignored) },
};

static bool read_member(ServeReader *rd, Draft *d) {
    const char *key = qsf_strbuf_str(&rd->key);
    set_where(rd, d, key);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (strcmp(key, members[i].name) != 0) continue;
        if ((d->seen & 1u << i) != 0) return serve_reader_fail(rd, "this member occurs twice");
        d->seen |= 1u << i;
        return members[i].read(rd, (ServeSlice *)(void *)((char *)d + members[i].place));
    }
    return serve_reader_fail(rd, "this member is not supported");
}

static bool has_nul(const ServeSlice *s) { return s->len > 0 && memchr(s->text, 0, s->len) != NULL; }

/* OpenAI's newer name of "system" is a role of few templates. */
static const char *role_of(const Draft *d) {
    static const char *const roles[][2] = { { "system", "system" },
                                            { "developer", "system" },
                                            { "user", "user" },
                                            { "assistant", "assistant" },
                                            { "tool", "tool" } };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (serve_slice_is(&d->role, roles[i][0])) return roles[i][1];
    return NULL;
}

static bool check(ServeReader *rd, const Draft *d) {
    set_where(rd, d, "");
    if (d->role.text == NULL) return serve_reader_fail(rd, "role is missing");
    if (role_of(d) == NULL)
        return serve_reader_fail(rd,
                                 "the role '%.40s' is not one of system, developer, user, assistant and tool",
                                 d->role.text);
    if (has_nul(&d->call_id) || has_nul(&d->name)) return serve_reader_fail(rd, "a name has no NUL");
    if (d->content.text == NULL && d->calls.text == NULL) return serve_reader_fail(rd, "content is missing");
    if (d->calls.text != NULL && !serve_slice_is(&d->role, "assistant"))
        return serve_reader_fail(rd, "tool_calls are of an assistant");
    return true;
}

static bool add(ServeReader *rd, const Draft *d, size_t *cap) {
    ServeRequest *r = rd->r;
    if (r->n_messages == SERVE_MESSAGES)
        return serve_reader_fail(rd, "more than %u messages", SERVE_MESSAGES);
    if (r->n_messages == *cap) {
        const size_t more = *cap < 8 ? 8 : *cap * 2;
        QSFMessage *m = realloc(r->messages, more * sizeof *m);
        if (m == NULL) return serve_error_set(rd->error, 500, NULL, NULL, "out of memory");
        r->messages = m;
        *cap = more;
    }
    r->messages[r->n_messages++] = (QSFMessage){
        .role = role_of(d),
        .content = d->content.text != NULL ? d->content.text : "",
        .len = d->content.len,
        .reasoning = d->reasoning.text,
        .reasoning_len = d->reasoning.len,
        .calls = d->calls.text,
        .calls_len = d->calls.len,
        .call_id = d->call_id.text,
        .name = serve_slice_is(&d->role, "tool") ? d->name.text : NULL,
    };
    return true;
}

bool serve_messages_read(ServeReader *rd) {
    bool first = true, more = true;
    size_t cap = 0;
    free(rd->r->messages);
    rd->r->messages = NULL;
    rd->r->n_messages = 0;
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more) {
        Draft d = { .i = rd->r->n_messages };
        bool member = true, any = true;
        set_where(rd, &d, "");
        if (!serve_reader_enter(rd, '{')) return false;
        while (serve_reader_next(rd, '{', &member, &any) && any)
            if (!read_member(rd, &d)) return false;
        if (rd->error->status != 0 || !check(rd, &d) || !add(rd, &d, &cap)) return false;
    }
    return rd->error->status == 0;
}

bool serve_request_set_prompt(ServeRequest *r, const char *text, size_t len) {
    QSFMessage *m = realloc(r->messages, sizeof *m);
    if (m == NULL) return false;
    *m = (QSFMessage){ .role = "user", .content = text, .len = len };
    r->messages = m;
    r->n_messages = 1;
    return true;
}
