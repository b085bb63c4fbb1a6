/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Describes a model as text, from its metadata and its list of tensors. Any thread. */
#ifndef QSF_ENGINE_DESCRIBE_H
#define QSF_ENGINE_DESCRIBE_H

#include "src/model/model.h"

/* Writes "llama 1.1B Q4_0": architecture, parameters, the weight type with the most bytes. */
void qsf_model_summary(const QsfModel *m, char *dst, size_t cap);
/* Returns several lines of text for /show model; malloc'ed, NULL when out of memory. */
char *qsf_model_text(const QsfModel *m);

#endif
