/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of a few columns, straight from the planes of groups, which mm_block.h and mm_super.h share. Both
 * work on units of 256 elements. */
#ifndef QSF_KERNELS_X16_MM_DIRECT_H
#define QSF_KERNELS_X16_MM_DIRECT_H

#include "kernels/generic/mm.h"
#include "kernels/x16/mm_plan.h"

/* The compiler reads nothing before this that is read after it, which would need more registers than there
 * are. */
#define L_FENCE() __asm__ volatile("" ::: "memory")

/* A unit of several groups for a few columns. They are read in turn, a few hundred bytes each: on some CPUs
 * memory bandwidth is higher with several streams than with one. */
typedef struct groups {
    const uint8_t *p;
    size_t stride, n; /* bytes between groups, number of groups */
    size_t ahead;     /* bytes to the data to prefetch; 0: none, as for rows packed just now */
    int far;          /* as in struct way */
} groups;

/* The lines at [p, p + n) of one group, if prefetching is on. */
QK_INLINE void prefetch_group(const groups *w, const uint8_t *p, int n) {
    if (!w->ahead) return;
    p += w->ahead;
    L_HIDE(p); /* otherwise both ways share the addresses of lines, which do not fit the registers */
    if (w->far)
        for (int i = 0; i < n; i += 64) l_prefetch_far(p + i);
    else
        for (int i = 0; i < n; i += 64) l_prefetch(p + i);
}

QK_INLINE li byte_dot(li acc, li w, li x) { return FMT_SIGNED ? l_dot_signed(acc, w, x) : l_dot(acc, w, x); }

QK_INLINE void hide_columns(const char *q[COLS], int nc) {
    QK_UNROLL for (int c = 0; c < nc; c++) L_HIDE(q[c]);
}

/* Adds the n steps from s0, which form a sub-block, times the bytes at x[c] + at of nc columns, directly
 * from the planes, for one vector of rows. */
QK_INLINE void direct_vector(li (*sum)[NV], const uint8_t *p, const char *const x[COLS], int at, int s0,
                             int n, int v, int nc) {
    const int shift = IN_PLACE ? FMT_SHIFT(s0) : 0, many = direct_pairs(n);
    if (many > 1) {
        QK_UNROLL for (int s = 0; s < n; s += many) {
            lp pairs[COLS];
            QK_UNROLL for (int i = s; i < s + many; i++) {
                const li w = fmt_step(p, s0 + i, v);
                QK_UNROLL for (int c = 0; c < nc; c++)
                    pairs[c] = i == s ? l_pairs_of(w, l_dup(x[c] + at + 4 * i))
                                      : l_pairs(pairs[c], w, l_dup(x[c] + at + 4 * i));
            }
            QK_UNROLL for (int c = 0; c < nc; c++) sum[c][v] = l_dot_pairs(sum[c][v], pairs[c]);
        }
        return;
    }
    li total[COLS];
    QK_UNROLL for (int c = 0; c < nc; c++) total[c] = shift ? l_set(0) : sum[c][v];
    QK_UNROLL for (int s = 0; s < n; s++) {
        const li w = shift ? fmt_in_place(p, s0 + s, v) : fmt_step(p, s0 + s, v);
        QK_UNROLL for (int c = 0; c < nc; c++) total[c] = byte_dot(total[c], w, l_dup(x[c] + at + 4 * s));
    }
    QK_UNROLL for (int c = 0; c < nc; c++) sum[c][v] = shift ? l_add(l_sar(total[c], shift), sum[c][v])
                                                             : total[c];
}

/* Adds n steps, all of which fit sums of pairs, times nc columns. */
QK_INLINE void direct_step_pairs(li (*sum)[NV], const uint8_t *p, const char *const x[COLS], int at, int s0,
                                 int n, int nc) {
    lp pairs[COLS][NV];
    QK_UNROLL for (int s = 0; s < n; s++) QK_UNROLL for (int v = 0; v < NV; v++) {
        li w = fmt_step(p, s0 + s, v);
        if (nc > 1) L_HOLD(w);
        QK_UNROLL for (int c = 0; c < nc; c++) {
            const li xs = l_dup(x[c] + at + 4 * s);
            pairs[c][v] = s == 0 ? l_pairs_of(w, xs) : l_pairs(pairs[c][v], w, xs);
            if (nc > 1) L_HOLD_PAIRS(pairs[c][v]); /* otherwise all products are made before they are added */
        }
    }
    QK_UNROLL for (int c = 0; c < nc; c++) QK_UNROLL for (int v = 0; v < NV; v++)
        sum[c][v] = l_dot_pairs(sum[c][v], pairs[c][v]);
}

/* The same with the bytes at x[c] + at of nc columns, for all vectors of the group: they share each dword of
 * a column, columns share the weights. */
QK_INLINE void direct_steps(li (*sum)[NV], const uint8_t *p, const char *const x[COLS], int at, int s0, int n,
                            int nc) {
    const int shift = IN_PLACE ? FMT_SHIFT(s0) : 0;
    li high[COLS][NV], xs[COLS];
    if (!SHARE) {
        for (int v = 0; v < NV; v++) {
            direct_vector(sum, p, x, at, s0, n, v, nc);
            if (!PLAIN)
                L_HOLD(sum[0][v]); /* one vector after the other, as parts of planes need many registers */
        }
        return;
    }
    if (direct_pairs(n) > 1) {
        QK_UNROLL for (int s = 0; s < n; s += direct_pairs(n))
            direct_step_pairs(sum, p, x, at + 4 * s, s0 + s, direct_pairs(n), nc);
        return;
    }
    for (int c = 0; c < nc; c++)
        for (int v = 0; v < NV; v++) high[c][v] = shift ? l_set(0) : sum[c][v];
    QK_UNROLL for (int s = 0; s < n; s++) {
        li w[NV];
        QK_UNROLL for (int v = 0; v < NV; v++) {
            w[v] = shift ? fmt_in_place(p, s0 + s, v) : fmt_step(p, s0 + s, v);
            if (nc > 1) L_HOLD(w[v]);
        }
        QK_UNROLL for (int c = 0; c < nc; c++) {
            const char *dword = x[c] + at + 4 * s;
            if (!L_LANES || s % 4 == 0) xs[c] = L_LANES ? l_load(dword) : l_dup(dword);
            QK_UNROLL for (int v = 0; v < NV; v++)
                high[c][v] = L_LANES ? l_dot_lane(high[c][v], w[v], xs[c], s % 4)
                                     : byte_dot(high[c][v], w[v], xs[c]);
        }
    }
    for (int c = 0; c < nc; c++)
        for (int v = 0; v < NV; v++)
            sum[c][v] = shift ? l_add(l_sar(high[c][v], shift), sum[c][v]) : high[c][v];
}

#endif
