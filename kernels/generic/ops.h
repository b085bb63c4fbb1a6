/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of what ops_*.h make for an ISA level, and the lines that put it all into the table; contracts:
 * kernels/kernels.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_H
#define QSF_KERNELS_GENERIC_OPS_H

#include "kernels/kernels.h"

#define QK_OPS(isa)                                                                                  \
    void qk_add_##isa(float *y, const float *x, size_t n);                                           \
    void qk_mul_##isa(float *y, const float *x, size_t n);                                           \
    void qk_scale_##isa(float *y, float a, size_t n);                                                \
    float qk_dot_##isa(const float *a, const float *b, size_t n);                                    \
    size_t qk_argmax_##isa(const float *x, size_t n);                                                \
    void qk_f16_to_f32_##isa(float *y, const uint16_t *x, size_t n);                                 \
    void qk_f32_to_f16_##isa(uint16_t *y, const float *x, size_t n);                                 \
    void qk_rms_norm_##isa(float *y, const float *x, const float *w, size_t n, float eps);           \
    void qk_softmax_##isa(float *x, size_t n);                                                       \
    void qk_silu_mul_##isa(float *gate, const float *up, size_t n);                                  \
    void qk_gelu_mul_##isa(float *gate, const float *up, size_t n);                                  \
    void qk_quantize_q8_##isa(void *dst, const float *x, size_t k);                                  \
    void qk_quantize_q8k_##isa(void *dst, const float *x, size_t k);

QK_OPS(sse42)
QK_OPS(avx2)
QK_OPS(avx512)
QK_OPS(neon)

#define QK_SET_OPS(t, isa)                                                                           \
    do {                                                                                             \
        (t)->quantize[QK_ACT_Q8] = qk_quantize_q8_##isa;                                             \
        (t)->quantize[QK_ACT_Q8K] = qk_quantize_q8k_##isa;                                           \
        (t)->rms_norm = qk_rms_norm_##isa;                                                           \
        (t)->softmax = qk_softmax_##isa;                                                             \
        (t)->silu_mul = qk_silu_mul_##isa;                                                           \
        (t)->gelu_mul = qk_gelu_mul_##isa;                                                           \
        (t)->add = qk_add_##isa;                                                                     \
        (t)->mul = qk_mul_##isa;                                                                     \
        (t)->scale = qk_scale_##isa;                                                                 \
        (t)->dot = qk_dot_##isa;                                                                     \
        (t)->argmax = qk_argmax_##isa;                                                               \
        (t)->f16_to_f32 = qk_f16_to_f32_##isa;                                                       \
        (t)->f32_to_f16 = qk_f32_to_f16_##isa;                                                       \
    } while (0)

#endif
