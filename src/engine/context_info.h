/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What /context shows: how layers keep past positions, and how many positions are kept. The one place that fills a
 * QSFContextInfo. Any thread. */
#ifndef QSF_ENGINE_CONTEXT_INFO_H
#define QSF_ENGINE_CONTEXT_INFO_H

#include "kernels/kernels.h"
#include "qsf_engine.h"
#include "src/forward/forward.h"
#include "src/model/program.h"

/* Fills the kinds of layers of a program for a context of ctx positions. */
void qsf_context_kinds(const QsfProgram *p, QsfKvTypes types, uint32_t ctx, QSFContextInfo *out);
/* Fills in the positions: kept is the number in the cache; f has the numbers of
 * evicted and protected ones. */
void qsf_context_positions(uint32_t kept, const QsfForwardStats *f, QSFContextInfo *out);

#endif
