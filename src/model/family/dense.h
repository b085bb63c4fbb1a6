/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A dense transformer while its program is built. */
#ifndef QSF_MODEL_FAMILY_DENSE_H
#define QSF_MODEL_FAMILY_DENSE_H

#include "src/model/family/families.h"
#include "src/model/indexer.h"

typedef struct QsfDenseModel {
    QsfBuilder *b;
    const QsfHparams *hp;
    const QsfDense *d;
    uint32_t rope, window_rope; /* tables; QSF_NONE = no rotation */
    uint32_t window;            /* of the blocks that have one; 0 = none has */
    bool has_window[QSF_MAX_LAYERS];
    bool no_rope[QSF_MAX_LAYERS]; /* blocks that do not rotate */
    uint32_t slopes;              /* of ALiBi */
    float score_scale, score_cap, embed_scale, residual_scale, logit_scale, logit_cap;
    float clamp;            /* of q, k and v; 0 = none */
    float value_scale;      /* of the output of attention */
    QsfSlice router_logits; /* of the current block, if they are made before its attention; none otherwise */
    QsfIndexer indexer;     /* of QSF_DENSE_BLOCK_INDEX */
    uint32_t first_indexed; /* block */
    QsfSlice embedding;     /* of QSF_DENSE_EMBED_SKIP */
} QsfDenseModel;

static inline bool qsf_dense_has(const QsfDenseModel *m, unsigned quirk) {
    return (m->d->quirks & quirk) != 0;
}

/* dense_numbers.c: reads the keys, and adds the tables of rotation. */
void qsf_dense_read(QsfDenseModel *m);
/* dense_attention.c: out = attention of block `block` over in; out may be in. */
void qsf_dense_attention(const QsfDenseModel *m, uint32_t block, QsfSlice in, QsfSlice out);
/* dense_ffn.c: out = the feed-forward network of the current block, with or without experts; out may be in. */
void qsf_dense_ffn(const QsfDenseModel *m, QsfSlice in, QsfSlice out);
/* One without experts, of ffn inner elements; only the experts. */
void qsf_dense_mlp(const QsfDenseModel *m, uint32_t ffn, QsfSlice in, QsfSlice out);
void qsf_dense_experts(const QsfDenseModel *m, QsfSlice in, QsfSlice out);
/* The logits of a router that reads the block's input (QsfMoeRow.early_router); none, if it does not. */
QsfSlice qsf_dense_early_router(const QsfDenseModel *m, QsfSlice in);

#endif
