/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Included at the end of mm_block.h and mm_super.h: all rows times all columns, and the functions of a format
 * at a level. The core defines
 *   pack_block(dst, row, b)                  interleaves block b of 16 rows (x16.h)
 *   columns                                  units of a few columns, columns.q[c] the bytes of one
 *   columns_at(m, c, u, nc)                  unit u of columns c .. c + nc - 1
 *   mv_unit(acc, w, x, n, nc)                adds n blocks of each group times nc columns: FEW_COLS or one;
 *                                            with EACH_FEW also numbers between
 *   own_columns(to, x, n), OWN_BYTES         WIDTH columns, n blocks of each, as tile_cols wants them: where
 *                                            OWN_COLUMNS is defined and not 0
 *   tile, fill_tile(t, p, r, n)              n blocks of the group at p, unpacked to rows r .. r + 15 of the
 *                                            tile
 *   tile_cols(y, t, r, x, n, first, nc, wide)  R vectors of rows, starting at r, times nc columns of y, which
 *                                            are TILE_ROWS apart; wide: qk_mm.wide, where CAN_BE_WIDE */
#ifndef QSF_KERNELS_X16_MM_RUN_H
#define QSF_KERNELS_X16_MM_RUN_H

/* The values of qk_way: groups that are read together, and how many bytes before its use data is prefetched,
 * to the nearest cache or to a larger one, which can have more reads under way. 0: not at all. */
static const struct way {
    size_t groups, ahead;
    int far;
} ways[QK_WAY_N] = {
    [QK_WAY_TURNS] = { MV_GROUPS, FMT_AHEAD, 0 },
    [QK_WAY_ALONE] = { 1, 0, 0 },
    [QK_WAY_FAR] = { MV_GROUPS, 3328, 1 },
    [QK_WAY_AHEAD] = { 1, 8192, 0 },
};

/* ---- access to rows ---- */

/* Interleaved groups, or rows that are packed one unit at a time. */
typedef struct source {
    const uint8_t *group;         /* NULL: use row */
    const uint8_t *row[QK_GROUP]; /* the last row is repeated in a short group */
    size_t ahead;                 /* bytes from a row to the same row of the next group, to prefetch */
    size_t n;                     /* number of rows that exist */
} source;

static source source_at(const qk_mm *m, size_t r, size_t row1, int packed) {
    source s = { .n = row1 - r < QK_GROUP ? row1 - r : QK_GROUP, .ahead = QK_GROUP * m->row_bytes };
    if (packed)
        s.group = qk_mm_row(m, r);
    else
        for (size_t i = 0; i < QK_GROUP; i++) s.row[i] = qk_mm_row(m, r + (i < s.n ? i : s.n - 1));
    return s;
}

/* A function: the compiler would inline it in five others. */
static __attribute__((noinline)) void pack_blocks(uint8_t *dst, const source *s, size_t b0, size_t n) {
    for (size_t b = 0; b < n; b++) pack_block(dst + b * GROUP_BLOCK, s->row, b0 + b);
}

/* The n blocks of unit u. */
QK_INLINE const uint8_t *unit_at(const source *s, size_t u, size_t n, uint8_t *scratch) {
    const size_t b0 = u * UNIT_BLOCKS;
    if (s->group) return s->group + b0 * GROUP_BLOCK;
    for (size_t r = 0; r < QK_GROUP; r++)
        for (size_t i = 0; i < n * BLOCK_BYTES; i += 64)
            l_prefetch(s->row[r] + s->ahead + b0 * BLOCK_BYTES + i);
    pack_blocks(scratch, s, b0, n);
    return scratch;
}

static size_t blocks_of(const qk_mm *m, size_t u) {
    const size_t left = m->k / FMT_ELEMS - u * UNIT_BLOCKS;
    return left < UNIT_BLOCKS ? left : UNIT_BLOCKS;
}

/* ---- few columns ---- */

/* n rows starting at r, at most MV_GROUPS groups, and nc columns starting at c, of which `exist`
 * exist; the last is repeated. Rows that are not interleaved are handled one group at a time: they are
 * sixteen separate streams already. */
