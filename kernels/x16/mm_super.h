/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of the formats with super-blocks of 256 and Q8K columns, over rows interleaved by 16
 * (kernels/x16/x16.h). The including file has included lanes_<isa>.h and then fmt_<format>.h, which defines
 * the names listed in mm_plan.h.
 *
 * The sum of a super-block, including the scales of its sub-blocks, is an exact integer; then acc += (d * dx)
 * * sum and acc -= (dmin * dx) * mins run over the super-blocks in order. Few columns: straight from the
 * planes, one at a time. Many: tiles of 64 rows are unpacked once and multiplied with all columns, R vectors
 * of rows with WIDTH columns at a time, so that each load is used for several products: a core that starts
 * two products per cycle would otherwise wait for loads. */
#ifndef QSF_KERNELS_X16_MM_SUPER_H
#define QSF_KERNELS_X16_MM_SUPER_H

#define MM_SUPER 1
#include "kernels/x16/mm_tile.h"

/* PARTS, which the compiler does not know: it would unroll the loop. */
QK_INLINE int rolled_parts(void) {
    int parts = PARTS;
    L_HIDE(parts);
    return parts;
}

/* d of the rows in vector v of the group at p. */
QK_INLINE lf d_of(const uint8_t *p, int v) {
    const lf d = l_halves(p + HALVES + v * L * 2);
    return FMT_UNIT != 1.0f ? l_mulf(d, l_setf(FMT_UNIT)) : d;
}

#ifdef FMT_FIX_ROW
QK_INLINE void pack_block(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t b) {
    const size_t at = b * BLOCK_BYTES;
    for (size_t r = 0; r < QK_GROUP; r++) {
        uint32_t w[FMT_PLANES + 1]; /* the halves too */
        memcpy(w, row[r] + at + FMT_PLANE_AT, FMT_PLANES * 4);
        memcpy(w + FMT_PLANES, row[r] + at + FMT_HALF_AT, FMT_HALVES * 2);
        FMT_FIX_ROW(w);
        for (size_t n = 0; n < FMT_PLANES; n++) memcpy(dst + n * QK_PLANE + r * 4, &w[n], 4);
        for (size_t h = 0; h < FMT_HALVES; h++)
            memcpy(dst + HALVES + h * QK_HALF + r * 2, (const char *)(w + FMT_PLANES) + 2 * h, 2);
    }
}
#else
/* Planes n .. n + 3 of the block at `at` of each row. */
#ifdef FMT_PLACE
QK_INLINE void pack_planes(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at, int n) {
    _Alignas(64) uint8_t four[4 * QK_PLANE];
    l_planes4(four, row, at + FMT_PLANE_AT + 4 * (size_t)n);
    QK_UNROLL for (int i = 0; i < 4; i++)
        memcpy(dst + FMT_PLACE(n + i) * (int)QK_PLANE, four + i * (int)QK_PLANE, QK_PLANE);
}
#else
QK_INLINE void pack_planes(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at, int n) {
    l_planes4(dst + n * (int)QK_PLANE, row, at + FMT_PLANE_AT + 4 * (size_t)n);
}
#endif

/* The last planes are stored twice, to avoid reading past the block. */
QK_INLINE void pack_block(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t b) {
    const size_t at = b * BLOCK_BYTES;
    for (int n = 0; n < FMT_PLANES; n += 4)
        pack_planes(dst, row, at, n + 4 > FMT_PLANES ? FMT_PLANES - 4 : n);
    for (size_t h = 0; h < FMT_HALVES; h++)
        pack_halves(dst + HALVES + h * QK_HALF, row, at + FMT_HALF_AT + 2 * h);
    FMT_FIX(dst, row, at);
}
#endif

/* One super-block of a few columns: where its bytes are, and the offsets from them to its scale, to the sums
 * of the elements that share a minimum, and to the sums of 16 or 32. */
typedef struct columns {
    const char *q[COLS];
    size_t d, mins, sums;
} columns;

QK_INLINE columns columns_at(const qk_mm *m, size_t c, size_t u, int nc) {
    const qk_col_q8k col = qk_col_q8k_at(qk_mm_col(m, c), m->k);
    const char *q = (const char *)(col.q + u * QK_K);
    columns x;
    for (int i = 0; i < nc; i++) x.q[i] = q + (size_t)i * m->x_stride;
    const size_t sum32 = (size_t)((const char *)(col.sum32 + u * 8) - q);
    const size_t sum16 = (size_t)((const char *)(col.sum16 + u * 16) - q);
    x.d = (size_t)((const char *)(col.d + u) - q);
    x.mins = FMT_MINS == 16 ? sum16 : sum32;
    x.sums = FMT_SUB == 16 ? sum16 : sum32;
    return x;
}

