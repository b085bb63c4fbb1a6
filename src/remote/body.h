/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the JSON of a chat request: its beginning once, its end for each time that it is sent. */
#ifndef QSF_REMOTE_BODY_H
#define QSF_REMOTE_BODY_H

#include "qsf_engine.h"
#include "src/remote/fields.h"

/* The last message, an answer that is continued. */
typedef struct QsfBodyLast {
    const char *text; /* (len) */
    size_t len;
    const char *thought; /* (thought_len) its reasoning, without tags; 0 = none */
    size_t thought_len;
    bool closed; /* the reasoning is complete */
    bool tagged; /* the server knows no reasoning: it becomes a part of the text, between tags */
} QsfBodyLast;

/* Can the server continue it? QSF_E_USAGE with what it cannot. */
int qsf_body_check(QsfRemoteServer server, const QsfBodyLast *last, QsfErr *err);
/* Appends model and messages; without the last one if it is continued. */
void qsf_body_begin(const char *model, const QSFRequest *r, QsfStrbuf *b);
/* Appends the end of the messages. last: one that was checked, or NULL. What follows are other fields and a
 * brace. */
void qsf_body_end(QsfRemoteServer server, const QsfBodyLast *last, QsfStrbuf *b);

#endif
