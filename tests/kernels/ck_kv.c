/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half-float conversions, copies of cached positions, quantization of activations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/act.h"
#include "tests/kernels/checkkern.h"

enum { SLOT_ROWS, SLOT_Q, SLOT_Y };

/* Nearest half of a double, ties to even, by search: slow and independent. */
static double nearest_half(double x) {
    uint16_t lo = 0, hi = 0x7c00;
    const double a = fabs(x);
    if (a >= 65520) return copysign((double)INFINITY, x);
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

/* The values kept by a cache of halves, by the level's own conversion; loading is exact. */
static void check_to_half(const qk_table *t, int arg) {
    const qk_kv_ops *kv = &t->kv[QK_KV_F16];
    (void)arg;
    for (size_t n = 1; n < 70; n++)
        for (int rep = 0; rep < 20; rep++) {
            float *x = ck_tail(SLOT_Q, n * sizeof *x), *y = ck_dst(SLOT_Y, n);
            char *tile = ck_tail(SLOT_ROWS, kv->tile_bytes(n));
            for (size_t i = 0; i < n; i++) {
                const uint32_t bits = ck_rand();
                memcpy(&x[i], &bits, sizeof bits);
                if (rep > 2) x[i] = ldexpf(ck_uniform(), (int)ck_below(44) - 26);
                if (rep > 15) /* exactly between two halves */
                    x[i] = (float)((ck_half((uint16_t)ck_below(0x7bff)) + ck_half(0)) * (1 + 0x1p-11));
            }
            kv->store(tile, rep % 2, 0, x, n);
            kv->load(y, tile, rep % 2, 0, n);
            for (size_t i = 0; i < n; i++)
                ck_near("to half", i, (double)y[i], isnan(x[i]) ? (double)NAN : nearest_half((double)x[i]),
                        0);
        }
}

/* A position keeps its bits in another place, and the positions around it theirs. */
static void check_copy(const qk_table *t, int type) {
    enum { DIM = 68, TILES = 3, POSITIONS = TILES * QK_KV_TILE };
    const qk_kv_ops *kv = &t->kv[type];
    for (int rep = 0; rep < 60; rep++) {
        const size_t dim = rep % 3 ? DIM : 4 + 4 * ck_below(16), bytes = TILES * kv->tile_bytes(dim);
        const int which = rep % 2;
        const size_t from = ck_below(POSITIONS), to = ck_below(POSITIONS);
        char *src = ck_tail(SLOT_ROWS, bytes), *dst = ck_tail(SLOT_Q, bytes);
        float x[DIM], want[DIM], got[DIM];
        memset(src, 0, bytes);
        memset(dst, 0, bytes);
        for (size_t p = 0; p < POSITIONS; p++) {
            ck_fill_floats(x, dim, CK_RANDOM);
            kv->store(src, which, p, x, dim);
            ck_fill_floats(x, dim, CK_RANDOM);
            kv->store(dst, which, p, x, dim);
        }
        char *before = malloc(bytes);
        if (!before) exit(1);
        memcpy(before, dst, bytes);
        kv->copy(dst, to, src, from, which, dim);
        for (size_t p = 0; p < POSITIONS; p++) {
            kv->load(want, p == to ? src : before, which, p == to ? from : p, dim);
            kv->load(got, dst, which, p, dim);
            ck_same_bits("copied", got, want, dim);
        }
        free(before);
    }
}

static double bfloat(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Every 16-bit float alone in a row, each in another lane, times ones: the sum is the value. */
static void check_from_half(const qk_table *t, int type) {
    enum { K = 67, ROWS = 64 };
    const size_t x_bytes = qk_act_bytes(QK_ACT_F32, K);
    uint16_t *w = ck_tail(SLOT_ROWS, ROWS * K * sizeof *w);
    float *x = ck_tail64(SLOT_Q, x_bytes), *y = ck_dst(SLOT_Y, ROWS);
    const qk_mm m = { .w = w,
                      .row_bytes = K * sizeof *w,
                      .x = x,
                      .x_stride = x_bytes,
                      .y = y,
                      .y_stride = ROWS,
                      .k = K,
                      .n_cols = 1,
                      .scale = 1 };
    for (size_t i = 0; i < x_bytes / sizeof *x; i++) x[i] = 1;
    for (size_t base = 0; base < 65536; base += ROWS) {
        memset(w, 0, ROWS * K * sizeof *w);
        for (size_t r = 0; r < ROWS; r++) w[r * K + (base + r) % K] = (uint16_t)(base + r);
        t->weight[type].matmul(&m, 0, ROWS);
        for (size_t r = 0; r < ROWS; r++) {
            const uint16_t h = (uint16_t)(base + r);
            ck_near("from half", h, (double)y[r], type == QK_F16 ? ck_half(h) : bfloat(h), 0);
        }
    }
    ck_dst_ok(SLOT_Y, ROWS);
}

void ck_test_half(const qk_table *t) {
    ck_check("f16_values", (ck_fn)t->weight[QK_F16].matmul, check_from_half, t, QK_F16);
    ck_check("bf16_values", (ck_fn)t->weight[QK_BF16].matmul, check_from_half, t, QK_BF16);
#define CHECK_COPY(a, fmt, NAME, bits, latent, dims) \
    ck_check("kv_" #fmt "_copy", (ck_fn)t->kv[QK_KV_##NAME].copy, check_copy, t, QK_KV_##NAME);
    QK_KV_TYPES(CHECK_COPY, )
    ck_check("f16_rounding", (ck_fn)t->kv[QK_KV_F16].store, check_to_half, t, 0);
}

/* Every level must give the bytes of the reference; and those must be close to x: within half a step plus the
 * rounding of up to 127 steps before it. */
static void quantize_case(const qk_table *t, int act, size_t k, int kind) {
    static uint8_t want[65536];
    qk_table ref;
    const size_t bytes = qk_act_bytes((qk_act)act, k), group = act == QK_ACT_Q8 ? 32 : 256;
    float *x = ck_tail(SLOT_Q, k * sizeof *x);
    uint8_t *got = ck_tail64(SLOT_ROWS, bytes);
    qk_table_init(&ref, QK_LEVEL_REF);
    ck_fill_floats(x, k, kind == CK_KINDS ? CK_RANDOM : (ck_kind)kind);
    if (kind == CK_KINDS) x[ck_below(k)] = ck_below(2) ? NAN : INFINITY;
    memset(want, 0, bytes);
    memset(got, 0, bytes);
    ref.quantize[act](want, x, k);
    t->quantize[act](got, x, k);
    for (size_t i = 0; i < bytes; i++)
        if (want[i] != got[i]) {
            ck_error("byte %zu of %zu differs from the reference (k=%zu)", i, bytes, k);
            return;
        }
    for (size_t at = 0; act != QK_ACT_F32 && kind != CK_KINDS && at < k; at += group) {
        double max = 0;
        for (size_t i = at; i < at + group; i++) max = fmax(max, fabs((double)x[i]));
        for (size_t i = at; i < at + group; i++)
            ck_near("quantized", i, ck_act_at((qk_act)act, got, k, i), (double)x[i],
                    max / 254 * (1 + 1e-4) + 0x1p-100);
    }
}

static void check_quantize(const qk_table *t, int act) {
    for (size_t n = 1; n < ck_some(24) && !ck_failed(); n++)
        for (int kind = 0; kind <= CK_KINDS; kind++)
            quantize_case(t, act, n * (act == QK_ACT_Q8K ? 256 : 32), kind);
}

void ck_test_quantize(const qk_table *t) {
    static const char *const names[QK_ACT_N] = { "quantize_f32", "quantize_q8", "quantize_q8k" };
    for (int act = 0; act < QK_ACT_N; act++)
        ck_check(names[act], (ck_fn)t->quantize[act], check_quantize, t, act);
}
