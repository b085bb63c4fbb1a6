/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Part of mm_super.h, for few columns: straight from the planes of the groups, a part of a
 * super-block of each group in turn. */
#ifndef QSF_KERNELS_X16_MM_SUPER_FEW_H
#define QSF_KERNELS_X16_MM_SUPER_FEW_H

/* What FMT_DIRECT makes of a super-block of the column, for all groups. */
#ifndef FMT_TURN
typedef struct turned {
    char none;
} turned;
#define FMT_TURN(t, x) (void)(t)
#endif

/* The columns of x, starting at a part. */
QK_INLINE columns columns_of_part(const columns *x, size_t part, int nc) {
    columns at = *x;
    at.sums += part * PART_SUBS * 2 - part * FMT_PART;
    for (int c = 0; c < nc; c++) at.q[c] = x->q[c] + part * FMT_PART;
    return at;
}

/* Adds sub-block j, times its scale, to the sums of nc columns. FMT_ROLLED: j and x are those of the part. */
QK_INLINE void direct_sub(li (*sum)[NV], const uint8_t *p, const uint8_t *steps, const columns *x,
                          const turned *t, size_t part, int j, int nc) {
    li sub[COLS][NV];
    (void)x, (void)t, (void)part;
#ifdef FMT_DIRECT
    for (int v = 0; v < NV; v++) sub[0][v] = FMT_DIRECT(p, steps, x, t, j, v);
    L_FENCE();
#else
    QK_UNROLL for (int c = 0; c < nc; c++) for (int v = 0; v < NV; v++) sub[c][v] = start_of(x, c, j, OFFSET);
    QK_UNROLL for (int s = 0; s < SUB_STEPS; s += RUN)
        direct_steps(sub, steps, x->q, 4 * (j * SUB_STEPS + s), j * SUB_STEPS + s, RUN, nc);
#endif
    if (FMT_ROLLED) L_HIDE(p); /* otherwise addresses are kept for the next sub-block, in memory */
    for (int v = 0; v < NV; v++) {
        const li scale = FMT_SCALED ? FMT_PART_SCALE(p, part, j, v) : l_set(0);
        QK_UNROLL for (int c = 0; c < nc; c++)
            sum[c][v] = l_add(sum[c][v], FMT_SCALED ? l_mul(sub[c][v], scale) : sub[c][v]);
    }
}

/* Adds the sums of a super-block, times their scales, to acc. */
QK_INLINE lf direct_end(lf acc, li sum, const uint8_t *p, const columns *x, int c, int v) {
    const uint8_t *half = p + HALVES + v * L * 2;
    const lf dx = scale_of(x, c);
    li mins = l_set(0);
    acc = l_addf(acc, product(d_of(p, v), dx, sum));
    QK_UNROLL for (int i = 0; i < FMT_MINS / 2; i++)
        mins = l_dot16(mins, fmt_mins(p, i, v), l_dup(x->q[c] + x->mins + 4 * i));
    return FMT_MINS ? l_subf(acc, product(l_halves(half + QK_HALF), dx, mins)) : acc;
}

/* Part i of a super-block of each group. */
QK_INLINE void direct_part(li (*sum)[NV], const groups *w, const columns *x, const turned *t, int i, int nc) {
    _Alignas(64) uint8_t prepared[PREPARED_BYTES];
    columns col = FMT_ROLLED ? columns_of_part(x, (size_t)i, nc) : *x;
    turned of_part;
    if (FMT_ROLLED) {
        FMT_TURN(&of_part, &col);
        t = &of_part;
    }
    for (size_t g = 0; g < w->n; g++, sum += nc) {
        size_t part = (size_t)i;
        if (FMT_ROLLED) L_HIDE(part); /* the addresses of planes would not fit the registers */
        const uint8_t *p = w->p + g * w->stride, *steps = FMT_PREPARE(prepared, p, part);
        if (!FMT_ROLLED) hide_columns(col.q, nc);
        prefetch_group(w, p + part * PART_BYTES,
                       FMT_ROLLED || i + 1 < PARTS ? PART_BYTES : GROUP_BLOCK - i * PART_BYTES);
        for (int c = 0; !FMT_ROLLED && i == 0 && c < nc; c++)
            for (int v = 0; v < NV; v++) sum[c][v] = l_set(0);
        QK_UNROLL for (int j = 0; j < PART_SUBS; j++)
            direct_sub(sum, p, steps, &col, t, part, FMT_ROLLED ? j : i * PART_SUBS + j, nc);
    }
}

/* Part i for nc columns, one only with ONE_APART. */
QK_INLINE void part_apart(li (*sum)[NV], const groups *w, const columns *x, int i, int nc) {
    if (i >= PARTS) return;
    if (ONE_APART && nc == 1)
        direct_part(sum, w, x, NULL, i, 1);
    else if (EACH_FEW && nc == 2)
        direct_part(sum, w, x, NULL, i, 2);
    else if (EACH_FEW && nc == 3)
        direct_part(sum, w, x, NULL, i, 3);
    else
        direct_part(sum, w, x, NULL, i, FEW_COLS);
}

QK_INLINE void parts_apart(li (*sum)[NV], const groups *w, const columns *x, int quarter, int nc) {
    part_apart(sum, w, x, 2 * quarter, nc);
    part_apart(sum, w, x, 2 * quarter + 1, nc);
}

/* As functions: gcc takes longer for one than for its quarters. */
static __attribute__((noinline, unused)) void parts_0(li (*sum)[NV], const groups *w, const columns *x,
                                                      int nc) {
    parts_apart(sum, w, x, 0, nc);
}
static __attribute__((noinline, unused)) void parts_1(li (*sum)[NV], const groups *w, const columns *x,
                                                      int nc) {
    parts_apart(sum, w, x, 1, nc);
}
static __attribute__((noinline, unused)) void parts_2(li (*sum)[NV], const groups *w, const columns *x,
                                                      int nc) {
    parts_apart(sum, w, x, 2, nc);
}
static __attribute__((noinline, unused)) void parts_3(li (*sum)[NV], const groups *w, const columns *x,
                                                      int nc) {
    parts_apart(sum, w, x, 3, nc);
}

/* All parts of a super-block of each group. */
QK_INLINE void all_apart(li (*sum)[NV], const groups *w, const columns *x, int nc) {
    parts_0(sum, w, x, nc);
    parts_1(sum, w, x, nc);
    parts_2(sum, w, x, nc);
    parts_3(sum, w, x, nc);
}

QK_INLINE void mv_unit(lf (*acc)[NV], const groups *w, const columns *x, size_t n, int nc) {
    li sum[MV_GROUPS * FEW_COLS][NV];
    turned t;
    (void)n;
    if (!FMT_ROLLED) FMT_TURN(&t, x);
#define ADD_PART(i) direct_part(sum, w, x, &t, i, nc)
    if (FMT_ROLLED) {
        li none = l_set(0);
        L_HOLD(none); /* otherwise a call of memset */
        for (size_t g = 0; g < w->n; g++)
            for (int v = 0; v < NV; v++) sum[g][v] = none;
        for (int i = 0, parts = rolled_parts(); i < parts; i++) ADD_PART(i);
    } else if (ONE_APART || (L <= 8 && nc > 1))
        all_apart(sum, w, x, nc);
    else
        QK_REPEAT(PARTS, ADD_PART);
#undef ADD_PART
    for (size_t g = 0, at = 0; g < w->n; g++)
        for (int c = 0; c < nc; c++, at++)
            for (int v = 0; v < NV; v++)
                acc[at][v] = direct_end(acc[at][v], sum[at][v], w->p + g * w->stride, x, c, v);
}

#endif
