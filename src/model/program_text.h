/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program as text, for --inspect. */
#ifndef QSF_MODEL_PROGRAM_TEXT_H
#define QSF_MODEL_PROGRAM_TEXT_H

#include "src/base/strbuf.h"
#include "src/model/model.h"

/* Appends one line per step. Blocks with the same steps as the block before them are listed by number only.
 * Buffers of a block are called t0, t1, ... in the order of their use. */
void qsf_program_put_text(QsfStrbuf *out, const QsfModel *m);
/* Appends an array of objects, one per step: block, op, label, and the tensors it multiplies. */
void qsf_program_put_json(QsfStrbuf *out, const QsfModel *m);

#endif
