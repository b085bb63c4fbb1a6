/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recurrent states and short convolutions, also in pieces: what a position gives must not depend on them. */
#include <math.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum {
    TILE = QK_STATE_TILE,
    ROWS_MAX = 130,
    STATE = ROWS_MAX * TILE,
    POS = QK_SCAN_POSITIONS,
    BC = ROWS_MAX + 3,
    X = TILE + 5
};

static const size_t row_counts[] = { 1, 2, 3, 8, 16, 17, 33, 64, 130 },
                    col_counts[] = { 1, 5, 15, 16, 17, 31, 32 };
enum { N_ROWS = sizeof row_counts / sizeof *row_counts, N_COLS = sizeof col_counts / sizeof *col_counts };

static struct {
    _Alignas(64) float s[2][STATE], b[POS * BC], c[POS * BC], x[POS * X], y[2][POS * X], dt[POS * X];
    float a[TILE * ROWS_MAX], d[TILE], keep[POS], gain[POS], out[POS];
    double want[STATE];
} m;

static void fill(float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++) x[i] = scale * ck_normal();
}

static void make_scan(size_t rows) {
    const float small = 1.0f / sqrtf((float)rows);
    fill(m.b, POS * BC, 1);
    fill(m.c, POS * BC, small);
    fill(m.x, POS * X, 1);
    fill(m.dt, POS * X, 4);
    fill(m.d, TILE, 1);
    m.dt[0] = 25;
    m.dt[1] = -60;
    for (size_t i = 0; i < TILE * rows; i++) m.a[i] = -fabsf(ck_normal()); /* also where no column is */
    for (size_t i = 0; i < POS; i++) {
        m.keep[i] = i % 3 == 0 ? 0.75f : 1.0f;
        m.gain[i] = ck_normal();
        m.out[i] = ck_normal();
    }
}

static void run_scan(const qk_table *t, int each, size_t rows, size_t cols, size_t first, size_t n, float *s,
                     const float *old, float *y) {
    const qk_scan p = { .s = s,
                        .old = old,
                        .rows = rows,
                        .cols = cols,
                        .n_pos = n,
                        .b = m.b + first * BC,
                        .c = m.c + first * BC,
                        .x = m.x + first * X,
                        .y = y + first * X,
                        .bc_stride = BC,
                        .x_stride = X,
                        .y_stride = X,
                        .stream = s != old && ck_below(2) };
    const qk_scan_each e = { m.a, m.d, m.dt + first * X, X };
    const qk_scan_one o = { m.keep + first, m.gain + first, m.out + first, m.d[0] };
    if (each)
        t->scan_each(&p, &e);
    else
        t->scan_one(&p, &o);
}

static void expect_scan(int each, size_t rows, size_t cols, size_t j) {
    double s[ROWS_MAX];
    for (size_t i = 0; i < rows; i++) s[i] = m.want[i * TILE + j];
    for (size_t c = 0; c < POS; c++) {
        const double x = (double)m.x[c * X + j], step = log1p(exp((double)m.dt[c * X + j]));
        double y = 0, size = 1;
        for (size_t i = 0; i < rows; i++) {
            const double by = each ? exp(step * (double)m.a[i * TILE + j]) : (double)m.keep[c];
            s[i] = s[i] * by + (double)m.b[c * BC + i] * (each ? step : (double)m.gain[c]) * x;
            y += s[i] * (double)m.c[c * BC + i];
            size += fabs(s[i] * (double)m.c[c * BC + i]);
        }
        if (!each) y *= (double)m.out[c];
        if (!each) size *= 1 + fabs((double)m.out[c]);
        y += (double)m.d[each ? j : 0] * x;
        ck_near(each ? "scan_each" : "scan_one", c * cols + j, (double)m.y[0][c * X + j], y,
                4e-6 * (size + fabs(x)));
    }
}

