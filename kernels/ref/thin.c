/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of thin matrices, sums in double. */
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static float element(const qk_thin *m, size_t r, size_t i, int bytes) {
    const size_t row = m->first + r, at = (i * QK_THIN_ROWS + row % QK_THIN_ROWS) * (size_t)bytes;
    const uint8_t *w = (const uint8_t *)m->w + row / QK_THIN_ROWS * m->group_bytes + at;
    float v;
    if (bytes == 2) return qk_f16_to_f32(qk_load_u16(w));
    memcpy(&v, w, sizeof v);
    return v;
}

static void thin(const qk_thin *m, int bytes) {
    for (size_t c = 0; c < m->n_cols; c++)
        for (size_t r = 0; r < m->rows; r++) {
            double sum = 0;
            for (size_t i = 0; i < m->k; i++)
                sum += (double)element(m, r, i, bytes) * (double)m->x[c * m->x_stride + i];
            m->y[c * m->y_stride + r] += (float)sum;
        }
}

void qk_thin_f16_ref(const qk_thin *m) { thin(m, 2); }

void qk_thin_f32_ref(const qk_thin *m) { thin(m, 4); }
