/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What QSFWhy says about a token. Only for files of src/sample. */
#ifndef QSF_SAMPLE_TRACE_H
#define QSF_SAMPLE_TRACE_H

#include "src/sample/chain.h"

/* Before the first stage: the n likeliest tokens, and the token `also` (-1 = none). */
void qsf_trace_begin(QsfChain *c, QSFWhy *w, uint32_t n, int32_t also);
/* After each stage that was applied. */
void qsf_trace_stage(QsfChain *c, QSFWhy *w, const QsfStage *stage);
/* Is id one of the tokens that w has? */
bool qsf_trace_has(const QSFWhy *w, int32_t id);

#endif
