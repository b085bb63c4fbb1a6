/* SPDX-License-Identifier: GPL-3.0-or-later */
/* TQ1_0: x = d * (trit - 1). Five trits a byte: 32 bytes with elements 0-159, 16 with 160-239, then four with
 * four each. Trit n of byte q is (q * 3^n mod 256) * 3 >> 8. With f = q * 3^n mod 256, 3 f is 256 times trit
 * n and the next f: so the sum of trits times x is (3 * sum of f * x - sum of next f * x) / 256, where bytes
 * can be multiplied as they are. */
#ifndef QSF_KERNELS_X16_FMT_TQ1_0_H
#define QSF_KERNELS_X16_FMT_TQ1_0_H

#define FMT_AHEAD 1024
#define FMT_COLD  1

#include "kernels/x16/planes.h"

enum { FMT_PLANES = 13, FMT_PLANE_AT = 0, FMT_HALVES = 1, FMT_HALF_AT = 52 };
enum {
    FMT_SUB = 64,
    FMT_SCALED = 0,
    FMT_MAX = 2,
    FMT_OFF = 1,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};

/* 3q >> 8 is how many of the thresholds 85 and 170 a byte exceeds. */
QK_INLINE li first_trit(li q) {
    const li one = l_bytes(1);
    return l_add8(l_min8(l_subs8(q, l_bytes(85)), one), l_min8(l_subs8(q, l_bytes(170)), one));
}

/* Where step s is: its plane, and its trit of each byte. */
QK_INLINE int trit_first(int s) { return s < 40 ? 0 : s < 60 ? 40 : 60; }
QK_INLINE int trit_width(int s) { return s < 40 ? 8 : s < 60 ? 4 : 1; }
QK_INLINE int trit_number(int s) { return (s - trit_first(s)) / trit_width(s); }
QK_INLINE int trit_plane(int s) {
    return (s < 40 ? 0 : s < 60 ? 8 : 12) + (s - trit_first(s)) % trit_width(s);
}

QK_INLINE li thrice(li q) { return l_add8(q, l_add8(q, q)); }

/* q * 3^n of the bytes of step s, trit n, at most 4. No loop: clang would unroll it before it knows n. */
QK_INLINE li trit_bytes(const uint8_t *p, int s, int v) {
    const int n = trit_number(s);
    li q = plane(p, trit_plane(s), v);
    if (n > 0) q = thrice(q);
    if (n > 1) q = thrice(q);
    if (n > 2) q = thrice(q);
    if (n > 3) q = thrice(q);
    return q;
}

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) { return first_trit(trit_bytes(p, s, v)); }

#if L_RAW
#define FMT_DIRECT(group, p, x, t, j, v) \
    direct_trits(start_of(x, 0, j, OFFSET), p, (x)->q[0], (j)*FMT_SUB / 4, v)
QK_INLINE li direct_trits(li start, const uint8_t *p, const char *x, int s0, int v) {
    /* Two of each, so that a product need not wait for the one before it. */
    li sums[2] = { l_set(0), l_set(0) }, nexts[2] = { l_set(0), l_set(0) };
    QK_UNROLL for (int s = s0; s < s0 + FMT_SUB / 4; s++) {
        const li q = trit_bytes(p, s, v);
        sums[s % 2] = l_dot_dup(sums[s % 2], q, x + 4 * s);
        nexts[s % 2] = l_dot_dup(nexts[s % 2], thrice(q), x + 4 * s);
    }
    const li sum = l_add(sums[0], sums[1]), next = l_add(nexts[0], nexts[1]);
    return l_add(start, l_sar(l_sub(l_add(sum, l_add(sum, sum)), next), 8));
}
#endif

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    (void)p, (void)j, (void)v;
    return nothing();
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    (void)p, (void)i, (void)v;
    return nothing();
}

#endif
