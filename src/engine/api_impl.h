/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals shared by the files that implement qsf.h: the error of this thread's last call, and whether an
 * engine is in use. */
#ifndef QSF_ENGINE_API_IMPL_H
#define QSF_ENGINE_API_IMPL_H

#include <stdatomic.h>

#include "qsf.h"
#include "src/engine/shared_config.h"
#include "src/engine/timeline.h"

typedef enum QsfUse {
    QSF_USE_IDLE,
    QSF_USE_BUSY, /* a call that changes the engine is running */
    QSF_USE_FREED /* BUSY, and the engine is destroyed when that call returns */
} QsfUse;

struct QSFEngine {
    QsfRuntime rt;
    QsfTimeline timeline;
    QsfFollower follower;
    atomic_int use;        /* QsfUse */
    _Atomic float quality; /* of the next token */
};

/* Clears and returns the error of this thread's last call. A call that runs callbacks uses its own error and
 * copies it here at its end, because calls made by a callback use this one too. */
QsfErr *qsf_api_begin(void);

/* Begins a call that changes e. QSF_E_USAGE when e is NULL; QSF_E_RUNTIME, naming function, when such a call
 * is running already: this one comes from its callback or from another thread. */
int qsf_api_enter(QSFEngine *e, const char *function, QsfErr *err);
/* Ends the call. true when qsf_free was called in between: e is destroyed. */
bool qsf_api_leave(QSFEngine *e);

/* Returns the quality of the next token, which may have been set in the configuration since the last one. */
float qsf_api_quality(QSFEngine *e);
/* Applies what was set in the configuration since the last call; when it cannot be met, the old plan stays. */
void qsf_api_follow(QSFEngine *e);

#endif
