/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Part of mm_float.h, for many columns. Eight rows are converted to floats, STRIP_STEPS vectors of each at a
 * time, and multiplied with all columns of a pass while they are in the first cache. The accumulators of four
 * rows and STRIP_COLS columns are in registers; those of the other rows and columns wait in memory. The order
 * of additions is that of mm_float.h. */
#ifndef QSF_KERNELS_GENERIC_MM_FLOAT_STRIP_H
#define QSF_KERNELS_GENERIC_MM_FLOAT_STRIP_H

enum {
    STRIP = 8, /* rows */
    STRIP_STEPS = 512 / V,
    STRIP_ROWS = 4,
    STRIP_COLS = V_REGISTERS >= 32 ? 6 : 3,
    PASS_COLS = 48,       /* columns whose elements stay in the second cache for all strips of a chunk */
    CHUNK = QK_TILE_ROWS, /* rows: what a thread takes at a time */
    STRIP_FROM_COLS = 12  /* minimum number of columns for which this pays off */
};

typedef struct strip {
    _Alignas(64) float w[STRIP_STEPS][STRIP][V];
} strip;

/* Elements [k, k + steps V) of n rows, starting at r, with zeros after their end. The last row is
 * repeated if there are fewer. */
static void strip_fill(strip *t, const qk_mm *m, size_t r, size_t n, size_t k, size_t steps) {
    for (size_t i = 0; i < STRIP; i++) {
        const uint8_t *row = qk_mm_row(m, r + (i < n ? i : n - 1));
        for (size_t s = 0; s < steps; s += 2) {
            const size_t at = k + s * V;
            vf w[2];
            if (m->k - at >= 2 * V)
                fmt_load(row + at * FMT_BYTES, w);
            else
                load_rest(row + at * FMT_BYTES, m->k - at, w);
            v_store(t->w[s][i], w[0]);
            v_store(t->w[s + 1][i], w[1]);
        }
    }
}

/* Adds four rows starting at w times STRIP_COLS columns to acc; first: acc holds nothing yet. */
static __attribute__((noinline)) void strip_products(vf (*acc)[STRIP], const float (*w)[STRIP][V],
                                                     const float *const x[STRIP_COLS], size_t steps,
                                                     int first) {
    vf a[STRIP_COLS][STRIP_ROWS];
    const float *p[STRIP_COLS];
    QK_UNROLL for (int j = 0; j < STRIP_COLS; j++) {
        p[j] = x[j];
        QK_UNROLL for (int i = 0; i < STRIP_ROWS; i++) a[j][i] = first ? v_set(0) : acc[j][i];
    }
    for (size_t s = 0; s < steps; s++) {
        vf xs[STRIP_COLS];
        QK_UNROLL for (int j = 0; j < STRIP_COLS; j++) {
            xs[j] = v_load(p[j] + s * V);
            V_HOLD(xs[j]); /* in its register; the compiler would load it again for every row */
        }
        QK_UNROLL for (int i = 0; i < STRIP_ROWS; i++) {
            vf wi = v_load(w[s][i]);
            V_HOLD(wi);
            QK_UNROLL for (int j = 0; j < STRIP_COLS; j++) a[j][i] = v_fma(wi, xs[j], a[j][i]);
        }
    }
    QK_UNROLL for (int j = 0; j < STRIP_COLS; j++) QK_UNROLL for (int i = 0; i < STRIP_ROWS; i++)
        acc[j][i] = a[j][i];
}

/* The last n < 2 V elements of each column, then zeros. */
static void strip_rest(float (*to)[2 * V], const float *x[STRIP_COLS], size_t n) {
    for (int j = 0; j < STRIP_COLS; j++) {
        v_store(to[j], v_load_some(x[j], n < V ? n : V));
        v_store(to[j] + V, v_load_some(x[j] + V, n < V ? 0 : n - V));
        x[j] = to[j];
    }
}

/* Prefetches what is filled next, of a share of the rows: `number` of n. */
QK_INLINE void strip_prefetch(const qk_mm *m, const uint8_t *next, size_t number, size_t n) {
    for (size_t i = number; next && i < STRIP; i += n)
        for (size_t b = 0; b < STRIP_STEPS * V * FMT_BYTES; b += 64)
            __builtin_prefetch(next + i * m->row_bytes + b);
}

/* Elements k .. of the strip times the columns [c0, c1), of which the last is repeated to fill STRIP_COLS.
 * next: where the elements after them are, or NULL. */
static void strip_cols(vf (*acc)[STRIP], const strip *t, const qk_mm *m, size_t k, size_t steps, size_t c0,
                       size_t c1, const uint8_t *next) {
    for (size_t c = c0; c < c1; c += STRIP_COLS, acc += STRIP_COLS) {
        float rest[STRIP_COLS][2 * V];
        const float *x[STRIP_COLS];
        for (size_t j = 0; j < STRIP_COLS; j++)
            x[j] = (const float *)qk_mm_col(m, c + j < c1 ? c + j : c1 - 1) + k;
        if (m->k - k < steps * V) strip_rest(rest, x, m->k - k);
        strip_prefetch(m, next, (c - c0) / STRIP_COLS, (c1 - c0 + STRIP_COLS - 1) / STRIP_COLS);
        for (int i = 0; i < STRIP; i += STRIP_ROWS)
            strip_products((vf(*)[STRIP]) & acc[0][i], (const float(*)[STRIP][V])t->w[0][i], x, steps,
                           k == 0);
    }
}

/* Where the elements after k of the strip at row r are, or the first ones of the strip after it. */
QK_INLINE const uint8_t *strip_next(const qk_mm *m, size_t r, size_t k) {
    return k < m->k ? qk_mm_row(m, r) + k * FMT_BYTES : qk_mm_row(m, r + STRIP);
}

/* n rows starting at r, at most a strip, times the columns [c0, c1), at most a pass. */
static void strip_pass(const qk_mm *m, size_t r, size_t n, size_t c0, size_t c1) {
    vf acc[PASS_COLS][STRIP];
    strip t;
    for (size_t k = 0, steps; k < m->k; k += steps * V) {
        const size_t left = (m->k - k) / (2 * V) * 2; /* 0: what is left is padded */
        steps = left == 0 ? 2 : left < STRIP_STEPS ? left : STRIP_STEPS;
        strip_fill(&t, m, r, n, k, steps);
        strip_cols(acc, &t, m, k, steps, c0, c1, c0 == 0 ? strip_next(m, r, k + steps * V) : NULL);
    }
    for (size_t c = c0; c < c1; c++) {
        float y[STRIP];
        v_sums(y, acc[c - c0]);
        for (size_t i = 0; i < n; i++) m->y[c * m->y_stride + r + i] = y[i] * fmt_scale;
    }
}

static void mm_strips(const qk_mm *m, size_t row0, size_t row1) {
    for (size_t r = row0; r < row1; r += CHUNK)
        for (size_t c = 0; c < m->n_cols; c += PASS_COLS)
            for (size_t i = r; i < row1 && i < r + CHUNK; i += STRIP)
                strip_pass(m, i, row1 - i < STRIP ? row1 - i : STRIP, c,
                           m->n_cols - c < PASS_COLS ? m->n_cols : c + PASS_COLS);
}

#endif
