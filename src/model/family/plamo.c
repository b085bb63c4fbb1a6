/* SPDX-License-Identifier: GPL-3.0-or-later */
/* PLaMo 2: blocks without KV heads have a form of Mamba-2 whose time step, B and C are made from the
 * convolved input and normalized. Facts: ggml-org/llama.cpp src/models/plamo2.cpp. */
#include <math.h>

#include "src/model/family/families.h"
#include "src/model/family/mamba.h"
#include "src/model/rope.h"

typedef struct Plamo {
    QsfBuilder *b;
    const QsfHparams *hp;
    QsfSsm ssm;
    uint32_t rope;
} Plamo;

static void read_keys(Plamo *m) {
    QsfBuilder *b = m->b;
    qsf_ssm_read_heads(b, &m->ssm);
    if (qsf_build_u32(b, "ssm.group_count", 0, 0, UINT32_MAX) != 0)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "is not 0: groups are not supported in this architecture"));
    m->rope = QSF_NONE;
    if (m->hp->n_kv_heads == 0) return;
    m->rope = qsf_rope_table(b, &(QsfRopeSpec){ .kind = QSF_ROPE_HALVES,
                                                .head_dim = m->hp->head_dim,
                                                .base_key = "rope.freq_base",
                                                .base = 10000.0f });
}

/* ---- mixers ---- */

/* ssm_x gives B, C and what the time step of each head is made of. */
static void scan(const Plamo *m, QsfSlice x) {
    QsfBuilder *b = m->b;
    const uint32_t n = m->ssm.n, heads = m->ssm.rank;
    const uint32_t low = m->hp->hidden / 16 > 64 ? m->hp->hidden / 16 : 64; /* elements of the time step */
    const QsfSlice bct = qsf_build_buffer(b, 2 * n + low), dt = qsf_build_buffer(b, heads);
    const QsfSlice parts[] = { qsf_slice_part(bct, 0, n), qsf_slice_part(bct, n, n),
                               qsf_slice_part(bct, 2 * n, low) };
    static const char *const names[] = { "ssm_b_norm", "ssm_c_norm", "ssm_dt_norm" };
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_x", x, bct);
    for (unsigned i = 0; i < 3; i++) qsf_build_norm(b, QSF_NORM_RMS, names[i], parts[i], parts[i]);
    qsf_build_require(b, "ssm_dt.bias");
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_dt", parts[2], dt);
    qsf_build_scan(b, &(QsfScanSpec){ .op = QSF_OP_SCAN2,
                                      .x = x,
                                      .dt = dt,
                                      .bc = qsf_slice_part(bct, 0, 2 * n),
                                      .out = x,
                                      .heads = heads,
                                      .n = n,
                                      .groups = 1 });
}

/* Each head of ssm_in is a gate z and an input x. */
static void mamba(const Plamo *m) {
    QsfBuilder *b = m->b;
    const uint32_t inner = m->ssm.inner, heads = m->ssm.rank;
    if (qsf_build_failed(b)) return;
    const uint32_t dim = inner / heads;
    const QsfSlice both = qsf_build_buffer(b, 2 * inner), z = qsf_build_buffer(b, inner),
                   x = qsf_build_buffer(b, inner), branch = qsf_build_branch(b);
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "ssm_in", branch, both);
    qsf_build_heads(b, "z", both, z, heads, dim, 2 * dim, dim);
    qsf_build_heads(b, "x", qsf_slice_part(both, dim, 2 * inner - dim), x, heads, dim, 2 * dim, dim);
    qsf_build_conv(b, "ssm_conv1d", x, x, m->ssm.kernel, QSF_ACT_SILU);
    scan(m, x);
    qsf_build_act(b, "ssm_gate", QSF_ACT_SILU, x, z);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "ssm_out", z, branch);
}

static void attention(const Plamo *m, const QsfBlockSizes *n) {
    QsfBuilder *b = m->b;
    const uint32_t dim = m->hp->head_dim;
    const QsfQkv x = qsf_build_qkv(b, n, qsf_build_branch(b));
    qsf_build_head_norm(b, QSF_NORM_RMS, "attn_q_norm", x.q, n->heads, true);
    qsf_build_head_norm(b, QSF_NORM_RMS, "attn_k_norm", x.k, n->kv_heads, true);
    qsf_build_rope(b, m->rope, x.q, n->heads, dim, 0);
    qsf_build_rope(b, m->rope, x.k, n->kv_heads, dim, 0);
    const QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, 1.0f / sqrtf((float)m->hp->v_dim)),
                                    .kv_heads = n->kv_heads,
                                    .k_dim = dim,
                                    .v_dim = m->hp->v_dim,
                                    .q = x.q,
                                    .k = x.k,
                                    .v = x.v };
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", qsf_build_attention(b, &attn),
                      qsf_build_branch(b));
}

/* ---- blocks ---- */

static void feed_forward(const Plamo *m, uint32_t ffn) {
    QsfBuilder *b = m->b;
    const QsfSlice both = qsf_build_buffer(b, 2 * ffn), gate = qsf_slice_part(both, 0, ffn);
    qsf_build_project(b, QSF_MATMUL_FFN_IN, "ffn_up", qsf_build_branch(b), both);
    qsf_build_act(b, "ffn_act", QSF_ACT_SILU, qsf_slice_part(both, ffn, ffn), gate);
    qsf_build_project(b, QSF_MATMUL_FFN_OUT, "ffn_down", gate, qsf_build_branch(b));
}

static void block(const Plamo *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    const QsfBlockSizes *n = &m->hp->block[i];
    qsf_build_block(b, i);
    qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", x, branch);
    if (n->kv_heads > 0)
        attention(m, n);
    else
        mamba(m);
    qsf_build_norm(b, QSF_NORM_RMS, "post_attention_norm", branch, branch);
    qsf_build_add(b, "mixer_residual", branch, x);
    qsf_build_norm(b, QSF_NORM_RMS, "ffn_norm", x, branch);
    feed_forward(m, n->ffn);
    qsf_build_norm(b, QSF_NORM_RMS, "post_ffw_norm", branch, branch);
    qsf_build_add(b, "ffn_residual", branch, x);
}

void qsf_family_plamo2(QsfBuilder *b) {
    Plamo m = { .b = b, .hp = qsf_build_hp(b) };
    qsf_build_embed(b);
    read_keys(&m);
    for (uint32_t i = 0; i < m.hp->n_layers && !qsf_build_failed(b); i++) block(&m, i);
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
}
