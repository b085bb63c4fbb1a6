/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What Gemma 3n and Gemma 4 share: attention with windows and shared caches, and inputs of each block that
 * come from the tokens (per-layer embeddings). */
#ifndef QSF_MODEL_FAMILY_GEMMA_H
#define QSF_MODEL_FAMILY_GEMMA_H

#include "src/model/family/families.h"

/* Heads of the blocks without a window (0) and with one (1). */
typedef struct QsfGemmaHeads {
    uint32_t k_dim, v_dim, rope;
} QsfGemmaHeads;

typedef struct QsfGemma {
    QsfBuilder *b;
    const QsfHparams *hp;
    uint32_t window;
    bool has_window[QSF_MAX_LAYERS];
    QsfGemmaHeads heads[2];
    uint32_t n_own; /* this block and later ones use the caches of blocks before it */
    uint32_t kv[QSF_MAX_LAYERS];
    uint32_t input_width; /* of a block's input from the token; 0 = none */
    QsfSlice inputs;      /* (n_layers, input_width) */
} QsfGemma;

/* Reads attention.sliding_window and attention.sliding_window_pattern: which blocks have a window, or every
 * how many one has none; period is its default, 0 = the key must be there. */
void qsf_gemma_windows(QsfGemma *m, uint32_t period);

/* The embedding, scaled. */
void qsf_gemma_embed(QsfGemma *m);

/* The inputs of all blocks: rows of per_layer_token_embd plus a projection of the embedding.
 * Nothing for width 0. */
void qsf_gemma_inputs(QsfGemma *m, uint32_t width);
/* out = norm(proj(gelu(inp_gate(in)) * the block's input)). */
void qsf_gemma_block_input(const QsfGemma *m, uint32_t block, QsfSlice in, QsfSlice out);

/* out = attention of in, without norms around it. */
void qsf_gemma_attention(QsfGemma *m, uint32_t block, QsfSlice in, QsfSlice out);

/* Adds ACT: gate = gelu(gate) * up. */
void qsf_gemma_geglu(const QsfGemma *m, QsfSlice gate, QsfSlice up);

#endif
