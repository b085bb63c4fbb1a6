/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of Q8_0 and Q4_0 at SSE4.2, as a template: the including file has defined FMT_BYTES and
 * fmt_unpack(p, &lo, &hi), the 32 signed weights of a block. Sums and order as in mm_block_512.h. */
#ifndef QSF_KERNELS_X86_MM_BLOCK_SSE42_H
#define QSF_KERNELS_X86_MM_BLOCK_SSE42_H

static void mv_block(const qk_mm *m, size_t r, size_t n, size_t c)
{
    const qk_col_q8 x = qk_col_q8_at(qk_mm_col(m, c), m->k);
    const uint8_t *p[QK_GROUP];
    float y[QK_GROUP];
    __m128 acc = _mm_setzero_ps();
    for (size_t i = 0; i < QK_GROUP; i++)
        p[i] = qk_mm_row(m, r + (i < n ? i : n - 1));
    for (size_t b = 0; b < m->k / QK_BLOCK; b++) {
        const __m128i *q = (const void *)(x.q + b * QK_BLOCK);
        const __m128i q0 = _mm_load_si128(q), q1 = _mm_load_si128(q + 1);
        __m128i z[QK_GROUP];
        float d[QK_GROUP];
        for (int i = 0; i < QK_GROUP; i++) {
            __m128i lo, hi;
            fmt_unpack(p[i], &lo, &hi);
            z[i] = qk_dot_signed(qk_dot_signed(_mm_setzero_si128(), lo, q0), hi, q1);
            d[i] = qk_f16_to_f32(qk_load_u16(p[i]));
            p[i] += FMT_BYTES;
        }
        const __m128 scale = _mm_mul_ps(_mm_loadu_ps(d), _mm_set1_ps(x.d[b]));
        acc = _mm_add_ps(acc, _mm_mul_ps(scale, _mm_cvtepi32_ps(qk_sum4(z))));
    }
    _mm_storeu_ps(y, acc);
    memcpy(m->y + c * m->y_stride + r, y, n * sizeof *y);
}

QK_INLINE void mm_block(const qk_mm *m, size_t row0, size_t row1)
{
    for (size_t r = row0; r < row1; r += QK_GROUP)
        for (size_t c = 0; c < m->n_cols; c++)
            mv_block(m, r, row1 - r < QK_GROUP ? row1 - r : QK_GROUP, c);
}

#endif
