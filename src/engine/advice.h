/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a model recommends for sampling: general.sampling.* of its metadata (ggml-org/llama.cpp pull 17120), which those who
 * publish models put there. A person's word comes before it, the program's defaults behind it. */
#ifndef QSF_ENGINE_ADVICE_H
#define QSF_ENGINE_ADVICE_H

#include "qsf_engine.h"
#include "src/format/source.h"

/* The program's defaults, with what the metadata recommends. A value that the setting would refuse, or of another type,
 * is left out: it is a hint, and no reason not to open the model. */
void qsf_model_defaults_read(const QsfSource *src, QSFSettings *advice);

/* Copies the rows that a model can recommend, unless the user set them in dst. */
void qsf_model_defaults_apply(QSFSettings *dst, const QSFSettings *advice);

#endif
