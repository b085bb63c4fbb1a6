/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Part of mm_super.h: tiles of formats whose sums of eight elements, half a sub-block, fit an int16,
 * while those of a whole one do not (Q6_K). A tile has pairs of steps zipped: the two dwords of a row
 * are next to each other, and a vector has every other pair of rows. Each dword has a sum of its own;
 * two vectors of sums are narrowed to int16, and the two sums of a row are multiplied by its scale and
 * added with one instruction. Otherwise a sum of 32 bits would be multiplied, which takes Intel as long
 * as two dot products, and added. */
#ifndef QSF_KERNELS_X16_MM_SUPER_NARROW_H
#define QSF_KERNELS_X16_MM_SUPER_NARROW_H

#if L_NARROW
QK_INLINE void zip_steps(li two[2]) { l_zip(two); }

/* The super-block of the columns of x, followed by the initial sums of both halves of every sub-block:
 * -OFFSET times the sum of the elements, twice for each 16 bytes of the column. */
QK_INLINE columns narrow_columns(char (*to)[OWN_BYTES], const columns *x) {
    columns own = { .d = 2 * UNIT };
    for (int c = 0; c < WIDTH; c++) {
        own.q[c] = to[c];
        for (int i = 0; i < UNIT; i += (int)sizeof(li)) {
            const li bytes = l_load(x->q[c] + i), sums = l_dot(l_set(0), l_bytes(OFFSET), bytes);
            l_store(to[c] + i, bytes);
            l_store(to[c] + UNIT + i, l_sub(l_set(0), l_add(sums, l_swap2(sums))));
        }
        memcpy(to[c] + own.d, x->q[c] + x->d, sizeof(float));
    }
    return own;
}

/* Adds sub-block j, times its scale, to the total. */
QK_INLINE void add_narrow(li all[][COLS], const tile *t, int r, const columns *x, int j, int cv) {
    const tile_step *q = (const tile_step *)&t->q[j * SUB_STEPS][r];
    QK_UNROLL for (int v = 0; v < RV; v++) {
        const li scale = l_load(&t->scale[j][r + v * L]);
        li w[SUB_STEPS];
        QK_UNROLL for (int s = 0; s < SUB_STEPS; s++) {
            w[s] = l_load(q[s][v * L]);
            L_HOLD(w[s]);
        }
        QK_UNROLL for (int c = 0; c < cv; c++) {
            const char *bytes = x->q[c] + j * FMT_SUB;
            li sum[2] = { l_dup2(bytes + UNIT), l_dup2(bytes + UNIT) };
            QK_UNROLL for (int s = 0; s < SUB_STEPS; s++)
                sum[s % 2] = l_dot(sum[s % 2], w[s], l_dup2(bytes + s / 2 * 8));
            all[v][c] = l_dot16(all[v][c], l_narrow(sum[0], sum[1]), scale);
            L_HOLD(all[v][c]);
        }
    }
}
#else
QK_INLINE void zip_steps(li two[2]) { (void)two; }
QK_INLINE columns narrow_columns(char (*to)[OWN_BYTES], const columns *x) { return (void)to, *x; }
QK_INLINE void add_narrow(li all[][COLS], const tile *t, int r, const columns *x, int j, int cv) {
    (void)all, (void)t, (void)r, (void)x, (void)j, (void)cv;
}
#endif

#endif
