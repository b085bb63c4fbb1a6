/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a directory contains: weights, and what is there instead of the expected files, for messages. */
#ifndef QSF_FILE_DIRHINT_H
#define QSF_FILE_DIRHINT_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

#define QSF_DIR_HINT 400

/* Writes what to open instead into buf (QSF_DIR_HINT bytes), as "; it contains model.gguf: open that file",
 * or "" if there is nothing to say. The directory is the first len characters of dir, with a slash at the
 * end; len 0 is the current directory. */
void qsf_dir_hint(const char *dir, size_t len, char *buf);
/* Sets the error for a directory without a vocabulary. weights: they are needed too, and if they are missing,
 * the message names them first. Returns QSF_E_MODEL. */
int qsf_dir_missing(const char *dir, bool weights, QsfErr *err);

/* The weights of a Hugging Face directory: one file, or shards listed in an index. */
#define QSF_WEIGHTS_FILE  "model.safetensors"
#define QSF_WEIGHTS_INDEX "model.safetensors.index.json"
/* Does the directory contain one of them? */
bool qsf_dir_has_weights(const char *dir);

/* Checkpoints of PyTorch are programs for Python's pickle and not supported: found, to say what to do. */
/* What follows "the weights are ". */
#define QSF_PYTORCH_ADVICE                                                                      \
    "in pytorch_model.bin, which is not supported: save them as safetensors (in transformers, " \
    "save_pretrained with safe_serialization=True), or use a GGUF file of the model"

/* Whether a directory contains PyTorch weights. Its path, with a slash at the end, is the first len
 * characters of dir; len 0 is the current directory. */
bool qsf_pytorch_in(const char *dir, size_t len);

#endif
