/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The main thread: takes jobs from the queue, gives them to the engine one after the other, and sees clients
 * that go away. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "qsf_system.h"
#include "serve/answer.h"
#include "src/base/clock.h"
#include "src/cli/signals.h"

#define TICK_MS  50         /* at most between a client's leaving and its cancellation */
#define REST_MS  1000       /* nothing is answered: only limits of time are checked */
#define GRACE_NS 100000000u /* for clients to take the ends of answers when the server stops */
#define LATE_MS  10000      /* for the thread that sends them, on a machine that is busy */

typedef struct Loop {
    ServeServer *s;
    ServeHttp *http;
    ServeAnswer answer;
    struct pollfd *fds; /* (2 + 1 + queue) */
} Loop;

/* ---- clients that went away ---- */

/* A descriptor may be closed and given to another connection while poll waits, so what it says counts only
 * if it still belongs to the job. */
static uint32_t watch(Loop *l) {
    ServeServer *s = l->s;
    const short closed = qsf_poll_closed();
    uint32_t n = 2;
    l->fds[0] = (struct pollfd){ .fd = qsf_worker_fd(s->worker), .events = POLLIN };
    l->fds[1] = (struct pollfd){ .fd = s->wake[0], .events = POLLIN };
    pthread_mutex_lock(&s->lock);
    if (s->running != NULL && s->running->fd >= 0)
        l->fds[n++] = (struct pollfd){ .fd = s->running->fd, .events = closed };
    for (const ServeJob *j = s->first; j != NULL; j = j->next)
        if (j->fd >= 0) l->fds[n++] = (struct pollfd){ .fd = j->fd, .events = closed };
    pthread_mutex_unlock(&s->lock);
    return n;
}

static bool is_gone(const Loop *l, uint32_t n, const ServeJob *job) {
    for (uint32_t i = 2; i < n; i++)
        if (l->fds[i].fd == job->fd)
            return (l->fds[i].revents & (qsf_poll_closed() | POLLHUP | POLLERR)) != 0;
    return false;
}

/* The connection wakes to see that it is closed. */
static void drop(ServeServer *s, ServeJob *job) {
    job->error.status = 0;
    serve_error_set(&job->error, 499, NULL, NULL, "the client closed the connection");
    serve_http_wake(job);
    serve_forget(s, job);
}

static void drop_gone(Loop *l, uint32_t n) {
    ServeServer *s = l->s;
    pthread_mutex_lock(&s->lock);
    if (s->running != NULL && s->running->fd >= 0 && is_gone(l, n, s->running)) drop(s, s->running);
    for (ServeJob *j = s->first, *next; j != NULL; j = next) {
        next = j->next;
        if (j->fd >= 0 && is_gone(l, n, j)) drop(s, j);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- the engine ---- */

static void drain_wake(const ServeServer *s) {
    char c[64];
    while (read(s->wake[0], c, sizeof c) > 0) {
    }
}

static void drain_events(Loop *l) {
    QSFEvent e;
    while (qsf_worker_next(l->s->worker, &e)) serve_answer_event(&l->answer, &e);
    serve_answer_deliver(&l->answer);
}

static ServeJob *take_first(ServeServer *s) {
    pthread_mutex_lock(&s->lock);
    ServeJob *job = s->first;
    if (job != NULL) {
        s->first = job->next;
        if (s->first == NULL) s->last = NULL;
        s->waiting--;
        job->state = SERVE_RUNNING;
        s->running = job;
    }
    pthread_mutex_unlock(&s->lock);
    return job;
}

static void begin_next(Loop *l) {
    if (l->answer.job != NULL || qsf_worker_busy(l->s->worker)) return;
    ServeJob *job = take_first(l->s);
    if (job != NULL) serve_answer_begin(&l->answer, job);
}

static bool is_busy(Loop *l) {
    pthread_mutex_lock(&l->s->lock);
    const bool busy = l->answer.job != NULL || l->s->first != NULL;
    pthread_mutex_unlock(&l->s->lock);
    return busy;
}

/* ---- the end ---- */

/* Refuses what waits, and lets what runs end. */
static void begin_stop(ServeServer *s) {
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    while (s->first != NULL) {
        ServeJob *job = s->first;
        s->first = job->next;
        s->waiting--;
        job->state = SERVE_ENDED;
        serve_error_set(&job->error, 503, "stopping", NULL, "the server is stopping");
        serve_http_wake(job);
        serve_job_release(job);
    }
    s->last = NULL;
    pthread_mutex_unlock(&s->lock);
    qsf_worker_cancel(s->worker);
}

static void stop(Loop *l) {
    begin_stop(l->s);
    while (l->answer.job != NULL) {
        struct pollfd p = { .fd = qsf_worker_fd(l->s->worker), .events = POLLIN };
        (void)poll(&p, 1, TICK_MS);
        qsf_worker_cancel(l->s->worker);
        drain_events(l);
    }
    const uint64_t start = qsf_now_ns();
    while (serve_http_unsent(l->http, false)) {
        const uint64_t waited = qsf_now_ns() - start;
        if (waited > GRACE_NS && (waited / 1000000 > LATE_MS || !serve_http_unsent(l->http, true))) break;
        (void)poll(NULL, 0, 5);
    }
    serve_http_stop(l->http);
}

static void run(Loop *l) {
    while (atomic_load(&qsf_signal_cancel) == 0) {
        begin_next(l);
        const uint32_t n = watch(l);
        (void)poll(l->fds, n, is_busy(l) ? TICK_MS : REST_MS);
        drop_gone(l, n);
        drain_wake(l->s);
        drain_events(l);
        serve_http_check(l->http);
    }
}

int serve_loop(ServeServer *s, ServeSlots *slots) {
    Loop l = { .s = s };
    QsfErr err = { 0 };
    l.answer = (ServeAnswer){ .server = s, .slots = slots };
    l.fds = calloc(3 + (size_t)s->options->queue + 1, sizeof *l.fds);
    if (l.fds == NULL) return qsf_cli_error(&serve_cli, "out of memory"), QSF_EXIT_RUNTIME;
    l.http = serve_http_start(s, &err);
    if (l.http == NULL) {
        qsf_cli_error(&serve_cli, "%s", err.msg);
    } else {
        printf("listening on %s\n", s->listen.url);
        (void)fflush(stdout);
        run(&l);
        stop(&l);
    }
    free(l.fds);
    return l.http == NULL ? QSF_EXIT_RUNTIME : QSF_EXIT_OK;
}
