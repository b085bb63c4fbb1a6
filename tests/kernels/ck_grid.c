/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grid: which format and which operation has its own kernel at which level. The formats are those of
 * kernels/formats.h; the expected levels are listed here. An expected kernel must be in the shipped table of
 * its level under its own name, differ from the one of the level below, and have been checked in this run
 * (packed formats: also compared with the reference, bit by bit); other kernels must not exist. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum {
    SSE42 = 1 << QK_LEVEL_SSE42,
    AVX2 = 1 << QK_LEVEL_AVX2,
    AVX512 = 1 << QK_LEVEL_AVX512,
    VNNI = 1 << QK_LEVEL_AVX512VNNI | 1 << QK_LEVEL_AVXVNNI,
    VBMI = 1 << QK_LEVEL_AVX512VBMI,
    NEON = 1 << QK_LEVEL_NEON,
    DOTPROD = 1 << QK_LEVEL_DOTPROD,
    I8MM = 1 << QK_LEVEL_I8MM,
    WASM = 1 << QK_LEVEL_WASM,
    FLOATS = SSE42 | AVX2 | AVX512 | NEON | WASM,
    ALL = FLOATS,
    DOTS = VNNI | DOTPROD, /* attention also there */
    GRID = SSE42 | AVX2 | AVX512 | VNNI | NEON | DOTPROD | I8MM | WASM
};

/* Levels with a kernel of their own: for rows, and for groups of sixteen. */
#define PROMISE_FLOAT(name) \
    { name, FLOATS, 0 }
#define PROMISE_BLOCK(name) \
    { name, GRID, GRID }
#define PROMISE_SUPER(name) \
    { name, GRID, GRID }
#define PROMISE_GRID(name) \
    { name, GRID | VBMI, GRID | VBMI }
#define PROMISE(a, fmt, TYPE, ggml, elems, bytes, planes, tail, core) [QK_##TYPE] = PROMISE_##core(#fmt),
static const struct {
    const char *format;
    int rows, x16;
} weights[QK_TYPE_N] = { QK_FORMATS(PROMISE, ) };

/* The operations, each with the name that its check prints. */
#define OP(name, member, levels) \
    { name, offsetof(qk_table, member), levels }
