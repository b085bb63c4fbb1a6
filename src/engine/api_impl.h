/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of qsf.h share: the error of this thread's last call, and whose turn an engine is. */
#ifndef QSF_ENGINE_API_IMPL_H
#define QSF_ENGINE_API_IMPL_H

#include <stdatomic.h>

#include "qsf.h"
#include "src/engine/live.h"
#include "src/engine/timeline.h"

typedef enum QsfUse {
    QSF_USE_IDLE,
    QSF_USE_BUSY, /* a call that changes the engine is running */
    QSF_USE_FREED /* the same, and the engine is destroyed when it returns */
} QsfUse;

struct QSFEngine {
    QsfRuntime rt;
    QsfTimeline timeline;
    QsfFollower follower;
    atomic_int use; /* QsfUse */
};

/* The error of this thread's last call, cleared. A call that runs callbacks keeps its own and stores it here at
 * its end, because what a callback calls begins here too. */
QsfErr *qsf_api_begin(void);

/* Begins a call that changes e. QSF_E_USAGE when e is NULL; QSF_E_RUNTIME, naming function, when such a call is
 * running already: this one comes from its callback or from another thread. */
int qsf_api_enter(QSFEngine *e, const char *function, QsfErr *err);
/* Ends it. true when qsf_free was called in between: e is gone. */
bool qsf_api_leave(QSFEngine *e);

/* Follows what was set in the configuration since the last call; what cannot be met leaves the old plan. */
void qsf_api_follow(QSFEngine *e);

#endif
