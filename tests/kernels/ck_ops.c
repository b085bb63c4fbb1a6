/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batched rotation, softmax with a temperature, clamp; operations with the same bits at every level. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_A, SLOT_B, SLOT_Y, MAX_N = 8192 };

static const size_t sizes[] = { 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1029 };
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* --- rope --- */

/* The pair of element e of a head, and its place in it. */
static void rope_element(const qk_rope *r, const float *before, const float *after, size_t at, size_t e,
                         const float *cs, int halves) {
    const size_t half = r->n_rot / 2, i = halves ? e % half : e / 2, second = halves ? e / half : e % 2;
    const size_t first = at + (halves ? i : 2 * i), other = first + (halves ? half : 1);
    const double a = (double)before[first], b = (double)before[other];
    const double c = (double)cs[2 * i], s = (double)cs[2 * i + 1];
    const double want = second ? a * s + b * c : a * c - b * s;
    const double size = second ? fabs(a * s) + fabs(b * c) : fabs(a * c) + fabs(b * s);
    ck_near("rope", at + e, (double)after[at + e], want, 2 * CK_EPS * size);
}

static void rope_case(const qk_table *t, int halves, size_t n_rot, size_t n_heads, size_t gap, size_t n_pos) {
    static float before[MAX_N];
    const size_t head = n_rot + gap, pos = n_heads * head + gap, n = n_pos * pos;
    float *cs = ck_tail(SLOT_A, n_pos * n_rot * sizeof *cs), *x = ck_dst(SLOT_Y, n);
    const qk_rope r = { x, cs, n_rot, n_heads, head, n_pos, pos };
    ck_fill_floats(cs, n_pos * n_rot, CK_RANDOM);
    ck_fill_floats(x, n, CK_RANDOM);
    memcpy(before, x, n * sizeof *x);
    (halves ? t->rope_halves_batch : t->rope_pairs_batch)(&r);
    ck_dst_ok(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) {
        const size_t p = i / pos, in_pos = i % pos, h = in_pos / head, e = in_pos % head;
        if (h < n_heads && e < n_rot)
            rope_element(&r, before, x, p * pos + h * head, e, cs + p * n_rot, halves);
        else
            ck_near("between heads", i, (double)x[i], (double)before[i], 0);
    }
}

static void check_rope_batch(const qk_table *t, int halves) {
    static const size_t rots[] = { 2, 4, 6, 8, 14, 16, 18, 30, 32, 34, 62, 64, 66, 128 };
    for (size_t i = 0; i < sizeof rots / sizeof rots[0]; i++)
        for (size_t heads = 1; heads <= 5; heads += 2)
            for (size_t gap = 0; gap <= 7; gap += 7)
                for (size_t n_pos = 1; n_pos <= 4; n_pos += 3)
                    rope_case(t, halves, rots[i], heads, gap, n_pos);
}

/* --- the same bits at every level --- */

static void same_bits(const char *what, const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t a, b;
        memcpy(&a, &got[i], sizeof a);
        memcpy(&b, &want[i], sizeof b);
        if (a != b && !(isnan(got[i]) && isnan(want[i])))
            ck_error("%s: element %zu of %zu is %08x, the reference has %08x", what, i, n, (unsigned)a,
                     (unsigned)b);
    }
}

/* Values whose results may not depend on rounding: infinities, denormals, both zeros, and ordinary ones. */
static void fill_odd(float *x, size_t n) {
    static const float odd[] = { INFINITY, -INFINITY, -0.0f, 0.0f, 0x1p-140f, -0x1p-149f, 0x1p127f, NAN };
    for (size_t i = 0; i < n; i++) x[i] = ck_below(6) ? ck_normal() * 4 : odd[ck_below(8)];
}

enum { ADD, MUL, SCALE, RELU2 };

static void apply(const qk_table *t, int which, float *y, const float *x, size_t n) {
    void (*const two[])(float *, const float *, size_t) = {
        [ADD] = t->add,
        [MUL] = t->mul,
        [RELU2] = t->gate[QK_GATE_RELU2],
        [SCALE] = NULL,
    };
    if (which == SCALE)
        t->scale(y, x[0], n);
    else
        two[which](y, x, n);
}

