/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MiniMax M3: in the blocks after the leading dense ones an indexer chooses the blocks of positions that
 * attention reads, for each KV head. Facts: ggml-org/llama.cpp src/models. */
#include "src/model/family/dense.h"
#include "src/model/indexer.h"

typedef struct M3 {
    QsfDenseModel dense;
    QsfIndexer indexer;
    uint32_t first_indexed; /* block */
} M3;

static void read_indexer(M3 *m) {
    QsfBuilder *b = m->dense.b;
    const QsfHparams *hp = m->dense.hp;
    qsf_indexer_read_blocks(b, m->dense.d->rope, &m->indexer);
    m->first_indexed = qsf_build_u32(b, "leading_dense_block_count", 0, 0, QSF_MAX_LAYERS);
    for (uint32_t i = m->first_indexed; i < hp->n_layers; i++) {
        if (hp->block[i].kv_heads == m->indexer.heads) continue;
        qsf_build_fail(b,
                       "metadata key '%s' is %u, expected %u like '%s.attention.head_count_kv' in block %u",
                       qsf_keys_name(&b->keys, "attention.indexer.head_count"), m->indexer.heads,
                       hp->block[i].kv_heads, b->keys.arch, i);
        return;
    }
}

static void attention(const M3 *m, uint32_t i) {
    QsfBuilder *b = m->dense.b;
    const QsfSlice branch = qsf_build_branch(b);
    const QsfQkv x = qsf_build_qkv(b, &m->dense.hp->block[i], branch);
    qsf_dense_heads(&m->dense, i, &x);
    QsfAttentionSpec attn = qsf_dense_attention_spec(&m->dense, i, &x);
    if (i >= m->first_indexed) {
        attn.selected = qsf_build_block_indexer(b, &m->indexer, branch);
        attn.step.block = m->indexer.block;
    }
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", qsf_build_attention(b, &attn), branch);
}

static void block(const M3 *m, uint32_t i) {
    QsfBuilder *b = m->dense.b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    qsf_build_block(b, i);
    qsf_dense_norm(&m->dense, "attn_norm", x, branch);
    attention(m, i);
    qsf_build_add(b, "residual", branch, x);
    qsf_dense_norm(&m->dense, "ffn_norm", x, branch);
    qsf_dense_ffn(&m->dense, branch, branch);
    qsf_build_add(b, "residual", branch, x);
}

void qsf_family_minimax_m3(QsfBuilder *b) {
    M3 m = { .first_indexed = 0 };
    qsf_dense_init(&m.dense, b);
    qsf_dense_read(&m.dense);
    read_indexer(&m);
    qsf_dense_embed(&m.dense);
    for (uint32_t i = 0; i < m.dense.hp->n_layers && !qsf_build_failed(b); i++) block(&m, i);
    qsf_dense_head(&m.dense);
}
