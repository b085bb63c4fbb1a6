/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2): keys and values of all heads are products
 * of one short vector per position, the latent. With attn_k_b and attn_v_b these products move to the
 * query and the output, and only the latent and one rotated key are cached; with attn_kv_b, as in older
 * files, all heads are cached. */
#ifndef QSF_MODEL_MLA_H
#define QSF_MODEL_MLA_H

#include "src/model/indexer.h"

typedef struct QsfMlaSpec {
    uint32_t heads;
    uint32_t kv_lora;    /* elements of the latent */
    uint32_t nope, rope; /* elements of a query head that are not rotated, and then those that are */
    uint32_t v_dim;      /* elements of an output head */
    uint32_t table;      /* rotation, or QSF_NONE */
    float scale;         /* of the scores */
    uint32_t window;     /* as in QsfAttentionStep */
    QsfActKind gate;     /* the output is multiplied by this function of attn_gate, a number for each head or
                            element; NONE: it is not */
    bool maybe_gate;     /* where the tensor exists */
    bool k_norm;         /* the rotated key is normalized first: attn_k_norm */
    const QsfIndexer *indexer; /* of this block; NULL = none */
    QsfSlice selected;         /* the positions that the last indexer chose; none = all are read */
    bool temperature;          /* queries are scaled by position (qsf_build_temperature) */
} QsfMlaSpec;

/* Reads the sizes: attention.kv_lora_rank, key_length_mla and value_length_mla (or key_length and
 * value_length), rope.dimension_count. Sets no rotation, no temperature, and scores / sqrt(nope + rope). */
void qsf_mla_read(QsfBuilder *b, QsfMlaSpec *m);
/* Appends the attention of the current block up to the matrix attn_output, which is the caller's.
 * Returns a buffer (heads, v_dim), and sets m->selected where there is an indexer. Tensors: attn_q, or
 * attn_q_a, attn_q_a_norm and attn_q_b (attention.q_lora_rank); attn_kv_a_mqa, attn_kv_a_norm;
 * attn_k_b and attn_v_b, or attn_kv_b. */
QsfSlice qsf_build_mla(QsfBuilder *b, QsfMlaSpec *m, QsfSlice in);

#endif
