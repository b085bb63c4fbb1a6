/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of tensors, for conversions: read as stored or as floats, and collected into interleaved groups. */
#ifndef QSF_CONVERT_PACK_TENSOR_ROWS_H
#define QSF_CONVERT_PACK_TENSOR_ROWS_H

#include "kernels/kernels.h"
#include "src/base/err.h"
#include "src/file/source.h"

/* ---- rows as stored ---- */

/* Reads rows of a tensor as stored, in GGUF's order, from either layout (plain or interleaved by 16). Blocks
 * larger than 64 are converted to blocks of 64 with the same values. One thread for each reader. */

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
/* Passes rows [first, first + rows) to sink, in pieces of at most cap bytes, or one row. piece (cap) is
 * memory for them. Errors of reading and of sink. */
int qsf_rowreader_copy(QsfRowReader *r, uint64_t first, uint64_t rows, unsigned char *piece, size_t cap,
                       QsfEncodeSink sink, void *arg, QsfErr *err);
void qsf_rowreader_close(QsfRowReader *r); /* *r may be zeroed */

/* ---- rows as floats ---- */

/* Reads rows of any tensor as floats: the input of a conversion is often already quantized. */

typedef struct QsfWeights {
    const QsfSource *s;
    const QsfTensor *t;
    QsfRowReader rows;
    void (*unpack)(const void *row, float *dst, size_t k); /* dequantizes a row, without the tensor's scale */
    uint64_t row_bytes;                                    /* as stored */
    float scale;                                           /* of the whole tensor (I2_S) */
} QsfWeights;

/* Opens t for reading. Of kernels, only the unpack functions are used. QSF_E_MODEL: no kernel supports the
 * type; QSF_E_RUNTIME: it cannot be read. On failure there is nothing to close. */
int qsf_weights_open(QsfWeights *w, const QsfSource *s, const QsfTensor *t, const qk_table *kernels,
                     QsfErr *err);
void qsf_weights_close(QsfWeights *w);
/* Reads rows [first, first + n), as stored (GGUF's order), to raw (n, row_bytes). */
int qsf_weights_read(QsfWeights *w, uint64_t first, uint64_t n, uint8_t *raw, QsfErr *err);
/* Dequantizes n rows at raw to out (n, ne[0]). Any thread. */
void qsf_weights_unpack(const QsfWeights *w, const uint8_t *raw, size_t n, float *out);

/* ---- groups of rows ---- */

/* Collects consecutive rows into interleaved groups of 16 (file/qsf/groups.h). One thread. */

typedef struct QsfGrouper {
    uint32_t dtype;
    size_t k, row_bytes; /* of a row */
    void (*pack)(void *dst, const void *src, size_t row_bytes, size_t k);
    uint8_t *rows, *group; /* (16, row_bytes) each */
    size_t have;           /* bytes of rows */
    QsfEncodeSink sink;
    void *arg;
} QsfGrouper;

/* Opens a grouper for rows of k elements, a multiple of the block, of a type (dtype.h) that can be
 * interleaved. Groups are passed to sink. Of kernels, only the functions that pack groups are used.
 * QSF_E_RUNTIME if out of memory; then there is nothing to close. */
int qsf_grouper_open(QsfGrouper *g, uint32_t dtype, size_t k, const qk_table *kernels, QsfEncodeSink sink,
                     void *arg, QsfErr *err);
/* A QsfEncodeSink for the bytes of the rows, in pieces of any size. Errors of the sink. */
int qsf_grouper_add(void *grouper, const void *data, size_t len, QsfErr *err);
/* Emits the last group, padded with zeros. Errors of the sink. */
int qsf_grouper_end(QsfGrouper *g, QsfErr *err);
void qsf_grouper_close(QsfGrouper *g);

#endif
