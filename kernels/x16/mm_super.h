/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of the formats with super-blocks of 256 and Q8K columns, over rows interleaved by 16 (kernels/x16/x16.h).
 * The including file has included lanes_<isa>.h and then fmt_<format>.h, which defines what super.h says.
 *
 * The sum of a super-block, scales of its sub-blocks included, is an exact integer; then acc += (d * dx) * sum and
 * acc -= (dmin * dx) * mins run over the super-blocks in order. Few columns: straight from the planes, one at a time.
 * Many: tiles of 64 rows are unpacked once and meet all columns, COLS at a time, R vectors of rows side by side, so
 * that a load feeds several products: a core that starts two of those a cycle must not wait for its loads. */
#ifndef QSF_KERNELS_X16_MM_SUPER_H
#define QSF_KERNELS_X16_MM_SUPER_H

#include "kernels/x16/cells.h"
#include "kernels/x16/super.h"

/* Keeps a vector in its register: loading it again for every product is what the load ports have no time for. */
#ifndef L_HOLD
#define L_HOLD(v) (void)(v)
#endif

enum {
    NV = (int)QK_GROUP / L,                          /* vectors that hold a lane of every row of a group */
    STEPS = QK_K / 4,
    SUBS = QK_K / FMT_SUB,
    SUB_STEPS = FMT_SUB / 4,
    BLOCK_BYTES = FMT_PLANES * 4 + FMT_HALVES * 2,   /* of one row */
    GROUP_BLOCK = BLOCK_BYTES * (int)QK_GROUP,
    HALVES = FMT_PLANES * (int)QK_PLANE,             /* where they begin */
    OFFSET = FMT_OFF + (FMT_SIGNED > 0 ? L_BIAS : 0),
    TILE_GROUPS = 4,                                 /* groups of rows that share a pass over the columns */
    TILE_ROWS = TILE_GROUPS * (int)QK_GROUP,
    COLS = 4, R = L == 16 ? 4 : 2,                   /* a register block: columns, vectors of rows */
    TILE_FROM_COLS = 3,                              /* from so many columns on a tile is worth its unpacking */
    AHEAD = 8192                                    /* bytes from what is used to what is prefetched */
};

/* One super-block of a few columns: where its bytes are, and how many bytes behind them are its scale, the sums of the
 * neighbours that share a minimum, and the sums of 16 or 32. */
typedef struct columns {
    const char *q[COLS];
    size_t d, mins, sums;
} columns;

QK_INLINE columns columns_at(const qk_mm *m, size_t c, size_t b, int nc)
{
    const qk_col_q8k col = qk_col_q8k_at(qk_mm_col(m, c), m->k);
    const char *q = (const char *)(col.q + b * QK_K);
    columns x;
    for (int i = 0; i < nc; i++)
        x.q[i] = q + (size_t)i * m->x_stride;
    const size_t sum32 = (size_t)((const char *)(col.sum32 + b * 8) - q);
    const size_t sum16 = (size_t)((const char *)(col.sum16 + b * 16) - q);
    x.d = (size_t)((const char *)(col.d + b) - q);
    x.mins = FMT_MINS == 16 ? sum16 : sum32;
    x.sums = FMT_SUB == 16 ? sum16 : sum32;
    return x;
}

QK_INLINE lf scale_of(const columns *x, int c)
{
    return l_setf(qk_load_f32(x->q[c] + x->d));
}

/* What the sum of sub-block j begins with when `off` is taken from each q. The sum of the elements is the upper half of a
 * dword; the lower one is the sum before it, or what lies there, unless a sub-block has two sums. */
QK_INLINE li start_of(const columns *x, int c, int j, int off)
{
    const int both = FMT_SUB == 64;
    const char *sums = x->q[c] + x->sums + (both ? 4 * j : 2 * j - 2);
    const uint32_t upper = (uint32_t)-off << 16;
    return off ? l_dot16(l_set(0), l_set((int32_t)(both ? upper | (uint16_t)-off : upper)), l_dup(sums)) : l_set(0);
}

QK_INLINE li byte_dot(li acc, li w, li x)
{
    return FMT_SIGNED ? l_dot_signed(acc, w, x) : l_dot(acc, w, x);
}

/* (d * dx) * sum */
QK_INLINE lf product(lf d, lf dx, li sum)
{
    return l_mulf(l_mulf(d, dx), l_float(sum));
}

/* ---- rows that become groups ---- */

/* Super-blocks as they come to the core: groups, or rows that are packed one super-block at a time. */
typedef struct source {
    const uint8_t *group;              /* NULL: rows */
    const uint8_t *row[QK_GROUP];      /* a short group repeats its last row */
    size_t ahead;                      /* bytes from a row to that of the next group, to prefetch */
    size_t n;                          /* rows that exist */
} source;

