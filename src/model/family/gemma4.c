/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gemma 4: dense, with experts beside the feed-forward network, or with inputs of each block
 * from the token. */
#include <inttypes.h>
#include <math.h>

#include "src/model/family/gemma.h"
#include "src/model/moe.h"
#include "src/model/rope.h"

static const QsfMoeRow experts = { .blocks = QSF_MOE_BLOCKS_TENSORS,
                                   .gating = QSF_GATING_SOFTMAX,
                                   .norm = QSF_MOE_NORM_ALWAYS,
                                   .act = QSF_ACT_GELU,
                                   .fixed_gating = true };

/* Returns the size of a head in blocks with a window. */
static uint32_t window_dim(QsfBuilder *b, const char *name) {
    uint32_t dim = 2;
    if (qsf_build_failed(b)) return dim;
    qsf_build_check(b, qsf_keys_need_u32(&b->keys, name, 1, QSF_MAX_HEAD_DIM, &dim));
    if (!qsf_build_failed(b) && dim % 2 != 0)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "(the size of a head) is odd"));
    if (!qsf_build_failed(b) && (uint64_t)dim * qsf_build_hp(b)->n_heads > QSF_MAX_HIDDEN)
        qsf_build_check(b, qsf_keys_bad(&b->keys, "is larger than supported with this number of heads"));
    return qsf_build_failed(b) ? 2 : dim;
}

static bool any_block(const QsfGemma *m, bool window) {
    for (uint32_t i = 0; i < m->hp->n_layers; i++)
        if (m->has_window[i] == window) return true;
    return false;
}

static void read_heads(QsfGemma *m) {
    QsfBuilder *b = m->b;
    QsfGemmaHeads *full = &m->heads[0], *window = &m->heads[1];
    *full = (QsfGemmaHeads){ m->hp->head_dim, m->hp->v_dim, QSF_NONE };
    *window = (QsfGemmaHeads){ window_dim(b, "attention.key_length_swa"),
                               window_dim(b, "attention.value_length_swa"), QSF_NONE };
    if (any_block(m, false)) {
        if (!qsf_build_failed(b) && !qsf_build_has(b, "rope_freqs.weight"))
            qsf_build_fail(b, "tensor 'rope_freqs.weight' is missing");
        full->rope = qsf_rope_table(b, &(QsfRopeSpec){ .kind = QSF_ROPE_HALVES,
                                                       .head_dim = full->k_dim,
                                                       .base_key = "rope.freq_base",
                                                       .base = 10000.0f });
    }
    const uint32_t usual = qsf_build_u32(b, "rope.dimension_count", full->k_dim, 1, full->k_dim);
    const uint32_t n_rot = qsf_build_u32(b, "rope.dimension_count_swa",
                                         usual < window->k_dim ? usual : window->k_dim, 1, window->k_dim);
    if (any_block(m, true))
        window->rope = qsf_rope_table(b, &(QsfRopeSpec){ .kind = QSF_ROPE_HALVES,
                                                         .head_dim = window->k_dim,
                                                         .n_rot = n_rot,
                                                         .base_key = "rope.freq_base_swa",
                                                         .base = 10000.0f,
                                                         .plain = true });
}

static void feed_forward(const QsfGemma *m, uint32_t block, QsfSlice x) {
    const QsfFfnSpec f = { .n = m->hp->block[block].ffn, .act = QSF_ACT_GELU, .gated = true };
    qsf_build_ffn(m->b, &f, x, x);
}

/* branch += routed experts; the router and the experts read the residual stream, each with its own norm. */
static void add_experts(const QsfGemma *m, QsfSlice branch) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), in = qsf_build_buffer(b, x.width), out = qsf_build_buffer(b, x.width),
                   router = qsf_build_buffer(b, x.width);
    QsfMoeSpec spec;
    qsf_moe_read(b, &experts, &spec);
    if (qsf_build_failed(b)) return;
    qsf_build_norm(b, QSF_NORM_RMS, "pre_ffw_norm_2", x, in);
    qsf_build_norm(b, QSF_NORM_RMS, NULL, x, router);
    qsf_build_scale(b, "router_scale", router, 1.0f / sqrtf((float)x.width));
    const uint32_t gain = qsf_build_param(b, QSF_REQUIRED, x.width, "ffn_gate_inp.scale");
    qsf_build_with_param(b, QSF_OP_GAIN, "router_gain", gain, router);
    spec.router_in = router;
    qsf_build_routed(b, &spec, in, out);
    qsf_build_norm(b, QSF_NORM_RMS, "post_ffw_norm_2", out, out);
    qsf_build_add(b, "experts_add", out, branch);
}

static void scale_output(QsfBuilder *b) {
    const uint32_t gain = qsf_build_param(b, QSF_OPTIONAL, 1, "layer_output_scale.weight");
    if (gain != QSF_NONE) qsf_build_with_param(b, QSF_OP_GAIN, "layer_output_scale", gain, qsf_build_x(b));
}

static void build_block(QsfGemma *m, uint32_t block) {
    QsfBuilder *b = m->b;
    const QsfSlice x = qsf_build_x(b), branch = qsf_build_branch(b);
    qsf_build_block(b, block);
    qsf_build_norm(b, QSF_NORM_RMS, "attn_norm", x, branch);
    qsf_gemma_attention(m, block, branch, branch);
    qsf_build_norm(b, QSF_NORM_RMS, "post_attention_norm", branch, branch);
    qsf_build_add(b, "residual", branch, x);
    qsf_build_norm(b, QSF_NORM_RMS, "ffn_norm", x, branch);
    feed_forward(m, block, branch);
    if (qsf_moe_has(b, &experts)) {
        qsf_build_norm(b, QSF_NORM_RMS, "post_ffw_norm_1", branch, branch);
        add_experts(m, branch);
    }
    qsf_build_norm(b, QSF_NORM_RMS, "post_ffw_norm", branch, branch);
    qsf_build_add(b, "residual", branch, x);
    if (m->input_width > 0) {
        qsf_gemma_block_input(m, block, x, branch);
        qsf_build_add(b, "per_layer_input", branch, x);
    }
    scale_output(b);
}

void qsf_family_gemma4(QsfBuilder *b) {
    QsfGemma m = { .b = b, .hp = qsf_build_hp(b) };
    const uint32_t n = m.hp->n_layers;
    qsf_gemma_windows(&m, 0);
    m.n_own = n - qsf_build_u32(b, "attention.shared_kv_layers", 0, 0, n - 1);
    read_heads(&m);
    qsf_gemma_embed(&m);
    qsf_gemma_inputs(&m, qsf_build_u32(b, "embedding_length_per_layer_input", 0, 0, QSF_MAX_HIDDEN / n));
    for (uint32_t i = 0; i < n && !qsf_build_failed(b); i++) build_block(&m, i);
    qsf_build_head(b, QSF_NORM_RMS, "output_norm");
    qsf_build_logit_cap(b, qsf_build_f32(b, "final_logit_softcapping", 30.0f, 0, 1e6f));
}
