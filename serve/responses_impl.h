/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What responses.c and responses_items.c share: a request of /v1/responses while it becomes one of
 * /v1/chat/completions. Functions that return bool return false with rd.error set. */
#ifndef QSF_SERVE_RESPONSES_IMPL_H
#define QSF_SERVE_RESPONSES_IMPL_H

#include "serve/reader.h"

/* The last message of the new request, while more may be added to it: reasoning, text and calls are items of
 * their own here, and one message there. */
typedef enum ServeOpen { SERVE_OPEN_NONE, SERVE_OPEN_THOUGHT, SERVE_OPEN_TEXT, SERVE_OPEN_CALLS } ServeOpen;

/* Fields whose values have another form; JSON. */
typedef struct ServeResponseFields {
    ServeSlice input, instructions, tools, tool_choice, text, reasoning, include, top_logprobs;
} ServeResponseFields;

typedef struct ServeTranslation {
    ServeReader rd;
    QsfStrbuf *out;
    ServeResponseFields fields;
    size_t n_messages, n_fields;
    ServeOpen open;
} ServeTranslation;

/* A member of an object, and where in a structure the ServeSlice is that gets its JSON. */
typedef struct ServeMember {
    const char *name;
    size_t place;
} ServeMember;

void serve_responses_put(ServeTranslation *t, const char *text);
void serve_responses_put_raw(ServeTranslation *t, const ServeSlice *s);
/* Begins a field of the new request. */
void serve_responses_put_field(ServeTranslation *t, const char *name);
/* Reads a value again from its beginning; where: its name in messages. */
void serve_responses_enter(ServeTranslation *t, const ServeSlice *s, const char *where);
/* Is it JSON that begins like this? */
bool serve_responses_is(const ServeSlice *s, char first);
/* The member type of the object that follows, which is not consumed; without one *type is not changed. */
bool serve_responses_type(ServeReader *rd, ServeSlice *type);
/* Reads an object with these n members, at most 32; others are refused, and one that occurs twice. */
bool serve_responses_members(ServeReader *rd, const ServeMember *rows, size_t n, void *to);
#define SERVE_READ(rd, rows, to) serve_responses_members(rd, rows, sizeof(rows) / sizeof *(rows), to)

/* responses_items.c: writes the messages. */
bool serve_responses_messages(ServeTranslation *t);

#endif
