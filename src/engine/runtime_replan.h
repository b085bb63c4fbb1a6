/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes the plan of an open runtime between two tokens. The thread of the runtime. */
#ifndef QSF_ENGINE_RUNTIME_REPLAN_H
#define QSF_ENGINE_RUNTIME_REPLAN_H

#include "src/engine/runtime.h"

/* Applies new settings without reloading: everything with QSF_SETTING_REPLAN is taken from s. Call it between
 * two tokens only; it does not change the tokens. On success note (cap bytes) gets a sentence about the new
 * plan. On QSF_E_BUDGET (the message ends with the smallest budget that works now) and QSF_E_RUNTIME nothing
 * changes and generation can continue, unless the old plan cannot be restored either (r->lost): then every
 * later eval fails. After a shrink the resident set is below the new budget and the recent peak is reset (base/clock.h). */
int qsf_runtime_replan(QsfRuntime *r, const QSFSettings *s, char *note, size_t cap, QsfErr *err);
/* Puts the plan in force that these options make, with the same errors. */
int qsf_runtime_apply(QsfRuntime *r, const QsfPlanOptions *next, QsfErr *err);

#endif
