/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of F8 E4M3 for mm_float.h. */
#ifndef QSF_KERNELS_GENERIC_MM_F8_E4M3_H
#define QSF_KERNELS_GENERIC_MM_F8_E4M3_H

#include "kernels/f8.h"

enum { FMT_BYTES = 1 };

QK_INLINE vf fmt_load(const uint8_t *p) {
    uint16_t half[V];
    for (int i = 0; i < V; i++) half[i] = qk_half_of_e4m3(p[i]);
    return v_mul(v_load_half(half), v_set(QK_E4M3_SCALE));
}

QK_INLINE vf fmt_load_some(const uint8_t *p, size_t n) {
    uint8_t b[V] = { 0 };
    memcpy(b, p, n);
    return fmt_load(b);
}

#include "kernels/generic/mm_float.h"

#endif
