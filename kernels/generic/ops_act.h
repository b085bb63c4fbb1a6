/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activation functions for any vector of v_<isa>.h; needs exp.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_ACT_H
#define QSF_KERNELS_GENERIC_OPS_ACT_H

QK_INLINE vf silu(vf x) { return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), x)))); }

/* See gelu in ref/act.c for the formula. */
QK_INLINE vf gelu(vf x) {
    const vf cubic = v_add(v_set(1.0f), v_mul(v_mul(v_set(0.044715f), x), x));
    const vf two_u = v_mul(v_mul(v_set(1.5957691216057308f), x), cubic);
    return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), two_u))));
}

QK_INLINE vf relu(vf x) { return v_max(x, v_set(0.0f)); }

QK_INLINE vf relu2(vf x) { return v_mul(relu(x), relu(x)); }

QK_INLINE vf sigmoid(vf x) { return v_div(v_set(1.0f), v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), x)))); }

/* cap * tanh(x / cap) = cap - 2 cap / (1 + e^(2 x / cap)), two_inv being 2 / cap. */
QK_INLINE vf capped_tanh(vf x, float cap, float two_inv) {
    const vf e = v_exp(v_mul(x, v_set(two_inv)));
    return v_sub(v_set(cap), v_div(v_set(2.0f * cap), v_add(v_set(1.0f), e)));
}

QK_INLINE vf tanh_of(vf x) { return capped_tanh(x, 1.0f, 2.0f); }

/* In this order of operands a NaN stays. */
QK_INLINE vf at_most(vf x, float most) { return v_min(v_set(most), x); }
QK_INLINE vf at_least(vf x, float least) { return v_max(v_set(least), x); }

QK_INLINE vf swiglu_gate(vf x, const qk_swiglu *s) {
    const vf g = at_most(x, s->gate_most), e = v_exp(v_mul(g, v_set(-s->alpha)));
    return at_most(v_div(g, v_add(v_set(1.0f), e)), s->most);
}

QK_INLINE vf swiglu_up(vf x, const qk_swiglu *s) {
    return v_add(at_least(at_most(x, s->up_most), -s->up_most), v_set(s->up_plus));
}

QK_INLINE vf xielu(vf x, const qk_xielu *s) {
    const vf above = at_least(x, 0.0f), below = at_most(x, 0.0f);
    const vf rest = v_sub(v_sub(v_exp(at_most(x, s->eps)), v_set(1.0f)), x);
    const vf y = v_add(v_mul(x, v_set(s->beta)), v_mul(v_mul(above, above), v_set(s->positive)));
    return v_add(y, v_where(below, v_mul(rest, v_set(s->negative))));
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
void QK_FN(relu_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, relu); }
void QK_FN(relu2_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, relu2); }
void QK_FN(sigmoid_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, sigmoid); }
void QK_FN(softplus_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, v_softplus); }
void QK_FN(exp_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, v_exp); }
void QK_FN(tanh_mul)(float *gate, const float *up, size_t n) { gate_mul(gate, up, n, tanh_of); }

void QK_FN(softcap)(float *y, float cap, size_t n) {
    const float two_inv = 2.0f / cap;
    size_t i = 0;
    for (; i + V <= n; i += V) v_store(y + i, capped_tanh(v_load(y + i), cap, two_inv));
    if (i < n) v_store_some(y + i, n - i, capped_tanh(v_load_some(y + i, n - i), cap, two_inv));
}

void QK_FN(swiglu_mul)(float *gate, const float *up, size_t n, const qk_swiglu *s) {
    size_t i = 0;
    for (; i + V <= n; i += V) {
        const vf a = swiglu_gate(v_load(gate + i), s);
        v_store(gate + i, up ? v_mul(a, swiglu_up(v_load(up + i), s)) : a);
    }
    if (i < n) {
        const vf a = swiglu_gate(v_load_some(gate + i, n - i), s);
        v_store_some(gate + i, n - i, up ? v_mul(a, swiglu_up(v_load_some(up + i, n - i), s)) : a);
    }
}

void QK_FN(xielu_mul)(float *gate, const float *up, size_t n, const qk_xielu *s) {
    size_t i = 0;
    for (; i + V <= n; i += V) {
        const vf a = xielu(v_load(gate + i), s);
        v_store(gate + i, up ? v_mul(a, v_load(up + i)) : a);
    }
    if (i < n) {
        const vf a = xielu(v_load_some(gate + i, n - i), s);
        v_store_some(gate + i, n - i, up ? v_mul(a, v_load_some(up + i, n - i)) : a);
    }
}

#endif