QK_INLINE void mv_rows(const qk_mm *m, size_t r, size_t n, size_t c, int packed, int nc, int exist) {
    uint8_t scratch[UNIT_BLOCKS * GROUP_BLOCK];
    lf acc[MV_GROUPS * FEW_COLS][NV];
    const source s = source_at(m, r, r + n, packed);
    const struct way *way = &ways[m->way];
    groups w = { .n = (n + QK_GROUP - 1) / QK_GROUP, .stride = QK_GROUP * m->row_bytes, .far = way->far };
    for (size_t i = 0; i < w.n * (size_t)nc; i++)
        for (int v = 0; v < NV; v++) acc[i][v] = l_zerof();
    for (size_t u = 0; u * UNIT < m->k; u++) {
        columns x = columns_at(m, c, u, exist);
        for (int i = exist; i < nc; i++) x.q[i] = x.q[exist - 1];
        const size_t blocks = blocks_of(m, u);
        w.p = unit_at(&s, u, blocks, scratch);
        if (packed && way->ahead) /* several groups: after the last unit, the first one of the next groups */
            w.ahead = (u + 1) * UNIT < m->k || way->groups == 1 ? way->ahead
                                                                : blocks * GROUP_BLOCK + (w.n - 1) * w.stride;
        mv_unit(acc, &w, &x, blocks, nc);
    }
    for (int i = 0; i < exist; i++) {
        float y[MV_GROUPS * QK_GROUP];
        for (size_t g = 0; g < w.n; g++)
            for (int v = 0; v < NV; v++) {
                const lf a = acc[g * (size_t)nc + (size_t)i][v];
                l_storef(y + g * QK_GROUP + (size_t)(v * L),
                         FMT_TENSOR_SCALE ? l_mulf(a, l_setf(m->scale)) : a);
            }
        memcpy(m->y + (c + (size_t)i) * m->y_stride + r, y, n * sizeof *y);
    }
}

static void mv_one(const qk_mm *m, size_t r, size_t n, size_t c, int packed) {
    mv_rows(m, r, n, c, packed, 1, 1);
}

static void mv_few(const qk_mm *m, size_t r, size_t n, size_t c, int packed) {
    const size_t left = m->n_cols - c;
    mv_rows(m, r, n, c, packed, FEW_COLS, left < (size_t)FEW_COLS ? (int)left : FEW_COLS);
}

static void mv_two(const qk_mm *m, size_t r, size_t n, size_t c, int packed) {
    mv_rows(m, r, n, c, packed, FEW_COLS < 2 ? FEW_COLS : 2, 2);
}

static void mv_three(const qk_mm *m, size_t r, size_t n, size_t c, int packed) {
    mv_rows(m, r, n, c, packed, FEW_COLS < 3 ? FEW_COLS : 3, 3);
}

/* All columns, for at most TILE_FROM_COLS - 1 of them. */
static void mv_cols(const qk_mm *m, size_t r, size_t n, int packed) {
    for (size_t c = 0; c < m->n_cols; c += FEW_COLS) {
        const size_t left = m->n_cols - c;
        if (FEW_COLS == 1 || left == 1)
            mv_one(m, r, n, c, packed);
        else if (EACH_FEW && left == 2)
            mv_two(m, r, n, c, packed);
        else if (EACH_FEW && left == 3)
            mv_three(m, r, n, c, packed);
        else
            mv_few(m, r, n, c, packed);
    }
}

/* ---- many columns ---- */

typedef float part_col[TILE_ROWS];

/* What is unpacked next: a bit of it is prefetched with every few columns. */
typedef struct upcoming {
    const uint8_t *p; /* NULL: nothing */
    size_t stride;    /* bytes between its groups */
    size_t at, step;  /* of a group: bytes done, and bytes at a time */
} upcoming;

/* The unit after u of the tile of interleaved rows at r, or the first one of the next tile; n_cols: those
 * that are multiplied before. */
static upcoming unit_after(const qk_mm *m, size_t r, size_t u, size_t n_cols) {
    const size_t unit = UNIT_BLOCKS * GROUP_BLOCK;
    const int last = (u + 1) * UNIT >= m->k;
    return (upcoming){ .p = qk_mm_row(m, last ? r + TILE_ROWS : r) + (last ? 0 : (u + 1) * unit),
                       .stride = QK_GROUP * m->row_bytes,
                       .step = (unit * WIDTH / n_cols / 64 + 1) * 64 };
}

QK_INLINE void prefetch_some(upcoming *w) {
    if (!w->p || w->at >= UNIT_BLOCKS * GROUP_BLOCK) return;
    for (size_t g = 0; g < TILE_ROWS / QK_GROUP; g++)
        for (size_t i = 0; i < w->step; i += 64) l_prefetch(w->p + g * w->stride + w->at + i);
    w->at += w->step;
}

/* The lines that the results of rows [r, r + n) and columns [c, c + WIDTH) are stored to. */
QK_INLINE void prefetch_results(const qk_mm *m, size_t r, size_t n, size_t c, size_t c1) {
    for (size_t end = c1 - c < WIDTH ? c1 : c + WIDTH; c < end; c++)
        for (size_t i = 0; i < n; i += 64 / sizeof(float))
            __builtin_prefetch(m->y + c * m->y_stride + r + i, 1);
}

/* n rows of a tile times WIDTH columns. A function, so that the compiler has nothing else to
 * keep in registers. */