QK_INLINE lf scale_of(const columns *x, int c) { return l_setf(qk_load_f32(x->q[c] + x->d)); }

/* Initial sum of sub-block j when `off` is subtracted from each q. The sum of the elements is the upper half
 * of a dword; the lower half is the previous sum or other data and ignored, unless a sub-block has two
 * sums. */
QK_INLINE li start_of(const columns *x, int c, int j, int off) {
    const int both = FMT_SUB == 64;
    const char *sums = x->q[c] + x->sums + (both ? 4 * j : 2 * j - 2);
    const uint32_t upper = (uint32_t)-off << 16;
    return off ? l_dot16(l_set(0), l_set((int32_t)(both ? upper | (uint16_t)-off : upper)), l_dup(sums))
               : l_set(0);
}

/* (d * dx) * sum */
QK_INLINE lf product(lf d, lf dx, li sum) { return l_mulf(l_mulf(d, dx), l_float(sum)); }

#include "kernels/x16/mm_super_few.h"

/* ---- many columns ---- */

/* One super-block of 64 rows, unpacked. Where CENTER is subtracted from every q, so that the sum of a
 * sub-block fits an int16, or an offset is not, `extra` corrects it: CORRECTION times the scales, as pairs
 * that are multiplied with pairs of sums like the minimums. */
typedef struct tile {
    _Alignas(64) tile_step q[STEPS * SPLIT / SIDE];
    int32_t scale[SUBS][TILE_ROWS * SIDE];
    int32_t mins[PAIRS][TILE_ROWS * SIDE], extra[CORRECTION_PAIRS][TILE_ROWS * SIDE];
    float d[TILE_ROWS * SIDE], dmin[TILE_ROWS * SIDE];
} tile;

#define OWN_COLUMNS (L_MATRIX || WORDS || NARROW)
enum { OWN_BYTES = 2 * UNIT + 16 + PAIRS * (int)sizeof(li) };

/* ---- with L_NARROW ---- */

/* Formats whose sums of eight elements, half a sub-block, fit an int16, while those of a whole one do not
 * (Q6_K). A tile has pairs of steps zipped: the two dwords of a row are next to each other, and a vector has
 * every other pair of rows. Each dword has a sum of its own; two vectors of sums are narrowed to int16, and
 * the two sums of a row are multiplied by its scale and added with one instruction. Otherwise a sum of 32
 * bits would be multiplied, which takes Intel as long as two dot products, and added. */
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

/* ---- a tile, and its sums ---- */

/* a and the low int16 of b, as a pair of int16. */
QK_INLINE li low_pair(li a, li b) { return l_or(l_and(a, l_set(0xffff)), l_shl(b, 16)); }

/* CORRECTION times the scale of the elements whose sum is number n in the pairs of `extra`. */
QK_INLINE li correction(const uint8_t *p, int n, int v) {
    return l_mul(fmt_scale(p, n * SUBS / (2 * CORRECTION_PAIRS), v), l_set(CORRECTION));
}

/* What the sums of sub-block j are multiplied with. */
QK_INLINE li tile_scale(const uint8_t *p, int j, int v) {
    const li scale = fmt_scale(p, j, v);
    if (NARROW) return low_pair(scale, scale);
    return BY_PARTS || WORDS ? l_pair_scale(scale) : IN_PAIRS ? l_and(scale, l_set(0xffff)) : scale;
}

/* Steps s and s + 1 of the rows starting at r. */
QK_INLINE void fill_steps(tile *t, const uint8_t *p, const uint8_t *steps, int r, int s, int v) {
    li two[2] = { unpacked(steps, s, v), unpacked(steps, s + 1, v) };
    tile_step *to = &t->q[s * SPLIT / SIDE];
    if (WORDS) {
        const li scale = tile_scale(p, s / SUB_STEPS, v);
        put_words(to, r, two[0], scale);
        put_words(to + SPLIT, r, two[1], scale);
    } else {
        if (NARROW) zip_steps(two);
        put_steps(to, r, two[0], two[1]);
    }
}

