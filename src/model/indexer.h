/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Indexers choose the positions that attention reads (QsfIndexStep). */
#ifndef QSF_MODEL_INDEXER_H
#define QSF_MODEL_INDEXER_H

#include "src/model/build.h"

typedef struct QsfIndexer {
    uint32_t heads, dim;
    uint32_t n;            /* positions or blocks */
    uint32_t block, local; /* as in QsfIndexStep */
    uint32_t table;        /* rotation of the first elements */
    bool maybe_norm;       /* the norm of the key may have no weight */
} QsfIndexer;

/* Reads attention.indexer.head_count, key_length, top_k. */
void qsf_indexer_read(QsfBuilder *b, QsfRopeKind kind, QsfIndexer *x);
/* Reads attention.indexer.block_size and local_blocks too. */
void qsf_indexer_read_blocks(QsfBuilder *b, QsfRopeKind kind, QsfIndexer *x);
/* Appends an indexer of the current block and its cache; q_row: normalized output of attn_q_a. Returns the
 * selection. Tensors: indexer.attn_q_b, attn_k, k_norm, proj. */
QsfSlice qsf_build_indexer(QsfBuilder *b, const QsfIndexer *x, QsfSlice q_row, QsfSlice in);
/* The same with blocks. Tensors: indexer.q_proj, k_proj, q_norm, k_norm. */
QsfSlice qsf_build_block_indexer(QsfBuilder *b, const QsfIndexer *x, QsfSlice in);

#endif
