/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Server-sent events (the event stream format of the HTML standard), in any pieces. Only the data of events
 * is kept; names, ids and comments are skipped. Lines may end with LF, CR or both. */
#ifndef QSF_REMOTE_SSE_H
#define QSF_REMOTE_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/strbuf.h"

#define QSF_SSE_MAX ((size_t)4 << 20) /* bytes of the data of an event, and of a line */

typedef enum QsfSseState { QSF_SSE_FIELD, QSF_SSE_SKIP, QSF_SSE_VALUE } QsfSseState;

/* Zeroed it is at the beginning of a stream. One thread. */
typedef struct QsfSse {
    QsfSseState state;
    QsfStrbuf field; /* the name of a field, as long as it is read */
    QsfStrbuf data;  /* of the event that is read */
    size_t line;     /* bytes of the line so far, of which the first ones may be blank */
    bool any;        /* the event has a data field */
    bool after_cr;   /* a line feed that follows belongs to the line before */
    bool blank;      /* a blank after the colon is not part of the value */
    bool ready;      /* data is that of an event that was passed on: the next byte begins another */
    bool too_long;   /* a line or an event had too many bytes: nothing that follows is read */
    size_t start;    /* bytes of a byte order mark seen at the start of the stream; 3 = past it */
} QsfSse;

/* Reads bytes up to the end of the next event and returns how many were used. *event: there is one, and
 * s->data has its data until the next call. Less than len without an event: too_long, or out of memory. */
size_t qsf_sse_read(QsfSse *s, const char *bytes, size_t len, bool *event);
/* The stream has ended: returns whether an event that no empty line ended is in s->data. */
bool qsf_sse_end(QsfSse *s);
void qsf_sse_free(QsfSse *s);

#endif
