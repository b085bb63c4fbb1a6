/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Model families: one row has everything the forward pass needs to run one. A new family is a new
 * row and, if it needs something new, a new flag that the forward pass implements. */
#ifndef QSF_MODEL_ARCH_H
#define QSF_MODEL_ARCH_H

#include <stdbool.h>

typedef enum QsfNormKind { QSF_NORM_RMS, QSF_NORM_LAYER } QsfNormKind;
typedef enum QsfActKind { QSF_ACT_SILU, QSF_ACT_GELU, QSF_ACT_RELU2 } QsfActKind;
typedef enum QsfRopeKind {
    QSF_ROPE_NONE,
    QSF_ROPE_PAIRS, /* adjacent pairs (2i, 2i+1): GGUF "llama" weights are permuted for it */
    QSF_ROPE_HALVES /* (i, i + n_rot/2) */
} QsfRopeKind;

typedef struct QsfArch {
    const char *name; /* general.architecture, also the metadata prefix */
    QsfNormKind norm;
    QsfActKind act;
    QsfRopeKind rope;
    bool gated_ffn;        /* down(act(gate(x)) * up(x)); otherwise down(act(up(x))) */
    float embed_scale_pow; /* embeddings times hidden^this: 0 = unscaled, 0.5 for Gemma */
} QsfArch;

/* Finds a family by name; NULL if unknown. */
const QsfArch *qsf_arch_find(const char *name);
/* Returns row i, NULL past the end. */
const QsfArch *qsf_arch_at(unsigned i);

#endif
