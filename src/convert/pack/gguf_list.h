/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tensors of a GGUF file that is written: their names, types and sizes. */
#ifndef QSF_CONVERT_PACK_GGUF_LIST_H
#define QSF_CONVERT_PACK_GGUF_LIST_H

#include "src/file/source.h"

#define QSF_GGUF_PARTS 3u /* that a tensor can consist of */

typedef struct QsfGgufTensor {
    const char *name;
    const QsfTensor *part[QSF_GGUF_PARTS]; /* (n_parts) rows of the source, one after the other */
    unsigned n_parts;
    uint32_t n_dims, type; /* type: number in the file */
    uint64_t ne[4];
    uint64_t bytes;
} QsfGgufTensor;

typedef struct QsfGgufList {
    QsfGgufTensor *tensor; /* (n) */
    uint64_t n;
    bool flavored; /* there are I2_S tensors that only their size distinguishes */
} QsfGgufList;

/* Lists the tensors of s for a GGUF file. QSF_E_MODEL names a tensor of a type that GGUF does not have;
 * QSF_E_RUNTIME if out of memory. The caller frees the list. */
int qsf_gguf_list(QsfGgufList *l, const QsfSource *s, QsfErr *err);
void qsf_gguf_list_free(QsfGgufList *l); /* *l may be zeroed */

#endif
