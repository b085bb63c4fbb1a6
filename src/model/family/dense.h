/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A dense transformer while its program is built. */
#ifndef QSF_MODEL_FAMILY_DENSE_H
#define QSF_MODEL_FAMILY_DENSE_H

#include "src/model/family/families.h"

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
} QsfDenseModel;

/* ---- a whole model ---- */

/* Sets the numbers of a model without any special keys, and refuses experts in a family without. Keys of a
 * family's own are read after this. */
void qsf_dense_init(QsfDenseModel *m, QsfBuilder *b);
/* dense_numbers.c: reads the keys that the family's row names, and adds the tables of rotation. */
void qsf_dense_read(QsfDenseModel *m);
/* Embedding, blocks and head. A family with blocks of its own calls the parts instead. */
void qsf_dense_build(QsfDenseModel *m);
void qsf_dense_embed(const QsfDenseModel *m);
void qsf_dense_head(const QsfDenseModel *m);

/* ---- parts of a block ---- */

/* out = norm(in) with the weight `name`, unless the family has none. */
void qsf_dense_norm(const QsfDenseModel *m, const char *name, QsfSlice in, QsfSlice out);
/* Adds a branch to the residual stream, after the norm `norm_name` in families with norms after branches. */
void qsf_dense_add(const QsfDenseModel *m, const char *norm_name, QsfSlice branch);

/* out = attention of block `block` over in; out may be in. These are its parts: */
void qsf_dense_attention(const QsfDenseModel *m, uint32_t block, QsfSlice in, QsfSlice out);
/* Rotates the heads of q and k; nothing in blocks without rotation. */
void qsf_dense_rotate(const QsfDenseModel *m, uint32_t block, const QsfQkv *x);
/* Clamps, normalizes and rotates q and k (v is only clamped) as the family's row says. */
void qsf_dense_heads(const QsfDenseModel *m, uint32_t block, const QsfQkv *x);
/* Returns what the family's attention does with them. */
QsfAttentionSpec qsf_dense_attention_spec(const QsfDenseModel *m, uint32_t block, const QsfQkv *x);

/* out = the current block's feed-forward network, with or without experts; out may be in. */
void qsf_dense_ffn(const QsfDenseModel *m, QsfSlice in, QsfSlice out);
/* One without experts, of ffn inner elements; only the experts. */
void qsf_dense_mlp(const QsfDenseModel *m, uint32_t ffn, QsfSlice in, QsfSlice out);
void qsf_dense_experts(const QsfDenseModel *m, QsfSlice in, QsfSlice out);

#endif
