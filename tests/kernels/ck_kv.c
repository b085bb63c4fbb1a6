/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half-float conversions, quantization of activations. */
#include <math.h>
#include <string.h>

#include "kernels/act.h"
#include "tests/kernels/checkkern.h"

enum { SLOT_ROWS, SLOT_Q, SLOT_Y };

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
    for (size_t n = 1; n < ck_some(24) && !ck_failed(); n++)
        for (int kind = 0; kind <= CK_KINDS; kind++)
            quantize_case(t, act, n * (act == QK_ACT_Q8K ? 256 : 32), kind);
}

void ck_test_quantize(const qk_table *t)
{
    static const char *const names[QK_ACT_N] = { "quantize_f32", "quantize_q8", "quantize_q8k" };
    for (int act = 0; act < QK_ACT_N; act++)
        ck_check(names[act], (ck_fn)t->quantize[act], check_quantize, t, act);
}
