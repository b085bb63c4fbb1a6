/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loads, reloads and frees the model of a worker. Engine thread. */
#ifndef QSF_ENGINE_WORKER_LOAD_H
#define QSF_ENGINE_WORKER_LOAD_H

#include "src/engine/worker_state.h"

/* Replaces the model, or only its template if nothing else differs. Ends in one LOADED or ERROR event. */
void qsf_worker_do_load(QSFWorker *w, const char *path, const QSFSettings *s);
/* Ends in a DONE event. */
void qsf_worker_do_unload(QSFWorker *w);
/* Frees the model without an event. */
void qsf_worker_drop_model(QSFWorker *w);

/* After a failure: sets w->stale if the model must be reloaded before the next answer. */
void qsf_worker_check_stale(QSFWorker *w);
/* Reloads the model at w->stale and clears it; emits a notice. The codes of qsf_runtime_open. */
int qsf_worker_reload(QSFWorker *w, QsfErr *err);

#endif
