/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of weight types, by GGML type number (ggml-org/ggml include/ggml.h enum ggml_type). Types of QSF
 * files that GGML does not have use the numbers of the kernels. */
#ifndef QSF_FORMAT_DTYPE_H
#define QSF_FORMAT_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/blocks.h"

/* Blocks of 64 elements; the same with 128 and 256, which no kernel computes with, at a distance. */
#define QSF_DTYPE_QSF2   (QK_GGML_QSF + 1u)
#define QSF_DTYPE_QSF3   (QK_GGML_QSF + 2u)
#define QSF_DTYPE_QSF4   (QK_GGML_QSF + 3u)
#define QSF_DTYPE_QSFT   (QK_GGML_QSF + 4u)
/* Codebooks. */
#define QSF_DTYPE_QSB2   (QK_GGML_QSF + 5u)
#define QSF_DTYPE_QSB3   (QK_GGML_QSF + 6u)
#define QSF_DTYPE_QSB4   (QK_GGML_QSF + 7u)
#define QSF_DTYPE_OF_128 0x100u
#define QSF_DTYPE_OF_256 0x200u

typedef struct QsfDtype {
    uint32_t id;           /* GGML type number, or one of the above */
    const char *name;      /* "Q4_K" */
    uint32_t block_elems;  /* elements per block */
    uint32_t block_bytes;
    uint32_t tail_bytes;   /* bytes after the last row of a tensor (I2_S keeps its scale there) */
    bool supported;        /* kernels exist; a known but unsupported type is named in the error */
} QsfDtype;

/* Returns the type with blocks of 64 for one with blocks of 128 or 256; returns any other type unchanged. */
static inline uint32_t qsf_dtype_of_64(uint32_t id) {
    return id >= QK_GGML_QSF ? id & ~(QSF_DTYPE_OF_128 | QSF_DTYPE_OF_256) : id;
}
/* Returns the type with this number, NULL if unknown. */
const QsfDtype *qsf_dtype(uint32_t id);
/* Returns type i, to iterate over all of them; NULL after the last. There are at most QSF_DTYPES_MAX. */
#define QSF_DTYPES_MAX 64u
const QsfDtype *qsf_dtype_at(uint32_t i);
/* Returns the i of qsf_dtype_at for a type number; QSF_DTYPES_MAX if unknown. */
uint32_t qsf_dtype_index(uint32_t id);
/* Computes the bytes of a row of k elements; false if k is not a multiple of the block or on overflow. */
bool qsf_dtype_row_bytes(const QsfDtype *t, uint64_t k, uint64_t *out);
/* Computes the bytes of a tensor with these dimensions, including the tail; false as above. */
bool qsf_dtype_tensor_bytes(const QsfDtype *t, const uint64_t ne[4], uint64_t *out);

#endif
