/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tiny models with next-token blocks and random weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/gguf_build.h"

enum { VOCAB = 300, MOST_HIDDEN = 128, HEADS = 4, FFN = 96, BLOCKS = 2 };

static uint64_t seed;
static uint32_t hidden, vocab; /* of the model that is being written */

static float next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((int64_t)(seed >> 33) % 2001 - 1000) / 1000.0f;
}

typedef enum Fill { RANDOM, ZEROS, FIRST_HALF } Fill; /* FIRST_HALF: the identity, then zeros */

static void matrix(QsfGgufBuild *b, const char *name, uint32_t k, uint32_t n, Fill fill) {
    float *x = calloc((size_t)k * n, sizeof *x);
    if (x == NULL) abort();
    for (size_t i = 0; i < (size_t)k * n; i++)
        x[i] = fill == RANDOM       ? next() / sqrtf((float)k)
               : fill == FIRST_HALF ? (float)(i % k == i / k)
                                    : 0.0f;
    qsf_gb_tensor(b, name, 0, 2, (uint64_t[]){ k, n }, x, (size_t)k * n * sizeof *x);
    free(x);
}

static void vector(QsfGgufBuild *b, const char *name, uint32_t n, float spread) {
    float x[MOST_HIDDEN];
    for (uint32_t i = 0; i < n; i++) x[i] = 1.0f + spread * next();
    qsf_gb_tensor(b, name, 0, 1, (uint64_t[]){ n }, x, n * sizeof *x);
}

static const char *named(uint32_t block, const char *name) {
    static char buf[64];
    snprintf(buf, sizeof buf, "blk.%u.%s.weight", block, name);
    return buf;
}

static void block(QsfGgufBuild *b, uint32_t i, const QsfTinyNextn *k) {
    const Fill out = k->copies ? ZEROS : RANDOM;
    const uint32_t dim = hidden / HEADS;
    vector(b, named(i, "attn_norm"), hidden, 0.1f);
    matrix(b, named(i, "attn_q"), hidden, hidden, RANDOM);
    matrix(b, named(i, "attn_k"), hidden, hidden / 2, RANDOM);
    matrix(b, named(i, "attn_v"), hidden, hidden / 2, RANDOM);
    vector(b, named(i, "attn_q_norm"), dim, 0.1f);
    vector(b, named(i, "attn_k_norm"), dim, 0.1f);
    matrix(b, named(i, "attn_output"), hidden, hidden, out);
    vector(b, named(i, "ffn_norm"), hidden, 0.1f);
    matrix(b, named(i, "ffn_gate"), hidden, FFN, RANDOM);
    matrix(b, named(i, "ffn_up"), hidden, FFN, RANDOM);
    matrix(b, named(i, "ffn_down"), FFN, hidden, out);
    if (i < BLOCKS) return;
    matrix(b, named(i, "nextn.eh_proj"), 2 * hidden, hidden, k->copies ? FIRST_HALF : RANDOM);
    vector(b, named(i, "nextn.enorm"), hidden, k->copies ? 0 : 0.1f);
    vector(b, named(i, "nextn.hnorm"), hidden, 0.1f);
}

int qsf_test_write_tiny_nextn(const char *path, const QsfTinyNextn *k) {
    QsfGgufBuild b = { .version = 3 };
    seed = k->seed > 0 ? k->seed : 7;
    vocab = k->vocab > 0 ? k->vocab : VOCAB;
    hidden = vocab > VOCAB ? MOST_HIDDEN : MOST_HIDDEN / 2;
    qsf_gb_str(&b, "general.architecture", "hy_v3");
    qsf_gb_u32(&b, "hy_v3.block_count", BLOCKS + k->announced);
    qsf_gb_u32(&b, "hy_v3.nextn_predict_layers", k->announced);
    qsf_gb_u32(&b, "hy_v3.context_length", 512);
    qsf_gb_u32(&b, "hy_v3.embedding_length", hidden);
    qsf_gb_u32(&b, "hy_v3.feed_forward_length", FFN);
    qsf_gb_u32(&b, "hy_v3.attention.head_count", HEADS);
    qsf_gb_u32(&b, "hy_v3.attention.head_count_kv", HEADS / 2);
    qsf_gb_f32(&b, "hy_v3.attention.layer_norm_rms_epsilon", 1e-5f);
    qsf_gb_tiny_vocab(&b, vocab);
    matrix(&b, "token_embd.weight", hidden, vocab, RANDOM);
    matrix(&b, "output.weight", hidden, vocab, RANDOM);
    vector(&b, "output_norm.weight", hidden, 0.1f);
    for (uint32_t i = 0; i < BLOCKS + k->extra; i++) block(&b, i, k);
    int rc = qsf_gb_write(&b, path);
    qsf_gb_free(&b);
    return rc;
}
