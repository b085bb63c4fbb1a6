/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The purpose of a file: files that are not language models, and models that need a computation that the
 * engine does not do, are refused by name. */
#ifndef QSF_MODEL_PURPOSE_H
#define QSF_MODEL_PURPOSE_H

#include "src/file/source.h"

/* Checks general.type and the keys and architectures of files that are not language models: adapters,
 * projectors, importance matrices, control vectors, draft heads and models that do not generate text.
 * QSF_E_MODEL; the message names the file, the key, what the file is, and what to give instead. */
int qsf_purpose_check(const QsfSource *src, QsfErr *err);
/* Checks that general.type, if present, is "model", and that the metadata announces no transformation of
 * weights or activations (rotation, smoothing, permutation, other layouts) that the engine would leave out:
 * the answers would be wrong. A key that says 0, false, "none" or nothing announces none. QSF_E_MODEL names
 * file, key and transformation. */
int qsf_purpose_check_computation(const QsfSource *src, QsfErr *err);
/* Returns the kind of model of an architecture that the engine does not run, as the
 * end of "FILE: is ...", or NULL. */
const char *qsf_purpose_of_arch(const char *arch);

#endif