#define KV_STORE(a, fmt, NAME, bits, latent, dims) \
    OP("kv_" #fmt "_store", kv[QK_KV_##NAME].store, ALL | DOTS),
#define KV_ATTEND(a, fmt, NAME, bits, latent, dims) \
    OP("kv_" #fmt "_attend", kv[QK_KV_##NAME].attend, ALL | DOTS),
#define GATE(name, NAME) OP(#name "_mul", gate[QK_GATE_##NAME], ALL),
static const struct {
    const char *name;
    size_t at;
    int levels;
} ops[] = {
    OP("quantize_f32", quantize[QK_ACT_F32], 0),
    OP("quantize_q8", quantize[QK_ACT_Q8], ALL),
    OP("quantize_q8k", quantize[QK_ACT_Q8K], ALL),
    OP("matmul_exact", matmul_exact, 0),
    OP("rms_norm", rms_norm, ALL),
    OP("layer_norm", layer_norm, ALL),
    OP("rope_pairs_batch", rope_pairs_batch, ALL),
    OP("rope_halves_batch", rope_halves_batch, ALL),
    OP("softmax_t", softmax_t, ALL),
    QK_GATES(GATE) OP("swiglu_mul", swiglu_mul, ALL),
    OP("xielu_mul", xielu_mul, ALL),
    OP("add", add, ALL),
    OP("mul", mul, ALL),
    OP("scale", scale, ALL),
    OP("lerp", lerp, ALL),
    OP("softcap", softcap, ALL),
    OP("thin_f16", thin_f16, ALL),
    OP("thin_f32", thin_f32, ALL),
    OP("mix_streams", mix_streams, ALL),
    OP("correct_streams", correct_streams, ALL),
    OP("keep_above", keep_above, ALL),
    OP("l2_norm", l2_norm, ALL),
    OP("argmax", argmax, ALL),
    OP("top_k", top_k, ALL),
    OP("top_p", top_p, ALL),
    OP("at_least", at_least, ALL),
    OP("draw", draw, ALL),
    OP("clamp", clamp, ALL),
    OP("scan_each", scan_each, ALL),
    OP("scan_one", scan_one, ALL),
    OP("delta", delta, ALL),
    OP("wkv", wkv, ALL),
    OP("conv", conv, ALL),
    QK_KV_ROUNDED(KV_STORE, ) QK_KV_TYPES(KV_ATTEND, ) OP("kv_f32_store", kv[QK_KV_F32].store, 0),
};

enum { N_OPS = sizeof ops / sizeof ops[0] };

/* differs: from the kernel of the level below. */
static void check_kernel(const char *what, int promised, int differs, int compared) {
    if (promised && !differs) ck_error("%s is promised, but is that of a lower level", what);
    if (!promised && differs) ck_error("%s is there, but ck_grid.c does not promise it", what);
    if (promised && differs && !compared) ck_error("%s was never compared with the truth", what);
}

static void check_weight(const qk_table *t, const qk_table *below, int type) {
    const qk_weight_ops *w = &t->weight[type], *b = &below->weight[type];
    const int rows = weights[type].rows >> t->level & 1, x16 = weights[type].x16 >> t->level & 1;
    char name[64], group[72];
    snprintf(name, sizeof name, "%s_%s", weights[type].format, qk_level_name(t->level));
    if (rows != (strcmp(w->name, name) == 0))
        ck_error("%s is %s, but the kernel is %s", name, rows ? "promised" : "not promised", w->name);
    check_kernel(name, rows, w->matmul != b->matmul, ck_compared(w->name, (ck_fn)w->matmul));
    snprintf(group, sizeof group, "x16_%s", w->name);
    check_kernel(group, x16, w->matmul16 != b->matmul16, ck_compared(group, (ck_fn)w->matmul16));
}

static ck_fn op_of(const qk_table *t, int i) {
    ck_fn fn;
    memcpy(&fn, (const char *)t + ops[i].at, sizeof fn);
    return fn;
}

/* Every pointer after the weights and the KV formats must have a row. */
static void check_ops_known(void) {
    for (size_t at = offsetof(qk_table, quantize); at < sizeof(qk_table); at += sizeof(ck_fn)) {
        int known = 0;
        for (int i = 0; i < N_OPS; i++) known |= ops[i].at == at;
        if (!known)
            ck_error("operation %zu behind quantize is not in ck_grid.c",
                     (at - offsetof(qk_table, quantize)) / sizeof(ck_fn));
    }
}

/* The level below this one. */
static qk_level level_below(qk_level level) {
    const int first = level == QK_LEVEL_SSE42 || level == QK_LEVEL_NEON || level == QK_LEVEL_WASM;
    return first ? QK_LEVEL_REF : (qk_level)(level - 1);
}

static void check_grid(const qk_table *t, int arg) {
    qk_table below;
    (void)arg;
    qk_table_init(&below, level_below(t->level));
    for (int type = 0; type < QK_TYPE_N; type++) check_weight(t, &below, type);
    for (int i = 0; i < N_OPS; i++)
        check_kernel(ops[i].name, ops[i].levels >> t->level & 1, op_of(t, i) != op_of(&below, i),
                     ck_compared(ops[i].name, op_of(t, i)));
}

/* The reference always has all of them. */
static void check_reference(const qk_table *t, int arg) {
    (void)arg;
    for (int type = 0; type < QK_TYPE_N; type++) {
        const qk_weight_ops *w = &t->weight[type];
        char name[64], group[72];
        snprintf(name, sizeof name, "%s_ref", weights[type].format);
        snprintf(group, sizeof group, "x16_%s", name);
        if (strcmp(w->name, name) != 0 || !ck_compared(name, (ck_fn)w->matmul))
            ck_error("%s is missing or was never compared with the truth", name);
        if (w->act != QK_ACT_F32 && !ck_compared(group, (ck_fn)w->matmul16))
            ck_error("%s is missing or was never compared", group);
    }
    for (int i = 0; i < N_OPS; i++)
        if (!ck_compared(ops[i].name, op_of(t, i)))
            ck_error("%s was never compared with the truth", ops[i].name);
    check_ops_known();
}

/* The last test: it depends on the others. */
void ck_test_grid(const qk_table *t) {
    char name[32];
    snprintf(name, sizeof name, "grid_%s", qk_level_name(t->level));
    ck_check(name, NULL, t->level == QK_LEVEL_REF ? check_reference : check_grid, t, 0);
}