static void scan_case(const qk_table *t, int each, size_t rows, size_t cols) {
    make_scan(rows);
    fill(m.s[0], rows * TILE, 1);
    for (size_t i = 0; i < rows * TILE; i++) m.want[i] = (double)m.s[0][i];
    memset(m.y, 0, sizeof m.y);
    run_scan(t, each, rows, cols, 0, 5, m.s[1], m.s[0], m.y[1]);
    run_scan(t, each, rows, cols, 5, 1, m.s[1], m.s[1], m.y[1]);
    run_scan(t, each, rows, cols, 6, POS - 6, m.s[1], m.s[1], m.y[1]);
    run_scan(t, each, rows, cols, 0, POS, m.s[0], m.s[0], m.y[0]);
    if (memcmp(m.y[0], m.y[1], sizeof m.y[0]) != 0)
        ck_error("%zu rows, %zu columns: pieces give other bytes", rows, cols);
    for (size_t i = 0; i < rows; i++)
        if (memcmp(m.s[0] + i * TILE, m.s[1] + i * TILE, cols * sizeof(float)) != 0)
            ck_error("%zu rows, %zu columns: pieces give another state", rows, cols);
    for (size_t j = 0; j < cols; j++) expect_scan(each, rows, cols, j);
    for (size_t c = 0; c < POS; c++)
        for (size_t j = cols; j < X; j++) ck_near("after the columns", j, (double)m.y[0][c * X + j], 0, 0);
}

static void check_scan(const qk_table *t, int each) {
    for (int r = 0; r < N_ROWS; r++)
        for (int c = 0; c < N_COLS; c++) scan_case(t, each, row_counts[r], col_counts[c]);
}

/* ---- one position ---- */

/* Compares the state s and the output after a position with the state m.want before it. */
static void expect_position(const char *what, const float *s, size_t rows, size_t j, const double *w,
                            const double *k, const double *minus, const double *r, double v, int before,
                            double scale) {
    double y = 0, size = 1;
    for (size_t i = 0; i < rows; i++) {
        const double old = m.want[i * TILE + j], now = w[i] * old + k[i] * v - minus[i];
        ck_near(what, i * TILE + j, (double)s[i * TILE + j], now,
                4e-6 * (1 + fabs(w[i] * old) + fabs(k[i] * v) + fabs(minus[i])));
        y += r[i] * (before ? old : now);
        size += fabs(r[i] * old) + fabs(r[i] * now);
    }
    ck_near("output", j, (double)m.y[0][j], scale * y, 8e-6 * size);
}

static void start_position(size_t rows) {
    fill(m.s[0], rows * TILE, 1);
    fill(m.b, 6 * BC, 1.0f / sqrtf((float)rows));
    fill(m.x, TILE, 1);
    memset(m.y, 0, sizeof m.y);
    for (size_t i = 0; i < rows * TILE; i++) m.want[i] = (double)m.s[0][i];
    memset(m.s[1], 0, sizeof m.s[1]);
}

/* Where the new state is: in the place of the old one, or beside it. */
static int beside(void) { return (int)ck_below(2); }

static void delta_case(const qk_table *t, size_t rows, size_t cols, size_t step) {
    start_position(rows);
    const float *q = m.b, *k = m.b + BC, *decay = m.b + 2 * BC;
    float *s = m.s[beside()];
    const qk_delta p = { .old = m.s[0],
                         .stream = s != m.s[0] && ck_below(2),
                         .rows = rows,
                         .cols = cols,
                         .q = q,
                         .k = k,
                         .decay = decay,
                         .decay_step = step,
                         .v = m.x,
                         .y = m.y[0],
                         .beta = 0.75f,
                         .scale = 0.5f };
    t->delta(s, &p);
    for (size_t j = 0; j < cols; j++) {
        double w[ROWS_MAX], kk[ROWS_MAX], r[ROWS_MAX], none[ROWS_MAX] = { 0 }, seen = 0;
        for (size_t i = 0; i < rows; i++) {
            w[i] = (double)decay[i * step];
            kk[i] = (double)k[i];
            r[i] = (double)q[i];
            seen += w[i] * kk[i] * m.want[i * TILE + j];
        }
        expect_position("delta", s, rows, j, w, kk, none, r, 0.75 * ((double)m.x[j] - seen), 0, 0.5);
    }
    for (size_t j = cols; j < X; j++) ck_near("after the columns", j, (double)m.y[0][j], 0, 0);
}

