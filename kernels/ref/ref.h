/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The scalar reference kernels. Contracts: kernels/kernels.h. */
#ifndef QSF_KERNELS_REF_REF_H
#define QSF_KERNELS_REF_REF_H

#include "kernels/kernels.h"
#include "kernels/x16/pack.h"
#include "kernels/x16/x16.h"

#define QK_REF_FLOAT(fmt)                                             \
    void qk_mm_##fmt##_ref(const qk_mm *m, size_t row0, size_t row1); \
    void qk_dequant_##fmt##_ref(const void *w, float *dst, size_t k);
#define QK_REF_BLOCK(fmt) \
    QK_REF_FLOAT(fmt)     \
    void qk_mm16_##fmt##_ref(const qk_mm *m, size_t row0, size_t row1);
#define QK_REF_SUPER(fmt)                                            QK_REF_BLOCK(fmt)
#define QK_REF_GRID(fmt)                                             QK_REF_BLOCK(fmt)
#define QK_REF(a, fmt, TYPE, ggml, elems, bytes, planes, tail, core) QK_REF_##core(fmt)
QK_FORMATS(QK_REF, )

void qk_quantize_f32_ref(void *dst, const float *x, size_t k);
void qk_quantize_q8_ref(void *dst, const float *x, size_t k);
void qk_quantize_q8k_ref(void *dst, const float *x, size_t k);
void qk_matmul_exact_ref(const qk_mm *m, size_t row0, size_t row1, const qk_weight_ops *ops,
                         float *row_scratch);

void qk_rms_norm_ref(float *y, const float *x, const float *w, size_t n, float eps);
void qk_layer_norm_ref(float *y, const float *x, const float *w, const float *b, size_t n, float eps);
void qk_l2_norm_ref(float *y, const float *x, size_t n, float eps);
void qk_rope_pairs_batch_ref(const qk_rope *r);
void qk_rope_halves_batch_ref(const qk_rope *r);
float qk_softmax_t_ref(float *y, const float *x, size_t n, float temperature);
#define QK_REF_GATE(name, NAME) void qk_##name##_mul_ref(float *gate, const float *up, size_t n);
QK_GATES(QK_REF_GATE)
void qk_swiglu_mul_ref(float *gate, const float *up, size_t n, const qk_swiglu *s);
void qk_xielu_mul_ref(float *gate, const float *up, size_t n, const qk_xielu *s);
void qk_add_ref(float *y, const float *x, size_t n);
void qk_mul_ref(float *y, const float *x, size_t n);
void qk_scale_ref(float *y, float a, size_t n);
void qk_lerp_ref(float *y, const float *x, const float *z, const float *w, size_t n);
void qk_softcap_ref(float *y, float cap, size_t n);
void qk_thin_f16_ref(const qk_thin *m);
void qk_thin_f32_ref(const qk_thin *m);
void qk_mix_streams_ref(float *y, const float *coef, size_t n, size_t stride, size_t width);
void qk_correct_streams_ref(float *y, const float *x, const float *coef, size_t n, size_t stride,
                            size_t width);
void qk_keep_above_ref(float *y, size_t n, float deviations);
size_t qk_argmax_ref(const float *x, size_t n);
size_t qk_top_k_ref(qk_pick *out, const float *x, size_t n, size_t k);
size_t qk_top_p_ref(qk_pick *out, const float *x, const float *p, size_t n, float max, double top_p,
                    size_t *sure);
size_t qk_at_least_ref(qk_pick *out, const float *x, size_t n, float limit);
size_t qk_draw_ref(const float *p, size_t n, double u, double *total);
void qk_clamp_ref(float *y, const float *x, size_t n, float low, float high);
void qk_scan_each_ref(const qk_scan *p, const qk_scan_each *e);
void qk_scan_one_ref(const qk_scan *p, const qk_scan_one *o);
void qk_delta_ref(float *s, const qk_delta *p);
void qk_wkv_ref(float *s, const qk_wkv *p);
void qk_conv_ref(float *y, const float *const *x, const float *const *w, size_t kernel, const float *bias,
                 size_t n);

/* Dot product of one row of floats with one activation column. */
typedef float (*qk_row_dot)(const uint8_t *w, const void *x, size_t k);

static inline void qk_ref_matmul(const qk_mm *m, size_t row0, size_t row1, qk_row_dot dot) {
    for (size_t c = 0; c < m->n_cols; c++) {
        const void *x = (const char *)m->x + c * m->x_stride;
        for (size_t r = row0; r < row1; r++)
            m->y[c * m->y_stride + r] = dot((const uint8_t *)m->w + r * m->row_bytes, x, m->k);
    }
}

/* acc plus the product of one block w of a row with block b of an activation column of k elements. */
typedef float (*qk_add_block)(float acc, const uint8_t *w, const void *col, size_t k, size_t b);
typedef void (*qk_unpack_row)(void *dst, const void *group, unsigned r, size_t k);

enum { QK_REF_BLOCK_MAX = sizeof(qk_q6_k) };

static inline void qk_ref_rows(const qk_mm *m, size_t row0, size_t row1, qk_type type, qk_add_block add) {
    const size_t blocks = m->k / qk_type_elems(type), bytes = qk_type_bytes(type);
    for (size_t c = 0; c < m->n_cols; c++)
        for (size_t r = row0; r < row1; r++) {
            const uint8_t *w = (const uint8_t *)m->w + r * m->row_bytes;
            float acc = 0;
            for (size_t b = 0; b < blocks; b++)
                acc = add(acc, w + b * bytes, (const char *)m->x + c * m->x_stride, m->k, b);
            m->y[c * m->y_stride + r] = acc;
        }
}

/* The same for groups (x16.h): one block of a group is itself a group, with that many elements. */
static inline void qk_ref_groups(const qk_mm *m, size_t row0, size_t row1, qk_type type, qk_add_block add,
                                 qk_unpack_row unpack) {
    const size_t elems = qk_type_elems(type), blocks = m->k / elems, bytes = qk_type_bytes(type);
    for (size_t c = 0; c < m->n_cols; c++)
        for (size_t r = row0; r < row1; r++) {
            const uint8_t *group = (const uint8_t *)m->w + r / QK_GROUP * QK_GROUP * m->row_bytes;
            float acc = 0;
            for (size_t b = 0; b < blocks; b++) {
                uint8_t w[QK_REF_BLOCK_MAX];
                unpack(w, group + b * QK_GROUP * bytes, (unsigned)(r % QK_GROUP), elems);
                acc = add(acc, w, (const char *)m->x + c * m->x_stride, m->k, b);
            }
            m->y[c * m->y_stride + r] = acc;
        }
}

/* Both matmuls of a format. */
#define QK_REF_MATMULS(fmt, type, add)                                   \
    void qk_mm_##fmt##_ref(const qk_mm *m, size_t row0, size_t row1) {   \
        qk_ref_rows(m, row0, row1, type, add);                           \
    }                                                                    \
    void qk_mm16_##fmt##_ref(const qk_mm *m, size_t row0, size_t row1) { \
        qk_ref_groups(m, row0, row1, type, add, qk_unpack_row_##fmt);    \
    }

#endif
