/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the values of <parameter=KEY> (Qwen3-Coder) are written: what the grammar of calls and the reader of
 * answers have to agree on. Templates write strings as they are and everything else as JSON: the text 1
 * is a string or a number by the schema of the parameter. Pure functions; any thread. */
#ifndef QSF_CHAT_CALL_VALUE_H
#define QSF_CHAT_CALL_VALUE_H

#include "src/base/json.h"

typedef enum QsfCallValue {
    QSF_CALL_ANY,    /* text or JSON: nothing is known */
    QSF_CALL_TEXT,   /* a string, as it is */
    QSF_CALL_QUOTED, /* a string as JSON: its schema has more to say than text can be held to */
    QSF_CALL_VALUE   /* JSON */
} QsfCallValue;

/* root: the parameters of a tool, schema: one of its properties; both may be NULL. */
QsfCallValue qsf_call_value(const QsfJson *root, const QsfJson *schema);
/* What a schema that is nothing but a $ref leads to, or the schema itself; NULL: it leads nowhere. */
const QsfJson *qsf_call_schema(const QsfJson *root, const QsfJson *schema);

/* A tool of an array of them: name, and the JSON of its parameters or NULL. */
typedef struct QsfCallTool {
    QsfStrbuf name;
    const char *parameters; /* (parameters_len) in the array */
    size_t parameters_len;
} QsfCallTool;

/* Reads the next tool: *at is 0 before the first one. The name is replaced; the caller frees it. false: there
 * is none. */
bool qsf_call_tool_next(const char *tools, size_t len, size_t *at, QsfCallTool *tool);

#endif
