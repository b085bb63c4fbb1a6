/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A request as the engine thread keeps it: one block of memory with copies of everything. */
#ifndef QSF_ENGINE_REQUEST_H
#define QSF_ENGINE_REQUEST_H

#include "qsf_engine.h"
#include "src/text/chat.h"

typedef struct QsfRequestCopy {
    QsfMsg *messages; /* (n_messages) */
    size_t n_messages;
    const char **stop; /* (n_stop) */
    size_t n_stop;
    size_t text_bytes; /* of all messages */
    bool continue_last;
} QsfRequestCopy;

/* false when r, an array or a string that it needs is NULL. */
bool qsf_request_ok(const QSFRequest *r);
/* r must be ok. NULL without memory. free() it. */
QsfRequestCopy *qsf_request_copy(const QSFRequest *r);

#endif
