/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models that are named by where they are available: "hf:OWNER/NAME[@REVISION][:FILE-OR-TYPE]" or a URL. The
 * program qsf-get downloads them, in its own process: a network library never counts in the RAM budget.
 * Shared by the programs; not installed. */
#ifndef QSF_FETCH_H
#define QSF_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "qsf_engine.h"

/* Is this the name of a model to download, not of a file? */
bool qsf_fetch_is_remote(const char *name);

/* The program qsf-get: that of this program's directory, written to path, or "qsf-get", which is looked up in
 * PATH. */
const char *qsf_fetch_program(char *path, size_t cap);

/* The bytes for weights in a RAM budget, roughly: what the context and the program need beside them is known
 * only when the model is there. */
uint64_t qsf_fetch_weights(uint64_t budget);
/* The same for the RAM budget that the user has set; 0 = none is set, or it is auto. */
uint64_t qsf_fetch_room(const QSFSettings *s);

/* Downloads it, or finds it in the cache, with progress and errors on stderr. room: bytes of memory for
 * weights, by which it chooses; 0 = for half of what is available. Returns the path of the file,
 * malloc'ed, or NULL with *code an exit status (qsf_cli.h): the error was printed by qsf-get, or is in err if
 * it could not be run ("" otherwise). quiet: without progress. Blocks; SIGINT and SIGTERM end it through
 * qsf-get. */
char *qsf_fetch(const char *name, bool offline, bool quiet, uint64_t room, int *code, char *err, size_t cap);

/* How a download in the background runs. */
enum {
    QSF_FETCH_OFFLINE = 1 << 0, /* only what is in the cache */
    QSF_FETCH_SHOWN = 1 << 1,   /* it shows progress and errors on stderr by itself: no event but the last */
    QSF_FETCH_QUIET = 1 << 2    /* with SHOWN: without progress */
};

/* A download in the background. One thread. */
typedef struct QSFFetch {
    pid_t pid; /* 0 = none is running */
    int fd;    /* becomes readable when there is an event */
    bool shown;
    size_t len;
    char line[16384]; /* (len) bytes of an event that is not complete */
} QSFFetch;

typedef enum QSFFetchKind {
    QSF_FETCH_NOTHING,  /* none yet */
    QSF_FETCH_PROGRESS, /* done, total, rate */
    QSF_FETCH_NOTE,     /* text: a sentence, or the list of models, one per line */
    QSF_FETCH_DONE,     /* text: the path of the file */
    QSF_FETCH_FAILED    /* text: why, in one sentence; "" = that is on stderr. code */
} QSFFetchKind;

typedef struct QSFFetchEvent {
    QSFFetchKind kind;
    uint64_t done, total; /* bytes; total 0 = unknown */
    double rate;          /* bytes per second, 0 = unknown */
    int code;             /* an exit status (qsf_cli.h); 130 or 143 if it was stopped */
    char text[8192];      /* clean: no control characters but newlines; a path is as it is */
} QSFFetchEvent;

/* Starts qsf-get. how: QSF_FETCH_OFFLINE and so on. room: bytes of memory for weights, by which it chooses;
 * 0 = for half of what is available. false with a message in err. */
bool qsf_fetch_start(QSFFetch *f, const char *name, unsigned how, uint64_t room, char *err, size_t cap);
/* The next event, without waiting. After DONE and FAILED nothing is running. */
void qsf_fetch_next(QSFFetch *f, QSFFetchEvent *e);
/* Stops it; what was downloaded is kept. Waits until it has ended. */
void qsf_fetch_stop(QSFFetch *f);

#endif
