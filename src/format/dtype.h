/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weight types by their GGML type number (ggml-org/ggml include/ggml.h enum ggml_type): one table. */
#ifndef QSF_FORMAT_DTYPE_H
#define QSF_FORMAT_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct QsfDtype {
    uint32_t id;           /* GGML type number */
    const char *name;      /* "Q4_K" */
    uint32_t block_elems;  /* elements per block */
    uint32_t block_bytes;
    uint32_t tail_bytes;   /* bytes after the last row of a tensor (I2_S keeps its scale there) */
    bool supported;        /* kernels exist; a known but unsupported type is named in the error */
} QsfDtype;

/* NULL for a number nobody knows. */
const QsfDtype *qsf_dtype(uint32_t id);
/* Bytes of one row of k elements; false when k is no multiple of the block or on overflow. */
bool qsf_dtype_row_bytes(const QsfDtype *t, uint64_t k, uint64_t *out);
/* Bytes of a tensor with these dimensions, tail included; false as above. */
bool qsf_dtype_tensor_bytes(const QsfDtype *t, const uint64_t ne[4], uint64_t *out);

#endif
