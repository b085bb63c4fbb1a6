/* SPDX-License-Identifier: GPL-3.0-or-later */
/* RMS norm, softmax and gated activations for any vector of v_<isa>.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_ACT_H
#define QSF_KERNELS_GENERIC_OPS_ACT_H

/* exp within about one unit in the last place: x = n ln2 + r with |r| <= ln2 / 2, the power series
 * of exp(r) up to r^7 / 7! (the rest is below 6e-9), times 2^n. Overflows to infinity, goes to
 * zero through the denormals, keeps NaN. ln2 is split so that n times its upper part is exact. */
QK_INLINE vf v_exp(vf x)
{
    static const float series[] = { 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2 };
    x = v_min(v_set(130.0f), v_max(v_set(-150.0f), x));
    const vf n = v_round(v_mul(x, v_set(1.44269504f)));
    const vf r = v_fnma(n, v_set(1.42860677e-6f), v_fnma(n, v_set(0.693145752f), x));
    vf p = v_set(1.0f / 5040);
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++)
        p = v_fma(p, r, v_set(series[i]));
    p = v_add(v_fma(p, v_mul(r, r), r), v_set(1.0f));
    return v_ldexp(p, n);
}

void QK_FN(rms_norm)(float *y, const float *x, const float *w, size_t n, float eps)
{
    vf s = v_set(0);
    size_t i = 0;
    for (; i + V <= n; i += V)
        s = v_fma(v_load(x + i), v_load(x + i), s);
    if (i < n)
        s = v_fma(v_load_some(x + i, n - i), v_load_some(x + i, n - i), s);
    const vf r = v_set((float)(1.0 / sqrt((double)v_sum(s) / (double)n + (double)eps)));
    for (i = 0; i + V <= n; i += V)
        v_store(y + i, v_mul(v_mul(v_load(x + i), r), v_load(w + i)));
    if (i < n)
        v_store_some(y + i, n - i, v_mul(v_mul(v_load_some(x + i, n - i), r), v_load_some(w + i, n - i)));
}

void QK_FN(softmax)(float *x, size_t n)
{
    vf max = v_set(x[0]), sum = v_set(0);
    size_t i = 0;
    for (; i + V <= n; i += V)
        max = v_max(v_load(x + i), max);
    if (i < n)
        max = v_max(v_load_some_or(x + i, n - i, max), max);
    max = v_set(v_largest(max));
    for (i = 0; i + V <= n; i += V) {
        const vf e = v_exp(v_sub(v_load(x + i), max));
        v_store(x + i, e);
        sum = v_add(sum, e);
    }
    if (i < n) {
        const vf e = v_exp(v_sub(v_load_some(x + i, n - i), max));
        v_store_some(x + i, n - i, e);
        sum = v_add(sum, v_keep(e, n - i));
    }
    QK_FN(scale)(x, 1.0f / v_sum(sum), n);
}

QK_INLINE vf silu(vf x)
{
    return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), x))));
}

/* See gelu in ref/act.c for the form. */
QK_INLINE vf gelu(vf x)
{
    const vf cubic = v_add(v_set(1.0f), v_mul(v_mul(v_set(0.044715f), x), x));
    const vf two_u = v_mul(v_mul(v_set(1.5957691216057308f), x), cubic);
    return v_div(x, v_add(v_set(1.0f), v_exp(v_sub(v_set(0.0f), two_u))));
}

QK_INLINE void gate_mul(float *gate, const float *up, size_t n, vf (*act)(vf))
{
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

void QK_FN(silu_mul)(float *gate, const float *up, size_t n)
{
    gate_mul(gate, up, n, silu);
}

void QK_FN(gelu_mul)(float *gate, const float *up, size_t n)
{
    gate_mul(gate, up, n, gelu);
}

#endif
