/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Powers of two for any vector of v_<isa>.h: weights of attention, decays of scans. */
#ifndef QSF_KERNELS_GENERIC_EXP2_H
#define QSF_KERNELS_GENERIC_EXP2_H

#define V_LOG2E 1.44269504f

/* 2^x for x up to 100 within about one unit in the last place; 2^0 is 1; NaN stays NaN. x = n + r with |r| <=
 * 1/2: 2^r by the minimax polynomial of degree 6 (relative error 2.6e-9) with value 1 at 0, times 2^n. Below
 * 2^-80 the result is 0: such a weight changes no sum, but would produce denormals, which cost hundreds of
 * cycles each. The bits are the same wherever v_fma rounds once. */
QK_INLINE vf v_exp2(vf x) {
    static const float series[] = { 0x1.5f7276p-10f, 0x1.3b270ep-7f, 0x1.c6ae72p-5f,
                                    0x1.ebfbe2p-3f,  0x1.62e432p-1f, 1.0f };
    /* adding it leaves the integer part plus 127 in the lowest bits */
    const vf round = v_set(0x1.8p23f + 127);
    const vf t = v_add(x, round), r = v_sub(x, v_sub(t, round));
    vf p = v_set(0x1.470b4ap-13f);
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++) p = v_fma(p, r, v_set(series[i]));
    return v_not_below(v_mul(p, v_exponent(t)), x, -80.0f);
}

QK_INLINE float v_exp2_one(float x) {
    float lanes[V];
    v_store(lanes, v_exp2(v_set(x)));
    return lanes[0];
}

#endif
