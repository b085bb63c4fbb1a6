/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of formats, and encoding and decoding of rows as blocks. */
#include "src/convert/quant/formats.h"

#include <math.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/base/checked.h"
#include "src/base/half.h"
#include "src/convert/quant/blocks.h"
#include "src/convert/quant/fit.h"
#include "src/file/qsf/type_codes.h"

/* --- rejects values that no block layout can store, with their position --- */

static int check_weights(const QsfQuantRows *rows, QsfErr *err) {
    for (size_t c = 0; rows->importance && c < rows->cols; c++) {
        const double w = (double)rows->importance[c];
        if (!isfinite(w) || w < 0)
            return qsf_err_set(err, QSF_E_MODEL, "the importance of column %zu is %g, expected 0 or more", c,
                               w);
    }
    return QSF_OK;
}

static int refuse(const QsfQuantRows *rows, size_t r, size_t c, QsfErr *err) {
    const double v = (double)rows->x[r * rows->cols + c];
    const unsigned long long row = rows->first + r;
    if (isnan(v)) return qsf_err_set(err, QSF_E_MODEL, "row %llu, column %zu is not a number (NaN)", row, c);
    if (isinf(v)) return qsf_err_set(err, QSF_E_MODEL, "row %llu, column %zu is infinite", row, c);
    return qsf_err_set(err, QSF_E_MODEL,
                       "row %llu, column %zu is %g, beyond the half precision maximum of 65504", row, c, v);
}

int qsf_quant_check(const QsfQuantRows *rows, QsfErr *err) {
    const int rc = check_weights(rows, err);
    if (rc) return rc;
    for (size_t r = 0; r < rows->n_rows; r++)
        for (size_t c = 0; c < rows->cols; c++)
            if (!(fabsf(rows->x[r * rows->cols + c]) <= QSF_HALF_MAX)) return refuse(rows, r, c, err);
    return QSF_OK;
}

enum { BLOCK_DEFAULT = QK_ELEMS_QSF2, STEP_MAX = QSF_FIT_MAX };

typedef struct Row {
    QsfQuantFormat format;
    const QsfBlockOps *ops;
} Row;

