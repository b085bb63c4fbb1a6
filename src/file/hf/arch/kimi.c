/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kimi Linear: latent attention, and linear attention with a short convolution. Names:
 * moonshotai/Kimi-Linear-48B-A3B-Instruct modeling_kimi.py; ggml-org/llama.cpp conversion/kimi_linear.py.
 * Defaults: its configuration_kimi.py. */
#include "src/file/hf/latent.h"
#include "src/file/hf/layers.h"

static int shape_conv(const QsfHfModel *m, QsfTensor *t) {
    (void)m;
    t->ne[2] = t->ne[1];
    t->ne[1] = 1;
    t->n_dims = 3;
    return QSF_OK;
}

/* (1, 1, heads, 1) as a column. */
static int shape_a(const QsfHfModel *m, QsfTensor *t) {
    if (t->ne[0] != 1 || t->ne[2] != 1)
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: tensor '%s' is not one number per head", m->s->dir,
                           t->name);
    t->n_dims = 2;
    return QSF_OK;
}

static const QsfHfName names_kimi[] = {
    { QSF_HF_L("self_attn.q_conv1d.weight"), QSF_HF_B("ssm_conv1d_q.weight"), 2, QSF_DERIVE_F32, NULL, 0,
      shape_conv },
    { QSF_HF_L("self_attn.k_conv1d.weight"), QSF_HF_B("ssm_conv1d_k.weight"), 2, QSF_DERIVE_F32, NULL, 0,
      shape_conv },
    { QSF_HF_L("self_attn.v_conv1d.weight"), QSF_HF_B("ssm_conv1d_v.weight"), 2, QSF_DERIVE_F32, NULL, 0,
      shape_conv },
    QSF_HF_MATRIX(QSF_HF_L("self_attn.k_proj"), QSF_HF_B("attn_k")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.f_a_proj"), QSF_HF_B("ssm_f_a")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.f_b_proj"), QSF_HF_B("ssm_f_b")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.b_proj"), QSF_HF_B("ssm_beta")),
    { QSF_HF_L("self_attn.A_log"), QSF_HF_B("ssm_a"), 3, QSF_DERIVE_NEG_EXP, NULL, 0, shape_a },
    QSF_HF_HOW(QSF_HF_L("self_attn.dt_bias"), QSF_HF_B("ssm_dt.bias"), 1, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.g_a_proj"), QSF_HF_B("ssm_g_a")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.g_b_proj"), QSF_HF_B("ssm_g_b")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.o_norm"), QSF_HF_B("ssm_norm")),
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.gate.e_score_correction_bias"), QSF_HF_B("exp_probs_b.bias"), 1,
               QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w1"), QSF_HF_B("ffn_gate_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w3"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w2"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.shared_experts.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.shared_experts.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.shared_experts.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

static const QsfHfMust must_kimi[] = {
    { "hidden_act", "silu" },
    { "mla_use_nope", "true" },
    { "moe_layer_freq", "1" },
    { "moe_renormalize", "true" },
    { "moe_router_activation_func", "sigmoid" },
    { "num_expert_group", "1" },
    QSF_HF_END,
};

/* linear_attn_config numbers layers from 1. */
static int put_kimi(QsfHfModel *m) {
    const QsfJson *c = qsf_hf_member(m->text, "linear_attn_config"),
                  *full = qsf_hf_member(c, "full_attn_layers");
    uint32_t kv[QSF_HF_LAYERS] = { 0 };
    double dim, kernel;
    int rc = qsf_hf_layers_check(m);
    if (rc == QSF_OK && full == NULL) rc = qsf_hf_bad(m, "linear_attn_config", "has no full_attn_layers");
    for (size_t i = 0; rc == QSF_OK && i < qsf_json_size(full); i++) {
        const int64_t layer = qsf_json_int(qsf_json_at(full, i), 0);
        if (layer < 1 || layer > m->n_layers)
            return qsf_hf_bad(m, "linear_attn_config", "has a layer that does not exist in full_attn_layers");
        kv[layer - 1] = 1;
    }
    if (rc == QSF_OK) rc = qsf_hf_put_u32s(m, "attention.head_count_kv", kv, m->n_layers);
    if (rc == QSF_OK) rc = qsf_hf_real(m, c, "head_dim", 128, 1, 1e5, &dim);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "kda.head_dim", (uint32_t)dim);
    if (rc == QSF_OK) rc = qsf_hf_real(m, c, "short_conv_kernel_size", 4, 1, 1e5, &kernel);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "ssm.conv_kernel", (uint32_t)kernel);
    if (rc == QSF_OK) rc = qsf_hf_latent_put_sizes(m);
    return rc == QSF_OK ? qsf_hf_experts_put_sigmoid(m) : rc;
}

const QsfHfArch qsf_hf_arch_kimi[] = {
    { .name = "KimiLinearForCausalLM",
      .gguf = "kimi-linear",
      .tensors = QSF_HF_LATENT_NAMES(names_kimi),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, qsf_hf_keys_latent),
      .must = must_kimi,
      .put = put_kimi,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rotated = "qk_rope_head_dim",
      .n_ctx = 4096,
      .own_kv_heads = true },
    QSF_HF_END,
};
