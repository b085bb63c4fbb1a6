/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether a model and a context work with an eviction policy. */
#ifndef QSF_FORWARD_EVICTABLE_H
#define QSF_FORWARD_EVICTABLE_H

#include "src/model/model.h"
#include "src/plan/evict.h"

/* QSF_OK, also without a policy. QSF_E_USAGE: the model has sparse attention, which chooses among all positions;
 * QSF_E_CONTEXT: ctx positions have no room for what is protected. The message names the model or the policy. Any
 * thread. */
int qsf_evict_check(const QsfModel *m, const QsfEvict *e, uint64_t ctx, QsfErr *err);

#endif