/* What is not a code of `bits` in a block of the type. */
#define HEAD(TYPE, bits) (QK_BYTES_##TYPE - QK_ELEMS_##TYPE * (bits) / 8)
/* Codes of QSF, whose rows are padded: with blocks of the file's size, or always of the type's. */
#define SIZED(name, code, TYPE, bits, ops) \
    { { name, QSFF_##code, bits, HEAD(TYPE, bits), 0, true }, &qsf_block_##ops }
#define FIXED(name, code, TYPE, bits, ops) \
    { { name, QSFF_##code, bits, HEAD(TYPE, bits), QK_ELEMS_##TYPE, true }, &qsf_block_##ops }
/* GGML types. */
#define GGML(fmt, TYPE, bits) \
    { { #fmt, QSFF_GGML + QK_GGML_##TYPE, bits, HEAD(TYPE, bits), QK_ELEMS_##TYPE, false }, &qsf_block_##fmt }

static const Row table[] = {
    SIZED("2bit", 2BIT_SYM, QSF2, 2, 2bit),
    SIZED("2bit-asym", 2BIT, QSF2, 2, 2bit_asym),
    SIZED("3bit", 3BIT, QSF3, 3, 3bit),
    SIZED("4bit", 4BIT, QSF4, 4, 4bit),
    SIZED("ternary", TERNARY, QSFT, 2, ternary),
    FIXED("8bit", 8BIT, Q8_0, 8, q8_0),
    FIXED("f16", F16, F16, 16, f16),
    FIXED("2bit-book", 2BIT_BOOK, QSB2, 2, 2bit_book),
    FIXED("3bit-book", 3BIT_BOOK, QSB3, 3, 3bit_book),
    FIXED("4bit-book", 4BIT_BOOK, QSB4, 4, 4bit_book),
    GGML(q4_0, Q4_0, 4),
    GGML(q8_0, Q8_0, 8),
    GGML(q2_k, Q2_K, 2),
    GGML(q3_k, Q3_K, 3),
    GGML(q4_k, Q4_K, 4),
    GGML(q6_k, Q6_K, 6),
};
enum { N_FORMATS = sizeof table / sizeof *table };

const QsfQuantFormat *qsf_quant_format(size_t i) { return i < N_FORMATS ? &table[i].format : NULL; }

const QsfQuantFormat *qsf_quant_format_named(const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (!strcmp(table[i].format.name, name)) return &table[i].format;
    return NULL;
}

const QsfQuantFormat *qsf_quant_format_of(uint8_t code) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (table[i].format.code == code) return &table[i].format;
    return NULL;
}

static const QsfBlockOps *ops_of(const QsfQuantFormat *format) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (&table[i].format == format) return table[i].ops;
    return NULL;
}

/* Returns the number of elements of a block in this file. */
static uint32_t elems_of(const QsfQuant *q) {
    return q->format->elems ? q->format->elems : q->block ? q->block : BLOCK_DEFAULT;
}

static uint64_t block_bytes(const QsfQuantFormat *format, uint64_t elems) {
    return format->head + elems * format->bits / 8;
}

int qsf_quant_row_bytes(const QsfQuant *q, uint64_t cols, uint64_t *bytes, QsfErr *err) {
    const uint32_t elems = elems_of(q);
    uint64_t padded;
    if (!q->format->elems && elems != 64 && elems != 128 && elems != 256)
        return qsf_err_set(err, QSF_E_USAGE, "quantization blocks have 64, 128 or 256 elements, not %u",
                           elems);
    if (cols == 0) return qsf_err_set(err, QSF_E_USAGE, "%s: a row has no elements", q->format->name);
    if (!q->format->pads && cols % elems)
        return qsf_err_set(err, QSF_E_USAGE,
                           "%s: rows of %llu elements are not a multiple of its block size %u",
                           q->format->name, (unsigned long long)cols, elems);
    if (!qsf_add_u64(cols, elems - 1, &padded) ||
        !qsf_mul_u64(padded / elems, block_bytes(q->format, elems), bytes) || *bytes > SIZE_MAX)
        return qsf_err_set(err, QSF_E_USAGE, "%s: rows of %llu elements are too long", q->format->name,
                           (unsigned long long)cols);
    return QSF_OK;
}

/* Elements processed together: a block, or many if a block is one element. */
static size_t step_of(const QsfQuant *q) {
    const uint32_t elems = elems_of(q);
    return elems == 1 ? STEP_MAX : elems;
}

/* Sets the weights of n elements and their padding; all equal if there is no importance. */
static void weights_at(const QsfQuantRows *rows, size_t c, size_t n, size_t padded, float *w) {
    float any = 0;
    for (size_t i = 0; i < n; i++) {
        w[i] = rows->importance ? rows->importance[c + i] : 1;
        any += w[i];
    }
    for (size_t i = 0; i < padded; i++)
        if (i >= n)
            w[i] = 0;
        else if (!(any > 0))
            w[i] = 1;
}

static uint8_t *encode_row(const QsfQuant *q, const QsfBlockOps *ops, const QsfQuantRows *rows, size_t r,
                           uint8_t *out) {
    const size_t step = step_of(q), elems = elems_of(q);
    float x[STEP_MAX], w[STEP_MAX];
    for (size_t c = 0; c < rows->cols; c += step) {
        const size_t n = rows->cols - c < step ? rows->cols - c : step,
                     padded = (n + elems - 1) / elems * elems;
        const QsfBlockIn block = { padded, x, w };
        memcpy(x, rows->x + r * rows->cols + c, n * sizeof *x);
        memset(x + n, 0, (padded - n) * sizeof *x);
        weights_at(rows, c, n, padded, w);
        (q->rule == QSF_RULE_MINMAX ? ops->minmax : ops->search)(&block, out);
        out += padded / elems * block_bytes(q->format, elems);
    }
    return out;
}

int qsf_quant_encode(const QsfQuant *q, const QsfQuantRows *rows, uint8_t *out, QsfErr *err) {
    const QsfBlockOps *ops = ops_of(q->format);
    uint64_t bytes;
    int rc = qsf_quant_row_bytes(q, rows->cols, &bytes, err);
    if (!rc) rc = qsf_quant_check(rows, err);
    if (rc) return rc;
    for (size_t r = 0; r < rows->n_rows; r++) out = encode_row(q, ops, rows, r, out);
    return QSF_OK;
}

int qsf_quant_decode(const QsfQuant *q, const uint8_t *in, size_t n_rows, size_t cols, float *out,
                     QsfErr *err) {
    const QsfBlockOps *ops = ops_of(q->format);
    const size_t step = step_of(q), elems = elems_of(q);
    float x[STEP_MAX];
    uint64_t bytes;
    const int rc = qsf_quant_row_bytes(q, cols, &bytes, err);
    if (rc) return rc;
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < cols; c += step) {
            const size_t n = cols - c < step ? cols - c : step, padded = (n + elems - 1) / elems * elems;
            ops->decode(in, padded, x);
            memcpy(out + r * cols + c, x, n * sizeof *x);
            in += padded / elems * block_bytes(q->format, elems);
        }
    return QSF_OK;
}