static void check_same_bits(const qk_table *t, int which) {
    static float want[MAX_N];
    qk_table ref;
    qk_table_init(&ref, QK_LEVEL_REF);
    for (int s = 0; s < N_SIZES; s++)
        for (int odd = 0; odd < 2; odd++) {
            const size_t n = sizes[s];
            float *x = ck_tail(SLOT_A, n * sizeof *x), *y = ck_dst(SLOT_Y, n);
            ck_fill_floats(x, n, CK_RANDOM);
            ck_fill_floats(y, n, CK_RANDOM);
            if (odd) {
                fill_odd(x, n);
                fill_odd(y, n);
            }
            memcpy(want, y, n * sizeof *y);
            apply(&ref, which, want, x, n);
            apply(t, which, y, x, n);
            ck_dst_ok(SLOT_Y, n);
            same_bits("bits", y, want, n);
        }
}

/* Rounded after each operation, also where y is an input. */
static void check_lerp(const qk_table *t, int arg) {
    static float want[MAX_N];
    (void)arg;
    for (int rep = 0; rep < N_SIZES * 6; rep++) {
        const size_t n = sizes[rep / 6];
        float *x = ck_tail(SLOT_A, n * sizeof *x), *z = ck_tail(SLOT_B, n * sizeof *z),
              *y = ck_dst(SLOT_Y, n);
        ck_fill_floats(x, n, CK_RANDOM);
        ck_fill_floats(z, n, CK_RANDOM);
        ck_fill_floats(y, n, CK_RANDOM);
        if (rep % 2) fill_odd(z, n);
        for (size_t i = 0; i < n; i++) {
            const float step = z[i] - x[i], part = step * y[i];
            want[i] = x[i] + part;
        }
        if (rep % 6 < 4) {
            t->lerp(y, x, z, y, n);
        } else { /* y is x; the weights lie elsewhere */
            for (size_t i = 0; i < n; i++) {
                const float w = y[i];
                y[i] = x[i];
                x[i] = w;
            }
            t->lerp(y, y, z, x, n);
        }
        ck_dst_ok(SLOT_Y, n);
        same_bits("lerp", y, want, n);
    }
}

/* --- streams --- */

/* The same bits as one element after the other; what lies between the streams stays. */
static void streams_case(const qk_table *t, size_t n, size_t width, int correct) {
    static float want[MAX_N];
    const size_t stride = width + 3, all = (n - 1) * stride + width;
    float *y = ck_dst(SLOT_Y, all), *x = ck_tail(SLOT_A, width * sizeof *x),
          *coef = ck_tail(SLOT_B, n * n * sizeof *coef);
    ck_fill_floats(y, all, CK_RANDOM);
    ck_fill_floats(x, width, CK_RANDOM);
    ck_fill_floats(coef, n * n, CK_RANDOM);
    memcpy(want, y, all * sizeof *y);
    for (size_t e = 0; e < width; e++) {
        const float missed = x[e] - y[e];
        for (size_t i = 0; i < n; i++) {
            float sum = y[i * stride + e];
            if (correct) sum += missed * (1 + coef[i]);
            for (size_t j = 0; !correct && j < n; j++) sum += coef[i * n + j] * y[j * stride + e];
            want[i * stride + e] = sum;
        }
    }
    if (correct)
        t->correct_streams(y, x, coef, n, stride, width);
    else
        t->mix_streams(y, coef, n, stride, width);
    ck_dst_ok(SLOT_Y, all);
    same_bits("streams", y, want, all);
}

static void check_streams(const qk_table *t, int correct) {
    static const size_t counts[] = { 1, 2, 3, 4, 5, QK_MAX_STREAMS };
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++)
        for (size_t width = 1; width < 70; width += 1 + width / 20)
            streams_case(t, counts[k], width, correct);
}

/* --- softmax --- */

