/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of a tile, one unit of 64 rows that were unpacked once, with many columns. R vectors of rows are
 * multiplied with WIDTH columns at a time, so that each load is used for several products: a core that starts
 * two products per cycle would otherwise wait for loads.
 *
 * A vector of sums belongs to L rows and one column, or, with l_matrix, to two rows and two columns, (ac, ad,
 * bc, bd). Both ways have the same names:
 *
 *   SIDE                     columns of a vector of sums; each of its rows is in SIDE lanes
 *   RV                       vectors of rows of a register block
 *   tile_step                a dword of SIDE steps of all rows of a tile
 *   put_steps(q, r, a, b)    stores two steps of the rows starting at r to the step or steps at q
 *   put_ints, put_floats     store an int32 or a float of each row, put_pairs a pair of int16
 *   column_scale             the float at p of the columns of a vector, for all its rows
 *   column_pair, dot_pair    pair i of int16 of them; the sum with its products with a pair of the rows
 *   results_from, results_to SIDE vectors of sums, for L rows and SIDE columns of y, which are `stride` apart
 *   dot_steps                adds n steps, starting with s0, to the sums of the RV vectors of rows at r with
 *                            nc vectors of columns (SIDE columns each)
 *   pair_steps, put_words, dot_marked  used where there is L_PAIRS, with WORDS, with MARKS */
#ifndef QSF_KERNELS_X16_MM_TILE_H
#define QSF_KERNELS_X16_MM_TILE_H

#include "kernels/x16/mm_direct.h"

/* A step of the rows as it is unpacked to a tile. */
QK_INLINE li unpacked(const uint8_t *p, int s, int v) {
    const li w = fmt_step(p, s, v);
    return L_SIGNED && FMT_OFF != 0 ? l_sub8(w, l_bytes(FMT_OFF)) : w;
}

#if L_MATRIX

/* ---- two rows and two columns ---- */

/* Eight bytes of a row are adjacent in a tile, and what belongs to a row is stored twice. Columns are joined
 * in pairs before they are multiplied: eight bytes of one, eight of the other, and dwords in turn. */
enum { SIDE = 2, RV = R * SIDE };

typedef uint8_t tile_step[TILE_ROWS * SIDE][4];

QK_INLINE void put_zipped(void *to, li a, li b) {
    li v[2] = { a, b };
    l_zip(v);
    l_store(to, v[0]);
    l_store((char *)to + sizeof(li), v[1]);
}
QK_INLINE void put_steps(tile_step *q, int r, li a, li b) { put_zipped(q[0][r * SIDE], a, b); }
QK_INLINE void put_ints(int32_t *to, int r, li v) { put_zipped(to + r * SIDE, v, v); }
QK_INLINE void put_floats(float *to, int r, lf v) { put_zipped(to + r * SIDE, l_bits(v), l_bits(v)); }
QK_INLINE void put_pairs(int32_t *to, int r, li v) {
    li twice[2] = { v, v };
    l_zip(twice);
    l_store(to + r * SIDE, l_apart(twice[0]));
    l_store(to + r * SIDE + L, l_apart(twice[1]));
}

QK_INLINE lf column_scale(const char *p) { return l_float_of(l_dup2(p)); }
QK_INLINE li column_pair(const char *p, int i) { return l_load(p + i * (int)sizeof(li)); }
QK_INLINE li dot_pair(li acc, li w, li x, int i) { return (void)i, l_dot_apart(acc, w, x); }

QK_INLINE void results_from(lf to[SIDE], const float *y, int stride) {
    li v[2] = { l_load(y), l_load(y + stride) };
    l_zip(v);
    to[0] = l_float_of(v[0]), to[1] = l_float_of(v[1]);
}
QK_INLINE void results_to(float *y, int stride, const lf from[SIDE]) {
    li v[2] = { l_bits(from[0]), l_bits(from[1]) };
    l_unzip(v);
    l_store(y, v[0]);
    l_store(y + stride, v[1]);
}

QK_INLINE void dot_steps(li sum[][COLS], const tile_step *q, int r, const char *const x[COLS], size_t s0,
                         int n, int nc) {
    const tile_step *w = (const tile_step *)&q[s0 / SIDE][r * SIDE];
    const size_t at = s0 * 4 * SIDE;
    QK_UNROLL for (int s = 0; s < n; s += SIDE) {
        li ws[RV];
        QK_UNROLL for (int v = 0; v < RV; v++) ws[v] = l_load(w[s / SIDE][v * L]);
        QK_UNROLL for (int c = 0; c < nc; c++) {
            const li xs = l_load(x[c] + at + 8 * (size_t)s);
            QK_UNROLL for (int v = 0; v < RV; v++) sum[v][c] = l_matrix(sum[v][c], ws[v], xs);
        }
    }
}

/* Only for shared code to compile: levels with l_matrix do not define L_PAIRS, L_WORDS or L_MARKS. */
QK_INLINE void pair_steps(lp sum[][COLS], const tile_step *q, int r, const char *const x[COLS], size_t s0,
                          int n, int nc) {
    dot_steps(sum, q, r, x, s0, n, nc);
}
QK_INLINE void put_words(tile_step *q, int r, li w, li scale) { put_steps(q, r, w, scale); }
QK_INLINE void dot_marked(li sum[][COLS], const tile_step *q, int r, const char *const x[COLS], size_t s0,
                          int n, int nc) {
    dot_steps(sum, q, r, x, s0, n, nc);
}

/* n bytes, a multiple of 16, of columns a and b in turn, eight of each. */
QK_INLINE void join_bytes(char *to, const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i += sizeof(li)) {
        li v[2] = { l_load(a + i), l_load(b + i) };
        l_zip2(v);
        l_store(to + 2 * i, v[0]);
        l_store(to + 2 * i + sizeof(li), v[1]);
    }
}

/* n pairs of int16 of a and b, each as column_pair returns it. */
QK_INLINE void join_pairs(char *to, const char *a, const char *b, int n) {
    QK_UNROLL for (int i = 0; i < n; i++) {
        const uint32_t two[SIDE] = { qk_load_u32(a + 4 * i), qk_load_u32(b + 4 * i) };
        l_store(to + i * (int)sizeof(li), l_apart(l_dup2(two)));
    }
}

/* n bytes, a multiple of 16, of dwords of a and b in turn. */
QK_INLINE void join_dwords(char *to, const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i += sizeof(li)) put_zipped(to + 2 * i, l_load(a + i), l_load(b + i));
}

#else

/* ---- L rows and one column ---- */

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

/* ---- a sub-block ---- */

/* Adds n steps of a sub-block, starting with s0, to the sums of the RV vectors of rows at r
 * with nc columns. */
QK_INLINE void dot_sub(li sum[][COLS], const tile_step *q, int r, const char *const x[COLS], size_t s0, int n,
                       int nc) {
    const int many = tile_pairs(n);
    if (MARKS) {
        dot_marked(sum, q, r, x, s0, n, nc);
        return;
    }
    if (many < 2) {
        dot_steps(sum, q, r, x, s0, n, nc);
        return;
    }
    QK_UNROLL for (int s = 0; s < n; s += many) {
        lp pairs[RV][COLS];
        pair_steps(pairs, q, r, x, s0 + (size_t)s, many, nc);
        for (int c = 0; c < nc; c++)
            for (int v = 0; v < RV; v++) sum[v][c] = l_dot_pairs(sum[v][c], pairs[v][c]);
    }
}

#endif
