/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkkern --bench, operations other than matrix products and attention: nanoseconds per element, one
 * thread, data in L1 (2048 elements) or, for operations on a vocabulary, in L2 (32000). The input of in-place
 * operations is copied each time; the line "copy" shows the time of that. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/kernels/checkkern.h"

enum { ACT = 2048, VOCAB = 32000, HEAD = 64, ROUNDS = 20 };

static struct {
    _Alignas(64) float x[VOCAB], y[VOCAB], w[VOCAB], p[VOCAB], small[ACT];
    qk_pick pick[VOCAB];
    _Alignas(64) char column[16384];
    double sum; /* so that results are used */
} b;

typedef void (*run_fn)(const qk_table *t);

static void copy(void) { memcpy(b.y, b.x, ACT * sizeof *b.y); }
static void run_copy(const qk_table *t) {
    (void)t;
    copy();
}
static void run_add(const qk_table *t) { t->add(b.y, b.small, ACT); }
static void run_mul(const qk_table *t) {
    copy();
    t->mul(b.y, b.x, ACT);
}
static void run_scale(const qk_table *t) { t->scale(b.y, -1.0f, ACT); }
static void run_rms(const qk_table *t) { t->rms_norm(b.y, b.x, b.w, ACT, 1e-5f); }
static void run_layer(const qk_table *t) { t->layer_norm(b.y, b.x, b.w, b.w, ACT, 1e-5f); }
#define RUN_GATE(name, NAME)                    \
    static void run_##name(const qk_table *t) { \
        copy();                                 \
        t->gate[QK_GATE_##NAME](b.y, b.w, ACT); \
    }
QK_GATES(RUN_GATE)
static void run_softcap(const qk_table *t) {
    copy();
    t->softcap(b.y, 30, ACT);
}
static void run_lerp(const qk_table *t) { t->lerp(b.y, b.x, b.w, b.p, ACT); }
static void run_l2(const qk_table *t) { t->l2_norm(b.y, b.x, ACT, 1e-5f); }
static void run_swiglu(const qk_table *t) {
    static const qk_swiglu s = { 1.702f, 7, INFINITY, 7, 1 };
    copy();
    t->swiglu_mul(b.y, b.w, ACT, &s);
}
static void run_xielu(const qk_table *t) {
    static const qk_xielu s = { 0.8f, 1.3f, 0.5f, -1e-6f };
    copy();
    t->xielu_mul(b.y, b.w, ACT, &s);
}
static void run_q8(const qk_table *t) { t->quantize[QK_ACT_Q8](b.column, b.x, ACT); }
static void run_q8k(const qk_table *t) { t->quantize[QK_ACT_Q8K](b.column, b.x, ACT); }
static void run_clamp(const qk_table *t) { t->clamp(b.y, b.x, VOCAB, -1e30f, 1e30f); }
static void run_argmax(const qk_table *t) { b.sum += (double)t->argmax(b.x, VOCAB); }
static void run_softmax_t(const qk_table *t) { b.sum += (double)t->softmax_t(b.y, b.x, VOCAB, 0.8f); }
static void run_top_k(const qk_table *t) { b.sum += (double)t->top_k(b.pick, b.x, VOCAB, 40); }
static void run_at_least(const qk_table *t) { b.sum += (double)t->at_least(b.pick, b.x, VOCAB, 9.0f); }

static void run_top_p(const qk_table *t) {
    size_t sure;
    b.sum += (double)t->top_p(b.pick, b.x, b.p, VOCAB, b.x[777], 0.9, &sure);
}

static void run_draw(const qk_table *t) {
    double total;
    b.sum += (double)t->draw(b.p, VOCAB, 0.5, &total);
}

static void run_pairs_batch(const qk_table *t) {
    t->rope_pairs_batch(&(qk_rope){ b.y, b.w, HEAD, ACT / HEAD, HEAD, 1, ACT });
}

static void run_halves_batch(const qk_table *t) {
    t->rope_halves_batch(&(qk_rope){ b.y, b.w, HEAD, ACT / HEAD, HEAD, 1, ACT });
}

#define BENCH_GATE(name, NAME) { #name "_mul", run_##name, ACT },
static const struct {
    const char *name;
    run_fn run;
    size_t n;
} ops[] = {
    { "copy", run_copy, ACT },
    { "add", run_add, ACT },
    { "mul", run_mul, ACT },
    { "scale", run_scale, ACT },
    { "lerp", run_lerp, ACT },
    { "rms_norm", run_rms, ACT },
    { "layer_norm", run_layer, ACT },
    { "l2_norm", run_l2, ACT },
    { "rope_pairs_batch", run_pairs_batch, ACT },
    { "rope_halves_batch", run_halves_batch, ACT },
    QK_GATES(BENCH_GATE){ "softcap", run_softcap, ACT },
    { "swiglu_mul", run_swiglu, ACT },
    { "xielu_mul", run_xielu, ACT },
    { "quantize_q8", run_q8, ACT },
    { "quantize_q8k", run_q8k, ACT },
    { "clamp", run_clamp, VOCAB },
    { "argmax", run_argmax, VOCAB },
    { "softmax_t", run_softmax_t, VOCAB },
    { "top_k", run_top_k, VOCAB },
    { "top_p", run_top_p, VOCAB },
    { "at_least", run_at_least, VOCAB },
    { "draw", run_draw, VOCAB },
};

static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return 1e9 * (double)ts.tv_sec + (double)ts.tv_nsec;
}

/* Like the logits of a model: most of them in a bell curve, a few far above. */
static void prepare(const qk_table *t) {
    ck_fill_floats(b.x, VOCAB, CK_RANDOM);
    ck_fill_floats(b.w, VOCAB, CK_RANDOM);
    for (size_t i = 0; i < ACT; i++) b.small[i] = 0x1p-40f;
    for (size_t i = 0; i < 20; i++) b.x[777 + 1500 * i] = 12.0f - 0.3f * (float)i;
    for (size_t i = 0; i < HEAD; i += 2) { /* rotations that keep the magnitude */
        b.w[i] = 0.6f;
        b.w[i + 1] = 0.8f;
    }
    t->softmax_t(b.p, b.x, VOCAB, 1.0f);
    copy();
}

/* Best of a few rounds, each of about 20 microseconds. */
static double nanoseconds(const qk_table *t, run_fn run) {
    double best = 1e12;
    for (int r = 0; r < ROUNDS; r++) {
        const double start = now();
        double took = 0;
        int n = 0;
        for (; took < 2e4; took = now() - start, n++) run(t);
        best = took / n < best ? took / n : best;
    }
    return best;
}

void ck_bench_ops(const qk_table *t, const char *only_function) {
    if (t->level == QK_LEVEL_AVXVNNI || t->level == QK_LEVEL_AVX512VNNI || t->level == QK_LEVEL_DOTPROD ||
        t->level == QK_LEVEL_I8MM)
        return; /* those of the level below */
    prepare(t);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        char name[48];
        snprintf(name, sizeof name, "%s_%s", ops[i].name, qk_level_name(t->level));
        if (only_function && !strstr(name, only_function)) continue;
        copy();
        printf("%-28s %8.3f ns per element of %zu\n", name, nanoseconds(t, ops[i].run) / (double)ops[i].n,
               ops[i].n);
    }
    fflush(stdout);
}
