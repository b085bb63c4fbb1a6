/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Thin matrices: compared with float64, the same bits for any number of columns and any range of rows. */
#include <math.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_W, SLOT_X, SLOT_Y, MAX_ROWS = 70, MAX_COLS = 19, GAP = 3 };

typedef struct thin_case {
    qk_thin m;
    int bytes; /* of an element */
    size_t groups;
} thin_case;

static void multiply(const qk_table *t, const thin_case *c, const qk_thin *m) {
    (c->bytes == 2 ? t->thin_f16 : t->thin_f32)(m);
}

/* Rows [first, first + rows) of all groups; the last one ends at the inaccessible page. */
static void make_case(thin_case *c, int bytes, size_t k, size_t first, size_t rows, size_t cols) {
    const size_t groups = (first + rows + QK_THIN_ROWS - 1) / QK_THIN_ROWS, all = groups * QK_THIN_ROWS * k;
    c->bytes = bytes;
    c->groups = groups;
    uint8_t *w = ck_tail(SLOT_W, all * (size_t)bytes);
    ck_fill_weights(bytes == 2 ? QK_F16 : QK_F32, w, all, CK_RANDOM);
    float *x = ck_tail(SLOT_X, ((cols - 1) * (k + GAP) + k) * sizeof *x);
    ck_fill_floats(x, (cols - 1) * (k + GAP) + k, CK_RANDOM);
    c->m = (qk_thin){ .w = w,
                      .group_bytes = QK_THIN_ROWS * k * (size_t)bytes,
                      .first = first,
                      .rows = rows,
                      .k = k,
                      .x = x,
                      .y = ck_dst(SLOT_Y, (cols - 1) * (rows + GAP) + rows),
                      .n_cols = cols,
                      .x_stride = k + GAP,
                      .y_stride = rows + GAP };
}

static double element(const thin_case *c, size_t r, size_t i) {
    const size_t row = c->m.first + r;
    double mag;
    const uint8_t *w = (const uint8_t *)c->m.w + row / QK_THIN_ROWS * c->m.group_bytes;
    return ck_weight(c->bytes == 2 ? QK_F16 : QK_F32, w, i * QK_THIN_ROWS + row % QK_THIN_ROWS, &mag);
}

static void compare(const thin_case *c, const float *before, size_t col) {
    for (size_t r = 0; r < c->m.rows; r++) {
        const size_t at = col * c->m.y_stride + r;
        double sum = (double)before[at], mags = fabs(sum);
        for (size_t i = 0; i < c->m.k; i++) {
            const double v = element(c, r, i) * (double)c->m.x[col * c->m.x_stride + i];
            sum += v;
            mags += fabs(v);
        }
        ck_near("thin", at, (double)c->m.y[at], sum, ((double)c->m.k / 2 + 4) * CK_EPS * mags + 0x1p-126);
    }
}

/* One column alone, and its rows from row `from` on alone, have the same bits. */
static void alone(const qk_table *t, const thin_case *c, const float *before, size_t col, size_t from) {
    float y[MAX_ROWS];
    qk_thin m = c->m;
    const size_t row = m.first + from;
    if (from >= m.rows) return;
    memcpy(y, before + col * m.y_stride, m.rows * sizeof *y);
    m.w = (const uint8_t *)m.w + row / QK_THIN_ROWS * m.group_bytes;
    m.first = row % QK_THIN_ROWS;
    m.rows -= from;
    m.x += col * m.x_stride;
    m.y = y + from;
    m.n_cols = 1;
    multiply(t, c, &m);
    ck_same_bits("alone", y + from, c->m.y + col * c->m.y_stride + from, m.rows);
}

static void run_case(const qk_table *t, int bytes, size_t k, size_t first, size_t rows, size_t cols) {
    static float before[MAX_COLS * (MAX_ROWS + GAP)];
    thin_case c;
    make_case(&c, bytes, k, first, rows, cols);
    const size_t n = (cols - 1) * c.m.y_stride + rows;
    ck_fill_floats(c.m.y, n, CK_RANDOM);
    memcpy(before, c.m.y, n * sizeof *before);
    multiply(t, &c, &c.m);
    ck_dst_ok(SLOT_Y, n);
    for (size_t col = 0; col < cols; col++) {
        compare(&c, before, col);
        alone(t, &c, before, col, ck_below(MAX_ROWS / 2));
        for (size_t i = rows; col + 1 < cols && i < rows + GAP; i++)
            ck_near("between columns", i, (double)c.m.y[col * c.m.y_stride + i],
                    (double)before[col * c.m.y_stride + i], 0);
    }
}

static void check_thin(const qk_table *t, int bytes) {
    static const size_t ks[] = { 1, 2, 3, 8, 16, 17, 64, 333 };
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
        for (size_t cols = 1; cols <= MAX_COLS; cols += 1 + cols / 6)
            for (size_t rows = 1; rows <= MAX_ROWS; rows += 1 + rows / 2)
                run_case(t, bytes, ks[i], rows % 3 == 0 ? 0 : ck_below(QK_THIN_ROWS), rows, cols);
}

void ck_test_thin(const qk_table *t) {
    ck_check("thin_f16", (ck_fn)t->thin_f16, check_thin, t, 2);
    ck_check("thin_f32", (ck_fn)t->thin_f32, check_thin, t, 4);
}
