/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a remote engine; shared by the remote_*.c files. */
#ifndef QSF_REMOTE_IMPL_H
#define QSF_REMOTE_IMPL_H

#include "qsf_remote.h"
#include "src/remote/biases.h"
#include "src/remote/body.h"
#include "src/remote/child.h"
#include "src/remote/context.h"
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
    QsfContextSize size;
    bool size_asked;               /* after an answer */
    bool full_said;                /* that it is nearly used up */
    QsfTokenTexts tokens;          /* of biases */
    QsfFieldSet refused, by_value; /* by_value: those of them that may be sent with another value */
    char *path;                    /* owned: "connect:URL#MODEL" */
} QsfRemoteServerState;

typedef enum QsfRemoteJob {
    QSF_JOB_NONE,
    QSF_JOB_MODELS,  /* of a load */
    QSF_JOB_CONTEXT, /* of the same load, or after an answer: the size of the context */
    QSF_JOB_TOKENS,  /* before an answer: those of a text */
    QSF_JOB_ANSWER
} QsfRemoteJob;

/* What a request is made of, for as long as it may have to be repeated. */
typedef struct QsfRemoteAsked {
    QsfStrbuf head;          /* model and messages, without one that is continued */
    QsfStrbuf text, thought; /* of the one that is continued; thought: of any answer, for ^X */
    bool closed;             /* the answer follows this thought */
    bool tagged;             /* which the server does not know as such */
    QSFSettingItem lookup;   /* the text whose tokens are asked for */
    bool looked_up;          /* some were */
    char **stop;             /* (n_stop) owned */
    size_t n_stop;
    uint32_t max_tokens;
    uint8_t grammar_kind;
    QsfStrbuf grammar;
    bool go_on; /* an answer is continued: there is a last message */
    QsfFieldSet sent;
    unsigned tries; /* without fields that were refused */
} QsfRemoteAsked;

/* An answer as it arrives, or the last one. */
typedef struct QsfRemoteAnswer {
    QsfDelta delta;
    QsfSse sse;
    QsfInlineThink split;
    bool stream;      /* the reply is a stream of events */
    bool thinking;    /* reasoning is open */
    bool begun;       /* there was text */
    bool thought;     /* there was reasoning */
    bool close;       /* it is to end: when it has begun, if it has not */
    bool closed;      /* it was ended: what follows is of a request of its own */
    bool told;        /* the server was told to end it */
    uint32_t told_at; /* pieces of reasoning when it said that it does so */
    uint64_t told_ns; /* and when that was */
    uint32_t spent;   /* tokens before that */
    uint32_t used;    /* of the context, by then */
    QSFEvent end;     /* how it ended, to be sent when its context is known */
    size_t bytes;     /* of text and reasoning */
    uint32_t pieces, reasoning_pieces;
    uint64_t asked, first, last; /* monotonic nanoseconds: sent, first and last piece; 0 = none yet */
    uint64_t part;               /* the first piece of this request, of several that the answer may take */
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
    unsigned delay_ms;  /* of the next request that starts */
    unsigned wait_said; /* milliseconds of a wait, as the user knows; 0 = of none */
    unsigned probe;     /* of the context: which request runs */
    QsfRemoteJob job;
    QsfChild child;
    QsfChild control; /* beside an answer: tells the server that its reasoning ends */
    bool control_ok;  /* it says that it does so */
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
/* The request has ended with this error; nothing is running. */
void qsf_remote_fail(QSFRemote *r, const QsfErr *err);
bool qsf_remote_take(QSFRemote *r, QSFEvent *e);
void qsf_remote_events_free(QsfRemoteEvents *q);

/* remote.c: starts the child for a job: a GET of `path` below `base`, or a POST of a body. */
bool qsf_remote_start(QSFRemote *r, QsfRemoteJob job, const QsfRemoteUrl *url, const char *base,
                      const char *path, const QsfStrbuf *body, QsfErr *err);
/* Starts another child for a POST to the server of the model, beside the one that runs. */
bool qsf_remote_start_beside(QSFRemote *r, QsfChild *child, const char *path, const QsfStrbuf *body);
/* Ends the children and what was read of the reply. */
void qsf_remote_stop(QSFRemote *r);
void qsf_remote_server_free(QsfRemoteServerState *s);

/* remote_load.c: the reply to the request of a load is complete; why: "", or why it is not. */
void qsf_remote_load_end(QSFRemote *r, const char *why, size_t len);
/* The same of a request for the size of a context. */
void qsf_remote_context_end(QSFRemote *r);
/* Asks a server that did not say the size of its context when the model was loaded; false: nothing to ask. */
bool qsf_remote_context_again(QSFRemote *r);

/* remote_wait.c: does the reply, with which a request has ended, only say that the server is not ready? Then
 * the user is told, and the same request may be started again: it waits first. */
bool qsf_remote_waits(QSFRemote *r, const char *name);

/* remote_ask.c: sends the request that r->asked describes. */
bool qsf_remote_ask(QSFRemote *r, QsfErr *err);
/* The reply to a question for tokens is complete. */
void qsf_remote_tokens_end(QSFRemote *r);
void qsf_remote_asked_free(QSFRemote *r);
/* Ends the reasoning: the server is told to, or the request is sent again, with the reasoning so far as that
 * of an answer that follows. true: it was sent again, so nothing more comes of the one that ran. */
bool qsf_remote_close(QSFRemote *r);
/* Reads what the server says to that. */
void qsf_remote_close_tick(QSFRemote *r);

/* remote_answer.c: before a request. */
void qsf_remote_answer_begin(QSFRemote *r);
/* Bytes of the reply; the reply has ended, why as above; it takes too long to end. */
void qsf_remote_answer_data(QSFRemote *r, const char *bytes, size_t len);
void qsf_remote_answer_end(QSFRemote *r, const char *why, size_t len);
void qsf_remote_answer_tick(QSFRemote *r);
/* The user stops it. */
void qsf_remote_answer_cancel(QSFRemote *r);
/* Its last event, when nothing else is to be asked. */
void qsf_remote_answer_done(QSFRemote *r);
/* What follows is of another request, but of the same answer. */
void qsf_remote_answer_split(QSFRemote *r);
void qsf_remote_answer_free(QSFRemote *r);
/* Tokens per second so far, 0 = not known; tokens so far. */
double qsf_remote_answer_tps(const QSFRemote *r);
uint32_t qsf_remote_answer_tokens(const QSFRemote *r);

#endif