static void wkv_case(const qk_table *t, size_t rows, size_t cols, size_t step, int kind) {
    start_position(rows);
    const float *row[5];
    for (int i = 0; i < 5; i++) row[i] = m.b + i * BC;
    float *s = m.s[beside()];
    const qk_wkv p = { .old = m.s[0],
                       .stream = s != m.s[0] && ck_below(2),
                       .rows = rows,
                       .cols = cols,
                       .r = row[0],
                       .k = row[1],
                       .a = kind == 2 ? row[2] : NULL,
                       .b = row[3],
                       .w = row[4],
                       .w_step = step,
                       .before = kind == 1,
                       .open = kind == 3,
                       .v = m.x,
                       .y = m.y[0] };
    t->wkv(s, &p);
    for (size_t j = 0; j < cols; j++) {
        double w[ROWS_MAX], k[ROWS_MAX], r[ROWS_MAX], minus[ROWS_MAX], seen = 0;
        for (size_t i = 0; i < rows; i++) seen += (double)row[2][i] * m.want[i * TILE + j];
        for (size_t i = 0; i < rows; i++) {
            w[i] = (double)row[4][i * step];
            k[i] = (double)row[1][i] * (kind == 3 ? 1 - w[i] : 1);
            r[i] = (double)row[0][i];
            minus[i] = kind == 2 ? (double)row[3][i] * seen : 0;
        }
        expect_position("wkv", s, rows, j, w, k, minus, r, (double)m.x[j], kind == 1, 1);
    }
    for (size_t j = cols; j < X; j++) ck_near("after the columns", j, (double)m.y[0][j], 0, 0);
}

static void check_delta(const qk_table *t, int step) {
    for (int r = 0; r < N_ROWS; r++)
        for (int c = 0; c < N_COLS; c++) delta_case(t, row_counts[r], col_counts[c], (size_t)step);
}

static void check_wkv(const qk_table *t, int step) {
    for (int r = 0; r < N_ROWS; r++)
        for (int c = 0; c < N_COLS; c++)
            for (int kind = 0; kind < 4; kind++)
                wkv_case(t, row_counts[r], col_counts[c], (size_t)step, kind);
}

/* ---- convolution ---- */

static void conv_case(const qk_table *t, size_t kernel, size_t n, int with_bias) {
    const float *x[5], *w[5];
    float *y = ck_dst(0, n);
    fill(m.b, 5 * BC, 1);
    fill(m.c, 5 * BC, 1);
    fill(m.x, n, 1);
    for (size_t k = 0; k < 5; k++) {
        x[k] = m.b + k * BC;
        w[k] = m.c + k * BC;
    }
    t->conv(y, x, w, kernel, with_bias ? m.x : NULL, n);
    ck_dst_ok(0, n);
    for (size_t i = 0; i < n; i++) {
        double want = with_bias ? (double)m.x[i] : 0, size = fabs(want);
        for (size_t k = 0; k < kernel; k++) {
            want += (double)x[k][i] * (double)w[k][i];
            size += fabs((double)x[k][i] * (double)w[k][i]);
        }
        ck_near("conv", i, (double)y[i], want, 8 * CK_EPS * size);
    }
}

static void check_conv(const qk_table *t, int with_bias) {
    for (size_t kernel = 2; kernel <= 5; kernel++)
        for (size_t n = 1; n <= ROWS_MAX; n++) conv_case(t, kernel, n, with_bias);
}

void ck_test_state(const qk_table *t) {
    ck_check("scan_each", (ck_fn)t->scan_each, check_scan, t, 1);
    ck_check("scan_one", (ck_fn)t->scan_one, check_scan, t, 0);
    ck_check("delta", (ck_fn)t->delta, check_delta, t, 0);
    ck_check("delta_rows", (ck_fn)t->delta, check_delta, t, 1);
    ck_check("wkv", (ck_fn)t->wkv, check_wkv, t, 1);
    ck_check("wkv_fixed", (ck_fn)t->wkv, check_wkv, t, 0);
    ck_check("conv", (ck_fn)t->conv, check_conv, t, 0);
    ck_check("conv_bias", (ck_fn)t->conv, check_conv, t, 1);
}
