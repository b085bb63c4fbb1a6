/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of F8 E5M2 for mm_float.h. */
#ifndef QSF_KERNELS_GENERIC_MM_F8_E5M2_H
#define QSF_KERNELS_GENERIC_MM_F8_E5M2_H

#include "kernels/f8.h"

enum { FMT_BYTES = 1 };

QK_INLINE vf fmt_load(const uint8_t *p) {
    uint16_t half[V];
    for (int i = 0; i < V; i++) half[i] = qk_half_of_e5m2(p[i]);
    return v_load_half(half);
}

QK_INLINE vf fmt_load_some(const uint8_t *p, size_t n) {
    uint8_t b[V] = { 0 };
    memcpy(b, p, n);
    return fmt_load(b);
}

#include "kernels/generic/mm_float.h"

#endif
