/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gated activations for any vector of v_<isa>.h; needs exp.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_ACT_H
#define QSF_KERNELS_GENERIC_OPS_ACT_H

QK_INLINE vf silu(vf x) { return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), x)))); }

/* See gelu in ref/act.c for the formula. */
QK_INLINE vf gelu(vf x) {
    const vf cubic = v_add(v_set(1.0f), v_mul(v_mul(v_set(0.044715f), x), x));
    const vf two_u = v_mul(v_mul(v_set(1.5957691216057308f), x), cubic);
    return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), two_u))));
}

QK_INLINE vf relu2(vf x) {
    const vf r = v_max(x, v_set(0.0f));
    return v_mul(r, r);
}

QK_INLINE void gate_mul(float *gate, const float *up, size_t n, vf (*act)(vf)) {
    size_t i = 0;
    for (; i + V <= n; i += V) {
        const vf a = act(v_load(gate + i));
        v_store(gate + i, up ? v_mul(a, v_load(up + i)) : a);
    }
    if (i < n) {
        const vf a = act(v_load_some(gate + i, n - i));
        v_store_some(gate + i, n - i, up ? v_mul(a, v_load_some(up + i, n - i)) : a);
    }
}

void QK_FN(silu_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, silu); }

void QK_FN(gelu_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, gelu); }

void QK_FN(relu2_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, relu2); }

#endif
