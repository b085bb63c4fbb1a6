/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cells of the interleaved formats: prototypes of what a <format>_<isa>.c defines (contracts: qk_weight_ops), and
 * the rows of a level's table. */
#ifndef QSF_KERNELS_X16_CELLS_H
#define QSF_KERNELS_X16_CELLS_H

#include "kernels/kernels.h"

#define QK_CELL(cell)                                              \
    void qk_mm_##cell(const qk_mm *m, size_t row0, size_t row1);   \
    void qk_mm16_##cell(const qk_mm *m, size_t row0, size_t row1); \
    void qk_pack_##cell(void *dst, const void *src, size_t row_bytes, size_t k);

/* Formats with a float scale per block: kernels/x16/mm_block.h. */
#define QK_BLOCK_CELLS(isa)                                                                        \
    QK_CELL(q4_0_##isa) QK_CELL(q4_1_##isa) QK_CELL(q5_0_##isa) QK_CELL(q5_1_##isa)                \
    QK_CELL(q8_0_##isa) QK_CELL(iq4_nl_##isa) QK_CELL(i2_s_##isa) QK_CELL(qsf2_##isa)              \
    QK_CELL(qsf3_##isa) QK_CELL(qsf4_##isa) QK_CELL(qsft_##isa)

/* Formats with super-blocks of 256: kernels/x16/mm_super.h. */
#define QK_SUPER_CELLS(isa)                                                                        \
    QK_CELL(q4_k_##isa) QK_CELL(q5_k_##isa) QK_CELL(q6_k_##isa) QK_CELL(q2_k_##isa)                \
    QK_CELL(q3_k_##isa) QK_CELL(iq4_xs_##isa) QK_CELL(tq1_0_##isa) QK_CELL(tq2_0_##isa)    \
    QK_CELL(qsb2_##isa) QK_CELL(qsb3_##isa) QK_CELL(qsb4_##isa)

#define QK_SET_CELL(t, type, cell)                                                                \
    do {                                                                                          \
        qk_weight_ops *ops_ = &(t)->weight[type];                                                 \
        ops_->name = #cell;                                                                       \
        ops_->matmul = qk_mm_##cell;                                                              \
        ops_->matmul16 = qk_mm16_##cell;                                                          \
        ops_->pack = qk_pack_##cell;                                                              \
    } while (0)

#define QK_SET_FLOAT_CELL(t, type, cell)          \
    do {                                          \
        (t)->weight[type].name = #cell;           \
        (t)->weight[type].matmul = qk_mm_##cell;  \
    } while (0)

/* Formats whose rows stay as they are: kernels/generic/mm_float.h. */
#define QK_SET_FLOAT_CELLS(t, isa)                  \
    do {                                            \
        QK_SET_FLOAT_CELL(t, QK_F32, f32_##isa);    \
        QK_SET_FLOAT_CELL(t, QK_F16, f16_##isa);    \
        QK_SET_FLOAT_CELL(t, QK_BF16, bf16_##isa);  \
    } while (0)

#define QK_SET_BLOCK_CELLS(t, isa)                  \
    do {                                            \
        QK_SET_CELL(t, QK_Q4_0, q4_0_##isa);        \
        QK_SET_CELL(t, QK_Q4_1, q4_1_##isa);        \
        QK_SET_CELL(t, QK_Q5_0, q5_0_##isa);        \
        QK_SET_CELL(t, QK_Q5_1, q5_1_##isa);        \
        QK_SET_CELL(t, QK_Q8_0, q8_0_##isa);        \
        QK_SET_CELL(t, QK_IQ4_NL, iq4_nl_##isa);    \
        QK_SET_CELL(t, QK_I2_S, i2_s_##isa);        \
        QK_SET_CELL(t, QK_QSF2, qsf2_##isa);        \
        QK_SET_CELL(t, QK_QSF3, qsf3_##isa);        \
        QK_SET_CELL(t, QK_QSF4, qsf4_##isa);        \
        QK_SET_CELL(t, QK_QSFT, qsft_##isa);        \
    } while (0)

#define QK_SET_SUPER_CELLS(t, isa)                  \
    do {                                            \
        QK_SET_CELL(t, QK_Q4_K, q4_k_##isa);        \
        QK_SET_CELL(t, QK_Q5_K, q5_k_##isa);        \
        QK_SET_CELL(t, QK_Q6_K, q6_k_##isa);        \
        QK_SET_CELL(t, QK_Q2_K, q2_k_##isa);        \
        QK_SET_CELL(t, QK_Q3_K, q3_k_##isa);        \
        QK_SET_CELL(t, QK_IQ4_XS, iq4_xs_##isa);    \
        QK_SET_CELL(t, QK_TQ1_0, tq1_0_##isa);      \
        QK_SET_CELL(t, QK_TQ2_0, tq2_0_##isa);      \
        QK_SET_CELL(t, QK_QSB2, qsb2_##isa);        \
        QK_SET_CELL(t, QK_QSB3, qsb3_##isa);        \
        QK_SET_CELL(t, QK_QSB4, qsb4_##isa);        \
    } while (0)

#endif
