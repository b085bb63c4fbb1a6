/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Head rows in 4 bits for any vector of v_<isa>.h, with the same bits as ref/kv4.c. */
#ifndef QSF_KERNELS_GENERIC_KV_QUANT4_H
#define QSF_KERNELS_GENERIC_KV_QUANT4_H

/* n <= V elements, followed by `other`. */
QK_INLINE vf kv_some(const float *x, size_t n, vf other) {
    return n >= V ? v_load(x) : v_load_some_or(x, n, other);
}

void QK_FN(kv_quantize4)(uint8_t *q, uint16_t *scale, uint16_t *min, const float *x, size_t n) {
    vf low = v_set(INFINITY), high = v_set(-INFINITY);
    float part[V] = { 0 };
    vi max = v_abs_bits(part);
    for (size_t i = 0; i < n; i += V) {
        low = v_min(kv_some(x + i, n - i, low), low);
        high = v_max(kv_some(x + i, n - i, high), high);
        v_store(part, kv_some(x + i, n - i, v_set(0)));
        max = v_max_bits(max, v_abs_bits(part));
    }
    const float least = -v_largest(v_sub(v_set(0), low));
    const qk_kv4 r = qk_kv4_of(least, v_largest(high), qk_float_of(v_largest_bits(max)), scale, min);
    for (size_t i = 0; i < n; i += V) {
        int8_t b[V];
        const vf v = v_mul(v_sub(kv_some(x + i, n - i, v_set(0)), v_set(r.from)), v_set(r.inv));
        v_store_bytes(b, v_min(v_max(v, v_set(r.least)), v_set(r.most)));
        for (size_t j = 0; j < V && i + j < n; j += 2) {
            const int odd = i + j + 1 < n ? b[j + 1] + r.add : 0;
            q[(i + j) / 2] = (uint8_t)((b[j] + r.add) | odd << 4);
        }
    }
}

void QK_FN(kv_dequantize4)(float *x, const uint8_t *q, uint16_t scale, const uint16_t *min, size_t n) {
    const vf d = v_set(qk_f16_to_f32(scale)), from = v_set(min ? qk_f16_to_f32(*min) : 0.0f);
    const int sub = min ? 0 : 8;
    for (size_t i = 0; i < n; i += V) {
        int8_t b[V] = { 0 };
        for (size_t j = 0; j < V && i + j < n; j++) b[j] = (int8_t)((q[(i + j) / 2] >> j % 2 * 4 & 15) - sub);
        const vf v = v_add(v_mul(v_load_bytes(b), d), from);
        if (n - i >= V)
            v_store(x + i, v);
        else
            v_store_some(x + i, n - i, v);
    }
}

#endif
