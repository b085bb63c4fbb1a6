/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single-precision matmul, SSE4.2. One output element has one accumulator of four
 * lanes, fed in ascending order; the up to three elements left over are added last, one by one. */
#include "kernels/x86/common_sse42.h"
#include "kernels/x86/mm.h"

QK_INLINE float sum_ps(__m128 v)
{
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}

/* n rows (1 or QK_GROUP) against one column. */
QK_INLINE void rows_dot(const uint8_t *const *w, const float *x, size_t k, int n, float *y)
{
    __m128 acc[QK_GROUP];
    const size_t whole = k & ~(size_t)3;
    for (int i = 0; i < n; i++)
        acc[i] = _mm_setzero_ps();
    for (size_t j = 0; j < whole; j += 4) {
        const __m128 xj = _mm_loadu_ps(x + j);
        for (int i = 0; i < n; i++)
            acc[i] =
                _mm_add_ps(acc[i], _mm_mul_ps(_mm_loadu_ps((const void *)(w[i] + j * sizeof(float))), xj));
    }
    for (int i = 0; i < n; i++) {
        y[i] = sum_ps(acc[i]);
        for (size_t j = whole; j < k; j++)
            y[i] += qk_load_f32(w[i] + j * sizeof(float)) * x[j];
    }
}

void qk_mm_f32_sse42(const qk_mm *m, size_t row0, size_t row1)
{
    for (size_t c = 0; c < m->n_cols; c++) {
        const float *x = qk_mm_col(m, c);
        float *y = m->y + c * m->y_stride;
        size_t r = row0;
        for (; r + QK_GROUP <= row1; r += QK_GROUP) {
            const uint8_t *w[QK_GROUP];
            for (size_t i = 0; i < QK_GROUP; i++)
                w[i] = qk_mm_row(m, r + i);
            rows_dot(w, x, m->k, QK_GROUP, y + r);
        }
        for (; r < row1; r++) {
            const uint8_t *w = qk_mm_row(m, r);
            rows_dot(&w, x, m->k, 1, y + r);
        }
    }
}
