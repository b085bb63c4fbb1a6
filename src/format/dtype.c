/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of GGML and QSF tensor types. Numbers and block sizes: ggml-org/ggml include/ggml.h and
 * src/ggml-common.h; I2_S: microsoft/BitNet src/ggml-bitnet-mad.cpp (128 elements in 32 bytes, one
 * float in 32 bytes after the tensor). Missing numbers are withdrawn types. */
#include "src/format/dtype.h"

#include <stddef.h>

#include "src/base/checked.h"

static const QsfDtype table[] = {
    { 0, "F32", 1, 4, 0, true },          { 1, "F16", 1, 2, 0, true },
    { 2, "Q4_0", 32, 18, 0, true },       { 3, "Q4_1", 32, 20, 0, true },
    { 6, "Q5_0", 32, 22, 0, true },       { 7, "Q5_1", 32, 24, 0, true },
    { 8, "Q8_0", 32, 34, 0, true },       { 9, "Q8_1", 32, 36, 0, false },
    { 10, "Q2_K", 256, 84, 0, true },     { 11, "Q3_K", 256, 110, 0, true },
    { 12, "Q4_K", 256, 144, 0, true },    { 13, "Q5_K", 256, 176, 0, true },
    { 14, "Q6_K", 256, 210, 0, true },    { 15, "Q8_K", 256, 292, 0, false },
    { 16, "IQ2_XXS", 256, 66, 0, false }, { 17, "IQ2_XS", 256, 74, 0, false },
    { 18, "IQ3_XXS", 256, 98, 0, false }, { 19, "IQ1_S", 256, 50, 0, false },
    { 20, "IQ4_NL", 32, 18, 0, true },    { 21, "IQ3_S", 256, 110, 0, false },
    { 22, "IQ2_S", 256, 82, 0, false },   { 23, "IQ4_XS", 256, 136, 0, true },
    { 24, "I8", 1, 1, 0, false },         { 25, "I16", 1, 2, 0, false },
    { 26, "I32", 1, 4, 0, false },        { 27, "I64", 1, 8, 0, false },
    { 28, "F64", 1, 8, 0, false },        { 29, "IQ1_M", 256, 56, 0, false },
    { 30, "BF16", 1, 2, 0, true },        { 34, "TQ1_0", 256, 54, 0, true },
    { 35, "TQ2_0", 256, 66, 0, true },    { 36, "I2_S", 128, 32, 32, false },
    { 39, "MXFP4", 32, 17, 0, false },
    /* QSF v1 (man/qsf-format.5): scale and minimum or scale alone in fp16, then 2, 3, 4 or 2 x 1 bits per
     * element */
    { QSF_DTYPE_QSF2, "QSF2", 64, 20, 0, true },
    { QSF_DTYPE_QSF3, "QSF3", 64, 28, 0, true },
    { QSF_DTYPE_QSF4, "QSF4", 64, 36, 0, true },
    { QSF_DTYPE_QSFT, "QSFT", 64, 18, 0, true },
    { QSF_DTYPE_QSB2, "QSB2", 256, 80, 0, true },
    { QSF_DTYPE_QSB3, "QSB3", 256, 112, 0, true },
    { QSF_DTYPE_QSB4, "QSB4", 256, 144, 0, true },
    { QSF_DTYPE_QSF2 + QSF_DTYPE_OF_128, "QSF2_128", 128, 36, 0, false },
    { QSF_DTYPE_QSF3 + QSF_DTYPE_OF_128, "QSF3_128", 128, 52, 0, false },
    { QSF_DTYPE_QSF4 + QSF_DTYPE_OF_128, "QSF4_128", 128, 68, 0, false },
    { QSF_DTYPE_QSFT + QSF_DTYPE_OF_128, "QSFT_128", 128, 34, 0, false },
    { QSF_DTYPE_QSF2 + QSF_DTYPE_OF_256, "QSF2_256", 256, 68, 0, false },
    { QSF_DTYPE_QSF3 + QSF_DTYPE_OF_256, "QSF3_256", 256, 100, 0, false },
    { QSF_DTYPE_QSF4 + QSF_DTYPE_OF_256, "QSF4_256", 256, 132, 0, false },
    { QSF_DTYPE_QSFT + QSF_DTYPE_OF_256, "QSFT_256", 256, 66, 0, false },
};

enum { N_TYPES = sizeof table / sizeof *table };
_Static_assert(N_TYPES <= QSF_DTYPES_MAX, "an index for each type");

const QsfDtype *qsf_dtype_at(uint32_t i) { return i < N_TYPES ? &table[i] : NULL; }

uint32_t qsf_dtype_index(uint32_t id) {
    for (uint32_t i = 0; i < N_TYPES; i++)
        if (table[i].id == id) return i;
    return QSF_DTYPES_MAX;
}

const QsfDtype *qsf_dtype(uint32_t id) { return qsf_dtype_at(qsf_dtype_index(id)); }

bool qsf_dtype_row_bytes(const QsfDtype *t, uint64_t k, uint64_t *out) {
    return k % t->block_elems == 0 && qsf_mul_u64(k / t->block_elems, t->block_bytes, out);
}

bool qsf_dtype_tensor_bytes(const QsfDtype *t, const uint64_t ne[4], uint64_t *out) {
    uint64_t bytes;
    if (!qsf_dtype_row_bytes(t, ne[0], &bytes)) return false;
    for (int i = 1; i < 4; i++)
        if (!qsf_mul_u64(bytes, ne[i], &bytes)) return false;
    return qsf_add_u64(bytes, t->tail_bytes, out);
}
