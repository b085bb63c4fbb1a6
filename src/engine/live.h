/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a configuration of qsf.h and the engines that were loaded with it share: the budget and the threads
 * that were set last. Set from any thread, and taken by each engine when it is between two tokens. */
#ifndef QSF_ENGINE_LIVE_H
#define QSF_ENGINE_LIVE_H

#include "qsf_engine.h"

typedef struct QsfLive QsfLive;

/* One reference, with the budget and threads of s; NULL without memory. */
QsfLive *qsf_live_new(const QSFSettings *s);
void qsf_live_release(QsfLive *l); /* NULL allowed; the last one frees it */
void qsf_live_set_budget(QsfLive *l, uint64_t bytes);
void qsf_live_set_threads(QsfLive *l, int32_t threads);

/* How far one engine has seen it. */
typedef struct QsfFollower {
    QsfLive *live; /* NULL: follows nothing */
    unsigned budget_seen, threads_seen;
} QsfFollower;

/* Takes a reference to l (NULL allowed) and writes what is set now into s. */
void qsf_follower_init(QsfFollower *f, QsfLive *l, QSFSettings *s);
void qsf_follower_end(QsfFollower *f); /* a zeroed one is allowed */
/* Writes into s what was set since the last call; false when nothing was. */
bool qsf_follower_take(QsfFollower *f, QSFSettings *s);

#endif