/* z = (x - max) / t rounds three times, which exp turns into a relative error of 3 eps |z|. */
static void softmax_case(const qk_table *t, size_t n, float spread, float temperature, int in_place) {
    static double z[MAX_N];
    float *x = in_place ? ck_dst(SLOT_Y, n) : ck_tail(SLOT_A, n * sizeof *x),
          *y = in_place ? x : ck_dst(SLOT_Y, n);
    double max = -INFINITY, sum = 0, weighted = 0;
    for (size_t i = 0; i < n; i++) x[i] = n > 3 && i == 3 ? -INFINITY : ck_normal() * spread;
    for (size_t i = 0; i < n; i++) max = (double)x[i] > max ? (double)x[i] : max;
    for (size_t i = 0; i < n; i++) {
        z[i] = ((double)x[i] - max) / (double)temperature;
        sum += exp(z[i]);
        weighted += isinf(z[i]) ? 0 : exp(z[i]) * z[i];
    }
    const double got = (double)t->softmax_t(y, x, n, temperature), entropy = log(sum) - weighted / sum;
    ck_dst_ok(SLOT_Y, n);
    ck_near("entropy", n, got, entropy,
            CK_EPS * (16 + (double)n / 8) * (2 - 4 * weighted / sum + log((double)n)));
    for (size_t i = 0; i < n; i++) {
        const double past = z[i] - (double)QK_SOFTMAX_LOWEST, away = isinf(z[i]) ? 0 : -3 * z[i];
        const double want = past < 0 ? 0 : exp(z[i]) / sum;
        if (fabs(past) < 1e-3) continue; /* z rounds to either side */
        ck_near("softmax_t", i, (double)y[i], want, want * CK_EPS * (8 + away + (double)n / 16) + 0x1p-125);
    }
}

/* A vocabulary of equally likely tokens: sums of many must not drift. */
static void softmax_vocabulary(const qk_table *t) {
    enum { N = 131071 };
    float *y = ck_dst(SLOT_Y, N);
    for (size_t i = 0; i < N; i++) y[i] = i % 2 ? 1.0f : 1.1f;
    const double a = exp(-0.1), sum = N / 2 * a + (N + 1) / 2, got = (double)t->softmax_t(y, y, N, 1.0f);
    ck_near("entropy of many", N, got, log(sum) + N / 2 * a * 0.1 / sum, 1e-5);
    ck_near("largest of many", 0, (double)y[0], 1 / sum, 4e-6 / sum);
}

static void check_softmax_t(const qk_table *t, int arg) {
    static const float temperatures[] = { 0.05f, 0.8f, 1.0f, 5.0f };
    (void)arg;
    for (int s = 0; s < N_SIZES; s++)
        for (int i = 0; i < 4; i++)
            for (int in_place = 0; in_place < 2; in_place++) {
                softmax_case(t, sizes[s], 0.0f, temperatures[i], in_place);
                softmax_case(t, sizes[s], 3.0f, temperatures[i], in_place);
                softmax_case(t, sizes[s], 100.0f, temperatures[i], in_place);
            }
    softmax_vocabulary(t);
}

static void check_clamp(const qk_table *t, int arg) {
    static const float odd[] = { NAN, INFINITY, -INFINITY, -0.0f, 0x1p-140f, 3.0f, -2.0f, 2.9f };
    (void)arg;
    for (int s = 0; s < N_SIZES; s++) {
        const size_t n = sizes[s];
        float *x = ck_tail(SLOT_A, n * sizeof *x), *y = ck_dst(SLOT_Y, n);
        for (size_t i = 0; i < n; i++) x[i] = ck_below(2) ? odd[ck_below(8)] : 4 * ck_normal();
        t->clamp(y, x, n, -2.0f, 3.0f);
        ck_dst_ok(SLOT_Y, n);
        for (size_t i = 0; i < n; i++)
            ck_near("clamp", i, (double)y[i], isnan(x[i]) ? -2.0 : fmin(fmax((double)x[i], -2.0), 3.0), 0);
    }
}

void ck_test_ops(const qk_table *t) {
    ck_check("rope_pairs_batch", (ck_fn)t->rope_pairs_batch, check_rope_batch, t, 0);
    ck_check("rope_halves_batch", (ck_fn)t->rope_halves_batch, check_rope_batch, t, 1);
    ck_check("add_bits", (ck_fn)t->add, check_same_bits, t, ADD);
    ck_check("mul_bits", (ck_fn)t->mul, check_same_bits, t, MUL);
    ck_check("scale_bits", (ck_fn)t->scale, check_same_bits, t, SCALE);
    ck_check("lerp", (ck_fn)t->lerp, check_lerp, t, 0);
    ck_check("mix_streams", (ck_fn)t->mix_streams, check_streams, t, 0);
    ck_check("correct_streams", (ck_fn)t->correct_streams, check_streams, t, 1);
    ck_check("relu2_bits", (ck_fn)t->gate[QK_GATE_RELU2], check_same_bits, t, RELU2);
    ck_check("softmax_t", (ck_fn)t->softmax_t, check_softmax_t, t, 0);
    ck_check("clamp", (ck_fn)t->clamp, check_clamp, t, 0);
}
