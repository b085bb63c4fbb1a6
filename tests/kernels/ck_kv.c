/* SPDX-License-Identifier: GPL-3.0-or-later */
/* KV rows, half-float conversions, quantization of activations. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/act.h"
#include "tests/kernels/checkkern.h"

enum { SLOT_ROWS, SLOT_Q, SLOT_Y, SLOT_S, MAX_N = 70 };

static const size_t dims[] = { 1, 4, 8, 15, 16, 17, 32, 48, 64, 80, 96, 128, 160, 256 };
static const size_t counts[] = { 1, 2, 3, 4, 5, 7, 8, 9, 33, 64 };

/* n rows as the reference stores them, the last one ending at the guard page. */
static char *make_rows(const qk_table *t, int kv, size_t dim, size_t n, size_t stride)
{
    float x[256];
    char *base = ck_tail(SLOT_ROWS, (n - 1) * stride + t->kv[kv].row_bytes(dim));
    for (size_t p = 0; p < n; p++) {
        ck_fill_floats(x, dim, CK_RANDOM);
        t->kv[kv].store(base + p * stride, x, dim);
    }
    return base;
}

static double row_at(int kv, const char *row, size_t i)
{
    float f;
    uint16_t h;
    if (kv == QK_KV_F16) {
        memcpy(&h, row + 2 * i, sizeof h);
        return ck_half(h);
    }
    memcpy(&f, row + 4 * i, sizeof f);
    return (double)f;
}

static void score_case(const qk_table *t, int kv, size_t dim, size_t n, size_t stride)
{
    char *base = make_rows(t, kv, dim, n, stride);
    float *q = ck_tail(SLOT_Q, dim * sizeof *q), *s = ck_dst(SLOT_Y, n);
    const float scale = 0.125f + ck_uniform() * 0.1f;
    ck_fill_floats(q, dim, CK_RANDOM);
    t->kv[kv].scores(s, q, base, stride, n, dim, scale);
    ck_dst_ok(SLOT_Y, n);
    for (size_t p = 0; p < n; p++) {
        double sum = 0, mags = 0;
        for (size_t i = 0; i < dim; i++) {
            const double v = (double)q[i] * row_at(kv, base + p * stride, i);
            sum += v;
            mags += fabs(v);
        }
        ck_near("score", p, (double)s[p], sum * (double)scale,
                CK_EPS * ((double)dim / 4 + 8) * mags * (double)scale);
    }
}

static void mix_case(const qk_table *t, int kv, size_t dim, size_t n, size_t stride)
{
    char *base = make_rows(t, kv, dim, n, stride);
    float *s = ck_tail(SLOT_S, n * sizeof *s), *y = ck_dst(SLOT_Y, dim);
    ck_fill_floats(s, n, CK_RANDOM);
    t->kv[kv].mix(y, s, base, stride, n, dim);
    ck_dst_ok(SLOT_Y, dim);
    for (size_t i = 0; i < dim; i++) {
        double sum = 0, mags = 0;
        for (size_t p = 0; p < n; p++) {
            const double v = (double)s[p] * row_at(kv, base + p * stride, i);
            sum += v;
            mags += fabs(v);
        }
        ck_near("mix", i, (double)y[i], sum, CK_EPS * ((double)n + 8) * mags);
    }
}

typedef void (*kv_case)(const qk_table *t, int kv, size_t dim, size_t n, size_t stride);

static void over_shapes(const qk_table *t, int kv, kv_case one)
{
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const size_t row = t->kv[kv].row_bytes(dims[d]);
            one(t, kv, dims[d], counts[c], c % 2 ? row : row * 3);
        }
}

static void check_scores(const qk_table *t, int kv)
{
    over_shapes(t, kv, score_case);
}

static void check_mix(const qk_table *t, int kv)
{
    over_shapes(t, kv, mix_case);
}

static void check_store(const qk_table *t, int kv)
{
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        float *x = ck_tail(SLOT_Q, dims[d] * sizeof *x);
        char *row = ck_tail(SLOT_ROWS, t->kv[kv].row_bytes(dims[d]));
        ck_fill_floats(x, dims[d], d % 2 ? CK_TINY : CK_RANDOM);
        t->kv[kv].store(row, x, dims[d]);
        for (size_t i = 0; i < dims[d]; i++) {
            const double want = kv == QK_KV_F16 ? ck_half(qk_f32_to_f16(x[i])) : (double)x[i];
            ck_near("store", i, row_at(kv, row, i), want, 0);
        }
    }
}

void ck_test_kv(const qk_table *t)
{
    for (int kv = 0; kv < QK_KV_N; kv++) {
        const qk_kv_ops *ops = &t->kv[kv];
        char name[32];
        snprintf(name, sizeof name, "kv_%s_store", ops->name);
        ck_check(name, (ck_fn)ops->store, check_store, t, kv);
        snprintf(name, sizeof name, "kv_%s_scores", ops->name);
        ck_check(name, (ck_fn)ops->scores, check_scores, t, kv);
        snprintf(name, sizeof name, "kv_%s_mix", ops->name);
        ck_check(name, (ck_fn)ops->mix, check_mix, t, kv);
    }
}