static __attribute__((noinline)) void tile_block(part_col *part, const tile *t, size_t n, const columns *x,
                                                 size_t blocks, int first, int wide) {
#ifdef OWN_COLUMNS
    _Alignas(32) char bytes[WIDTH / SIDE][OWN_BYTES];
    columns own;
    if (OWN_COLUMNS) {
        own = own_columns(bytes, x, blocks);
        x = &own;
    }
#endif
    for (int r = 0; r < (int)n; r += R * L) tile_cols(&part[0][r], t, r, x, blocks, first, WIDTH, wide);
}

/* Unit u of a tile of n rows times the columns [c0, c1). The last column is repeated to fill a block: fewer
 * columns would take longer, because each sum waits for the one before. */
static void tile_all(part_col *part, const qk_mm *m, const tile *t, size_t r, size_t n, size_t u, size_t c0,
                     size_t c1, upcoming next) {
    const size_t blocks = blocks_of(m, u);
    columns x = columns_at(m, c0, u, c1 - c0 < WIDTH ? (int)(c1 - c0) : WIDTH);
    for (; c0 < c1; c0 += WIDTH, part += WIDTH) {
        for (size_t i = c1 - c0; i < WIDTH; i++) x.q[i] = x.q[c1 - c0 - 1];
        prefetch_some(&next);
        if ((u + 1) * UNIT >= m->k) prefetch_results(m, r, n, c0, c1);
        if (CAN_BE_WIDE && m->wide)
            tile_block(part, t, n, &x, blocks, u == 0, 1);
        else
            tile_block(part, t, n, &x, blocks, u == 0, 0);
        for (int i = 0; i < WIDTH; i++) x.q[i] += WIDTH * m->x_stride;
    }
}

static void store_part(const qk_mm *m, const part_col *part, size_t r, size_t n, size_t c0, size_t c1) {
    for (size_t c = c0; c < c1; c++) {
        float *y = m->y + c * m->y_stride + r;
        if (FMT_TENSOR_SCALE)
            for (size_t i = 0; i < n; i++) y[i] = part[c - c0][i] * m->scale;
        else
            memcpy(y, part[c - c0], n * sizeof *y);
    }
}

/* n rows starting at r, at most one tile, times the columns [c0, c1), at most one pass. */
static void mm_tile(const qk_mm *m, size_t r, size_t n, size_t c0, size_t c1, int packed) {
    uint8_t scratch[UNIT_BLOCKS * GROUP_BLOCK];
    _Alignas(64) part_col part[PART_COLS + WIDTH - 1];
    tile t;
    for (size_t u = 0; u * UNIT < m->k; u++) {
        const size_t blocks = blocks_of(m, u);
        for (size_t i = 0; i < n; i += QK_GROUP) {
            const source s = source_at(m, r + i, r + n, packed);
            fill_tile(&t, unit_at(&s, u, blocks, scratch), (int)i, blocks);
        }
        const upcoming none = { 0 };
        tile_all(part, m, &t, r, n, u, c0, c1, packed ? unit_after(m, r, u, c1 - c0) : none);
    }
    store_part(m, part, r, n, c0, c1);
}

static void mm_run(const qk_mm *m, size_t row0, size_t row1, int packed) {
    L_HIDE(packed); /* otherwise everything is compiled twice */
    const size_t together = packed ? ways[m->way].groups : 1;
    const size_t step = m->n_cols >= TILE_FROM_COLS ? TILE_ROWS : together * QK_GROUP;
    for (size_t r = row0, n; r < row1; r += n) {
        n = row1 - r < step ? row1 - r : step;
        if (m->n_cols < TILE_FROM_COLS) {
            mv_cols(m, r, n, packed);
            continue;
        }
        for (size_t c = 0; c < m->n_cols; c += PART_COLS)
            mm_tile(m, r, n, c, m->n_cols - c < PART_COLS ? m->n_cols : c + PART_COLS, packed);
    }
}

/* A generated file ends with this: the functions of a format at a level (q4_0_avx2). */
#define QK_X16_MATMULS(name)                                                                    \
    void qk_mm_##name(const qk_mm *m, size_t row0, size_t row1) { mm_run(m, row0, row1, 0); }   \
    void qk_mm16_##name(const qk_mm *m, size_t row0, size_t row1) { mm_run(m, row0, row1, 1); } \
    void qk_pack_##name(void *dst, const void *src, size_t row_bytes, size_t k) {               \
        const qk_mm rows = { .w = src, .row_bytes = row_bytes };                                \
        const source s = source_at(&rows, 0, QK_GROUP, 0);                                      \
        pack_blocks(dst, &s, 0, k / FMT_ELEMS);                                                 \
    }

#endif
