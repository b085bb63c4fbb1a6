/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of a tensor as they are stored, in GGUF's order, whether they stand one by one or interleaved by sixteen; but in
 * blocks of 64, with the same values, where the file has larger ones. One thread for each reader. */
#ifndef QSF_PACK_ROWREADER_H
#define QSF_PACK_ROWREADER_H

#include "kernels/kernels.h"
#include "src/format/source.h"

typedef struct QsfRowReader {
    const QsfSource *s;
    const QsfTensor *t;
    uint32_t dtype; /* of the rows it gives */
    uint64_t row_bytes;
    /* Of larger blocks: */
    uint64_t stored_bytes; /* a row of them */
    uint8_t *stored;       /* (stored_bytes); NULL: blocks are given as they stand */
    /* Of interleaved rows: */
    void (*unpack_row)(void *dst, const void *group, unsigned r, size_t k);
    uint8_t *group;   /* (16, row_bytes) the one that was read last; NULL: rows stand one by one */
    uint64_t number;  /* of that group; UINT64_MAX: none yet */
} QsfRowReader;

/* kernels: only its functions to unpack groups are used. QSF_E_MODEL: the rows are no whole number of blocks;
 * QSF_E_RUNTIME without memory. On failure there is nothing to close. */
int qsf_rowreader_open(QsfRowReader *r, const QsfSource *s, const QsfTensor *t, const qk_table *kernels, QsfErr *err);
/* Rows [first, first + n), counted over all dimensions but the first, to out (n, row_bytes). QSF_E_RUNTIME when they are
 * not inside the tensor, or cannot be read. */
int qsf_rowreader_read(QsfRowReader *r, uint64_t first, uint64_t n, uint8_t *out, QsfErr *err);
void qsf_rowreader_close(QsfRowReader *r); /* a zeroed one is allowed */

#endif
