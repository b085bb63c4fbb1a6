/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Selection of tokens: the k best, the nucleus, those above a limit, and the draw. */
#include <math.h>
#include <stdlib.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_X, SLOT_P, SLOT_OUT, MAX_N = 140000 };

static const size_t sizes[] = { 1,  2,  3,  15,  16,  17,  31,   32,    33,
                                63, 64, 65, 255, 256, 257, 1029, 32000, 131071 };
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

typedef enum fill { BELL, FLAT, TIES, PEAK, RISING, LOW, N_FILLS } fill;

static void fill_logits(float *x, size_t n, fill kind) {
    for (size_t i = 0; i < n; i++)
        x[i] = kind == FLAT     ? 1.5f
               : kind == TIES   ? (float)ck_below(4)
               : kind == PEAK   ? (i == n / 2 ? 50.0f : ck_normal())
               : kind == RISING ? (float)i * 1e-3f
               : kind == LOW    ? (ck_below(3) ? -1e30f : 3 * ck_normal())
                                : 3 * ck_normal();
}

/* --- expected results by sorting everything --- */

static int best_first(const void *a, const void *b) {
    const qk_pick *p = a, *q = b;
    return p->x > q->x ? -1 : p->x < q->x ? 1 : p->id < q->id ? -1 : 1;
}

/* Returns the number of elements that are not NaN. */
static size_t sorted(qk_pick *all, const float *x, size_t n) {
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(x[i])) all[m++] = (qk_pick){ x[i], (int32_t)i };
    qsort(all, m, sizeof *all, best_first);
    return m;
}

static void same_picks(const char *what, const qk_pick *got, size_t n_got, const qk_pick *want,
                       size_t n_want) {
    if (n_got != n_want) {
        ck_error("%s: %zu picked, should be %zu", what, n_got, n_want);
        return;
    }
    for (size_t i = 0; i < n_want; i++)
        if (got[i].id != want[i].id || !(got[i].x == want[i].x)) {
            ck_error("%s: place %zu of %zu is %d, should be %d", what, i, n_want, got[i].id, want[i].id);
            return;
        }
}

static void top_k_case(const qk_table *t, const float *x, size_t n) {
    static qk_pick all[MAX_N];
    static const size_t ks[] = { 0, 1, 2, 40, 64, 500, 2000 };
    const size_t m = sorted(all, x, n);
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
        const size_t k = ks[i] < n ? ks[i] : n;
        qk_pick *out = ck_tail(SLOT_OUT, (k + 1) * sizeof *out);
        out[k] = (qk_pick){ 0.25f, 4711 };
        same_picks("top_k", out, t->top_k(out, x, n, ks[i]), all, k < m ? k : m);
        if (out[k].id != 4711 || !(out[k].x == 0.25f)) ck_error("top_k wrote behind its %zu", k);
    }
}

static void check_top_k(const qk_table *t, int arg) {
    (void)arg;
    for (size_t s = 0; s < ck_some(N_SIZES); s++)
        for (int kind = 0; kind < N_FILLS; kind++) {
            const size_t n = sizes[s];
            float *x = ck_tail(SLOT_X, n * sizeof *x);
            fill_logits(x, n, (fill)kind);
            top_k_case(t, x, n);
            for (size_t i = 0; i < n; i++) x[i] = ck_below(4) ? NAN : ck_below(2) ? -INFINITY : x[i];
            top_k_case(t, x, n);
        }
}

/* --- nucleus --- */

/* The result must be the best of all, the sure ones first by id, the others sorted, and reach the mass;
 * without those from the bucket (1/16 nat) of the last one it must not. */
