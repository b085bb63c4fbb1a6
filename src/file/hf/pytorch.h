/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoints of PyTorch, which are programs for Python's pickle and not supported: found, to say what to do. */
#ifndef QSF_FILE_HF_PYTORCH_H
#define QSF_FILE_HF_PYTORCH_H

#include <stdbool.h>
#include <stddef.h>

/* What follows "the weights are ". */
#define QSF_PYTORCH_ADVICE                                                                      \
    "in pytorch_model.bin, which is not supported: save them as safetensors (in transformers, " \
    "save_pretrained with safe_serialization=True), or use a GGUF file of the model"

/* Whether a directory contains PyTorch weights. Its path, with a slash at the end, is the first len characters of dir;
 * len 0 is the current directory. */
bool qsf_pytorch_in(const char *dir, size_t len);

#endif
