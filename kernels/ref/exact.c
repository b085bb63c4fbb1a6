/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul with float weights and activations and sums in double, to check weights and graph without quantized
 * activations. */
#include "kernels/act.h"
#include "kernels/ref/ref.h"

void qk_matmul_exact_ref(const qk_mm *m, size_t row0, size_t row1, const qk_weight_ops *ops,
                         float *row_scratch) {
    for (size_t r = row0; r < row1; r++) {
        ops->dequant(qk_mm_row(m, r), row_scratch, m->k);
        for (size_t c = 0; c < m->n_cols; c++) {
            const float *x = qk_mm_col(m, c);
            double s = 0;
            for (size_t i = 0; i < m->k; i++) s += (double)row_scratch[i] * (double)x[i];
            m->y[c * m->y_stride + r] = (float)(ops->scaled ? s * (double)m->scale : s);
        }
    }
}