QK_INLINE void fill_part(tile *t, const uint8_t *p, int r, int part) {
    _Alignas(64) uint8_t prepared[PREPARED_BYTES];
    const uint8_t *steps = FMT_PREPARE(prepared, p, (size_t)part);
    for (int v = 0; v < NV; v++)
        QK_UNROLL for (int s = 0; s < STEPS / PARTS; s += 2)
            fill_steps(t, p, steps, r + v * L, part * (STEPS / PARTS) + s, v);
}

/* Unpacks the group at p to rows r.. of the tile. */
static void fill_tile(tile *t, const uint8_t *p, int r, size_t n) {
    (void)n;
#define FILL_PART(i) fill_part(t, p, r, i)
    if (FMT_ROLLED)
        for (int i = 0, parts = rolled_parts(); i < parts; i++) FILL_PART(i);
    else
        QK_REPEAT(PARTS, FILL_PART);
#undef FILL_PART
    for (int v = 0; v < NV; v++, r += L) {
        QK_UNROLL for (int j = 0; FMT_SCALED && !WORDS && j < SUBS; j++)
            put_ints(t->scale[j], r, tile_scale(p, j, v));
        QK_UNROLL for (int i = 0; i < FMT_MINS / 2; i++) put_pairs(t->mins[i], r, fmt_mins(p, i, v));
        QK_UNROLL for (int i = 0; CORRECTION != 0 && i < CORRECTION_PAIRS; i++)
            put_pairs(t->extra[i], r, low_pair(correction(p, 2 * i, v), correction(p, 2 * i + 1, v)));
        put_floats(t->d, r, d_of(p, v));
        if (FMT_MINS) put_floats(t->dmin, r, l_halves(p + HALVES + QK_HALF + v * L * 2));
    }
}

#if L_MATRIX
/* The super-block of the pairs of columns of x, joined. */
QK_INLINE columns own_columns(char (*to)[OWN_BYTES], const columns *x, size_t n) {
    columns joined = { .d = SIDE * UNIT, .mins = SIDE * UNIT + 16 };
    (void)n;
    for (int c = 0; c < WIDTH / SIDE; c++) {
        const char *a = x->q[2 * c], *b = x->q[2 * c + 1];
        joined.q[c] = to[c];
        join_bytes(to[c], a, b, UNIT);
        memcpy(to[c] + joined.d, a + x->d, sizeof(float));
        memcpy(to[c] + joined.d + sizeof(float), b + x->d, sizeof(float));
        join_pairs(to[c] + joined.mins, a + x->mins, b + x->mins, FMT_MINS / 2);
    }
    return joined;
}
#else
/* The super-block of the columns of x as words. A format that has minimums has no signed bytes. */
QK_INLINE columns own_columns(char (*to)[OWN_BYTES], const columns *x, size_t n) {
    columns words = { .d = UNIT * SPLIT };
    (void)n;
    if (NARROW) return narrow_columns(to, x);
    for (int c = 0; c < WIDTH; c++) {
        words.q[c] = to[c];
        for (int i = 0; i < UNIT; i++) {
            const int16_t word = (signed char)x->q[c][i];
            memcpy(to[c] + i * 2, &word, 2);
        }
        memcpy(to[c] + words.d, x->q[c] + x->d, sizeof(float));
    }
    return words;
}
#endif

QK_INLINE void no_sums(li sum[][COLS], int cv) {
    QK_UNROLL for (int c = 0; c < cv; c++) QK_UNROLL for (int v = 0; v < RV; v++) sum[v][c] = l_set(0);
}

/* n pairs of each row (minimums, or what is made up) times the sums of the columns at q[c] + at. */
QK_INLINE void pair_sums(li sum[][COLS], const int32_t pairs[][TILE_ROWS * SIDE], int n, int r,
                         const columns *x, size_t at, int cv) {
    no_sums(sum, cv);
    QK_UNROLL for (int i = 0; i < n; i++) {
        li w[RV];
        QK_UNROLL for (int v = 0; v < RV; v++) {
            w[v] = l_load(&pairs[i][r * SIDE + v * L]);
            L_HOLD(w[v]);
        }
        QK_UNROLL for (int c = 0; c < cv; c++) {
            li xs = column_pair(x->q[c] + at, i);
            L_HOLD(xs);
            QK_UNROLL for (int v = 0; v < RV; v++) {
                sum[v][c] = dot_pair(sum[v][c], w[v], xs, i);
                L_HOLD(sum[v][c]);
            }
        }
    }
}

/* Adds sub-block j, times its scale, to the total, without the offset: parts of it, before
 * their pairs are joined. */
