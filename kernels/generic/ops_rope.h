/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotary position embedding for any vector of v_<isa>.h. The operations and their order are those of
 * ref/rope.c, so the bits are the same. The cosines and sines are arranged in vectors once for all heads of a
 * position. */
#ifndef QSF_KERNELS_GENERIC_OPS_ROPE_H
#define QSF_KERNELS_GENERIC_OPS_ROPE_H

/* n lanes of x (V: all), pairs side by side. */
QK_INLINE void turn_pairs(float *x, vf c, vf s, size_t n) {
    const vf v = n == V ? v_load(x) : v_load_some(x, n), y = v_addsub(v_mul(v, c), v_mul(v_swap(v), s));
    if (n == V)
        v_store(x, y);
    else
        v_store_some(x, n, y);
}

QK_INLINE void heads_pairs(float *x, const float *cs, size_t n_rot, size_t n_heads, size_t stride) {
    for (size_t i = 0; i + V <= n_rot; i += V) {
        const vf v = v_load(cs + i), c = v_dup_even(v), s = v_dup_odd(v);
        for (size_t h = 0; h < n_heads; h++) turn_pairs(x + h * stride + i, c, s, V);
    }
    const size_t left = n_rot % V;
    if (left) {
        const vf v = v_load_some(cs + n_rot - left, left), c = v_dup_even(v), s = v_dup_odd(v);
        for (size_t h = 0; h < n_heads; h++) turn_pairs(x + h * stride + n_rot - left, c, s, left);
    }
}

QK_INLINE void turn_halves(float *a, float *b, vf c, vf s) {
    const vf x = v_load(a), y = v_load(b);
    v_store(a, v_sub(v_mul(x, c), v_mul(y, s)));
    v_store(b, v_add(v_mul(x, s), v_mul(y, c)));
}

QK_INLINE void turn_halves_some(float *a, float *b, vf c, vf s, size_t n) {
    const vf x = v_load_some(a, n), y = v_load_some(b, n);
    v_store_some(a, n, v_sub(v_mul(x, c), v_mul(y, s)));
    v_store_some(b, n, v_add(v_mul(x, s), v_mul(y, c)));
}

/* Floats [at, n) of cs; if fewer than V remain, padded with zeros. */
QK_INLINE vf angles(const float *cs, size_t at, size_t n) {
    return at + V <= n ? v_load(cs + at) : at < n ? v_load_some(cs + at, n - at) : v_set(0);
}

QK_INLINE void heads_halves(float *x, const float *cs, size_t n_rot, size_t n_heads, size_t stride) {
    const size_t half = n_rot / 2;
    for (size_t i = 0; i < half; i += V) {
        const vf a = angles(cs, 2 * i, 2 * half), b = angles(cs, 2 * i + V, 2 * half);
        const vf c = v_evens(a, b), s = v_odds(a, b);
        for (size_t h = 0; h < n_heads; h++) {
            float *p = x + h * stride + i;
            if (i + V <= half)
                turn_halves(p, p + half, c, s);
            else
                turn_halves_some(p, p + half, c, s, half - i);
        }
    }
}

void QK_FN(rope_pairs_batch)(const qk_rope *r) {
    for (size_t p = 0; p < r->n_pos; p++)
        heads_pairs(r->x + p * r->pos_stride, r->cs + p * r->n_rot, r->n_rot & ~(size_t)1, r->n_heads,
                    r->head_stride);
}

void QK_FN(rope_halves_batch)(const qk_rope *r) {
    for (size_t p = 0; p < r->n_pos; p++)
        heads_halves(r->x + p * r->pos_stride, r->cs + p * r->n_rot, r->n_rot, r->n_heads, r->head_stride);
}

#endif
