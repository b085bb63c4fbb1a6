/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matmul of every weight type: compared with float64, exact where the sums are exact, the same bits for any
 * number of columns and any row range, and for packed formats the same bits at every level. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_W, SLOT_X, SLOT_Y, SLOT_ROW, Y_PAD = 3, MAX_ROWS = 80, MAX_K = 2048, MAX_COLS = 100 };

/* One set of inputs. */
typedef struct mm_case {
    qk_type type;
    const qk_weight_ops *ops;
    qk_mm m;
    size_t rows;
    ck_kind kind;
} mm_case;

static void make_case(mm_case *c, const qk_table *t, qk_type type, size_t k, size_t rows, size_t cols,
                      ck_kind kind) {
    const qk_table *ref = ck_table(QK_LEVEL_REF);
    /* Half of the cases: ordinary activations with weights of this kind, unaligned rows. */
    const ck_kind xkind = kind != CK_UNIT && (ck_rand() & 1) ? CK_RANDOM : kind;
    const size_t unit = qk_type_elems(type) > 1 ? 1 : qk_type_bytes(type),
                 gap = (ck_rand() & 1) * ck_below(9) * unit;
    float *x = malloc(k * sizeof *x);
    uint8_t *w;
    c->type = type;
    c->ops = &t->weight[type];
    c->rows = rows;
    c->kind = kind;
    c->m.k = k;
    c->m.n_cols = cols;
    c->m.scale = ck_tensor_scale(kind);
    c->m.way = QK_WAY_TURNS;
    c->m.wide = (int)ck_below(2);
    c->m.row_bytes = k / qk_type_elems(type) * qk_type_bytes(type);
    c->m.x_stride = qk_act_bytes(c->ops->act, k);
    c->m.y_stride = rows + Y_PAD;
    w = ck_tail(SLOT_W, rows * c->m.row_bytes + gap);
    ck_fill_weights(type, w, rows * k, kind);
    c->m.w = w;
    c->m.x = ck_tail64(SLOT_X, cols * c->m.x_stride);
    for (size_t i = 0; i < cols; i++) {
        ck_fill_floats(x, k, xkind);
        ref->quantize[c->ops->act]((char *)ck_tail64(SLOT_X, cols * c->m.x_stride) + i * c->m.x_stride, x, k);
    }
    c->m.y = ck_dst(SLOT_Y, cols * c->m.y_stride);
    free(x);
}

static const char *case_name(const mm_case *c) {
    static char name[96];
    snprintf(name, sizeof name, "%s k=%zu rows=%zu cols=%zu", ck_kind_name(c->kind), c->m.k, c->rows,
             c->m.n_cols);
    return name;
}

static void run_rows(const mm_case *c, size_t row0, size_t row1) { c->ops->matmul(&c->m, row0, row1); }

/* The worst rounding error of a sum of n sequential terms is n * eps * sum|terms|; the loss below the normal
 * numbers, where scales multiply, is at most half of 2^-149 times the largest sum of a block. */
static double bound_of(const mm_case *c, double mags) {
    const int packed = qk_type_elems(c->type) > 1;
    const double blocks = (double)c->m.k / 32, terms = packed ? 2 * blocks + 8 : (double)c->m.k / 4 + 8;
    const double tiny = 0x1p-126 * (packed ? 1 + blocks : 1);
    return (c->kind == CK_UNIT ? 0 : terms * CK_EPS * mags) + tiny;
}

/* The activations and their magnitudes: each column is compared with many rows. */
static struct { double x[MAX_COLS][MAX_K], mag[MAX_COLS][MAX_K]; } columns;

static void load_columns(const mm_case *c) {
    for (size_t col = 0; col < c->m.n_cols; col++)
        for (size_t i = 0; i < c->m.k; i++) {
            const char *x = (const char *)c->m.x + col * c->m.x_stride;
            columns.x[col][i] = ck_act_at(c->ops->act, x, c->m.k, i);
            columns.mag[col][i] = fabs(columns.x[col][i]);
        }
}

static void check_row(const mm_case *c, size_t r) {
    const uint8_t *row = (const uint8_t *)c->m.w + r * c->m.row_bytes;
    const double scale = c->type == QK_I2_S ? (double)c->m.scale : 1.0;
    const char *name = case_name(c);
    static double w[MAX_K], mag[MAX_K];
    for (size_t i = 0; i < c->m.k; i++) w[i] = scale * ck_weight(c->type, row, i, &mag[i]);
    for (size_t col = 0; col < c->m.n_cols && !ck_failed(); col++) {
        const double sum = ck_dot(w, columns.x[col], c->m.k),
                     mags = fabs(scale) * ck_dot(mag, columns.mag[col], c->m.k);
        ck_near(name, col * c->rows + r, (double)c->m.y[col * c->m.y_stride + r], sum, bound_of(c, mags));
    }
}

