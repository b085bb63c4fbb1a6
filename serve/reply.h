/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The JSON that clients get, in the forms of OpenAI's interface (platform.openai.com/docs/api-reference):
 * errors, models, answers, and the events of a stream. Everything is appended to a buffer, whose failure is
 * sticky. Any thread. */
#ifndef QSF_SERVE_REPLY_H
#define QSF_SERVE_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "qsf_engine.h"
#include "src/base/strbuf.h"

/* Why a request is refused. */
typedef struct ServeError {
    int status;         /* of HTTP; 0 = none */
    const char *type;   /* static: "invalid_request_error" */
    const char *code;   /* static, or NULL: "model_not_found" */
    char param[48];     /* the field, or "" */
    char message[1024]; /* a sentence, without control characters */
} ServeError;

/* Records the first error: status, code (static, or NULL), field (NULL = none) and message, whose arguments
 * lose their control characters. Returns false. */
bool serve_error_set(ServeError *e, int status, const char *code, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Appends a message of the engine without the folders of this machine: the path of the model's file is
 * replaced by its id, and other absolute paths by the names of their files. */
void serve_reply_hide_paths(QsfStrbuf *b, const char *text, const char *file, const char *id);
/* {"error": {...}} */
void serve_reply_error(QsfStrbuf *b, const ServeError *e);

/* The model, as it is listed. */
typedef struct ServeModel {
    const char *id;
    int64_t created; /* seconds since 1970 */
    uint32_t ctx;    /* tokens of its context */
} ServeModel;
void serve_reply_model(QsfStrbuf *b, const ServeModel *m);
void serve_reply_models(QsfStrbuf *b, const ServeModel *m);

/* What all parts of an answer have in common. */
typedef struct ServeHead {
    bool chat;               /* messages, not /v1/completions */
    bool responses;          /* of these, /v1/responses */
    const char *tool_choice; /* static: "auto", "none" or "required" */
    uint64_t id;
    uint32_t index; /* of several answers */
    int64_t created;
    const char *model;
} ServeHead;

/* How an answer ended, and what it took. */
typedef struct ServeEnd {
    const char *finish; /* static: "stop", "length", "tool_calls" */
    uint32_t prompt_tokens, cached_tokens, tokens, reasoning_tokens;
    uint64_t seed;
    double prompt_tps, tps; /* tokens per second of the prompt and of the answer; 0 = not known */
} ServeEnd;

/* Counts of an answer that is being written, or of its prompt while that is evaluated. */
typedef struct ServeCounts {
    bool reading;
    uint32_t prompt, cached; /* tokens of the prompt, and those of them that were there already */
    uint32_t done;           /* of the prompt, cached ones too, while it is read; of the answer */
    uint64_t ms;             /* since it is read */
    double prompt_tps, tps;  /* tokens per second; 0 = not known */
} ServeCounts;

/* The parts of logprobs: of chats the first one, objects of tokens; of completions the members tokens,
 * token_logprobs, top_logprobs and text_offset. */
#define SERVE_LOGPROBS 4u

/* JSON of some elements of an array, each with ", " after it. */
typedef struct ServePiece {
    const char *json;
    size_t len;
} ServePiece;

/* More of an answer, or all of it. */
typedef struct ServeText {
    const char *text, *reasoning; /* (len), (reasoning_len); NULL = none */
    size_t len, reasoning_len;
    const ServePiece *logprobs; /* (SERVE_LOGPROBS), or NULL */
    ServePiece calls;           /* tool calls; json NULL = none */
    const ServeCounts *counts;  /* NULL = not asked for */
} ServeText;

/* One of several answers, an element of `choices`. */
void serve_reply_choice(QsfStrbuf *b, const ServeHead *h, const ServeText *t, const ServeEnd *end);
/* The whole answer; before: the choices before this one. */
void serve_reply_answer(QsfStrbuf *b, const ServeHead *h, const ServePiece *before, const ServeText *t,
                        const ServeEnd *end);
/* An event of a stream: more of an answer; `first`: with the role. */
void serve_reply_chunk(QsfStrbuf *b, const ServeHead *h, const ServeText *t, bool first);
/* The last chunk of an answer, and if `usage` is set one with its usage. */
void serve_reply_last(QsfStrbuf *b, const ServeHead *h, const ServeEnd *end, bool usage);
/* An error in a stream that has begun. */
void serve_reply_broken(QsfStrbuf *b, const ServeError *e);
/* "data: [DONE]" */
void serve_reply_done(QsfStrbuf *b);

#endif
