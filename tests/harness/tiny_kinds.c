/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tiny complete models with random weights (F32) that are not llamas: Mamba, whose blocks share only the norm
 * with a llama's tensors, and a mixture of experts. Names and shapes: ggml-org/llama.cpp gguf-py. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/gguf_build.h"

enum { HIDDEN = 64, INNER = 128, STATE = 16, RANK = 4, KERNEL = 4, VOCAB = 300, LAYERS = 2 };
enum { HEADS = 4, HEAD = HIDDEN / HEADS, FFN = 64, EXPERTS = QSF_TINY_EXPERTS, USED = 2 };

typedef struct Shape {
    const char *name; /* NULL: the end */
    uint32_t n_dims;
    uint64_t ne[3];
    float scale, bias; /* of the values: bias + scale * [-1, 1) */
    float last;        /* value of the last row instead, if it is not 0 */
} Shape;

typedef struct Number {
    const char *key; /* without the architecture; NULL: the end */
    uint32_t v;
} Number;

typedef struct Kind {
    const char *arch;
    const Number *numbers;
    const Shape *of_model, *in_layer;
} Kind;

static const Kind mamba = {
    "mamba",
    (const Number[]){ { "block_count", LAYERS },
                      { "embedding_length", HIDDEN },
                      { "feed_forward_length", 0 },
                      { "attention.head_count", 0 },
                      { "context_length", 256 },
                      { "ssm.conv_kernel", KERNEL },
                      { "ssm.inner_size", INNER },
                      { "ssm.state_size", STATE },
                      { "ssm.time_step_rank", RANK },
                      { "vocab_size", VOCAB },
                      { NULL, 0 } },
    (const Shape[]){ { "token_embd.weight", 2, { HIDDEN, VOCAB }, 1, 0, 0 },
                     { "output_norm.weight", 1, { HIDDEN }, 0.1f, 1, 0 },
                     { NULL, 0, { 0 }, 0, 0, 0 } },
    (const Shape[]){ { "attn_norm.weight", 1, { HIDDEN }, 0.1f, 1, 0 },
                     { "ssm_in.weight", 2, { HIDDEN, 2 * INNER }, 0.2f, 0, 0 },
                     { "ssm_conv1d.weight", 2, { KERNEL, INNER }, 0.5f, 0, 0 },
                     { "ssm_conv1d.bias", 1, { INNER }, 0.1f, 0, 0 },
                     { "ssm_x.weight", 2, { INNER, RANK + 2 * STATE }, 0.2f, 0, 0 },
                     { "ssm_dt.weight", 2, { RANK, INNER }, 0.5f, 0, 0 },
                     { "ssm_dt.bias", 1, { INNER }, 0.5f, 0, 0 },
                     { "ssm_a", 2, { STATE, INNER }, 0.5f, -1, 0 },
                     { "ssm_d", 1, { INNER }, 0.5f, 1, 0 },
                     { "ssm_out.weight", 2, { INNER, HIDDEN }, 0.2f, 0, 0 },
                     { NULL, 0, { 0 }, 0, 0, 0 } },
};

/* Hidden states are positive on average, so that the router's last row, which is negative, never wins. */
static const Kind experts = {
    "llama",
    (const Number[]){ { "block_count", LAYERS },
                      { "embedding_length", HIDDEN },
                      { "feed_forward_length", FFN },
                      { "attention.head_count", HEADS },
                      { "attention.head_count_kv", 2 },
                      { "rope.dimension_count", HEAD },
                      { "context_length", 256 },
                      { "expert_count", EXPERTS },
                      { "expert_used_count", USED },
                      { "vocab_size", VOCAB },
                      { NULL, 0 } },
    (const Shape[]){ { "token_embd.weight", 2, { HIDDEN, VOCAB }, 1, 1, 0 },
                     { "output_norm.weight", 1, { HIDDEN }, 0.1f, 1, 0 },
                     { "output.weight", 2, { HIDDEN, VOCAB }, 0.2f, 0, 0 },
                     { NULL, 0, { 0 }, 0, 0, 0 } },
    (const Shape[]){ { "attn_norm.weight", 1, { HIDDEN }, 0.8f, 1, 0 },
                     { "attn_q.weight", 2, { HIDDEN, HIDDEN }, 0.2f, 0, 0 },
                     { "attn_k.weight", 2, { HIDDEN, HIDDEN / 2 }, 0.2f, 0, 0 },
                     { "attn_v.weight", 2, { HIDDEN, HIDDEN / 2 }, 0.2f, 0, 0 },
                     { "attn_output.weight", 2, { HIDDEN, HIDDEN }, 0.1f, 0, 0 },
                     { "ffn_norm.weight", 1, { HIDDEN }, 0.8f, 1, 0 },
                     { "ffn_gate_inp.weight", 2, { HIDDEN, EXPERTS }, 0.2f, 0, -1 },
                     { NULL, 0, { 0 }, 0, 0, 0 } },
};

