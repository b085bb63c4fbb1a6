/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MiniMax-01: most blocks have lightning attention (Qin et al. 2024), whose state decays at a
 * fixed rate per head; every few one has attention. The residual is the normalized input of a
 * branch. Facts: ggml-org/llama.cpp. */
#include <math.h>

#include "src/model/family/families.h"
#include "src/model/moe.h"
#include "src/model/rope.h"

typedef struct MiniMax {
    QsfBuilder *b;
    const QsfHparams *hp;
    uint32_t rope;
    float residual_scale;
    uint32_t linear[QSF_MAX_LAYERS]; /* does the block have lightning attention? */
} MiniMax;

static void read_keys(MiniMax *m) {
    static const char *const pattern = "attention.recurrent_layers";
    QsfBuilder *b = m->b;
    const uint32_t n = m->hp->n_layers;
    m->residual_scale = qsf_build_need_f32(b, "residual_scale", 1e-6f, 1e6f);
    const uint32_t interval = qsf_build_u32(b, "full_attention_interval", 8, 1, QSF_MAX_LAYERS);
    for (uint32_t i = 0; i < n; i++) m->linear[i] = (i + 1) % interval != 0;
    if (!qsf_build_failed(b) && qsf_keys_has(&b->keys, pattern))
        qsf_build_check(b, qsf_keys_u32_each(&b->keys, pattern, 0, 0, 1, n + m->hp->n_extra, m->linear));
    m->rope = qsf_rope_table(b, &(QsfRopeSpec){ .kind = QSF_ROPE_HALVES,
                                                .head_dim = m->hp->head_dim,
                                                .base_key = "rope.freq_base",
                                                .base = 10000.0f });
}

/* ---- attention ---- */

/* exp(-slope) of each head: slopes as of ALiBi, less in later blocks. */
static uint32_t decays(const MiniMax *m, uint32_t block, uint32_t heads) {
    const uint32_t n = m->hp->n_layers;
    const float less = n > 1 ? (float)(1.0 - 1.0 * block / (n - 1) + 1e-5) : 1.0f;
    const float start = powf(2, -powf(2, -(log2f((float)heads) - 3)));
    float *row = qsf_build_per_head(m->b);
    if (row == NULL) return QSF_NONE;
    for (uint32_t h = 0; h < heads; h++) row[h] = expf(-less * start * powf(start, (float)h));
    return m->b->p.n_slopes - 1;
}

static void lightning(const MiniMax *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const uint32_t heads = m->hp->block[block].heads, dim = m->hp->head_dim, width = heads * dim;
    const QsfSlice all = qsf_build_buffer(b, 3 * width), slots = qsf_build_buffer(b, QSF_WKV_A * width),
                   y = qsf_build_buffer(b, width), gate = qsf_build_buffer(b, width);
    static const unsigned slot[] = { QSF_WKV_R, QSF_WKV_K, QSF_WKV_V }; /* a head of attn_qkv is q, k, v */
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, &(QsfMatrixSpec){ "attn_qkv", all, QSF_REQUIRED }, 1,
                     QSF_ACT_SILU);
    qsf_build_linear(b, QSF_MATMUL_ATTN_IN, in, &(QsfMatrixSpec){ "attn_gate", gate, QSF_REQUIRED }, 1,
                     QSF_ACT_SIGMOID);
    for (uint32_t i = 0; i < 3; i++)
        qsf_build_heads(b, "qkv", qsf_slice_part(all, i * dim, 3 * width - i * dim),
                        qsf_slice_part(slots, slot[i] * width, width), heads, dim, 3 * dim, dim);
    const QsfWkvStep wkv = { .kind = QSF_WKV_FIXED,
                             .heads = heads,
                             .kv_heads = heads,
                             .dim = dim,
                             .slot = width,
                             .decays = decays(m, block, heads),
                             .state = qsf_build_state(b, qsf_matrix_state_floats(heads, dim, dim)) };
    QsfStep *s = qsf_build_step(b, QSF_OP_WKV, "lightning", slots, y);
    if (s != NULL) s->u.wkv = wkv;
    qsf_build_norm(b, QSF_NORM_RMS, "attn_norm_2", y, y);
    (void)qsf_build_step(b, QSF_OP_MUL, "attn_gate", gate, y);
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", y, out);
}

static void attention(const MiniMax *m, uint32_t block, QsfSlice in, QsfSlice out) {
    QsfBuilder *b = m->b;
    const QsfBlockSizes *n = &m->hp->block[block];
    const uint32_t dim = m->hp->head_dim;
    const QsfQkv x = qsf_build_qkv(b, n, in);
    qsf_build_rope(b, m->rope, x.q, n->heads, dim, 0);
    qsf_build_rope(b, m->rope, x.k, n->kv_heads, dim, 0);
    const QsfAttentionSpec attn = { .step = qsf_attention_plain(n->heads, 1.0f / sqrtf((float)dim)),
                                    .kv_heads = n->kv_heads,
                                    .k_dim = dim,
                                    .v_dim = m->hp->v_dim,
                                    .q = x.q,
                                    .k = x.k,
                                    .v = x.v };
    qsf_build_project(b, QSF_MATMUL_ATTN_OUT, "attn_output", qsf_build_attention(b, &attn), out);
}

/* ---- blocks ---- */

static void add(const MiniMax *m) {
    qsf_build_scale(m->b, "residual_scale", qsf_build_x(m->b), m->residual_scale);
    qsf_build_add(m->b, "residual", qsf_build_branch(m->b), qsf_build_x(m->b));
}

static void block(const MiniMax *m, uint32_t i) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    QsfMoeSpec moe;
    qsf_build_block(b, i);
    qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", x, x);
    if (m->linear[i])
        lightning(m, i, x, branch);
    else
        attention(m, i, x, branch);
    add(m);
    qsf_build_norm(b, QSF_NORM_RMS, "ffn_norm", x, x);
    qsf_moe_read(b, m->hp->arch->traits, &moe);
    qsf_build_moe(b, &moe, x, branch);
    add(m);
}

void qsf_family_minimax01(QsfBuilder *b) {
    MiniMax m = { .b = b, .hp = qsf_build_hp(b) };
    qsf_build_embed(b);
    read_keys(&m);
    for (uint32_t i = 0; i < m.hp->n_layers && !qsf_build_failed(b); i++) block(&m, i);
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
}
