/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers a request of qsf_worker_submit. Engine thread. */
#ifndef QSF_ENGINE_WORKER_ANSWER_H
#define QSF_ENGINE_WORKER_ANSWER_H

#include "src/engine/worker_state.h"

/* Reloads the model first if it is stale, and applies pending replans between two tokens. Ends in one DONE or
 * ERROR event. */
void qsf_worker_do_submit(QSFWorker *w, const QsfRequestCopy *r);

#endif
