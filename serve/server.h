/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The server: what its two threads share. The thread of HTTP (http.c) reads requests and sends answers, the
 * main thread (loop.c) owns the engine and answers one request after the other. */
#ifndef QSF_SERVE_SERVER_H
#define QSF_SERVE_SERVER_H

#include <pthread.h>

#include "serve/guard.h"
#include "serve/job.h"
#include "serve/listen.h"
#include "serve/options.h"

#define SERVE_STATUSES 600 /* of HTTP */

/* What /metrics counts; under the lock. */
typedef struct ServeCounters {
    uint64_t status[SERVE_STATUSES]; /* responses, by status */
    uint64_t answers, cancelled;     /* that ended; of clients that went away */
    uint64_t prompt_tokens, cached_tokens, tokens;
    uint64_t prefill_ns, answer_ns;
} ServeCounters;

typedef struct ServeServer {
    const ServeOptions *options;
    QSFWorker *worker;
    QSFSettings settings; /* that requests change; constant while requests are answered */
    ServeModel model;
    ServeGuard guard;
    ServeListen listen;
    uint64_t started; /* seconds since 1970 */
    int wake[2];      /* a pipe: a byte says that there is something for the main thread */

    pthread_mutex_t lock;
    /* Under the lock: */
    ServeMemory memory;
    ServeJob *first, *last; /* the queue */
    uint32_t waiting;       /* jobs in it */
    ServeJob *running;      /* or NULL */
    uint32_t connections;
    bool stopping; /* no more requests are accepted */
    ServeCounters counters;
} ServeServer;

/* Puts a job into the queue, which gets a reference; false: it is full. Under the lock. */
bool serve_enqueue(ServeServer *s, ServeJob *job);
/* The client of a job is gone: what was begun for it ends. Under the lock. */
void serve_forget(ServeServer *s, ServeJob *job);

/* ---- loop.c: the main thread ---- */

struct ServeSlots; /* slots.h */

/* Answers requests until a signal comes. Returns an exit status. */
int serve_loop(ServeServer *s, struct ServeSlots *slots);

/* ---- http.c ---- */

typedef struct ServeHttp ServeHttp;
/* Begins to accept connections: the thread of HTTP runs afterwards. NULL with *err set. */
ServeHttp *serve_http_start(ServeServer *s, QsfErr *err);
/* Resumes the connection of a job that has become ready. Under the lock. */
void serve_http_wake(ServeJob *job);
/* Ends connections whose clients take longer than the limit. Main thread; takes the lock. */
void serve_http_check(ServeHttp *h);
/* Is an answer not sent yet; with `late`, one that its client would take now? */
bool serve_http_unsent(ServeHttp *h, bool late);
/* Closes all connections and ends the thread. */
void serve_http_stop(ServeHttp *h);

/* ---- metrics.c ---- */

/* Appends what /metrics and /health answer. Takes the lock. */
void serve_put_metrics(ServeServer *s, QsfStrbuf *b);
void serve_put_health(ServeServer *s, QsfStrbuf *b);

#endif