static void nucleus_case(const qk_table *t, const float *x, const float *p, size_t n, double top_p) {
    static qk_pick all[MAX_N];
    size_t sure = 0;
    double total = 0, sum = 0, sure_sum = 0;
    qk_pick *out = ck_tail(SLOT_OUT, n * sizeof *out);
    sorted(all, x, n);
    for (size_t i = 0; i < n; i++) total += (double)p[i];
    const size_t kept = t->top_p(out, x, p, n, all[0].x, top_p, &sure);
    if (kept < 1 || kept > n || sure > kept) {
        ck_error("nucleus of %zu: %zu kept, %zu sure", n, kept, sure);
        return;
    }
    for (size_t i = 0; i < kept; i++) {
        sum += (double)p[out[i].id];
        sure_sum += i < sure ? (double)p[out[i].id] : 0;
        if (i + 1 < sure && out[i].id >= out[i + 1].id)
            ck_error("nucleus: %zu and %zu are not in the order of their ids", i, i + 1);
    }
    if (sum < top_p * total * (1 - 1e-6) || (sure > 0 && sure_sum > top_p * total * (1 + 1e-6)))
        ck_error("nucleus of %zu: %g of %g, %g for sure, wanted %g", n, sum, total, sure_sum, top_p);
    qsort(out, sure, sizeof *out, best_first);
    same_picks("nucleus", out, kept, all, kept);
}

static void check_top_p(const qk_table *t, int arg) {
    (void)arg;
    for (size_t s = 0; s < ck_some(N_SIZES); s++)
        for (int kind = 0; kind < N_FILLS; kind++) {
            const size_t n = sizes[s];
            float *x = ck_tail(SLOT_X, n * sizeof *x), *p = ck_tail(SLOT_P, n * sizeof *p);
            fill_logits(x, n, (fill)kind);
            t->softmax_t(p, x, n, 1.0f);
            nucleus_case(t, x, p, n, 0.1);
            nucleus_case(t, x, p, n, 0.9);
            nucleus_case(t, x, p, n, 0.999999);
        }
}

static void check_at_least(const qk_table *t, int arg) {
    static qk_pick want[MAX_N];
    (void)arg;
    for (size_t s = 0; s < N_SIZES; s++)
        for (int kind = 0; kind < N_FILLS; kind++) {
            const size_t n = sizes[s];
            float *x = ck_tail(SLOT_X, n * sizeof *x), limit;
            qk_pick *out = ck_tail(SLOT_OUT, n * sizeof *out);
            size_t m = 0;
            fill_logits(x, n, (fill)kind);
            limit = x[ck_below(n)];
            x[ck_below(n)] = NAN;
            for (size_t i = 0; i < n; i++)
                if (x[i] >= limit) want[m++] = (qk_pick){ x[i], (int32_t)i };
            same_picks("at_least", out, t->at_least(out, x, n, limit), want, m);
        }
}

/* --- draw --- */

static void draw_case(const qk_table *t, const float *p, size_t n, double u) {
    double total = 0, got_total = 0, before = 0;
    for (size_t i = 0; i < n; i++) total += (double)p[i];
    const size_t got = t->draw(p, n, u, &got_total);
    ck_near("total of p", n, got_total, total, total * 1e-12);
    for (size_t i = 0; i < got && i < n; i++) before += (double)p[i];
    if (got >= n || !(p[got] > 0) || before > (u + 1e-12) * total ||
        before + (double)p[got] < (u - 1e-12) * total)
        ck_error("draw: %zu of %zu at %g", got, n, u);
}

static void check_draw(const qk_table *t, int arg) {
    static const double us[] = { 0, 1e-9, 0.25, 0.5, 0.75, 0.999, 1 - 0x1p-53 };
    (void)arg;
    for (size_t s = 0; s < N_SIZES; s++)
        for (int sparse = 0; sparse < 3; sparse++) {
            const size_t n = sizes[s];
            float *p = ck_tail(SLOT_P, n * sizeof *p);
            for (size_t i = 0; i < n; i++)
                p[i] = sparse == 0 || ck_below(sparse == 1 ? 3 : n) == 0 ? fabsf(ck_normal()) + 1e-6f : 0.0f;
            p[ck_below(n)] = 1.0f;
            for (size_t i = 0; i < sizeof us / sizeof us[0]; i++) draw_case(t, p, n, us[i]);
        }
}

void ck_test_pick(const qk_table *t) {
    ck_check("top_k", (ck_fn)t->top_k, check_top_k, t, 0);
    ck_check("top_p", (ck_fn)t->top_p, check_top_p, t, 0);
    ck_check("at_least", (ck_fn)t->at_least, check_at_least, t, 0);
    ck_check("draw", (ck_fn)t->draw, check_draw, t, 0);
}