static source source_at(const qk_mm *m, size_t r, size_t row1, int packed)
{
    source s = { .n = row1 - r < QK_GROUP ? row1 - r : QK_GROUP, .ahead = QK_GROUP * m->row_bytes };
    if (packed)
        s.group = qk_mm_row(m, r);
    else
        for (size_t i = 0; i < QK_GROUP; i++)
            s.row[i] = qk_mm_row(m, r + (i < s.n ? i : s.n - 1));
    return s;
}

/* Super-block b of 16 rows, as x16.h orders it. The last planes come twice rather than reading further. */
static void pack_super(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t b)
{
    const size_t at = b * BLOCK_BYTES;
    for (size_t n = 0; n < FMT_PLANES; n += 4) {
        const size_t first = n + 4 > FMT_PLANES ? FMT_PLANES - 4 : n;
        l_planes4(dst + first * QK_PLANE, row, at + FMT_PLANE_AT + 4 * first);
    }
    for (size_t h = 0; h < FMT_HALVES; h++)
        for (size_t r = 0; r < QK_GROUP; r++)
            memcpy(dst + HALVES + h * QK_HALF + 2 * r, row[r] + at + FMT_HALF_AT + 2 * h, 2);
}

QK_INLINE const uint8_t *super_at(const source *s, size_t b, uint8_t *scratch)
{
    if (s->group)
        return s->group + b * GROUP_BLOCK;
    for (size_t r = 0; r < QK_GROUP; r++)
        for (size_t i = 0; i < BLOCK_BYTES; i += 64)
            l_prefetch(s->row[r] + s->ahead + b * BLOCK_BYTES + i);
    pack_super(scratch, s->row, b);
    return scratch;
}

/* ---- one column at a time ---- */

QK_INLINE li direct_sub(const uint8_t *p, const columns *x, int j, int v)
{
    li sum = start_of(x, 0, j, OFFSET);
    QK_UNROLL for (int s = j * SUB_STEPS; s < (j + 1) * SUB_STEPS; s++)
        sum = byte_dot(sum, fmt_step(p, s, v), l_dup(x->q[0] + 4 * s));
    return FMT_SCALED ? l_mul(sum, fmt_scale(p, j, v)) : sum;
}

/* Vector v of the super-block at p, straight from its planes. */
QK_INLINE lf direct_super(lf acc, const uint8_t *p, const columns *x, int v)
{
    const uint8_t *half = p + HALVES + v * L * 2;
    const lf dx = scale_of(x, 0);
    li sum = l_set(0), mins = l_set(0);
    QK_UNROLL for (int j = 0; j < SUBS; j++) {
        for (int i = GROUP_BLOCK / 64 * j / SUBS; v == 0 && i < GROUP_BLOCK / 64 * (j + 1) / SUBS; i++)
            l_prefetch(p + AHEAD + 64 * i);
        sum = l_add(sum, direct_sub(p, x, j, v));
    }
    acc = l_addf(acc, product(l_halves(half), dx, sum));
    QK_UNROLL for (int i = 0; i < FMT_MINS / 2; i++)
        mins = l_dot16(mins, fmt_mins(p, i, v), l_dup(x->q[0] + x->mins + 4 * i));
    return FMT_MINS ? l_subf(acc, product(l_halves(half + QK_HALF), dx, mins)) : acc;
}

static void mv_group(const qk_mm *m, const source *s, size_t r, size_t c)
{
    uint8_t scratch[GROUP_BLOCK];
    float y[QK_GROUP] = { 0 };
    for (size_t b = 0; b < m->k / QK_K; b++) {
        const uint8_t *p = super_at(s, b, scratch);
        const columns x = columns_at(m, c, b, 1);
        for (int v = 0; v < NV; v++)
            l_storef(y + v * L, direct_super(l_loadf(y + v * L), p, &x, v));
    }
    memcpy(m->y + c * m->y_stride + r, y, s->n * sizeof *y);
}

/* ---- many columns ---- */

enum { PAIRS = FMT_MINS ? FMT_MINS / 2 : 1 };

/* One super-block of 64 rows, unpacked. Where FMT_CENTER is taken from every q, so that the sum of a sub-block fits an
 * int16, `centre` has FMT_CENTER times the scales to give it back, in pairs that meet pairs of sums as minimums do. */
typedef struct tile {
    _Alignas(64) uint8_t q[STEPS][TILE_ROWS][4];
    int32_t scale[SUBS][TILE_ROWS];
    int32_t mins[PAIRS][TILE_ROWS], centre[PAIRS][TILE_ROWS];
    float d[TILE_ROWS], dmin[TILE_ROWS];
} tile;