/* The three matrices of the experts of a layer; both first ones may be one tensor. */
static const Shape stacked[] = { { "ffn_gate_exps.weight", 3, { HIDDEN, FFN, EXPERTS }, 0.2f, 0, 0 },
                                 { "ffn_up_exps.weight", 3, { HIDDEN, FFN, EXPERTS }, 0.2f, 0, 0 },
                                 { "ffn_down_exps.weight", 3, { FFN, HIDDEN, EXPERTS }, 0.05f, 0, 0 },
                                 { NULL, 0, { 0 }, 0, 0, 0 } },
                   fused[] = { { "ffn_gate_up_exps.weight", 3, { HIDDEN, 2 * FFN, EXPERTS }, 0.2f, 0, 0 },
                               { "ffn_down_exps.weight", 3, { FFN, HIDDEN, EXPERTS }, 0.05f, 0, 0 },
                               { NULL, 0, { 0 }, 0, 0, 0 } },
                   shared[] = { { "ffn_gate_shexp.weight", 2, { HIDDEN, FFN }, 0.2f, 0, 0 },
                                { "ffn_up_shexp.weight", 2, { HIDDEN, FFN }, 0.2f, 0, 0 },
                                { "ffn_down_shexp.weight", 2, { FFN, HIDDEN }, 0.05f, 0, 0 },
                                { NULL, 0, { 0 }, 0, 0, 0 } };

static float next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

static uint64_t count(const Shape *s) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->n_dims; i++) n *= s->ne[i];
    return n;
}

static float *make_values(const Shape *s, uint64_t *state) {
    const uint64_t n = count(s);
    float *v = malloc(n * sizeof *v);
    if (v == NULL) return NULL;
    for (uint64_t i = 0; i < n; i++) v[i] = s->bias + s->scale * next(state);
    for (uint64_t i = 0; i < s->ne[0] && s->last < 0; i++) v[n - 1 - i] = s->last;
    return v;
}

static int add(QsfGgufBuild *b, const char *prefix, const Shape *s, uint64_t *state) {
    char name[64];
    float *v = make_values(s, state);
    if (v == NULL) return -1;
    (void)snprintf(name, sizeof name, "%s%s", prefix, s->name);
    qsf_gb_tensor(b, name, 0, s->n_dims, s->ne, v, count(s) * sizeof *v);
    free(v);
    return 0;
}

static int add_all(QsfGgufBuild *b, const char *prefix, const Shape *s, uint64_t *state) {
    int rc = 0;
    for (; s != NULL && s->name != NULL; s++) rc |= add(b, prefix, s, state);
    return rc;
}

/* The same values, in a tensor for each matrix, those of an expert one after the other. */
static int add_separate(QsfGgufBuild *b, const char *prefix, const Shape *s, uint64_t *state) {
    static const char *const part[] = { "gate", "up", "down" };
    float *v[3] = { NULL };
    char name[96];
    int rc = 0;
    for (unsigned i = 0; i < 3; i++) {
        v[i] = make_values(&s[i], state);
        if (v[i] == NULL) rc = -1;
    }
    for (uint32_t e = 0; rc == 0 && e < EXPERTS; e++) {
        for (unsigned i = 0; i < 3; i++) {
            const uint64_t n = s[i].ne[0] * s[i].ne[1];
            (void)snprintf(name, sizeof name, "%sffn_%s.%u.weight", prefix, part[i], e);
            qsf_gb_tensor(b, name, 0, 2, s[i].ne, v[i] + e * n, n * sizeof *v[i]);
        }
    }
    for (unsigned i = 0; i < 3; i++) free(v[i]);
    return rc;
}

/* more: in each layer, too; NULL-terminated. separate: the first of them as separate tensors. */
static int write_kind(const char *path, const Kind *k, const Shape *const *more, bool separate,
                      uint64_t seed) {
    QsfGgufBuild b = { 0 };
    uint64_t state = seed;
    char key[64];
    int rc = 0;
    qsf_gb_str(&b, "general.architecture", k->arch);
    for (const Number *n = k->numbers; n->key != NULL; n++) {
        (void)snprintf(key, sizeof key, "%s.%s", k->arch, n->key);
        qsf_gb_u32(&b, key, n->v);
    }
    (void)snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", k->arch);
    qsf_gb_f32(&b, key, 1e-5f);
    qsf_gb_tiny_vocab(&b, VOCAB);
    rc |= add_all(&b, "", k->of_model, &state);
    for (unsigned l = 0; l < LAYERS; l++) {
        (void)snprintf(key, sizeof key, "blk.%u.", l);
        rc |= add_all(&b, key, k->in_layer, &state);
        for (const Shape *const *m = more; m != NULL && *m != NULL; m++)
            rc |= separate && m == more ? add_separate(&b, key, *m, &state) : add_all(&b, key, *m, &state);
    }
    if (rc == 0) rc = qsf_gb_write(&b, path);
    qsf_gb_free(&b);
    return rc;
}

int qsf_test_write_tiny_mamba(const char *path, uint64_t seed) {
    return write_kind(path, &mamba, NULL, false, seed);
}

int qsf_test_write_tiny_experts(const char *path, uint64_t seed) {
    return qsf_test_write_tiny_experts_as(path, seed, QSF_TINY_STACKED, false);
}

int qsf_test_write_tiny_experts_as(const char *path, uint64_t seed, QsfTinyLayout layout, bool with_shared) {
    const Shape *const of[] = {
        [QSF_TINY_STACKED] = stacked, [QSF_TINY_FUSED] = fused, [QSF_TINY_SEPARATE] = stacked
    };
    const Shape *const more[] = { of[layout], with_shared ? shared : NULL, NULL };
    return write_kind(path, &experts, more, layout == QSF_TINY_SEPARATE, seed);
}
