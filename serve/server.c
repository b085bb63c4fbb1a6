/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The queue: implements a part of server.h. */
#include "serve/server.h"

#include <errno.h>
#include <unistd.h>

/* Wakes the main thread. */
static void wake(ServeServer *s) {
    ssize_t n;
    do n = write(s->wake[1], "", 1);
    while (n < 0 && errno == EINTR);
}

/* What runs is not waiting: with --queue 0 one request at a time is accepted. */
bool serve_enqueue(ServeServer *s, ServeJob *job) {
    const bool free_now = s->running == NULL && s->waiting == 0;
    if (!free_now && s->waiting >= s->options->queue) return false;
    job->refs++;
    job->state = SERVE_QUEUED;
    job->next = NULL;
    *(s->last != NULL ? &s->last->next : &s->first) = job;
    s->last = job;
    s->waiting++;
    wake(s);
    return true;
}

static void remove_waiting(ServeServer *s, ServeJob *job) {
    ServeJob **at = &s->first, *before = NULL;
    while (*at != NULL && *at != job) before = *at, at = &(*at)->next;
    if (*at == NULL) return;
    *at = job->next;
    if (s->last == job) s->last = before;
    s->waiting--;
    job->state = SERVE_ENDED;
    serve_job_release(job);
}

void serve_forget(ServeServer *s, ServeJob *job) {
    const ServeState state = job->state;
    job->connection = NULL;
    job->fd = -1;
    if (state != SERVE_ENDED) s->counters.cancelled++;
    if (state == SERVE_QUEUED) remove_waiting(s, job);
    if (state == SERVE_RUNNING) wake(s); /* the main thread cancels it */
}
