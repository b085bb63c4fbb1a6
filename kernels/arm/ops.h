/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the ARM kernels other than matmul; contracts: kernels/kernels.h. */
#ifndef QSF_KERNELS_ARM_OPS_H
#define QSF_KERNELS_ARM_OPS_H

#include "kernels/kernels.h"

#define QK_ARM_OPS(isa)                                                                              \
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

QK_ARM_OPS(neon)

#endif
