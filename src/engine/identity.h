/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recognizes a model again. */
#ifndef QSF_ENGINE_IDENTITY_H
#define QSF_ENGINE_IDENTITY_H

#include "src/file/source.h"

/* Returns a number of the model: of its metadata (with overrides; of arrays the length), its table of tensors, the sizes of
 * its files, the checksums that they contain, and samples of their bytes. Not of names and times of files: a copy is the
 * same model. Reads about 70 pages of each file. QSF_E_MODEL, QSF_E_RUNTIME. */
int qsf_model_identity(const QsfSource *src, uint64_t *out, QsfErr *err);

#endif
