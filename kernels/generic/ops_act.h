/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gated activations for any vector of v_<isa>.h; needs exp.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_ACT_H
#define QSF_KERNELS_GENERIC_OPS_ACT_H

#include "kernels/gelu.h"

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

/* x times the integral of the normal distribution up to x. Its tail is exp(-x^2 / 2) t q(t), t = 1 / (1 + 0.3 |x|),
 * with a smooth q: the polynomial through 10 Chebyshev nodes of |x| <= 15, off by 1.1e-8 of it at most. Behind 15 the
 * exponential is 0. */
QK_INLINE vf gelu_erf(vf x)
{
    static const float series[] = { 0x1.d4975p-4f, -0x1.dcd8dap-3f, 0x1.9557f2p-3f, -0x1.5a090cp-4f, 0x1.94cfa6p-4f,
                                    0x1.3d61b8p-4f, 0x1.c44b1ep-4f, 0x1.e9ad62p-4f, 0x1.ea3db4p-4f };
    const vf one = v_set(1.0f), t = v_div(one, v_fma(v_set(0.3f), v_abs(x), one));
    vf q = v_set(-0x1.57d016p-6f);
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++)
        q = v_fma(q, t, v_set(series[i]));
    const vf tail = v_mul(v_mul(q, t), v_exp(v_mul(v_mul(x, x), v_set(-0.5f))));
    return v_mul(x, v_below(x, v_set(0.0f), tail, v_sub(one, tail)));
}

/* The same operations as in ref/act.c, so the same bits. */
QK_INLINE vf gelu_fast(vf x)
{
    const vf t = v_min(v_mul(v_abs(x), v_set(QK_GELU_PER_UNIT)), v_set(QK_GELU_STEPS));
    const vi i = v_whole(t);
    const vf a = v_gather(qk_gelu_dips, i), b = v_gather(qk_gelu_dips + 1, i);
    const vf dip = v_add(a, v_mul(v_sub(t, v_of_whole(i)), v_sub(b, a)));
    return v_add(v_max(v_set(0.0f), x), dip);
}

QK_INLINE vf relu2(vf x)
{
    const vf r = v_max(x, v_set(0.0f));
    return v_mul(r, r);
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

void QK_FN(gelu_erf_mul)(float *gate, const float *up, size_t n)
{
    gate_mul(gate, up, n, gelu_erf);
}

void QK_FN(gelu_fast_mul)(float *gate, const float *up, size_t n)
{
    gate_mul(gate, up, n, gelu_fast);
}

void QK_FN(relu2_mul)(float *gate, const float *up, size_t n)
{
    gate_mul(gate, up, n, relu2);
}

#endif
