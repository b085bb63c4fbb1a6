/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes the plan of a worker's model, between two tokens or when idle. Engine thread. */
#ifndef QSF_ENGINE_WORKER_PLAN_H
#define QSF_ENGINE_WORKER_PLAN_H

#include "src/engine/worker_state.h"

/* Applies the QSF_SETTING_REPLAN settings of s. Ends in one PLAN event. */
void qsf_worker_do_replan(QSFWorker *w, const QSFSettings *s);
/* The same for a pending qsf_worker_replan, if there is one and the answer is not being cancelled. */
void qsf_worker_do_pending_replan(QSFWorker *w);

#endif
