/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A request, checked and copied to one block of memory. Any thread. */
#ifndef QSF_ENGINE_REQUEST_H
#define QSF_ENGINE_REQUEST_H

#include "qsf_engine.h"
#include "src/chat/chat.h"

/* Bytes of memory for a byte of text while a prompt is made: its copy, the values of the template, the
 * rendered text and its marks. Tokenizing and the ids are charged by themselves. */
#define QSF_REQUEST_BYTES 6u

typedef struct QsfRequestCopy {
    QsfMsg *messages; /* (n_messages) */
    size_t n_messages;
    const char **stop; /* (n_stop) */
    size_t n_stop;
    size_t text_bytes; /* of all messages */
    uint64_t
        refused; /* not 0: the messages were not copied, because their text does not fit in the budget; what their
                         prompt needs (qsf_prompt_need) */
    bool continue_last;
    uint32_t max_tokens;  /* 0 = none */
    const char *snapshot; /* NULL = none */
    uint64_t snapshot_limit;
} QsfRequestCopy;

/* Is r valid? false when r, or an array or string that it needs, is NULL. */
bool qsf_request_ok(const QSFRequest *r);
/* Returns the bytes of text of all messages of a valid request. */
size_t qsf_request_text_bytes(const QSFRequest *r);
/* Copies a valid request; refused (see above) > 0: without its messages. free() it. NULL when out of
 * memory. */
QsfRequestCopy *qsf_request_copy(const QSFRequest *r, uint64_t refused);
/* Returns the flags (QSF_CHAT_*) for rendering it with these parameters. */
unsigned qsf_request_chat_flags(const QsfRequestCopy *r, const QSFParams *p);

#endif
