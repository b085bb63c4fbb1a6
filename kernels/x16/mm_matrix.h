/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of a tile by l_matrix: a vector of sums belongs to two rows and two columns, (ac, ad, bc, bd). Its
 * names are explained in mm_tile.h. Eight bytes of a row are adjacent in a tile, and what belongs to a row is
 * stored twice. Columns are joined in pairs before they are multiplied (join_columns): eight bytes of one,
 * eight of the other, and dwords in turn. */
#ifndef QSF_KERNELS_X16_MM_MATRIX_H
#define QSF_KERNELS_X16_MM_MATRIX_H

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

/* nc: pairs of columns. */
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

#endif
