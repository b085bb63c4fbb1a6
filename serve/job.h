/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A request from its arrival to the last byte of its answer. The thread of HTTP makes it and reads what is to
 * be sent; the thread of the engine answers it. Everything is under the lock of the server, unless a comment
 * says otherwise. */
#ifndef QSF_SERVE_JOB_H
#define QSF_SERVE_JOB_H

#include <pthread.h>

#include "serve/memory.h"
#include "serve/request.h"

typedef enum ServeState { SERVE_QUEUED, SERVE_RUNNING, SERVE_ENDED } ServeState;

#define SERVE_TOO_LARGE "the server has no more memory for answers that wait to be read"

/* Where the events of /v1/responses are. */
enum {
    SERVE_STAGE_BEGUN,
    SERVE_STAGE_REASONING, /* its item is open */
    SERVE_STAGE_BETWEEN,
    SERVE_STAGE_TEXT, /* that of the message is */
    SERVE_STAGE_CALLS
};
typedef struct ServeEvents {
    uint8_t stage;   /* SERVE_STAGE_* */
    uint32_t number; /* of the next event */
    uint32_t item;   /* the one that is open, or the next one */
    uint32_t call;   /* the next one */
} ServeEvents;

typedef struct ServeJob ServeJob;
struct ServeJob {
    ServeJob *next; /* in the queue */
    unsigned refs;  /* of the connection, and of the queue and the engine */
    ServeState state;
    ServeRequest request; /* constant while it waits */
    char *body;           /* malloc'ed; NULL after the engine has copied it */
    uint64_t body_bytes;  /* that it and the request take */
    ServeHead head;
    uint64_t arrived_ns, began_ns, ended_ns;

    void *connection; /* of HTTP; NULL = the client is gone, or has all of its answer */
    int fd;           /* of it, while it is not NULL */
    bool asleep;      /* it waits for serve_job_wake */

    QsfStrbuf text, reasoning;          /* of the answer so far; reasoning with its tags */
    QsfStrbuf logprobs[SERVE_LOGPROBS]; /* the parts of logprobs (reply.h) */
    QsfStrbuf plain;                    /* reasoning as clients get it */
    QsfStrbuf tools;                    /* of the request, when its body is gone */
    QsfStrbuf calls;                    /* tool calls, when it has ended */
    QsfStrbuf choices;                  /* of several answers those before this one, without a stream */
    size_t shown;                       /* bytes of text that can be sent: no tool call begins before */
    ServeError error;                   /* it failed; nothing else is sent, if nothing was before */
    ServeEnd end;                       /* when it has ended without an error */
    ServeEnd before;                    /* of the answers before this one */
    ServeCounts counts;                 /* so far, if the request asks for them */

    QsfStrbuf out; /* what is being sent, from out_at */
    size_t out_at;
    size_t sent_text, sent_plain; /* bytes that were put into out */
    uint32_t sent_done;           /* of a prompt that is read, as it was put into out */
    size_t sent_logprobs[SERVE_LOGPROBS];
    bool begun, finished; /* the first chunk was (of this answer), and the last one */
    ServeEvents events;   /* of /v1/responses */

    pthread_mutex_t *lock; /* of the server */
    ServeMemory *memory;
    uint64_t held; /* bytes charged to it */
};

/* Makes a job of a request. It owns body and the body_bytes that the caller has charged to memory for both.
 * NULL without memory: the caller keeps them. The caller has the only reference. No lock is needed. */
ServeJob *serve_job_new(const ServeRequest *r, char *body, uint64_t body_bytes, ServeMemory *memory);
/* Says how its answer is called, and in which form it is (ServeHead). */
void serve_job_name(ServeJob *job, uint64_t id, const char *model, bool chat, bool responses);
/* Gives up a reference; the last one frees the job. */
void serve_job_release(ServeJob *job);
/* Charges what the texts take now; false: the limit is reached. */
bool serve_job_charge(ServeJob *job);
/* The same, and the limit is an error of the job. */
bool serve_job_charge_or_fail(ServeJob *job);
/* Forgets the body, which the engine has copied, but not its tools. */
void serve_job_drop_body(ServeJob *job);

/* An answer has ended (job->end), and another one to the same request follows: what is not sent yet of the
 * first is kept for the client, and its texts begin again. */
void serve_job_next(ServeJob *job);
/* The last answer has ended: adds those before it to job->end. */
void serve_job_sum(ServeJob *job);
/* It failed before anything of it was sent. */
bool serve_job_failed(const ServeJob *job);
/* Is there something to send, or nothing more to come? */
bool serve_job_ready(const ServeJob *job);
/* Takes what was not sent yet, as far as it fits in an event; false: nothing. */
bool serve_job_take(ServeJob *job, ServeText *t, ServePiece logprobs[SERVE_LOGPROBS]);
/* Writes the next bytes of a stream to dst (max): their number, 0 = none yet, -1 = that was all, or memory
 * ran out. */
long serve_job_read(ServeJob *job, char *dst, size_t max);
/* Appends the whole answer, or the error, for a request without a stream. */
void serve_job_whole(const ServeJob *job, QsfStrbuf *b);

#endif
