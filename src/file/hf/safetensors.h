/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The header of a safetensors file (huggingface/safetensors README.md, "Format"): u64 length N, then N bytes
 * of JSON that map a tensor's name to dtype, shape and the range of its bytes after the header;
 * "__metadata__" maps strings to strings. Ranges tile the rest of the file: no overlaps, no gaps, no trailing
 * bytes. */
#ifndef QSF_FILE_HF_SAFETENSORS_H
#define QSF_FILE_HF_SAFETENSORS_H

#include "src/file/source_impl.h"

#define QSF_ST_HEADER_MAX ((uint64_t)100000000) /* bytes of JSON: the limit of the format's own reader */
#define QSF_ST_NO_DTYPE   UINT32_MAX

typedef struct QsfStTensor {
    const char *name;      /* NUL-terminated, in memory of QsfSource.opening */
    const char *type_name; /* as in the file: "BF16" */
    uint32_t dtype;      /* number of F32, F16, BF16, F8_E4M3 and F8_E5M2 in dtype.h, else QSF_ST_NO_DTYPE */
    uint32_t n_dims;     /* may be 0 (a scalar) or more than 4 */
    uint64_t shape[4];   /* the first four, outermost first: rows, columns; may be 0 */
    uint64_t begin, end; /* absolute byte offsets inside the file; end - begin matches type and shape */
} QsfStTensor;

typedef struct QsfStHeader {
    QsfStTensor *t; /* (n) in the order of the file */
    uint64_t n;
    QsfHashmap map; /* name -> index */
} QsfStHeader;

/* Reads and checks the header of s->files[file]; h uses memory of QsfSource.opening. QSF_E_MODEL with path,
 * byte offset and what was expected; QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_st_read(QsfSource *s, uint32_t file, QsfStHeader *h, QsfErr *err);
/* Finds a tensor by name; NULL if absent. */
const QsfStTensor *qsf_st_find(const QsfStHeader *h, const char *name, size_t len);

#endif
