/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of a tile where a vector of sums belongs to L rows and one column. mm_matrix.h has the same names
 * for levels whose instructions multiply matrices:
 *
 *   SIDE                     columns of a vector of sums; each of its rows is in SIDE lanes
 *   RV                       vectors of rows of a register block
 *   tile_step                a dword of SIDE steps of all rows of a tile
 *   put_steps(q, r, a, b)    stores two steps of the rows starting at r to the step or steps at q
 *   put_ints, put_floats     store an int32 or a float of each row, put_pairs a pair of int16
 *   column_scale             the float at p of the columns of a vector, for all its rows
 *   column_pair, dot_pair    pair i of int16 of them; the sum with its products with a pair of the rows
 *   results_from, results_to SIDE vectors of sums, for L rows and SIDE columns of y, which are `stride` apart
 *   dot_steps, pair_steps, put_words, dot_marked  below; pair_steps where there is L_PAIRS, put_words with
 *                            WORDS, dot_marked with MARKS */
#ifndef QSF_KERNELS_X16_MM_TILE_H
#define QSF_KERNELS_X16_MM_TILE_H

enum { SIDE = 1, RV = R };

typedef uint8_t tile_step[TILE_ROWS][4];

/* A step times its scale, a pair of int16, in two dwords. */
QK_INLINE void put_words(tile_step *q, int r, li w, li scale) {
    l_store(q[0][r], l_mul16(l_low_words(w), scale));
    l_store(q[1][r], l_mul16(l_high_words(w), scale));
}
QK_INLINE void put_steps(tile_step *q, int r, li a, li b) {
    l_store(q[0][r], a);
    l_store(q[1][r], b);
}
QK_INLINE void put_ints(int32_t *to, int r, li v) { l_store(to + r, v); }
QK_INLINE void put_pairs(int32_t *to, int r, li v) { l_store(to + r, l_apart(v)); }
QK_INLINE void put_floats(float *to, int r, lf v) { l_storef(to + r, v); }

QK_INLINE lf column_scale(const char *p) { return l_setf(qk_load_f32(p)); }
/* Pair i of those at p. */
QK_INLINE li column_pair(const char *p, int i) {
    return L_LANES ? l_load(p + i / 4 * 16) : l_apart(l_dup(p + 4 * i));
}
QK_INLINE li dot_pair(li acc, li w, li x, int i) {
    return L_LANES ? l_dot_apart_lane(acc, w, x, i % 4) : l_dot_apart(acc, w, x);
}

QK_INLINE void results_from(lf to[SIDE], const float *y, int stride) {
    (void)stride;
    to[0] = l_loadf(y);
}
QK_INLINE void results_to(float *y, int stride, const lf from[SIDE]) {
    (void)stride;
    l_storef(y, from[0]);
}

/* Adds n steps, starting with s0, to the sums of the RV vectors of rows at r with nc columns. */
QK_INLINE void dot_steps(li sum[][COLS], const tile_step *q, int r, const char *const x[COLS], size_t s0,
                         int n, int nc) {
    const tile_step *w = (const tile_step *)&q[s0 * SPLIT][r];
    const size_t at = s0 * SPLIT * 4;
    li xs[COLS];
    QK_UNROLL for (int s = 0; s < n * SPLIT; s++) {
        li ws[RV];
        QK_UNROLL for (int v = 0; v < RV; v++) {
            ws[v] = l_load(w[s][v * L]);
            L_HOLD(ws[v]);
        }
        QK_UNROLL for (int c = 0; c < nc; c++) {
            const char *dword = x[c] + at + 4 * (size_t)s;
            if (!L_LANES || s % 4 == 0) {
                xs[c] = L_LANES ? l_load(dword) : l_dup(dword);
                L_HOLD(xs[c]);
            }
            QK_UNROLL for (int v = 0; v < RV; v++) {
                sum[v][c] = WORDS     ? l_dot16(sum[v][c], ws[v], xs[c])
                            : L_LANES ? l_dot_lane(sum[v][c], ws[v], xs[c], s % 4)
                                      : byte_dot(sum[v][c], ws[v], xs[c]);
                L_HOLD(sum[v][c]);
            }
        }
    }
}

/* The same steps as magnitudes and marks. -x is (x ^ -1) + 1: what the 1 adds up to depends on the rows only,
 * and is in the sums from the start. */
QK_INLINE void dot_marked(li sum[][COLS], const tile_step *q, int r, const char *const x[COLS], size_t s0,
                          int n, int nc) {
    const tile_step *w = (const tile_step *)&q[s0 * SPLIT][r];
    QK_UNROLL for (int s = 0; s < n; s++) {
        li ws[RV], marks[RV];
        QK_UNROLL for (int v = 0; v < RV; v++) {
            ws[v] = l_load(w[s * SPLIT][v * L]), marks[v] = l_load(w[s * SPLIT + 1][v * L]);
            L_HOLD(ws[v]);
            L_HOLD(marks[v]);
        }
        QK_UNROLL for (int c = 0; c < nc; c++) {
            li xs = l_dup(x[c] + 4 * (s0 + (size_t)s));
            L_HOLD(xs);
            QK_UNROLL for (int v = 0; v < RV; v++) {
                sum[v][c] = l_dot(sum[v][c], ws[v], l_xor(xs, marks[v]));
                L_HOLD(sum[v][c]);
            }
        }
    }
}

/* The sums of pairs of n of these steps, at most tile_pairs(n). */
QK_INLINE void pair_steps(lp sum[][COLS], const tile_step *q, int r, const char *const x[COLS], size_t s0,
                          int n, int nc) {
    const tile_step *w = (const tile_step *)&q[s0][r];
    QK_UNROLL for (int s = 0; s < n; s++) {
        li ws[RV];
        QK_UNROLL for (int v = 0; v < RV; v++) {
            ws[v] = l_load(w[s][v * L]);
            L_HOLD(ws[v]);
        }
        QK_UNROLL for (int c = 0; c < nc; c++) {
            li xs = l_dup(x[c] + 4 * (s0 + (size_t)s));
            L_HOLD(xs);
            QK_UNROLL for (int v = 0; v < RV; v++) {
                sum[v][c] = FMT_SIGNED ? l_pairs_signed(ws[v], xs)
                            : s == 0   ? l_pairs_of(ws[v], xs)
                                       : l_pairs(sum[v][c], ws[v], xs);
                L_HOLD_PAIRS(sum[v][c]);
            }
        }
    }
}

#endif
