/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotary position embedding in place, with precomputed cosines and sines. */
#include "kernels/ref/ref.h"

static void rotate(float *a, float *b, float c, float s) {
    const float x = *a, y = *b;
    *a = x * c - y * s;
    *b = x * s + y * c;
}

static void pairs(float *x, const float *cs, size_t n_rot) {
    for (size_t i = 0; i < n_rot / 2; i++) rotate(&x[2 * i], &x[2 * i + 1], cs[2 * i], cs[2 * i + 1]);
}

static void halves(float *x, const float *cs, size_t n_rot) {
    for (size_t i = 0; i < n_rot / 2; i++) rotate(&x[i], &x[i + n_rot / 2], cs[2 * i], cs[2 * i + 1]);
}

static void batch(const qk_rope *r, void (*one)(float *, const float *, size_t)) {
    for (size_t p = 0; p < r->n_pos; p++)
        for (size_t h = 0; h < r->n_heads; h++)
            one(r->x + p * r->pos_stride + h * r->head_stride, r->cs + p * r->n_rot, r->n_rot);
}

void qk_rope_pairs_batch_ref(const qk_rope *r) { batch(r, pairs); }

void qk_rope_halves_batch_ref(const qk_rope *r) { batch(r, halves); }
