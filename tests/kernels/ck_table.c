/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table itself: complete at every level, correct names, type numbers and level names that map both
 * ways. */
#include <stdio.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

static int ends_with(const char *s, const char *tail) {
    const size_t n = strlen(s), m = strlen(tail);
    return n > m && strcmp(s + n - m, tail) == 0 && s[n - m - 1] == '_';
}

/* A kernel of a level above the table's own would crash on the CPU the table is for. */
static void check_name(const qk_table *t, int type) {
    const char *name = t->weight[type].name;
    int named = 0;
    for (int l = 0; l < QK_LEVEL_N; l++)
        if (ends_with(name, qk_level_name((qk_level)l))) {
            named = 1;
            if (l > (int)t->level) ck_error("%s in the table of %s", name, qk_level_name(t->level));
        }
    if (!named) ck_error("%s does not end with an ISA level", name);
    for (int other = 0; other < type; other++)
        if (strcmp(name, t->weight[other].name) == 0)
            ck_error("%s stands for types %d and %d", name, other, type);
}

static void check_weights(const qk_table *t) {
    for (int type = 0; type < QK_TYPE_N; type++) {
        const qk_weight_ops *w = &t->weight[type];
        if (!w->name || !w->matmul || !w->dequant || w->act < 0 || w->act >= QK_ACT_N) {
            ck_error("weight type %d is incomplete", type);
            continue;
        }
        check_name(t, type);
        if (qk_type_of(qk_type_ggml((qk_type)type)) != (qk_type)type)
            ck_error("weight type %d: GGML number does not map back", type);
    }
    if (qk_type_of(4) != QK_NONE || qk_type_of(0xffffffffu) != QK_NONE)
        ck_error("an unknown GGML type maps to a kernel type");
}

static void check_ops(const qk_table *t) {
    const ck_fn ops[] = {
        (ck_fn)t->matmul_exact,
        (ck_fn)t->rms_norm,
        (ck_fn)t->layer_norm,
        (ck_fn)t->rope_pairs_batch,
        (ck_fn)t->rope_halves_batch,
        (ck_fn)t->swiglu_mul,
        (ck_fn)t->xielu_mul,
        (ck_fn)t->add,
        (ck_fn)t->mul,
        (ck_fn)t->scale,
        (ck_fn)t->lerp,
        (ck_fn)t->softcap,
        (ck_fn)t->thin_f16,
        (ck_fn)t->thin_f32,
        (ck_fn)t->mix_streams,
        (ck_fn)t->correct_streams,
        (ck_fn)t->keep_above,
        (ck_fn)t->l2_norm,
        (ck_fn)t->argmax,
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (!ops[i]) ck_error("operation %zu is missing", i);
    for (int i = 0; i < QK_GATE_N; i++)
        if (!t->gate[i]) ck_error("activation %d is missing", i);
    for (int i = 0; i < QK_ACT_N; i++)
        if (!t->quantize[i]) ck_error("quantize %d is missing", i);
    for (int i = 0; i < QK_KV_N; i++) {
        const qk_kv_ops *kv = &t->kv[i];
        if (!kv->name || !kv->tile_bytes || !kv->store || !kv->load || !kv->copy || !kv->attend ||
            !kv->attend_span || !kv->merge)
            ck_error("KV format %d is incomplete", i);
    }
}

static void check_table(const qk_table *t, int arg) {
    (void)arg;
    check_weights(t);
    check_ops(t);
    for (int l = 0; l < QK_LEVEL_N; l++)
        if (qk_level_parse(qk_level_name((qk_level)l)) != (qk_level)l)
            ck_error("level %d: its word does not map back", l);
    if (qk_level_parse("avx") != QK_LEVEL_UNKNOWN || qk_level_parse(NULL) != QK_LEVEL_UNKNOWN)
        ck_error("an unknown level word is accepted");
    for (int act = 0; act < QK_ACT_N; act++)
        for (size_t k = 256; k < 8192; k += 256)
            if (qk_act_bytes((qk_act)act, k) % 64 || qk_act_bytes((qk_act)act, k) < k)
                ck_error("activation kind %d: %zu elements take %zu bytes", act, k,
                         qk_act_bytes((qk_act)act, k));
}

void ck_test_table(const qk_table *t) {
    char name[32];
    snprintf(name, sizeof name, "table_%s", qk_level_name(t->level));
    ck_check(name, NULL, check_table, t, 0);
}
