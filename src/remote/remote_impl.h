/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a remote engine; shared by the remote_*.c files. */
#ifndef QSF_REMOTE_IMPL_H
#define QSF_REMOTE_IMPL_H

#include "qsf_remote.h"
#include "src/remote/body.h"
#include "src/remote/child.h"
#include "src/remote/delta.h"
#include "src/remote/inline_think.h"
#include "src/remote/models.h"
#include "src/remote/problem.h"
#include "src/remote/sse.h"
#include "src/remote/url.h"

#define QSF_REMOTE_PATH_MAX  1024u              /* bytes of a path below the base, with the name of a model */
#define QSF_REMOTE_TEXT_MAX  ((size_t)16 << 20) /* bytes of an answer */
#define QSF_REMOTE_BODY_MAX  ((size_t)16 << 20) /* bytes of a reply that is one JSON value */
#define QSF_REMOTE_REPLY_MAX ((size_t)512 << 20) /* bytes of a stream */
#define QSF_REMOTE_PAGE_MAX  ((size_t)64 << 10)  /* bytes of a page of which the title is shown */

typedef struct QsfRemoteEvent {
    QSFEvent e; /* its text is data */
    QsfStrbuf data;
} QsfRemoteEvent;

typedef struct QsfRemoteEvents {
    QsfRemoteEvent *items; /* [first, n) are waiting */
    size_t first, n, cap;
    bool lost; /* out of memory */
} QsfRemoteEvents;

/* A server with the model that answers. */
typedef struct QsfRemoteServerState {
    QsfRemoteUrl url;
    char *model; /* owned; NULL = none is loaded */
    QsfRemoteModels models;
    QsfRemoteServer server;
    uint32_t ctx, ctx_train;       /* 0 = not known */
    QsfFieldSet refused, by_value; /* by_value: those of them that may be sent with another value */
    char *path;                    /* owned: "connect:URL#MODEL" */
} QsfRemoteServerState;

typedef enum QsfRemoteJob {
    QSF_JOB_NONE,
    QSF_JOB_MODELS, /* of a load */
    QSF_JOB_PROPS,  /* of the same load: the context of llama.cpp */
    QSF_JOB_ANSWER
} QsfRemoteJob;

/* What a request is made of, for as long as it may have to be repeated. */
typedef struct QsfRemoteAsked {
    QsfStrbuf head; /* model and messages */
    char **stop;    /* (n_stop) owned */
    size_t n_stop;
    uint32_t max_tokens;
    uint8_t grammar_kind;
    QsfStrbuf grammar;
    bool go_on; /* an answer is continued */
    QsfFieldSet sent;
    unsigned tries; /* without fields that were refused */
} QsfRemoteAsked;

/* An answer as it arrives, or the last one. */
typedef struct QsfRemoteAnswer {
    QsfDelta delta;
    QsfSse sse;
    QsfInlineThink split;
    bool stream;   /* the reply is a stream of events */
    bool thinking; /* reasoning is open */
    bool begun;    /* there was text */
    bool thought;  /* there was reasoning */
    size_t bytes;  /* of text and reasoning */
    uint32_t pieces, reasoning_pieces;
    uint64_t asked, first, last; /* monotonic nanoseconds: sent, first and last piece; 0 = none yet */
    uint64_t complete;           /* its end was sent, though not that of the stream */
} QsfRemoteAnswer;

struct QSFRemote {
    char *key;
    QsfRemoteUrl key_for; /* where it may be sent; base "" = not decided yet */
    bool warned;          /* that it is sent unencrypted */
    unsigned timeout;
    int ready[2]; /* a pipe with a byte in it: readable while events are waiting */
    QSFSettings settings;
    uint64_t request; /* id of the last one */
    uint64_t job_begun;
    QsfRemoteJob job;
    QsfChild child;
    QsfReplyHead head;
    bool headed;
    QsfStrbuf body;                 /* of a reply that is not a stream */
    QsfRemoteServerState now, next; /* next: being loaded */
    QsfRemoteAsked asked;
    QsfRemoteAnswer answer;
    QsfRemoteEvents events;
    QsfRemoteEvent current; /* the text of the last event that was taken */
    size_t burst;           /* bytes since other work was done */
};

/* remote_events.c: text is copied. Text of the same kind as that of the last event is added to that. */
void qsf_remote_push(QSFRemote *r, QSFEventType type, const char *text, size_t len);
/* Adds an event with a text; e->text and e->request are set. */
void qsf_remote_push_event(QSFRemote *r, const QSFEvent *e, const char *text, size_t len);
/* A notice for the user. */
void qsf_remote_note(QSFRemote *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The request has ended with this error; nothing runs any more. */
void qsf_remote_fail(QSFRemote *r, const QsfErr *err);
bool qsf_remote_take(QSFRemote *r, QSFEvent *e);
void qsf_remote_events_free(QsfRemoteEvents *q);

/* remote.c: starts the child for a job: a GET of `path` below `base`, or a POST of a body. */
bool qsf_remote_start(QSFRemote *r, QsfRemoteJob job, const QsfRemoteUrl *url, const char *base,
                      const char *path, const QsfStrbuf *body, QsfErr *err);
/* Ends the child and what was read of the reply. */
void qsf_remote_stop(QSFRemote *r);
void qsf_remote_server_free(QsfRemoteServerState *s);

/* remote_load.c: the reply to the request of a load is complete; why: "", or why it is not. */
void qsf_remote_load_end(QSFRemote *r, const char *why, size_t len);

/* remote_answer.c: bytes of the reply; the reply has ended, why as above; it takes too long to end. */
void qsf_remote_answer_data(QSFRemote *r, const char *bytes, size_t len);
void qsf_remote_answer_end(QSFRemote *r, const char *why, size_t len);
void qsf_remote_answer_tick(QSFRemote *r);
/* The user stops it. */
void qsf_remote_answer_cancel(QSFRemote *r);
void qsf_remote_answer_free(QSFRemote *r);
/* Tokens per second so far, 0 = not known; tokens so far. */
double qsf_remote_answer_tps(const QSFRemote *r);
uint32_t qsf_remote_answer_tokens(const QSFRemote *r);

#endif
