/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantization codes of QSF files and the weight types they represent. */
#include "src/base/checked.h"
#include "src/file/dtype.h"
#include "src/file/qsf/layout.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct {
    uint8_t code;
    bool blocks; /* uses the block size in the header */
    uint32_t dtype;
} codes[] = {
    /* clang-format off */
    { QSFF_2BIT, true, QK_GGML_QSF2 },
    { QSFF_2BIT_SYM, true, QK_GGML_QSF2 },
    { QSFF_3BIT, true, QK_GGML_QSF3 },
    { QSFF_4BIT, true, QK_GGML_QSF4 },
    { QSFF_TERNARY, true, QK_GGML_QSFT },
    { QSFF_8BIT, false, QK_GGML_Q8_0 },
    { QSFF_F16, false, QK_GGML_F16 },
    { QSFF_F32, false, QK_GGML_F32 },
    { QSFF_BF16, false, QK_GGML_BF16 },
    { QSFF_2BIT_BOOK, false, QK_GGML_QSB2 },
    { QSFF_3BIT_BOOK, false, QK_GGML_QSB3 },
    { QSFF_4BIT_BOOK, false, QK_GGML_QSB4 },
    { QSFF_I2_256, false, QK_GGML_I2_256 },
    { QSFF_I2_32, false, QK_GGML_I2_32 },
    { QSFF_F8_E4M3, false, QK_GGML_F8_E4M3 },
    { QSFF_F8_E5M2, false, QK_GGML_F8_E5M2 },
    /* clang-format on */
};

static uint32_t of_block(uint32_t block) {
    return block == 256 ? QSF_DTYPE_OF_256 : block == 128 ? QSF_DTYPE_OF_128 : 0;
}

bool qsf_code_dtype(uint8_t code, uint32_t block, uint32_t *dtype) {
    for (size_t i = 0; i < COUNT(codes); i++) {
        if (codes[i].code != code) continue;
        *dtype = codes[i].dtype + (codes[i].blocks ? of_block(block) : 0);
        return true;
    }
    if (code < QSFF_GGML || code == QSFF_LAYER_CODE || qsf_dtype((uint32_t)(code - QSFF_GGML)) == NULL)
        return false;
    *dtype = (uint32_t)(code - QSFF_GGML);
    return true;
}

bool qsf_code_of_dtype(uint32_t dtype, uint8_t *code) {
    const uint32_t id = qsf_dtype_of_64(dtype);
    if (qsf_dtype(dtype) == NULL) return false;
    for (size_t i = 0; i < COUNT(codes); i++) {
        if (codes[i].dtype != id) continue;
        *code = codes[i].code;
        return true;
    }
    if (id >= QSFF_LAYER_CODE - QSFF_GGML) return false; /* I2_SPLIT */
    *code = (uint8_t)(QSFF_GGML + id);
    return true;
}

bool qsf_code_bytes(uint32_t dtype, uint64_t rows, uint32_t cols, uint64_t *bytes) {
    const QsfDtype *t = qsf_dtype(dtype);
    if (t == NULL) return false;
    uint64_t blocks = ((uint64_t)cols + t->block_elems - 1) / t->block_elems;
    return qsf_mul_u64(blocks * t->block_bytes, rows, bytes) && qsf_add_u64(*bytes, t->tail_bytes, bytes);
}
