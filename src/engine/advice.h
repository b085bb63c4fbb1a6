/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sampling settings that a model recommends: general.sampling.* of its metadata (ggml-org/llama.cpp pull
 * 17120), written by the model's publisher. The user's settings override them; they override the program's
 * defaults. */
#ifndef QSF_ENGINE_ADVICE_H
#define QSF_ENGINE_ADVICE_H

#include "qsf_engine.h"
#include "src/file/source.h"

/* Fills advice with the program's defaults and the recommended values. A value that the setting rejects, or
 * of the wrong type, is ignored: a bad hint must not prevent opening the model. */
void qsf_model_defaults_read(const QsfSource *src, QSFSettings *advice);

/* Copies the rows that a model can recommend, unless the user set them in dst. */
void qsf_model_defaults_apply(QSFSettings *dst, const QSFSettings *advice);

#endif