/* Scale of the 32 elements of sub-block 32n as FMT_CENTER times it. */
QK_INLINE li centre_of(const uint8_t *p, int n, int v)
{
    return l_mul(fmt_scale(p, 32 * n / FMT_SUB, v), l_set(FMT_CENTER));
}

/* The group at p to rows r.. of the tile. */
static void fill_tile(tile *t, const uint8_t *p, int r)
{
    for (int v = 0; v < NV; v++, r += L) {
        QK_UNROLL for (int s = 0; s < STEPS; s++)
            l_store(t->q[s][r], fmt_step(p, s, v));
        QK_UNROLL for (int j = 0; FMT_SCALED && j < SUBS; j++)
            l_store(&t->scale[j][r], FMT_INT16 ? l_and(fmt_scale(p, j, v), l_set(0xffff)) : fmt_scale(p, j, v));
        QK_UNROLL for (int i = 0; i < FMT_MINS / 2; i++) {
            l_store(&t->mins[i][r], fmt_mins(p, i, v));
            if (FMT_CENTER)
                l_store(&t->centre[i][r], l_or(centre_of(p, 2 * i, v), l_shl(centre_of(p, 2 * i + 1, v), 16)));
        }
        l_storef(&t->d[r], l_halves(p + HALVES + v * L * 2));
        if (FMT_MINS)
            l_storef(&t->dmin[r], l_halves(p + HALVES + QK_HALF + v * L * 2));
    }
}

/* Sums of sub-block j, R vectors of rows from r on with nc columns. */
QK_INLINE void sub_sums(li sum[][COLS], const tile *t, int r, const columns *x, int j, int nc)
{
    QK_UNROLL for (int c = 0; c < nc; c++) {
        const li start = start_of(x, c, j, OFFSET + FMT_CENTER);
        QK_UNROLL for (int v = 0; v < R; v++)
            sum[v][c] = start;
    }
    QK_UNROLL for (int i = 0; i < SUB_STEPS; i++) {
        const int s = j * SUB_STEPS + i;
        li w[R];
        QK_UNROLL for (int v = 0; v < R; v++) {
            w[v] = l_load(t->q[s][r + v * L]);
            L_HOLD(w[v]);
        }
        QK_UNROLL for (int c = 0; c < nc; c++) {
            li xs = l_dup(x->q[c] + 4 * s);
            L_HOLD(xs);
            QK_UNROLL for (int v = 0; v < R; v++)
                sum[v][c] = byte_dot(sum[v][c], w[v], xs);
        }
    }
}

/* sum += pairs (minimums, centres) times the sums of the columns. */
QK_INLINE void add_pairs(li sum[][COLS], const int32_t pairs[][TILE_ROWS], int r, const columns *x, int nc)
{
    QK_UNROLL for (int i = 0; i < FMT_MINS / 2; i++) {
        li w[R];
        QK_UNROLL for (int v = 0; v < R; v++)
            w[v] = l_load(&pairs[i][r + v * L]);
        QK_UNROLL for (int c = 0; c < nc; c++) {
            const li xs = l_dup(x->q[c] + x->mins + 4 * i);
            QK_UNROLL for (int v = 0; v < R; v++)
                sum[v][c] = l_dot16(sum[v][c], w[v], xs);
        }
    }
}

/* Sub-block j with its scale joins the rest. */
QK_INLINE void add_sub(li all[][COLS], const tile *t, int r, const columns *x, int j, int nc)
{
    li sum[R][COLS];
    sub_sums(sum, t, r, x, j, nc);
    QK_UNROLL for (int v = 0; v < R; v++) {
        const li scale = l_load(&t->scale[j][r + v * L]);
        QK_UNROLL for (int c = 0; c < nc; c++) {
            if (FMT_SCALED && FMT_INT16)
                all[v][c] = l_dot16(all[v][c], sum[v][c], scale);
            else
                all[v][c] = l_add(all[v][c], FMT_SCALED ? l_mul(sum[v][c], scale) : sum[v][c]);
        }
    }
}

QK_INLINE void no_sums(li sum[][COLS], int nc)
{
    QK_UNROLL for (int c = 0; c < nc; c++)
        QK_UNROLL for (int v = 0; v < R; v++)
            sum[v][c] = l_set(0);
}

/* y += (d * dx) * sum, or -= with the scale of the minimums. */
QK_INLINE void add_products(float *y, size_t y_stride, li sum[][COLS], const float *d, const columns *x, int minus,
                            int first, int nc)
{
    QK_UNROLL for (int v = 0; v < R; v++) {
        const lf dv = l_loadf(d + v * L);
        QK_UNROLL for (int c = 0; c < nc; c++) {
            float *at = y + (size_t)c * y_stride + v * L;
            const lf acc = first ? l_zerof() : l_loadf(at);
            const lf term = product(dv, scale_of(x, c), sum[v][c]);
            l_storef(at, minus ? l_subf(acc, term) : l_addf(acc, term));
        }
    }
}

