/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events from the engine thread to its owner: two byte logs that are swapped. The engine appends to one under
 * the lock; the owner reads the other without it. Unread text of a request is extended in place, so that a
 * slow reader costs only the memory of the text. Nothing is dropped: when the log is full, the engine waits
 * until the owner reads or cancels. A pipe wakes the owner; it is written only when it is empty. */
#ifndef QSF_ENGINE_EVENTS_H
#define QSF_ENGINE_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "qsf_engine.h"
#include "src/base/err.h"
#include "src/base/wake.h"

/* Unread bytes at which the engine waits, and the size of a log, which leaves space for the events after a
 * cancellation. */
#define QSF_EVENTS_SOFT    (128u << 10)
#define QSF_EVENTS_HARD    (288u << 10)
#define QSF_EVENT_TEXT_MAX (72u << 10) /* longest text of one push */

typedef struct QsfEventLog {
    unsigned char *bytes; /* (QSF_EVENTS_HARD) records, one after another */
    size_t len;
    size_t last; /* where the newest record begins; len when there is none */
} QsfEventLog;

typedef struct QsfEvents {
    pthread_mutex_t lock;
    pthread_cond_t space;
    QsfEventLog fill;         /* engine side, under the lock */
    QsfEventLog drain;        /* owner side */
    size_t at;                /* next record of drain */
    QsfWake wake;             /* of the owner */
    bool signalled;           /* under the lock: wake was signalled and not cleared */
    const atomic_int *cancel; /* non-zero: do not wait for a full log */
} QsfEvents;

/* Initializes q. QSF_E_RUNTIME when out of memory or file descriptors. */
int qsf_events_init(QsfEvents *q, const atomic_int *cancel, QsfErr *err);
void qsf_events_free(QsfEvents *q); /* a zeroed one is allowed */
/* Engine thread. Appends a copy of e with at most QSF_EVENT_TEXT_MAX bytes of text. busy, when not NULL,
 * becomes false at the moment the event becomes readable, so that a reader of the event can submit again. */
void qsf_events_push(QsfEvents *q, const QSFEvent *e, atomic_bool *busy);
/* Owner. Like qsf_worker_next. */
bool qsf_events_next(QsfEvents *q, QSFEvent *e);
/* Any thread. Is so much unread that a new request has to wait? */
bool qsf_events_full(QsfEvents *q);

#endif