static void check_truth(const mm_case *c) {
    load_columns(c);
    for (size_t r = 0; r < c->rows && !ck_failed(); r++) check_row(c, r);
}

/* Nothing may be written between the rows of one column and the next, or after the last. */
static void check_padding(const mm_case *c) {
    float untouched;
    memset(&untouched, 0x7f, sizeof untouched);
    for (size_t col = 0; col < c->m.n_cols; col++)
        for (size_t i = c->rows; i < c->m.y_stride; i++)
            if (memcmp(&c->m.y[col * c->m.y_stride + i], &untouched, sizeof untouched) != 0)
                ck_error("%s: wrote behind the rows of column %zu", case_name(c), col);
    ck_dst_ok(SLOT_Y, c->m.n_cols * c->m.y_stride);
}

/* Computes every element again separately: single columns, odd row ranges. */
static void check_independence(const mm_case *c) {
    mm_case one = *c;
    float y[MAX_ROWS];
    one.m.y = y;
    one.m.n_cols = 1;
    for (size_t col = 0; col < c->m.n_cols; col++) {
        one.m.x = (const char *)c->m.x + col * c->m.x_stride;
        memset(y, 0, sizeof y);
        for (size_t r = 0; r < c->rows;) {
            const size_t n = 1 + ck_below(c->rows - r);
            run_rows(&one, r, r + n);
            r += n;
        }
        if (memcmp(y, c->m.y + col * c->m.y_stride, c->rows * sizeof *y) != 0)
            ck_error("%s: column %zu alone differs from column %zu among many", case_name(c), col, col);
    }
}

/* The packed formats guarantee equal bits at every level. */
static void check_equals_ref(const mm_case *c) {
    float y[MAX_ROWS];
    qk_mm m = c->m;
    if (c->ops->act == QK_ACT_F32) return;
    m.y = y;
    m.n_cols = 1;
    for (size_t col = 0; col < c->m.n_cols; col++) {
        m.x = (const char *)c->m.x + col * c->m.x_stride;
        ck_table(QK_LEVEL_REF)->weight[c->type].matmul(&m, 0, c->rows);
        if (memcmp(y, c->m.y + col * c->m.y_stride, c->rows * sizeof *y) != 0)
            ck_error("%s: column %zu differs from the reference", case_name(c), col);
    }
}

static void one_case(const qk_table *t, qk_type type, size_t k, size_t rows, size_t cols, ck_kind kind) {
    mm_case c;
    make_case(&c, t, type, k, rows, cols, kind);
    run_rows(&c, 0, rows);
    check_truth(&c);
    check_padding(&c);
    check_independence(&c);
    check_equals_ref(&c);
}

/* A column with a NaN must give NaN in its own outputs and in no other column's. */
static void nan_column(const qk_table *t, qk_type type, size_t cols) {
    const size_t k = 512, rows = 5;
    mm_case c;
    float x[512];
    make_case(&c, t, type, k, rows, cols, CK_RANDOM);
    ck_fill_floats(x, k, CK_RANDOM);
    x[300] = NAN;
    t->quantize[c.ops->act]((char *)ck_tail64(SLOT_X, cols * c.m.x_stride) + 2 * c.m.x_stride, x, k);
    run_rows(&c, 0, rows);
    for (size_t col = 0; col < cols; col++)
        for (size_t r = 0; r < rows; r++)
            if (!!isnan(c.m.y[col * c.m.y_stride + r]) != (col == 2))
                ck_error("NaN in column 2: column %zu row %zu is %g", col, r,
                         (double)c.m.y[col * c.m.y_stride + r]);
}

/* Sizes in blocks; the last two of packed formats are odd, so that there is an unpaired block. */
static size_t pick_sizes(qk_type type, const size_t **ks) {
    static const size_t plain[] = { 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257 };
    static const size_t small[] = { 1, 2, 3, 5, 8, 9, 11, 17 };
    static const size_t super[] = { 1, 2, 3, 5 };
    const size_t be = qk_type_elems(type);
    *ks = be == 1 ? plain : be <= 64 ? small : super;
    return be == 1 ? sizeof plain / sizeof *plain : be <= 64 ? sizeof small / sizeof *small : 4;
}

/* Around the sizes at which the kernels of floats begin another block, pass or chunk
 * (generic/mm_float_strip.h). */
