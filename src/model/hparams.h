/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hyperparameters that most families have, read from metadata and range-checked. After a successful read, no
 * number below can cause a division by zero, an overflow of a size or an index out of range. Families read
 * what else they need while they build their program (build.h). */
#ifndef QSF_MODEL_HPARAMS_H
#define QSF_MODEL_HPARAMS_H

#include "src/file/source.h"
#include "src/model/family.h"
#include "src/model/reads.h"

#define QSF_MAX_LAYERS   1024u
#define QSF_MAX_HIDDEN   (1u << 20)
#define QSF_MAX_HEADS    (1u << 14)
#define QSF_MAX_HEAD_DIM 4096u
#define QSF_MAX_FFN      (1u << 22)

/* Sizes that differ from block to block in some families; 0 where a block has none. */
typedef struct QsfBlockSizes {
    uint32_t heads, kv_heads; /* kv_heads divides heads */
    uint32_t ffn;
} QsfBlockSizes;

typedef struct QsfHparams {
    const QsfFamily *arch;
    char name[128];    /* general.name, cleaned for display; "" when absent */
    uint32_t n_layers; /* blocks that are run: 1..QSF_MAX_LAYERS */
    uint32_t n_named;  /* blocks in the file that are run; n_layers is a multiple: block i has
                          the names of i % n_named */
    uint32_t n_extra;  /* blocks after them in the file, which predict further tokens and have programs
                          of their own (nextn_predict_layers) */
    uint32_t hidden;   /* embedding length */
    uint32_t n_heads;  /* maximum over the blocks, as are n_kv_heads and ffn */
    uint32_t n_kv_heads;
    uint32_t head_dim, v_dim; /* of K and of V; even */
    uint32_t ffn;             /* feed-forward length */
    uint32_t n_vocab;
    uint32_t n_ctx_train;
    QsfNormKind norm; /* of the blocks */
    float norm_eps;
    QsfBlockSizes block[QSF_MAX_LAYERS]; /* (n_layers + n_extra) */
} QsfHparams;

/* Reads and checks, and records what it looks for in *reads, which may be NULL; QSF_E_MODEL names file, key
 * and value. A vocabulary-only file (no tensors) is not an error: it sets *vocab_only, and only arch (NULL if
 * unknown) and name are filled. */
int qsf_hparams_read(QsfHparams *h, const QsfSource *src, bool *vocab_only, QsfReads *reads, QsfErr *err);
/* The same for metadata without its tensors: the caller states whether there are weights. */
int qsf_hparams_of_meta(QsfHparams *h, const QsfSource *src, bool vocab_only, QsfReads *reads, QsfErr *err);
/* Checks the sizes of next-token block k < n_extra, which reading does not, and lets the maxima count it.
 * QSF_E_MODEL. */
int qsf_hparams_nextn(QsfHparams *h, const QsfSource *src, uint32_t k, QsfErr *err);

#endif
