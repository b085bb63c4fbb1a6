/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An engine that is a server: any OpenAI-compatible endpoint (qsf-serve, llama.cpp, vLLM, Ollama ...), with
 * the requests, events and statistics of qsf_engine.h. The network is in its own process per request
 * (qsf_request.h), so nothing here blocks. Functions of one remote are called from one thread. What a server
 * sends is untrusted. Shared by the programs; not installed. */
#ifndef QSF_REMOTE_H
#define QSF_REMOTE_H

#include "qsf_engine.h"

/* ---- models of servers, by name: "connect:URL#MODEL" ---- */

/* Is this the name of a model of a server? */
bool qsf_connect_is(const char *path);
/* Makes such a name of "http://HOST:PORT", with /v1 or without, with a path before it, or "unix:PATH"; model
 * "" is the first that the server has. malloc'ed; NULL with a message in err. */
char *qsf_connect_path(const char *url, const char *model, char *err, size_t cap);
/* The model in such a name, "" = the first one; points into path. */
const char *qsf_connect_model(const char *path);
/* Do two such names mean models of the same server? */
bool qsf_connect_same(const char *x, const char *y);

/* Reads a key: of a file, whose first line it is, or with NULL of OPENAI_API_KEY. *key is malloc'ed, or NULL
 * if the variable is not set. false with a message in err, which never has any of it. */
bool qsf_connect_key(const char *file, char **key, char *err, size_t cap);

/* Can other users read that file? */
bool qsf_connect_key_exposed(const char *file);

/* ---- the engine ---- */

typedef struct QSFRemote QSFRemote;

#define QSF_REMOTE_TIMEOUT 600u /* seconds, by default */

/* key: sent to the host of the first model that is loaded and to no other; NULL = none. It is copied.
 * timeout: seconds without a byte after which a request fails. NULL when out of memory. */
QSFRemote *qsf_remote_new(const char *key, unsigned timeout);
/* Stops what runs. NULL is allowed. */
void qsf_remote_free(QSFRemote *r);

/* As the functions of the worker with these names. load asks the server for its models; a load that fails
 * leaves the model that was loaded. Ids of requests begin at 2^32. */
uint64_t qsf_remote_load(QSFRemote *r, const char *path, const QSFSettings *s);
uint64_t qsf_remote_submit(QSFRemote *r, const QSFRequest *q);
void qsf_remote_cancel(QSFRemote *r);
/* As qsf_worker_answer_now: the request is repeated with the reasoning so far, as that of an answer which
 * begins. Does nothing where qsf_remote_closes is false. */
void qsf_remote_answer_now(QSFRemote *r);
/* Can the server of the loaded model do that; can it continue reasoning that was cut (continue_last)? */
bool qsf_remote_closes(const QSFRemote *r);
bool qsf_remote_resumes(const QSFRemote *r);
/* After about 256 KB of replies it returns false once, so that other work is done in between. */
bool qsf_remote_next(QSFRemote *r, QSFEvent *e);
/* As qsf_worker_fd; another one after each call of another function. */
int qsf_remote_fd(QSFRemote *r);
/* Memory, layers, threads and probabilities are not known: 0. */
void qsf_remote_stats(QSFRemote *r, QSFStats *out);
/* "model" and "template"; NULL for anything else, and without a model. */
char *qsf_remote_describe(QSFRemote *r, const char *what);
/* The settings in force: with the next request, those that the user has set are sent. */
void qsf_remote_set(QSFRemote *r, const QSFSettings *s);
/* Copies the settings in force to s. */
void qsf_remote_settings(const QSFRemote *r, QSFSettings *s);

/* Has the server counted the tokens of the last answer? Otherwise they are its pieces. */
bool qsf_remote_counted(const QSFRemote *r);

typedef enum QSFRemoteEffect {
    QSF_REMOTE_SENT,    /* set, and sent with the next request */
    QSF_REMOTE_OWN,     /* not set: the server uses its own value */
    QSF_REMOTE_REFUSED, /* the server has refused it: it is no longer sent */
    QSF_REMOTE_NONE,    /* no effect there */
    QSF_REMOTE_LOCAL    /* it is about the program */
} QSFRemoteEffect;
/* What the row does with the server of the loaded model. */
QSFRemoteEffect qsf_remote_effect(const QSFRemote *r, const QSFSetting *row);

/* A model of the server, as it was listed at the last load. */
typedef struct QSFRemoteModel {
    const char *name; /* valid until the next load */
    uint32_t ctx;     /* tokens, 0 = not known */
    uint64_t bytes;   /* 0 = not known */
    bool loaded;      /* it is the one that answers */
} QSFRemoteModel;
/* false: there is none with this index. */
bool qsf_remote_model(const QSFRemote *r, size_t i, QSFRemoteModel *out);

#endif
