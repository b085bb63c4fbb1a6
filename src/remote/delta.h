/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What one JSON value of a server says: a chunk of a streamed answer, a whole answer, or an error. Knows the
 * forms of OpenAI, llama.cpp, vLLM, Ollama and qsf-serve, and leaves out what it does not know. */
#ifndef QSF_REMOTE_DELTA_H
#define QSF_REMOTE_DELTA_H

#include <stdint.h>

#include "src/base/err.h"
#include "src/base/strbuf.h"

typedef enum QsfDeltaEnd {
    QSF_DELTA_GOES_ON,
    QSF_DELTA_STOP,   /* by itself */
    QSF_DELTA_STRING, /* at a stop string */
    QSF_DELTA_LENGTH,
    QSF_DELTA_FILTER, /* a content filter */
    QSF_DELTA_FAILED  /* the server gave up */
} QsfDeltaEnd;

/* Numbers of a server; -1 = not sent. */
typedef struct QsfDeltaUsage {
    int64_t prompt, completion, cached, reasoning; /* tokens */
    double prompt_tps, decode_tps;                 /* tokens per second, as it measured them */
    int64_t read, to_read;                         /* tokens of the prompt, while it is read */
    int64_t read_before, read_ms;                  /* of read: those that were reused; time for the others */
    bool live;                                     /* the numbers come with every piece */
} QsfDeltaUsage;

/* Zeroed it is empty. */
typedef struct QsfDelta {
    QsfStrbuf text, reasoning; /* more of each; cleared by each call of qsf_delta_parse */
    bool any_choice;           /* there was a choice, perhaps an empty one */
    QsfDeltaEnd end;
    QsfStrbuf error; /* what the server says went wrong; "" = nothing */
    bool is_error, context_full;
    QsfDeltaUsage usage;
    uint64_t seed; /* with which the answer is written, as qsf-serve says; 0 = not sent */
    char id[100];  /* of the answer; "" = not sent, or too long */
    int64_t tool;  /* 1 + index of the tool call that was begun last; 0 = none */
} QsfDelta;

/* Before the first chunk of an answer. */
void qsf_delta_begin(QsfDelta *d);
/* Reads a chunk or a whole answer; half a character in it is U+FFFD. QSF_E_RUNTIME with the first bytes of
 * the text if it is not a JSON object; an object that is neither sets nothing. */
int qsf_delta_parse(QsfDelta *d, const char *json, size_t len, QsfErr *err);
void qsf_delta_free(QsfDelta *d);

#endif
