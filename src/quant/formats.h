/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of floats to packed blocks and back: the layouts of QSF (spec Phase 1.1, design §5) and those of GGML
 * (ggml-org/ggml src/ggml-common.h) that files are compared with or written in.
 *
 *   2bit        d, m, codes of 2 bits      x = m + q d, m = -1.5 d rounded to half precision
 *   2bit-asym   d, m, codes of 2 bits      x = m + q d
 *   3bit, 4bit  d, m, codes of 3, 4 bits   x = m + q d
 *   ternary     d, signs, zeros            x = d, -d or 0
 *   8bit        d, 32 x int8               x = q d; the layout of Q8_0
 *   f16         the value
 *
 * d and m are half precision, little-endian; the order of bits is that of design §5. A row that is no multiple of a
 * QSF block is padded with zeros to one; GGML knows no padding: such a row is refused.
 *
 * Everything here is pure and works on a range of rows: callers give each thread a range of its own. */
#ifndef QSF_QUANT_FORMATS_H
#define QSF_QUANT_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

typedef enum QsfQuantRule {
    QSF_RULE_SEARCH, /* least squares of scale and minimum, weighted by importance */
    QSF_RULE_MINMAX  /* the plan's plain rule (spec Phase 3.1): the ends of the block's range */
} QsfQuantRule;

typedef struct QsfQuantFormat {
    const char *name;  /* as --quant-type spells it; GGML types in lower case, "q4_k" */
    uint8_t code;      /* quant code in QSF files: src/format/qsf_codes.h */
    uint8_t bits;      /* of a code */
    uint8_t head;      /* bytes of a block that are no codes */
    uint16_t elems;    /* elements of a block; 0 = the file's block size of 64, 128 or 256 */
    bool pads;         /* rows are padded to a block */
} QsfQuantFormat;

/* The formats in turn from 0 on, NULL after the last. */
const QsfQuantFormat *qsf_quant_format(size_t i);
/* NULL where nobody knows the name or the code. */
const QsfQuantFormat *qsf_quant_format_named(const char *name);
const QsfQuantFormat *qsf_quant_format_of(uint8_t code);

/* One format as a file uses it. */
typedef struct QsfQuant {
    const QsfQuantFormat *format;
    uint32_t block;     /* 64, 128 or 256; 0 = 64. Formats with a block of their own ignore it */
    QsfQuantRule rule;
} QsfQuant;

/* Bytes of a row of cols elements. QSF_E_USAGE when the block size is none of those, cols is 0, no multiple of a block
 * that knows no padding, or too large. */
int qsf_quant_row_bytes(const QsfQuant *q, uint64_t cols, uint64_t *bytes, QsfErr *err);

/* A range of rows. */
typedef struct QsfQuantRows {
    const float *x;           /* (n_rows, cols) values */
    const float *importance;  /* (cols) weights of the squared error, not negative; NULL = all equal. Where all of a
                                 block are 0 they count as equal */
    uint64_t first;           /* number of the first row, for messages */
    size_t n_rows, cols;
} QsfQuantRows;

/* Whether all values and weights can be encoded. QSF_E_MODEL with row and column for a value that is no number, infinite
 * or larger than half precision reaches (65504), or a weight that is no finite number from 0 on. */
int qsf_quant_check(const QsfQuantRows *rows, QsfErr *err);

/* Writes n_rows rows of qsf_quant_row_bytes each to out. QSF_E_MODEL for what
 * qsf_quant_check refuses, QSF_E_USAGE as above. out is undefined after an error. */
int qsf_quant_encode(const QsfQuant *q, const QsfQuantRows *rows, uint8_t *out, QsfErr *err);

/* Rows that qsf_quant_encode wrote, or of a file, to out (n_rows, cols). Every bit pattern decodes to something; halves
 * that are infinite or no number give such values. QSF_E_USAGE as above. */
int qsf_quant_decode(const QsfQuant *q, const uint8_t *in, size_t n_rows, size_t cols, float *out, QsfErr *err);

#endif
