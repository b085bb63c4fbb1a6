/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the functions that ops_*.h define for an ISA level, and a macro that stores them in the
 * table; contracts: kernels/kernels.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_H
#define QSF_KERNELS_GENERIC_OPS_H

#include "kernels/kernels.h"

#define QK_OPS(isa)                                                                                          \
    void qk_add_##isa(float *y, const float *x, size_t n);                                                   \
    void qk_mul_##isa(float *y, const float *x, size_t n);                                                   \
    void qk_scale_##isa(float *y, float a, size_t n);                                                        \
    void qk_lerp_##isa(float *y, const float *x, const float *z, const float *w, size_t n);                  \
    void qk_thin_f16_##isa(const qk_thin *m);                                                                \
    void qk_thin_f32_##isa(const qk_thin *m);                                                                \
    void qk_mix_streams_##isa(float *y, const float *coef, size_t n, size_t stride, size_t width);           \
    void qk_correct_streams_##isa(float *y, const float *x, const float *coef, size_t n, size_t stride,      \
                                  size_t width);                                                             \
    void qk_keep_above_##isa(float *y, size_t n, float deviations);                                          \
    size_t qk_argmax_##isa(const float *x, size_t n);                                                        \
    void qk_rms_norm_##isa(float *y, const float *x, const float *w, size_t n, float eps);                   \
    void qk_l2_norm_##isa(float *y, const float *x, size_t n, float eps);                                    \
    void qk_layer_norm_##isa(float *y, const float *x, const float *w, const float *b, size_t n, float eps); \
    void qk_rope_pairs_batch_##isa(const qk_rope *r);                                                        \
    void qk_rope_halves_batch_##isa(const qk_rope *r);                                                       \
    float qk_softmax_t_##isa(float *y, const float *x, size_t n, float temperature);                         \
    void qk_silu_mul_##isa(float *gate, const float *up, size_t n);                                          \
    void qk_gelu_mul_##isa(float *gate, const float *up, size_t n);                                          \
    void qk_relu_mul_##isa(float *gate, const float *up, size_t n);                                          \
    void qk_relu2_mul_##isa(float *gate, const float *up, size_t n);                                         \
    void qk_sigmoid_mul_##isa(float *gate, const float *up, size_t n);                                       \
    void qk_softplus_mul_##isa(float *gate, const float *up, size_t n);                                      \
    void qk_exp_mul_##isa(float *gate, const float *up, size_t n);                                           \
    void qk_tanh_mul_##isa(float *gate, const float *up, size_t n);                                          \
    void qk_softcap_##isa(float *y, float cap, size_t n);                                                    \
    void qk_swiglu_mul_##isa(float *gate, const float *up, size_t n, const qk_swiglu *s);                    \
    void qk_xielu_mul_##isa(float *gate, const float *up, size_t n, const qk_xielu *s);                      \
    void qk_clamp_##isa(float *y, const float *x, size_t n, float low, float high);                          \
    void qk_scan_each_##isa(const qk_scan *p, const qk_scan_each *e);                                        \
    void qk_scan_one_##isa(const qk_scan *p, const qk_scan_one *o);                                          \
    void qk_delta_##isa(float *s, const qk_delta *p);                                                        \
    void qk_wkv_##isa(float *s, const qk_wkv *p);                                                            \
    void qk_conv_##isa(float *y, const float *const *x, const float *const *w, size_t kernel,                \
                       const float *bias, size_t n);                                                         \
    size_t qk_top_k_##isa(qk_pick *out, const float *x, size_t n, size_t k);                                 \
    size_t qk_top_p_##isa(qk_pick *out, const float *x, const float *p, size_t n, float max, double top_p,   \
                          size_t *sure);                                                                     \
    size_t qk_at_least_##isa(qk_pick *out, const float *x, size_t n, float limit);                           \
    size_t qk_draw_##isa(const float *p, size_t n, double u, double *total);                                 \
    void qk_quantize_q8_##isa(void *dst, const float *x, size_t k);                                          \
    void qk_quantize_q8k_##isa(void *dst, const float *x, size_t k);

/* The levels with ALL in kernels/formats.h. */
#define QK_OPS_ALL(isa) QK_OPS(isa)
#define QK_OPS_PACKED(isa)
#define QK_OPS_WEIGHTS(isa)
#define QK_OPS_GRIDS(isa)
#define QK_OPS_LEVEL(isa, LEVEL, arch, kernels) QK_OPS_##kernels(isa)
QK_KERNEL_LEVELS(QK_OPS_LEVEL)

#define QK_SET_OPS(t, isa)                                   \
    do {                                                     \
        (t)->quantize[QK_ACT_Q8] = qk_quantize_q8_##isa;     \
        (t)->quantize[QK_ACT_Q8K] = qk_quantize_q8k_##isa;   \
        (t)->rms_norm = qk_rms_norm_##isa;                   \
        (t)->gate[QK_GATE_SILU] = qk_silu_mul_##isa;         \
        (t)->gate[QK_GATE_GELU] = qk_gelu_mul_##isa;         \
        (t)->gate[QK_GATE_RELU] = qk_relu_mul_##isa;         \
        (t)->gate[QK_GATE_RELU2] = qk_relu2_mul_##isa;       \
        (t)->gate[QK_GATE_SIGMOID] = qk_sigmoid_mul_##isa;   \
        (t)->gate[QK_GATE_SOFTPLUS] = qk_softplus_mul_##isa; \
        (t)->gate[QK_GATE_EXP] = qk_exp_mul_##isa;           \
        (t)->gate[QK_GATE_TANH] = qk_tanh_mul_##isa;         \
        (t)->softcap = qk_softcap_##isa;                     \
        (t)->l2_norm = qk_l2_norm_##isa;                     \
        (t)->lerp = qk_lerp_##isa;                           \
        (t)->thin_f16 = qk_thin_f16_##isa;                   \
        (t)->thin_f32 = qk_thin_f32_##isa;                   \
        (t)->mix_streams = qk_mix_streams_##isa;             \
        (t)->correct_streams = qk_correct_streams_##isa;     \
        (t)->keep_above = qk_keep_above_##isa;               \
        (t)->add = qk_add_##isa;                             \
        (t)->mul = qk_mul_##isa;                             \
        (t)->scale = qk_scale_##isa;                         \
        (t)->argmax = qk_argmax_##isa;                       \
        (t)->layer_norm = qk_layer_norm_##isa;               \
        (t)->rope_pairs_batch = qk_rope_pairs_batch_##isa;   \
        (t)->rope_halves_batch = qk_rope_halves_batch_##isa; \
        (t)->softmax_t = qk_softmax_t_##isa;                 \
        (t)->swiglu_mul = qk_swiglu_mul_##isa;               \
        (t)->xielu_mul = qk_xielu_mul_##isa;                 \
        (t)->clamp = qk_clamp_##isa;                         \
        (t)->scan_each = qk_scan_each_##isa;                 \
        (t)->scan_one = qk_scan_one_##isa;                   \
        (t)->delta = qk_delta_##isa;                         \
        (t)->wkv = qk_wkv_##isa;                             \
        (t)->conv = qk_conv_##isa;                           \
        (t)->top_k = qk_top_k_##isa;                         \
        (t)->top_p = qk_top_p_##isa;                         \
        (t)->at_least = qk_at_least_##isa;                   \
        (t)->draw = qk_draw_##isa;                           \
    } while (0)

#endif
