/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading the values of a request's body: what request.c, fields.c and messages.c share. Functions that
 * return bool return false with reader->error set. */
#ifndef QSF_SERVE_READER_H
#define QSF_SERVE_READER_H

#include "serve/request.h"
#include "src/base/jsonscan.h"

typedef struct ServeReader {
    QsfJsonScan scan;
    char *body;       /* what scan reads */
    QsfStrbuf word;   /* the string that was read last, decoded */
    QsfStrbuf key;    /* the key of the member that is read */
    char where[48];   /* the field, for messages: "messages[3].content" */
    uint64_t seen[2]; /* a bit for each field (fields.c) */
    ServeRequest *r;
    ServeError *error;
} ServeReader;

/* A text in the body, decoded, with a NUL after it. */
typedef struct ServeSlice {
    char *text;
    size_t len;
} ServeSlice;

/* Is it this word? */
bool serve_slice_is(const ServeSlice *s, const char *word);
/* Reports what is wrong with the field that is read: "FIELD: ...". */
bool serve_reader_fail(ServeReader *rd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Is the next value of this kind: '"', '[', '{', 't' (a boolean) or '0' (a number)? */
bool serve_reader_is(ServeReader *rd, char kind);
/* Reads a string and writes it over its own place in the body. */
bool serve_reader_string(ServeReader *rd, ServeSlice *out);
/* Reads a string that continues at *end, the end of the last one, so that both are one text. */
bool serve_reader_append(ServeReader *rd, ServeSlice *to);
bool serve_reader_bool(ServeReader *rd, bool *out);
bool serve_reader_number(ServeReader *rd, double *out);
/* Reads a whole number from min to max. */
bool serve_reader_count(ServeReader *rd, uint32_t min, uint32_t max, uint32_t *out);
/* Skips any value; *out is its JSON, unchanged. */
bool serve_reader_raw(ServeReader *rd, ServeSlice *out);
/* Enters an array or object, and moves to its next element or member; *more is false at its end. Of a member
 * the key is in rd->key; members that are null count as absent and are skipped. */
bool serve_reader_enter(ServeReader *rd, char open);
bool serve_reader_next(ServeReader *rd, char open, bool *first, bool *more);
/* The same for a whole body, which has to be an object and nothing more. end: after its last member; false
 * also for an error before. */
bool serve_reader_begin_body(ServeReader *rd);
bool serve_reader_end_body(ServeReader *rd);

/* ---- fields.c ---- */

/* Reads the value of the field in rd->key. */
bool serve_fields_read(ServeReader *rd);

/* ---- lists.c: dst gets the value as the setting has it, "" for an empty list ---- */

/* {"ID": X, ...}, or [[TOKEN, X], ...] with ids and texts, and false for never. */
bool serve_lists_biases(ServeReader *rd, char *dst, size_t cap);
/* ["TEXT", ...] */
bool serve_lists_texts(ServeReader *rd, char *dst, size_t cap);

/* ---- tools.c ---- */

/* Read the values of tools and tool_choice. */
bool serve_tools_read(ServeReader *rd);
bool serve_tool_choice_read(ServeReader *rd);

/* ---- prompt.c ---- */

/* Reads a prompt: a text, token ids, or an array with one of both. */
bool serve_prompt_read(ServeReader *rd);

/* ---- messages.c ---- */

/* Reads the array of messages. */
bool serve_messages_read(ServeReader *rd);

#endif
