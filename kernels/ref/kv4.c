/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Head rows in 4 bits. */
#include <math.h>
#include <string.h>

#include "kernels/load.h"
#include "kernels/ref/kv.h"

void qk_kv_quantize4_ref(uint8_t *q, uint16_t *scale, uint16_t *min, const float *x, size_t n) {
    float low = INFINITY, high = -INFINITY;
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = qk_bits_of(x[i]) & 0x7fffffffu; /* ordered by magnitude, NaN last */
        max = bits > max ? bits : max;
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    const qk_kv4 r = qk_kv4_of(low, high, qk_float_of(max), scale, min);
    memset(q, 0, (n + 1) / 2);
    for (size_t i = 0; i < n; i++) {
        const float v = (x[i] - r.from) * r.inv;
        const float whole = nearbyintf(fminf(r.most, fmaxf(r.least, v)));
        q[i / 2] |= (uint8_t)(((int)whole + r.add) << i % 2 * 4);
    }
}

void qk_kv_dequantize4_ref(float *x, const uint8_t *q, uint16_t scale, const uint16_t *min, size_t n) {
    const float d = qk_f16_to_f32(scale), from = min ? qk_f16_to_f32(*min) : 0;
    for (size_t i = 0; i < n; i++) {
        const int v = (q[i / 2] >> i % 2 * 4 & 15) - (min ? 0 : 8);
        x[i] = (float)v * d + from;
    }
}