static void many_columns(const qk_table *t, qk_type type) {
    static const size_t ks[] = { 511, 512, 513, 543, 1024, 1025, 1061 };
    static const size_t rows[] = { 1, 7, 8, 9, 63, 64, 65, 73 }, cols[] = { 11, 12, 13, 18, 47, 48, 49, 97 };
    if (qk_type_elems(type) > 1) return;
    for (size_t i = 0; i < 7 && !ck_failed(); i++)
        for (size_t j = 0; j < ck_some(2); j++)
            one_case(t, type, ks[i], rows[ck_below(8)], cols[ck_below(8)], CK_RANDOM);
}

static void check_matmul(const qk_table *t, int arg) {
    const qk_type type = (qk_type)arg;
    static const size_t rows[] = { 1, 2, 3, 4, 5, 8, 15, 16, 17, 33 };
    static const size_t cols[] = { 1, 2, 3, 4, 5, 7, 8, 9, 17 };
    const size_t be = qk_type_elems(type);
    const size_t *ks;
    const size_t nk = pick_sizes(type, &ks);
    for (size_t i = 0; i < nk && !ck_failed(); i++)
        for (size_t j = 0; j < ck_some(3); j++)
            one_case(t, type, ks[i] * be, rows[ck_below(10)], cols[ck_below(9)], CK_RANDOM);
    for (size_t i = 0; i < 10 && !ck_failed(); i++)
        one_case(t, type, ks[ck_below(nk)] * be, rows[i], cols[i % 9], CK_RANDOM);
    for (int kind = CK_UNIT; kind < CK_KINDS && !ck_failed(); kind++)
        for (size_t j = 0; j < ck_some(3); j++)
            one_case(t, type, kind == CK_UNIT && be > 1 ? 256 * (1 + ck_below(2)) : ks[ck_below(nk)] * be,
                     rows[3 + ck_below(7)], cols[ck_below(9)], (ck_kind)kind);
    many_columns(t, type);
    nan_column(t, type, 4);
    nan_column(t, type, 20);
}

void ck_test_matmul(const qk_table *t) {
    for (int type = 0; type < QK_TYPE_N; type++)
        ck_check(t->weight[type].name, (ck_fn)t->weight[type].matmul, check_matmul, t, type);
}

static void check_dequant(const qk_table *t, int type) {
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (size_t n = 1; n <= 5; n++) {
            const size_t k = n * qk_type_elems((qk_type)type);
            uint8_t *w = ck_tail(SLOT_W, n * qk_type_bytes((qk_type)type));
            float *y = ck_dst(SLOT_Y, k);
            ck_fill_weights((qk_type)type, w, k, (ck_kind)kind);
            t->weight[type].dequant(w, y, k);
            ck_dst_ok(SLOT_Y, k);
            for (size_t i = 0; i < k; i++) {
                double mag;
                const double want = ck_weight((qk_type)type, w, i, &mag);
                ck_near(ck_kind_name((ck_kind)kind), i, (double)y[i], want, 2 * CK_EPS * mag + 0x1p-149);
            }
        }
}

void ck_test_dequant(const qk_table *t) {
    for (int type = 0; type < QK_TYPE_N; type++) {
        char name[64];
        const char *format = t->weight[type].name;
        snprintf(name, sizeof name, "dequant_%.*s", (int)(strrchr(format, '_') - format), format);
        ck_check(name, (ck_fn)t->weight[type].dequant, check_dequant, t, type);
    }
}

static void check_exact(const qk_table *t, int arg) {
    (void)arg;
    for (int type = 0; type < QK_TYPE_N; type++) {
        mm_case c;
        const size_t k = 512;
        float *scratch = ck_dst(SLOT_ROW, k);
        qk_weight_ops floats = t->weight[type];
        make_case(&c, t, (qk_type)type, k, 7, 3, CK_RANDOM);
        floats.act = QK_ACT_F32;
        c.ops = &floats;
        c.m.x_stride = qk_act_bytes(QK_ACT_F32, k);
        float *x = ck_tail64(SLOT_X, 3 * c.m.x_stride);
        for (size_t col = 0; col < 3; col++)
            ck_fill_floats((float *)(void *)((char *)x + col * c.m.x_stride), k, CK_RANDOM);
        c.m.x = x;
        t->matmul_exact(&c.m, 0, 7, &t->weight[type], scratch);
        check_truth(&c);
        check_padding(&c);
        ck_dst_ok(SLOT_ROW, k);
    }
}

void ck_test_exact(const qk_table *t) { ck_check("matmul_exact", (ck_fn)t->matmul_exact, check_exact, t, 0); }
