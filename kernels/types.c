/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GGML type numbers (ggml-org/ggml, include/ggml.h) and kernel types. */
#include "kernels/blocks.h"

static const uint32_t ggml_of[QK_TYPE_N] = {
    [QK_F32] = 0,  [QK_F16] = 1,  [QK_BF16] = 30, [QK_Q8_0] = 8,  [QK_Q4_0] = 2,  [QK_Q4_1] = 3,
    [QK_Q5_0] = 6, [QK_Q5_1] = 7, [QK_Q4_K] = 12, [QK_Q5_K] = 13, [QK_Q6_K] = 14,
    [QK_Q2_K] = 10, [QK_Q3_K] = 11, [QK_IQ4_NL] = 20, [QK_IQ4_XS] = 23, [QK_TQ1_0] = 34, [QK_TQ2_0] = 35,
    [QK_I2_S] = 36, /* microsoft/BitNet */
    [QK_QSF2] = QK_GGML_QSF + 1, [QK_QSF3] = QK_GGML_QSF + 2, [QK_QSF4] = QK_GGML_QSF + 3, [QK_QSFT] = QK_GGML_QSF + 4,
    [QK_QSB2] = QK_GGML_QSF + 5, [QK_QSB3] = QK_GGML_QSF + 6, [QK_QSB4] = QK_GGML_QSF + 7,
};

static const struct {
    uint16_t elems, bytes;
} block_of[QK_TYPE_N] = {
    [QK_F32] = { 1, 4 },
    [QK_F16] = { 1, 2 },
    [QK_BF16] = { 1, 2 },
    [QK_Q8_0] = { QK_BLOCK, sizeof(qk_q8_0) },
    [QK_Q4_0] = { QK_BLOCK, sizeof(qk_q4_0) },
    [QK_Q4_1] = { QK_BLOCK, sizeof(qk_q4_1) },
    [QK_Q5_0] = { QK_BLOCK, sizeof(qk_q5_0) },
    [QK_Q5_1] = { QK_BLOCK, sizeof(qk_q5_1) },
    [QK_Q4_K] = { QK_K, sizeof(qk_q4_k) },
    [QK_Q5_K] = { QK_K, sizeof(qk_q5_k) },
    [QK_Q6_K] = { QK_K, sizeof(qk_q6_k) },
    [QK_Q2_K] = { QK_K, sizeof(qk_q2_k) },
    [QK_Q3_K] = { QK_K, sizeof(qk_q3_k) },
    [QK_IQ4_NL] = { QK_BLOCK, sizeof(qk_iq4_nl) },
    [QK_IQ4_XS] = { QK_K, sizeof(qk_iq4_xs) },
    [QK_TQ1_0] = { QK_K, sizeof(qk_tq1_0) },
    [QK_TQ2_0] = { QK_K, sizeof(qk_tq2_0) },
    [QK_I2_S] = { QK_I2S_BLOCK, sizeof(qk_i2_s) },
    [QK_QSF2] = { QK_QSF_BLOCK, sizeof(qk_qsf2) },
    [QK_QSF3] = { QK_QSF_BLOCK, sizeof(qk_qsf3) },
    [QK_QSF4] = { QK_QSF_BLOCK, sizeof(qk_qsf4) },
    [QK_QSFT] = { QK_QSF_BLOCK, sizeof(qk_qsft) },
    [QK_QSB2] = { QK_K, sizeof(qk_qsb2) },
    [QK_QSB3] = { QK_K, sizeof(qk_qsb3) },
    [QK_QSB4] = { QK_K, sizeof(qk_qsb4) },
};

/* ggml-org/ggml, src/ggml-common.h. */
const int8_t qk_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

unsigned qk_type_elems(qk_type t)
{
    return block_of[t].elems;
}

unsigned qk_type_bytes(qk_type t)
{
    return block_of[t].bytes;
}

qk_type qk_type_of(uint32_t ggml_type)
{
    for (int t = 0; t < QK_TYPE_N; t++)
        if (ggml_of[t] == ggml_type)
            return (qk_type)t;
    return QK_NONE;
}

uint32_t qk_type_ggml(qk_type t)
{
    return t >= 0 && t < QK_TYPE_N ? ggml_of[t] : UINT32_MAX;
}
