/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The exponential function, and softplus, for any vector of v_<isa>.h. */
#ifndef QSF_KERNELS_GENERIC_EXP_H
#define QSF_KERNELS_GENERIC_EXP_H

/* exp within about one unit in the last place: x = n ln2 + r with |r| <= ln2 / 2, the power series of exp(r)
 * up to r^7 / 7! (the rest is below 6e-9), times 2^n. Overflows to infinity, underflows gradually to zero,
 * returns NaN for NaN. ln2 is split so that n times its upper part is exact. */
QK_INLINE vf v_exp(vf x) {
    static const float series[] = { 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2 };
    x = v_min(v_set(130.0f), v_max(v_set(-150.0f), x));
    const vf n = v_round(v_mul(x, v_set(1.44269504f)));
    const vf r = v_fnma(n, v_set(1.42860677e-6f), v_fnma(n, v_set(0.693145752f), x));
    vf p = v_set(1.0f / 5040);
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++) p = v_fma(p, r, v_set(series[i]));
    p = v_add(v_fma(p, v_mul(r, r), r), v_set(1.0f));
    return v_ldexp(p, n);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + u) with u = exp(-|x|) and log(1 + u) = 2 artanh(u / (2 + u)), whose
 * argument is at most 1/3: the series up to z^15 / 15 leaves 1e-9. */
QK_INLINE vf v_softplus(vf x) {
    static const float inverse[] = { 1.0f / 13, 1.0f / 11, 1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3 };
    const vf size = v_max(v_sub(v_set(0), x), x), u = v_exp(v_sub(v_set(0), size));
    const vf z = v_div(u, v_add(u, v_set(2.0f))), zz = v_mul(z, z);
    vf p = v_set(1.0f / 15);
    for (size_t i = 0; i < sizeof inverse / sizeof inverse[0]; i++) p = v_fma(p, zz, v_set(inverse[i]));
    return v_add(v_max(v_set(0), x), v_mul(v_add(z, z), v_fma(p, zz, v_set(1.0f))));
}

#endif
