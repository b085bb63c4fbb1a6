/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One HTTP request in its own process (qsf_request.h): the network library never counts in this one, and to
 * stop the request is to end the process. */
#ifndef QSF_REMOTE_CHILD_H
#define QSF_REMOTE_CHILD_H

#include <sys/types.h>

#include "src/base/err.h"
#include "src/base/frames.h"

/* Zeroed none is running. One thread. */
typedef struct QsfChild {
    pid_t pid; /* 0 = none */
    int fd;    /* readable when there is more; does not block */
    QsfPipeFrames frames;
    size_t received; /* bytes of its reply so far */
} QsfChild;

typedef struct QsfChildRequest {
    const char *url;
    const char *socket;     /* "" = none */
    const char *key;        /* NULL = none */
    const QsfStrbuf *body;  /* NULL: a GET */
    unsigned stall_seconds; /* without a byte after which it fails */
    unsigned delay_ms;      /* before it is sent */
} QsfChildRequest;

/* Starts it; QSF_E_RUNTIME if qsf-get cannot be run. */
int qsf_child_start(QsfChild *c, const QsfChildRequest *r, QsfErr *err);
typedef enum QsfChildGot {
    QSF_CHILD_NOTHING, /* yet */
    QSF_CHILD_FRAME,
    QSF_CHILD_GONE /* it has ended without its last frame */
} QsfChildGot;
/* Takes the next frame of the reply, reading at most a piece of it. */
QsfChildGot qsf_child_next(QsfChild *c, QsfPipeFrame *f);
/* Ends the process, in a few milliseconds. Does nothing if none is running. */
void qsf_child_stop(QsfChild *c);

#endif