/* R vectors of rows from r on with nc columns. */
QK_INLINE void tile_cols(float *y, size_t y_stride, const tile *t, int r, const columns *x, int first, int nc)
{
    li sum[R][COLS];
    no_sums(sum, nc);
    if (FMT_CENTER)
        add_pairs(sum, t->centre, r, x, nc);
    for (int j = 0; j < SUBS; j++)
        add_sub(sum, t, r, x, j, nc);
    add_products(y, y_stride, sum, &t->d[r], x, 0, first, nc);
    if (FMT_MINS) {
        no_sums(sum, nc);
        add_pairs(sum, t->mins, r, x, nc);
        add_products(y, y_stride, sum, &t->dmin[r], x, 1, 0, nc);
    }
}

/* A tile of n rows with nc columns; y: its first row in the first of them. */
QK_INLINE void tile_block(float *y, size_t y_stride, const tile *t, size_t n, const columns *x, int first, int nc)
{
    float part[COLS][TILE_ROWS];
    if (n == TILE_ROWS) {
        for (int r = 0; r < TILE_ROWS; r += R * L)
            tile_cols(y + r, y_stride, t, r, x, first, nc);
        return;
    }
    for (int i = 0; !first && i < nc; i++)
        memcpy(part[i], y + (size_t)i * y_stride, n * sizeof *y);
    for (int r = 0; r < (int)n; r += R * L)
        tile_cols(&part[0][r], TILE_ROWS, t, r, x, first, nc);
    for (int i = 0; i < nc; i++)
        memcpy(y + (size_t)i * y_stride, part[i], n * sizeof *y);
}

/* Super-block b of the n rows from r on with all columns. */
static void tile_all(const qk_mm *m, size_t r, const tile *t, size_t n, size_t b)
{
    const size_t many = m->n_cols / COLS * COLS;
    columns x = columns_at(m, 0, b, COLS);
    for (size_t c = 0; c < many; c += COLS) {
        tile_block(m->y + c * m->y_stride + r, m->y_stride, t, n, &x, b == 0, COLS);
        for (int i = 0; i < COLS; i++)
            x.q[i] += COLS * m->x_stride;
    }
    for (size_t c = many; c < m->n_cols; c++, x.q[0] += m->x_stride)
        tile_block(m->y + c * m->y_stride + r, m->y_stride, t, n, &x, b == 0, 1);
}

/* n rows from r on, no more than a tile has. */
static void mm_tile(const qk_mm *m, size_t r, size_t n, int packed)
{
    uint8_t scratch[GROUP_BLOCK];
    tile t;
    for (size_t b = 0; b < m->k / QK_K; b++) {
        for (size_t i = 0; i < n; i += QK_GROUP) {
            const source s = source_at(m, r + i, r + n, packed);
            fill_tile(&t, super_at(&s, b, scratch), (int)i);
        }
        tile_all(m, r, &t, n, b);
    }
}

/* ---- rows of either kind ---- */

QK_INLINE void mm_run(const qk_mm *m, size_t row0, size_t row1, int packed)
{
    for (size_t r = row0, n; r < row1; r += n) {
        if (m->n_cols >= TILE_FROM_COLS) {
            n = row1 - r < TILE_ROWS ? row1 - r : TILE_ROWS;
            mm_tile(m, r, n, packed);
            continue;
        }
        const source s = source_at(m, r, row1, packed);
        n = s.n;
        for (size_t c = 0; c < m->n_cols; c++)
            mv_group(m, &s, r, c);
    }
}

/* The three functions of a cell. */
#define QK_SUPER_CELL(cell)                                                        \
    QK_CELL(cell)                                                                  \
    void qk_mm_##cell(const qk_mm *m, size_t row0, size_t row1)                    \
    {                                                                              \
        mm_run(m, row0, row1, 0);                                                  \
    }                                                                              \
    void qk_mm16_##cell(const qk_mm *m, size_t row0, size_t row1)                  \
    {                                                                              \
        mm_run(m, row0, row1, 1);                                                  \
    }                                                                              \
    void qk_pack_##cell(void *dst, const void *src, size_t row_bytes, size_t k)    \
    {                                                                              \
        const qk_mm rows = { .w = src, .row_bytes = row_bytes };                   \
        const source s = source_at(&rows, 0, QK_GROUP, 0);                         \
        for (size_t b = 0; b < k / QK_K; b++)                                      \
            pack_super((uint8_t *)dst + b * GROUP_BLOCK, s.row, b);                \
    }

#endif
