/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads rows of a tensor as stored, in GGUF's order, from either layout (plain or interleaved by 16). Blocks
 * larger than 64 are converted to blocks of 64 with the same values. One thread for each reader. */
#ifndef QSF_CONVERT_PACK_TENSOR_ROWS_H
#define QSF_CONVERT_PACK_TENSOR_ROWS_H

#include "kernels/kernels.h"
#include "src/file/source.h"

/* Receives the bytes of rows, in order. An error ends reading or packing. */
typedef int (*QsfEncodeSink)(void *arg, const void *data, size_t len, QsfErr *err);

typedef struct QsfRowReader {
    const QsfSource *s;
    const QsfTensor *t;
    uint32_t dtype; /* of the rows returned */
    uint64_t row_bytes;
    /* For larger blocks: */
    uint64_t stored_bytes; /* size of a row as stored */
    uint8_t *stored;       /* (stored_bytes); NULL: blocks are not converted */
    /* For interleaved rows: */
    const qk_weight_ops *ops;
    uint8_t *group;  /* (16, row_bytes) the last group read; NULL: rows are not interleaved */
    uint64_t number; /* index of that group; UINT64_MAX: none yet */
} QsfRowReader;

/* Opens t for reading. Of kernels, which must outlive r, only the functions that unpack groups are used.
 * QSF_E_MODEL: a row is not a multiple of the block; QSF_E_RUNTIME if out of memory. On
 * failure there is nothing to close. */
int qsf_rowreader_open(QsfRowReader *r, const QsfSource *s, const QsfTensor *t, const qk_table *kernels,
                       QsfErr *err);
/* Reads rows [first, first + n), counted over all dimensions but the first, to out (n, row_bytes).
 * QSF_E_RUNTIME if they are not inside the tensor or cannot be read. */
int qsf_rowreader_read(QsfRowReader *r, uint64_t first, uint64_t n, uint8_t *out, QsfErr *err);
/* Passes rows [first, first + rows) to sink, in pieces of at most cap bytes, or one row. piece (cap) is
 * memory for them. Errors of reading and of sink. */
int qsf_rowreader_copy(QsfRowReader *r, uint64_t first, uint64_t rows, unsigned char *piece, size_t cap,
                       QsfEncodeSink sink, void *arg, QsfErr *err);
void qsf_rowreader_close(QsfRowReader *r); /* *r may be zeroed */

#endif
