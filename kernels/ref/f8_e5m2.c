/* SPDX-License-Identifier: GPL-3.0-or-later */
/* F8 weights with five bits of exponent and two of fraction. */
#include "kernels/f8.h"
#include "kernels/ref/ref.h"

static float weight_at(const uint8_t *w, size_t i) { return qk_f16_to_f32(qk_half_of_e5m2(w[i])); }

static float row_dot(const uint8_t *w, const void *x, size_t k) {
    const float *f = x;
    double s = 0;
    for (size_t i = 0; i < k; i++) s += (double)weight_at(w, i) * (double)f[i];
    return (float)s;
}

void qk_mm_f8_e5m2_ref(const qk_mm *m, size_t row0, size_t row1) { qk_ref_matmul(m, row0, row1, row_dot); }

void qk_dequant_f8_e5m2_ref(const void *w, float *dst, size_t k) {
    for (size_t i = 0; i < k; i++) dst[i] = weight_at(w, i);
}
