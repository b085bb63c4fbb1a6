/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A tiny complete Mamba model with random weights (F32): no tensor of its blocks is one that a llama has, except the
 * norm. Names and shapes: ggml-org/llama.cpp gguf-py. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/gguf_build.h"

enum { HIDDEN = 64, INNER = 128, STATE = 16, RANK = 4, KERNEL = 4, VOCAB = 300, LAYERS = 2 };

typedef struct Shape {
    const char *name;
    uint32_t n_dims;
    uint64_t ne[2];
    float scale, bias; /* of the values: bias + scale * [-1, 1) */
} Shape;

static const Shape in_layer[] = {
    { "attn_norm.weight", 1, { HIDDEN }, 0.1f, 1 },
    { "ssm_in.weight", 2, { HIDDEN, 2 * INNER }, 0.2f, 0 },
    { "ssm_conv1d.weight", 2, { KERNEL, INNER }, 0.5f, 0 },
    { "ssm_conv1d.bias", 1, { INNER }, 0.1f, 0 },
    { "ssm_x.weight", 2, { INNER, RANK + 2 * STATE }, 0.2f, 0 },
    { "ssm_dt.weight", 2, { RANK, INNER }, 0.5f, 0 },
    { "ssm_dt.bias", 1, { INNER }, 0.5f, 0 },
    { "ssm_a", 2, { STATE, INNER }, 0.5f, -1 },
    { "ssm_d", 1, { INNER }, 0.5f, 1 },
    { "ssm_out.weight", 2, { INNER, HIDDEN }, 0.2f, 0 },
};
static const Shape of_model[] = {
    { "token_embd.weight", 2, { HIDDEN, VOCAB }, 1, 0 },
    { "output_norm.weight", 1, { HIDDEN }, 0.1f, 1 },
};

static float next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

static int add(QsfGgufBuild *b, const char *prefix, const Shape *s, uint64_t *state) {
    char name[64];
    const uint64_t n = s->ne[0] * (s->n_dims > 1 ? s->ne[1] : 1);
    float *v = malloc(n * sizeof *v);
    if (v == NULL) return -1;
    for (uint64_t i = 0; i < n; i++) v[i] = s->bias + s->scale * next(state);
    (void)snprintf(name, sizeof name, "%s%s", prefix, s->name);
    qsf_gb_tensor(b, name, 0, s->n_dims, s->ne, v, n * sizeof *v);
    free(v);
    return 0;
}

int qsf_test_write_tiny_mamba(const char *path, uint64_t seed) {
    static const struct {
        const char *key;
        uint32_t v;
    } numbers[] = { { "mamba.block_count", LAYERS },      { "mamba.embedding_length", HIDDEN },
                    { "mamba.feed_forward_length", 0 },   { "mamba.attention.head_count", 0 },
                    { "mamba.context_length", 256 },      { "mamba.ssm.conv_kernel", KERNEL },
                    { "mamba.ssm.inner_size", INNER },    { "mamba.ssm.state_size", STATE },
                    { "mamba.ssm.time_step_rank", RANK }, { "mamba.vocab_size", VOCAB } };
    QsfGgufBuild b = { 0 };
    uint64_t state = seed;
    int rc = 0;
    qsf_gb_str(&b, "general.architecture", "mamba");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        qsf_gb_u32(&b, numbers[i].key, numbers[i].v);
    qsf_gb_f32(&b, "mamba.attention.layer_norm_rms_epsilon", 1e-5f);
    qsf_gb_tiny_vocab(&b, VOCAB);
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++) rc |= add(&b, "", &of_model[i], &state);
    for (unsigned l = 0; l < LAYERS; l++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof prefix, "blk.%u.", l);
        for (size_t i = 0; i < sizeof in_layer / sizeof *in_layer; i++)
            rc |= add(&b, prefix, &in_layer[i], &state);
    }
    if (rc == 0) rc = qsf_gb_write(&b, path);
    qsf_gb_free(&b);
    return rc;
}
