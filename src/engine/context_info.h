/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What /context shows: how layers keep past positions, and how many positions are kept. The one place that fills a
 * QSFContextInfo. Any thread. */
#ifndef QSF_ENGINE_CONTEXT_INFO_H
#define QSF_ENGINE_CONTEXT_INFO_H

#include "kernels/kernels.h"
#include "qsf_engine.h"
#include "src/model/program.h"

/* Fills the kinds of layers of a program for a context of ctx positions. */
void qsf_context_kinds(const QsfProgram *p, const qk_kv_ops *ops, uint32_t ctx, QSFContextInfo *out);
/* Fills the positions: all that were evaluated are kept, because no cache evicts any yet. */
void qsf_context_positions(uint32_t used, QSFContextInfo *out);

#endif
