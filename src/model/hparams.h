/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hyperparameters, read from metadata and range-checked. After a successful read, no number below
 * can cause a division by zero, an overflow of a size or an index out of range. */
#ifndef QSF_MODEL_HPARAMS_H
#define QSF_MODEL_HPARAMS_H

#include "src/format/source.h"
#include "src/model/arch.h"

#define QSF_MAX_LAYERS 1024

typedef struct QsfHparams {
    const QsfArch *arch;
    char name[128];    /* general.name, cleaned for display; "" when absent */
    uint32_t n_layers; /* 1..QSF_MAX_LAYERS */
    uint32_t hidden;   /* embedding length */
    uint32_t n_heads;
    uint32_t n_kv_heads; /* divides n_heads */
    uint32_t head_dim;   /* even; of K and of V */
    uint32_t ffn;        /* feed-forward length */
    uint32_t n_vocab;
    uint32_t n_ctx_train;
    float norm_eps;
    uint32_t n_rot; /* rotated dimensions per head, even, <= head_dim */
    float rope_base;
    float rope_scale; /* linear: positions are divided by it; 1 = none */
} QsfHparams;

/* Reads and checks; QSF_E_MODEL names file, key and value. A vocabulary-only file (no tensors) is not
 * an error: it sets *vocab_only, and only arch (NULL if unknown) and name are filled. */
int qsf_hparams_read(QsfHparams *h, const QsfSource *src, bool *vocab_only, QsfErr *err);
/* The same for metadata without its tensors: the caller states whether there are weights. */
int qsf_hparams_of_meta(QsfHparams *h, const QsfSource *src, bool vocab_only, QsfErr *err);

#endif
