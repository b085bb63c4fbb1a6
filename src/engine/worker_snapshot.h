/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loads and saves the snapshot that a request names. Engine thread. */
#ifndef QSF_ENGINE_WORKER_SNAPSHOT_H
#define QSF_ENGINE_WORKER_SNAPSHOT_H

#include "src/engine/worker_state.h"

/* Before the prompt ids is evaluated: loads its first positions from the snapshot that r names, if any. A
 * damaged file is reported by a notice; no failure is an error of the request. */
void qsf_worker_snapshot_load(QSFWorker *w, const QsfRequestCopy *r, const QsfIds *ids);
/* The answer has ended: there is something to save. */
void qsf_worker_snapshot_due(QSFWorker *w);
/* Between two commands: saves it. Gives up, to be called again, when another answer of the same conversation or a replan
 * waits, and when the worker must stop and that has taken some seconds. The first failure of a conversation is reported
 * by a notice. */
void qsf_worker_snapshot_save(QSFWorker *w);
/* Forgets the conversation and the identity of the model. */
void qsf_worker_snapshot_drop(QSFWorker *w);

#endif
