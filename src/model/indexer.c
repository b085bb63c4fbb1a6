/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lightning indexer (DeepSeek-AI 2025, DeepSeek-V3.2) and the one of MiniMax M3, which chooses blocks.
 * Keys and tensors: ggml-org/llama.cpp src/models. */
#include "src/model/indexer.h"

#include <math.h>

#include "src/model/rope.h"

#define KEY_NORM_EPS 1e-6f

void qsf_indexer_read(QsfBuilder *b, QsfRopeKind kind, QsfIndexer *x) {
    *x = (QsfIndexer){ .heads = qsf_build_need_u32(b, "attention.indexer.head_count", 1, QSF_MAX_INDEX_HEADS),
                       .dim = qsf_build_need_u32(b, "attention.indexer.key_length", 2, QSF_MAX_HEAD_DIM),
                       .n = qsf_build_need_u32(b, "attention.indexer.top_k", 1, QSF_MAX_SELECTED) };
    if (qsf_build_failed(b)) return;
    if ((uint64_t)x->heads * x->dim > QSF_MAX_HIDDEN)
        qsf_build_fail(b, "an indexer with %u heads of %u elements is larger than supported", x->heads,
                       x->dim);
    x->table = qsf_rope_table(b, &(QsfRopeSpec){ .kind = kind,
                                                 .head_dim = x->dim,
                                                 .head_key = "attention.indexer.key_length",
                                                 .base_key = "rope.freq_base",
                                                 .base = 10000.0f });
}

void qsf_indexer_read_blocks(QsfBuilder *b, QsfRopeKind kind, QsfIndexer *x) {
    qsf_indexer_read(b, kind, x);
    x->block = qsf_build_need_u32(b, "attention.indexer.block_size", 1, QSF_MAX_SELECTED);
    x->local = qsf_build_need_u32(b, "attention.indexer.local_blocks", 0, QSF_MAX_SELECTED);
    if (!qsf_build_failed(b) && (uint64_t)x->n * x->block > QSF_MAX_SELECTED)
        qsf_build_fail(b, "an indexer that chooses %u blocks of %u positions is not supported", x->n,
                       x->block);
}

/* Stores the key and chooses. */
static void index_step(QsfBuilder *b, const QsfIndexer *x, QsfSlice q, QsfSlice w, QsfSlice k, QsfSlice out) {
    const uint32_t kv = qsf_build_kv_shared(b, 1, x->dim);
    QsfStep *s = qsf_build_step(b, QSF_OP_KV_STORE, "indexer_store", k, qsf_slice_none());
    if (s != NULL) s->u.kv = kv;
    s = qsf_build_step(b, QSF_OP_INDEX, "indexer", q, out);
    if (s == NULL) return;
    s->in2 = w;
    s->u.index = (QsfIndexStep){ kv, x->heads, x->n, x->block, x->local };
}

/* The norm of the key, whose weight may be missing in some architectures. */
static void key_norm(QsfBuilder *b, const QsfIndexer *x, QsfSlice k) {
    const bool weight = !x->maybe_norm || qsf_build_maybe(b, "indexer.k_norm.weight");
    const uint32_t bias = weight ? QSF_NONE : qsf_build_param(b, QSF_OPTIONAL, x->dim, "indexer.k_norm.bias");
    qsf_build_norm(b, QSF_NORM_LAYER, weight ? "indexer.k_norm" : NULL, k, k);
    if (qsf_build_failed(b)) return;
    b->p.step[b->p.n_steps - 1].u.norm.eps = KEY_NORM_EPS;
    if (!weight) b->p.step[b->p.n_steps - 1].u.norm.bias = bias;
}

QsfSlice qsf_build_indexer(QsfBuilder *b, const QsfIndexer *x, QsfSlice q_row, QsfSlice in) {
    const QsfSlice q = qsf_build_buffer(b, x->heads * x->dim), k = qsf_build_buffer(b, x->dim),
                   w = qsf_build_buffer(b, x->heads), out = qsf_build_buffer(b, x->n);
    const QsfMatrixSpec mats[] = { { "indexer.attn_k", k, QSF_REQUIRED },
                                   { "indexer.proj", w, QSF_REQUIRED } };
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "indexer.attn_q_b", q_row, q);
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, mats, 2, QSF_ACT_NONE);
    key_norm(b, x, k);
    qsf_build_rope(b, x->table, q, x->heads, x->dim, 0);
    qsf_build_rope(b, x->table, k, 1, x->dim, 0);
    qsf_build_scale(b, "indexer_scale", w, 1.0f / sqrtf((float)x->heads * (float)x->dim));
    index_step(b, x, q, w, k, out);
    return out;
}

QsfSlice qsf_build_block_indexer(QsfBuilder *b, const QsfIndexer *x, QsfSlice in) {
    const QsfSlice q = qsf_build_buffer(b, x->heads * x->dim), k = qsf_build_buffer(b, x->dim),
                   out = qsf_build_buffer(b, x->heads * x->n);
    const QsfMatrixSpec mats[] = { { "indexer.q_proj", q, QSF_REQUIRED },
                                   { "indexer.k_proj", k, QSF_REQUIRED } };
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, mats, 2, QSF_ACT_NONE);
    qsf_build_head_norm(b, QSF_NORM_RMS, "indexer.q_norm", q, x->heads, false);
    qsf_build_norm(b, QSF_NORM_RMS, "indexer.k_norm", k, k);
    qsf_build_rope(b, x->table, q, x->heads, x->dim, 0);
    qsf_build_rope(b, x->table, k, 1, x->dim, 0);
    index_step(b, x, q, qsf_slice_none(), k, out);
    return out;
}
