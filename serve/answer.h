/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the events of the engine to the texts of a job. The main thread; functions that change the job take
 * the lock of the server. */
#ifndef QSF_SERVE_ANSWER_H
#define QSF_SERVE_ANSWER_H

#include "serve/server.h"
#include "serve/slots.h"

/* The request that the engine answers. */
typedef struct ServeAnswer {
    ServeServer *server;
    ServeSlots *slots;
    ServeJob *job;                    /* NULL: none */
    uint64_t id;                      /* of qsf_worker_submit */
    bool cancelled;                   /* qsf_worker_cancel was called for it */
    size_t echoed;                    /* bytes of the prompt that the text begins with */
    bool scoring;                     /* the prompt is evaluated for its logprobs; then it is answered */
    uint32_t row;                     /* next token of the answer for logprobs */
    uint32_t text_end, reasoning_end; /* of the row before */
    uint32_t text_begin; /* bytes of the text before the answer, or the first token of the prompt */
} ServeAnswer;

/* Gives the job to the engine, which is idle; if that fails the job has ended with an error. */
void serve_answer_begin(ServeAnswer *a, ServeJob *job);
/* Takes an event of the request; the last one ends the job, and a->job is NULL then. */
void serve_answer_event(ServeAnswer *a, const QSFEvent *e);
/* Lets the client have what there is, after some events. */
void serve_answer_deliver(ServeAnswer *a);

/* ---- logprobs.c ---- */

/* Adds the tokens that the answer has now and did not have before. */
void serve_logprobs_add(ServeAnswer *a);
/* Adds the next token of the prompt (QSFRequest.scored; arg: the ServeAnswer). The engine's thread. */
void serve_logprobs_scored(void *arg, const QSFToken *t);

#endif
