/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Converts rows of floats to packed blocks and back: the layouts of QSF (man/qsf-format.5) and those
 * of GGML (ggml-org/ggml src/ggml-common.h) that files can use or are compared with.
 *
 *   2bit        d, m, codes of 2 bits      x = m + q d, m = -1.5 d rounded to half precision
 *   2bit-asym   d, m, codes of 2 bits      x = m + q d
 *   3bit, 4bit  d, m, codes of 3, 4 bits   x = m + q d
 *   ternary     d, signs, zeros            x = d, -d or 0
 *   8bit        d, 32 x int8               x = q d; the layout of Q8_0
 *   f16         the value
 *
 * d and m are half precision, little-endian; man/qsf-format.5 has the order of bits. A row that is not a
 * multiple of the block is padded with zeros in QSF formats; GGML has no padding, so such a row is an error.
 *
 * All functions are pure and work on a range of rows: callers give each thread its own range. */
#ifndef QSF_CONVERT_QUANT_FORMATS_H
#define QSF_CONVERT_QUANT_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

typedef enum QsfQuantRule {
    QSF_RULE_SEARCH, /* least squares of scale and minimum, weighted by importance */
    QSF_RULE_MINMAX  /* the plain rule: the ends of the block's range */
} QsfQuantRule;

typedef struct QsfQuantFormat {
    const char *name; /* as --quant-type spells it; GGML types in lower case, "q4_k" */
    uint8_t code;     /* quant code in QSF files: src/file/qsf/type_codes.h */
    uint8_t bits;     /* of a code */
    uint8_t head;     /* bytes of a block other than codes */
    uint16_t elems;   /* elements of a block; 0 = the block size of the file, 64, 128 or 256 */
    bool pads;        /* rows are padded to full blocks */
} QsfQuantFormat;

/* Returns format i, counting from 0; NULL after the last. */
const QsfQuantFormat *qsf_quant_format(size_t i);
/* Find a format by name or code; NULL if unknown. */
const QsfQuantFormat *qsf_quant_format_named(const char *name);
const QsfQuantFormat *qsf_quant_format_of(uint8_t code);

/* A format as used in a file. */
typedef struct QsfQuant {
    const QsfQuantFormat *format;
    uint32_t block; /* 64, 128 or 256; 0 = 64. Ignored by formats with a fixed block size */
    QsfQuantRule rule;
} QsfQuant;

/* Computes the bytes of a row of cols elements. QSF_E_USAGE: the block size is invalid, or cols is 0, too
 * large, or not a multiple of the block of a format without padding. */
int qsf_quant_row_bytes(const QsfQuant *q, uint64_t cols, uint64_t *bytes, QsfErr *err);

/* A range of rows. */
typedef struct QsfQuantRows {
    const float *x;          /* (n_rows, cols) values */
    const float *importance; /* (cols) weights of the squared error, not negative; NULL = all equal. If all
                                weights of a block are 0, they count as equal */
    uint64_t first;          /* index of the first row, for messages */
    size_t n_rows, cols;
} QsfQuantRows;

/* Checks that all values and weights can be encoded. QSF_E_MODEL with row and column: a value is NaN,
 * infinite or beyond half precision (65504), or a weight is not a finite number of 0 or more. */
int qsf_quant_check(const QsfQuantRows *rows, QsfErr *err);

/* Encodes n_rows rows of qsf_quant_row_bytes each to out. QSF_E_MODEL as qsf_quant_check, QSF_E_USAGE as
 * above. out is undefined after an error. */
int qsf_quant_encode(const QsfQuant *q, const QsfQuantRows *rows, uint8_t *out, QsfErr *err);

/* Decodes rows, from qsf_quant_encode or a file, to out (n_rows, cols). Every bit pattern is valid; infinite
 * or NaN halves give such values. QSF_E_USAGE as above. */
int qsf_quant_decode(const QsfQuant *q, const uint8_t *in, size_t n_rows, size_t cols, float *out,
                     QsfErr *err);

#endif
