/* SPDX-License-Identifier: GPL-3.0-or-later */
/* State shared by a configuration of qsf.h and the engines loaded with it: the last budget, number of
 * threads and quality. Set from any thread; each engine reads it between two tokens. */
#ifndef QSF_ENGINE_SHARED_CONFIG_H
#define QSF_ENGINE_SHARED_CONFIG_H

#include "qsf_engine.h"

typedef struct QsfSharedConfig QsfSharedConfig;

/* Creates it with the budget and threads of s and one reference; NULL when out of memory. */
QsfSharedConfig *qsf_shared_config_new(const QSFSettings *s);
void qsf_shared_config_release(QsfSharedConfig *l); /* NULL allowed; the last one frees it */
/* Set a value for all engines: those that are open see it between two tokens. Any thread. */
void qsf_shared_config_set_budget(QsfSharedConfig *l, uint64_t bytes);
void qsf_shared_config_set_threads(QsfSharedConfig *l, int32_t threads);
void qsf_shared_config_set_quality(QsfSharedConfig *l, float quality);

/* The changes that one engine has seen. */
typedef struct QsfFollower {
    QsfSharedConfig *config; /* NULL: follows nothing */
    unsigned budget_seen, threads_seen, quality_seen;
} QsfFollower;

/* Takes a reference to l (NULL allowed) and copies the current values to s. */
void qsf_follower_init(QsfFollower *f, QsfSharedConfig *l, QSFSettings *s);
void qsf_follower_end(QsfFollower *f); /* a zeroed one is allowed */
/* Copies values that were set since the last call to s; false when nothing was set. */
bool qsf_follower_update(QsfFollower *f, QSFSettings *s);
/* The same for the quality, which needs no other plan; false: *quality is unchanged. */
bool qsf_follower_quality(QsfFollower *f, float *quality);

#endif
