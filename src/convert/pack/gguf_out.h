/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a model as a GGUF v3 file (ggml-org/ggml docs/gguf.md): metadata and tensors as they were before a
 * conversion to QSF, with rows one after the other and nothing compressed. */
#ifndef QSF_CONVERT_PACK_GGUF_OUT_H
#define QSF_CONVERT_PACK_GGUF_OUT_H

#include <stdatomic.h>

#include "src/file/source.h"

typedef struct QsfGgufOptions {
    bool dry;                 /* write nothing: only sizes and errors about types */
    const atomic_int *cancel; /* NULL, or a nonzero value cancels */
    /* NULL, or called periodically with the bytes of tensors done and in total. */
    void (*progress)(void *arg, const char *tensor, uint64_t done, uint64_t all);
    void *progress_arg;
} QsfGgufOptions;

typedef struct QsfGgufReport {
    uint64_t n_tensors, n_pairs, bytes; /* in the file */
    bool yarn_rounded; /* the model's RoPE does not round (QSF_KEY_YARN_TRUNCATE), which GGUF cannot say */
} QsfGgufReport;

/* Writes s to path, in bounded memory and under its name only when it is complete. Parts of tensors that a
 * QSF file stores separately are joined, unless they have different types. QSF_E_MODEL names a tensor of a
 * type that GGUF does not have; QSF_E_USAGE: something that is not a regular file is at path;
 * QSF_E_RUNTIME; QSF_E_INTERRUPTED. */
int qsf_write_gguf(const QsfSource *s, const char *path, const QsfGgufOptions *o, QsfGgufReport *report,
                   QsfErr *err);

#endif
