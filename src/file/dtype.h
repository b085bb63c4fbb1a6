/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weight types by their number: that of GGML (ggml-org/ggml include/ggml.h enum ggml_type), or our own for
 * the types of QSF files. The types that kernels compute with come from kernels/formats.h; the others are
 * listed in dtype.c. */
#ifndef QSF_FILE_DTYPE_H
#define QSF_FILE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/blocks.h"

/* QSF types have blocks of 64 elements. The same types with larger blocks have these added to their number;
 * no kernel computes with them. */
#define QSF_DTYPE_OF_128 0x100u
#define QSF_DTYPE_OF_256 0x200u

/* I2_S with its scales in another tensor, as stored: a source has I2_32 in its place (src/file/i2s.h). */
#define QSF_DTYPE_I2_SPLIT (QK_GGML_QSF + 10)

typedef struct QsfDtype {
    uint32_t id;          /* QK_GGML_Q4_K, or the number of a type without kernels */
    const char *name;     /* "Q4_K" */
    uint32_t block_elems; /* elements per block */
    uint32_t block_bytes;
    uint32_t tail_bytes; /* bytes after the last row of a tensor (I2_S keeps its scale there) */
    bool supported;      /* models can use it; a known but unsupported type is named in the error */
} QsfDtype;

/* Returns the type with blocks of 64 for one with blocks of 128 or 256; returns any other type unchanged. */
static inline uint32_t qsf_dtype_of_64(uint32_t id) {
    return id >= QK_GGML_QSF ? id & ~(QSF_DTYPE_OF_128 | QSF_DTYPE_OF_256) : id;
}
/* Returns the type with this number, NULL if unknown. */
const QsfDtype *qsf_dtype(uint32_t id);
/* Returns the name of a type that only other programs read, and theirs ("IQ2_KS of
 * ik_llama.cpp"); NULL if unknown. */
const char *qsf_dtype_foreign(uint32_t id);
/* Returns type i, to iterate over all of them; NULL after the last. There are at most QSF_DTYPES_MAX. */
#define QSF_DTYPES_MAX 96u
const QsfDtype *qsf_dtype_at(uint32_t i);
/* Returns the i of qsf_dtype_at for a type number; QSF_DTYPES_MAX if unknown. */
uint32_t qsf_dtype_index(uint32_t id);
/* Computes the bytes of a row of k elements; false if k is not a multiple of the block or on overflow. */
bool qsf_dtype_row_bytes(const QsfDtype *t, uint64_t k, uint64_t *out);
/* Computes the bytes of a tensor with these dimensions, including the tail; false as above. */
bool qsf_dtype_tensor_bytes(const QsfDtype *t, const uint64_t ne[4], uint64_t *out);

#endif
