/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts of layers that are pinned (src/forward/pinned.c) in the plan of a runtime: which layers they are. */
#ifndef QSF_ENGINE_PINNED_H
#define QSF_ENGINE_PINNED_H

#include "src/engine/runtime.h"

/* After a plan p was made with these options: if drafts come from pinned layers alone, makes one that pins
 * whole layers first, as many as fit, up to about half of the model, but not with a shorter context or other
 * types of the KV cache than p; where there is none, o and p are as before, and r->draft_notice says why. */
void qsf_pinned_planning(QsfRuntime *r, QsfPlanOptions *o, QsfPlan *p);

#endif