QK_INLINE void add_parts(li all[][COLS], const tile *t, int r, const columns *x, int j, int cv) {
    const int many = L_PAIRS ? tile_pairs(SUB_STEPS) : SUB_STEPS;
    QK_UNROLL for (int s = 0; s < SUB_STEPS; s += many) {
        lp pairs[RV][COLS];
        pair_steps(pairs, t->q, r, x->q, (size_t)(j * SUB_STEPS + s), many, cv);
        QK_UNROLL for (int v = 0; v < RV; v++) {
            const li scale = l_load(&t->scale[j][r * SIDE + v * L]);
            QK_UNROLL for (int c = 0; c < cv; c++) all[v][c] = l_dot_scaled(all[v][c], pairs[v][c], scale);
        }
    }
}

/* Adds sub-block j, times its scale, to the total. Pairs: the product is one of pairs of
 * int16, with CENTER subtracted. */
QK_INLINE void add_sub(li all[][COLS], const tile *t, int r, const columns *x, int j, int cv, int pairs) {
    li sum[RV][COLS];
    QK_UNROLL for (int c = 0; c < cv; c++) {
        const li start = start_of(x, c, j, TILE_OFFSET + (pairs ? CENTER : 0));
        for (int v = 0; v < RV; v++) sum[v][c] = start;
    }
    dot_sub(sum, t->q, r, x->q, (size_t)(j * SUB_STEPS), SUB_STEPS, cv);
    QK_UNROLL for (int v = 0; v < RV; v++) {
        const li scale = l_load(&t->scale[j][r * SIDE + v * L]);
        QK_UNROLL for (int c = 0; c < cv; c++) {
            if (pairs)
                all[v][c] = l_dot16(all[v][c], sum[v][c], scale);
            else
                all[v][c] = l_add(all[v][c], FMT_SCALED ? l_mul(sum[v][c], scale) : sum[v][c]);
        }
    }
}

/* R vectors of a step of rows, starting at r, times nc columns. */
QK_INLINE void tile_cols(float *y, const tile *t, int r, const columns *x, size_t n, int first, int nc,
                         int wide) {
    static const float zeros[TILE_ROWS];
    const float *from = first ? zeros : y;
    const int stride = first ? 0 : TILE_ROWS, pairs = IN_PAIRS && !(CAN_BE_WIDE && wide);
    const int cv = nc / SIDE; /* vectors of columns */
    li sum[RV][COLS], mins[RV][COLS];
    lf dx[COLS];
    (void)n;
    if (CORRECTION != 0 && (BY_PARTS || pairs))
        pair_sums(sum, t->extra, CORRECTION_PAIRS, r, x, BY_PARTS ? x->sums : x->mins, cv);
    else
        no_sums(sum, cv);
    for (int j = 0; j < SUBS; j++) {
        if (WORDS)
            dot_steps(sum, t->q, r, x->q, (size_t)(j * SUB_STEPS), SUB_STEPS, cv);
        else if (NARROW)
            add_narrow(sum, t, r, x, j, cv);
        else if (BY_PARTS)
            add_parts(sum, t, r, x, j, cv);
        else
            add_sub(sum, t, r, x, j, cv, pairs);
    }
    L_FENCE();
    if (FMT_MINS) pair_sums(mins, t->mins, FMT_MINS / 2, r, x, x->mins, cv);
    for (int c = 0; c < cv; c++) dx[c] = column_scale(x->q[c] + x->d);
    L_FENCE();
    QK_UNROLL for (int v = 0; v < RV; v += SIDE) {
        lf d[SIDE], dmin[SIDE];
        for (int i = 0; i < SIDE; i++) {
            d[i] = l_loadf(&t->d[r * SIDE + (v + i) * L]);
            dmin[i] = FMT_MINS ? l_loadf(&t->dmin[r * SIDE + (v + i) * L]) : d[i];
        }
        QK_UNROLL for (int c = 0; c < cv; c++) {
            lf acc[SIDE];
            results_from(acc, from + c * SIDE * stride + v / SIDE * L, stride);
            QK_UNROLL for (int i = 0; i < SIDE; i++) {
                acc[i] = l_addf(acc[i], product(d[i], dx[c], sum[v + i][c]));
                if (FMT_MINS) acc[i] = l_subf(acc[i], product(dmin[i], dx[c], mins[v + i][c]));
            }
            results_to(y + c * SIDE * TILE_ROWS + v / SIDE * L, TILE_ROWS, acc);
        }
    }
}

#include "kernels/x16/mm_run.h"

#endif
