/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a reply means that is not an answer: a status, a page, an error. */
#ifndef QSF_REMOTE_PROBLEM_H
#define QSF_REMOTE_PROBLEM_H

#include "src/base/err.h"
#include "src/base/strbuf.h"

/* The head of a reply. */
typedef struct QsfReplyHead {
    long status;
    char type[100];      /* Content-Type */
    long retry_after;    /* seconds, 0 = not sent */
    char location[1024]; /* of a redirect */
    char server[100];    /* Server */
} QsfReplyHead;

/* Reads the lines of QSF_REPLY_HEAD; what is missing or too long is "". */
void qsf_reply_head(QsfReplyHead *h, const char *lines, size_t len);
/* Is the reply of this type ("text/event-stream")? Parameters do not count. */
bool qsf_reply_is(const QsfReplyHead *h, const char *type);
/* Appends what the body of a reply says went wrong, untrusted and at most a few hundred bytes of it. */
void qsf_reply_said(const QsfReplyHead *h, const char *body, size_t len, QsfStrbuf *b);
/* Sets *err to a sentence about a reply whose status is not 200, or whose type is not that of an answer: what
 * the server says, and what can be done. name: the server; body: what there is of its reply, which is
 * untrusted. Returns QSF_E_RUNTIME, QSF_E_CONTEXT, or QSF_E_MODEL if there is no such model.
 * *text gets what the server says, "" if it says nothing; NULL: the request was for the list of models. */
int qsf_problem(const QsfReplyHead *h, const char *name, const char *body, size_t len, QsfStrbuf *text,
                QsfErr *err);

#endif