/* Nearest half of a double, ties to even, by search: slow and independent. */
static double nearest_half(double x)
{
    uint16_t lo = 0, hi = 0x7c00;
    const double a = fabs(x);
    if (a >= 65520)
        return copysign((double)INFINITY, x);
    while (hi - lo > 1) {
        const uint16_t mid = (uint16_t)((lo + hi) / 2);
        if (ck_half(mid) <= a)
            lo = mid;
        else
            hi = mid;
    }
    const double below = a - ck_half(lo), above = (hi == 0x7c00 ? 65536.0 : ck_half(hi)) - a;
    return copysign(ck_half(below < above || (below == above && lo % 2 == 0) ? lo : hi), x);
}

static void check_to_half(const qk_table *t, int arg)
{
    (void)arg;
    for (size_t n = 1; n < 70; n++)
        for (int rep = 0; rep < 20; rep++) {
            float *x = ck_tail(SLOT_Q, n * sizeof *x);
            uint16_t *y = ck_tail(SLOT_ROWS, n * sizeof *y);
            for (size_t i = 0; i < n; i++) {
                const uint32_t bits = ck_rand();
                memcpy(&x[i], &bits, sizeof bits);
                if (rep > 2)
                    x[i] = ldexpf(ck_uniform(), (int)ck_below(44) - 26);
                if (rep > 15) /* exactly between two halves */
                    x[i] = (float)((ck_half((uint16_t)ck_below(0x7bff)) + ck_half(0)) * (1 + 0x1p-11));
            }
            t->f32_to_f16(y, x, n);
            for (size_t i = 0; i < n; i++)
                ck_near("to half", i, ck_half(y[i]), isnan(x[i]) ? (double)NAN : nearest_half((double)x[i]),
                        0);
        }
}

static void check_from_half(const qk_table *t, int arg)
{
    (void)arg;
    for (size_t n = 1; n < 70; n++) {
        uint16_t *x = ck_tail(SLOT_ROWS, n * sizeof *x);
        float *y = ck_dst(SLOT_Y, n);
        for (size_t base = 0; base < 65536; base += n * 37) {
            for (size_t i = 0; i < n; i++)
                x[i] = (uint16_t)(base + i * 13);
            t->f16_to_f32(y, x, n);
            for (size_t i = 0; i < n; i++)
                ck_near("from half", i, (double)y[i], ck_half(x[i]), 0);
        }
        ck_dst_ok(SLOT_Y, n);
    }
}

void ck_test_half(const qk_table *t)
{
    ck_check("f16_to_f32", (ck_fn)t->f16_to_f32, check_from_half, t, 0);
    ck_check("f32_to_f16", (ck_fn)t->f32_to_f16, check_to_half, t, 0);
}

/* Every level must give the bytes of the reference; and those must be near x: half a step, and the
 * rounding of up to 127 steps before it. */
static void quantize_case(const qk_table *t, int act, size_t k, int kind)
{
    static uint8_t want[65536];
    qk_table ref;
    const size_t bytes = qk_act_bytes((qk_act)act, k), group = act == QK_ACT_Q8 ? 32 : 256;
    float *x = ck_tail(SLOT_Q, k * sizeof *x);
    uint8_t *got = ck_tail64(SLOT_ROWS, bytes);
    qk_table_init(&ref, QK_LEVEL_REF);
    ck_fill_floats(x, k, kind == CK_KINDS ? CK_RANDOM : (ck_kind)kind);
    if (kind == CK_KINDS)
        x[ck_below(k)] = ck_below(2) ? NAN : INFINITY;
    memset(want, 0, bytes);
    memset(got, 0, bytes);
    ref.quantize[act](want, x, k);
    t->quantize[act](got, x, k);
    for (size_t i = 0; i < bytes; i++)
        if (want[i] != got[i]) {
            ck_error("byte %zu of %zu differs from the reference (k=%zu)", i, bytes, k);
            return;
        }
    for (size_t i = 0; act != QK_ACT_F32 && kind != CK_KINDS && i < k; i++) {
        double max = 0;
        for (size_t j = i / group * group; j < (i / group + 1) * group; j++)
            max = fmax(max, fabs((double)x[j]));
        ck_near("quantized", i, ck_act_at((qk_act)act, got, k, i), (double)x[i],
                max / 254 * (1 + 1e-4) + 0x1p-100);
    }
}

static void check_quantize(const qk_table *t, int act)
{
    for (size_t n = 1; n < 24 && !ck_failed(); n++)
        for (int kind = 0; kind <= CK_KINDS; kind++)
            quantize_case(t, act, n * (act == QK_ACT_Q8K ? 256 : 32), kind);
}

void ck_test_quantize(const qk_table *t)
{
    static const char *const names[QK_ACT_N] = { "quantize_f32", "quantize_q8", "quantize_q8k" };
    for (int act = 0; act < QK_ACT_N; act++)
        ck_check(names[act], (ck_fn)t->quantize[act], check_quantize, t, act);
}
