/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The body of a request for an answer: JSON that is read without a tree, in the memory that it arrived in.
 * Strings are decoded in place, which never makes them longer. Every field is honored, ignored on purpose, or
 * refused by its name (docs/SERVER.md). Untrusted input; any thread, one request in one thread at a time. */
#ifndef QSF_SERVE_REQUEST_H
#define QSF_SERVE_REQUEST_H

#include "qsf_engine.h"
#include "serve/reply.h"

#define SERVE_MESSAGES 4096u /* of a request */
#define SERVE_STOPS    16u
#define SERVE_ANSWERS  16u                 /* most of n */
#define SERVE_TOP      QSF_CANDIDATES_MOST /* most of top_logprobs */

typedef struct ServeRequest {
    bool chat;            /* of /v1/chat/completions, otherwise of /v1/completions */
    QSFMessage *messages; /* (n_messages), malloc'ed; their texts are in the body */
    size_t n_messages;    /* /v1/completions: 1, the prompt; its JSON if it is token ids */
    int32_t *ids;         /* (n_ids), malloc'ed: a prompt of token ids; NULL = it is a text */
    size_t n_ids;
    uint32_t n;                    /* answers, one after the other; 0 counts as 1 */
    const char *stop[SERVE_STOPS]; /* (n_stop) in the body */
    size_t n_stop;
    bool stream, usage;     /* usage: an event of its own has it (stream_options) */
    bool timings, progress; /* events have counts: of the answer so far, of the prompt while it is read */
    bool logprobs;
    uint32_t top_logprobs; /* up to SERVE_TOP */
    bool max_tokens_set;   /* settings.params.max_tokens is the client's */
    bool continue_last;    /* continue the last message */
    uint8_t thought;       /* QSF_THOUGHT_* of its reasoning; MARKED: what its content says */
    bool echo;             /* the text of an answer begins with the prompt */
    bool no_answer;        /* max_tokens 0: only the logprobs of the prompt are wanted */
    QSFSettings settings;  /* the server's, with what the request changes */
    uint8_t grammar_kind;  /* QSFGrammarKind */
    const char *grammar;   /* (grammar_len), in the body or static */
    size_t grammar_len;
    const char *tools; /* (tools_len) JSON, in the body; NULL = none */
    size_t tools_len;
    bool no_tools;     /* tool_choice: none */
    const char *call;  /* the tool that has to be called, in the body; "" = any of them; NULL = it need not */
    bool one_call;     /* at most one tool is called */
    const char *model; /* asked for, in the body; NULL = any */
} ServeRequest;

/* Reads a body of len bytes, which is changed and has to stay as long as r; base: the settings of the server.
 * false with *e set: status 400, or 500 without memory. Release r with serve_request_free in any case: it
 * frees the messages and ids; values that are not texts remain. */
bool serve_request_parse(ServeRequest *r, bool chat, char *body, size_t len, const QSFSettings *base,
                         ServeError *e);
void serve_request_free(ServeRequest *r);
/* The field that sets a setting (qsf_engine.h), or NULL; name (len). */
const char *serve_field_of_setting(const char *name, size_t len);
/* Makes text the only message. false without memory. */
bool serve_request_set_prompt(ServeRequest *r, const char *text, size_t len);

/* Bytes of memory that serve_request_parse takes at most for a body of this length, besides the body. */
size_t serve_request_room(size_t len);
/* As much of it as stays until serve_request_free. */
size_t serve_request_held(const ServeRequest *r);

#endif
