/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Granite: dense, with experts, and hybrids with Mamba-2 layers. Names: huggingface/transformers
 * models/NAME/modeling_NAME.py; ggml-org/llama.cpp conversion/granite.py. Defaults: transformers'
 * configuration files. */
#include <string.h>

#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

/* --- tensors --- */

/* All experts in one tensor, gate over up. */
static const QsfHfName names_input_linear[] = {
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.router.layer.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2,
               QSF_DERIVE_F32),
    QSF_HF_ROWS(QSF_HF_L("block_sparse_moe.input_linear.weight"), QSF_HF_B("ffn_gate_exps.weight"), 3,
                qsf_hf_rows_gate),
    QSF_HF_ROWS(QSF_HF_L("block_sparse_moe.input_linear.weight"), QSF_HF_B("ffn_up_exps.weight"), 3,
                qsf_hf_rows_up),
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.output_linear.weight"), QSF_HF_B("ffn_down_exps.weight"), 3,
               QSF_DERIVE_COPY),
    QSF_HF_END,
};

/* The shared expert. */
static const QsfHfName names_shared_linear[] = {
    QSF_HF_ROWS(QSF_HF_L("shared_mlp.input_linear.weight"), QSF_HF_B("ffn_gate_shexp.weight"), 2,
                qsf_hf_rows_first),
    QSF_HF_ROWS(QSF_HF_L("shared_mlp.input_linear.weight"), QSF_HF_B("ffn_up_shexp.weight"), 2,
                qsf_hf_rows_second),
    QSF_HF_MATRIX(QSF_HF_L("shared_mlp.output_linear"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

/* The same of models without experts. */
static const QsfHfName names_dense_linear[] = {
    QSF_HF_ROWS(QSF_HF_L("shared_mlp.input_linear.weight"), QSF_HF_B("ffn_gate.weight"), 2,
                qsf_hf_rows_first),
    QSF_HF_ROWS(QSF_HF_L("shared_mlp.input_linear.weight"), QSF_HF_B("ffn_up.weight"), 2, qsf_hf_rows_second),
    QSF_HF_MATRIX(QSF_HF_L("shared_mlp.output_linear"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

/* --- settings --- */

/* Factors of embedding, branches, scores and logits; 1 where config.json does not have them, also of scores
 * (huggingface/transformers, GraniteConfig). */
static const QsfHfKey keys_granite[] = {
    { "attention_multiplier", "attention.scale", QSF_HF_F32, 1, 1e-6, 1e6 },
    { "embedding_multiplier", "embedding_scale", QSF_HF_F32, 1, 1e-6, 1e6 },
    { "residual_multiplier", "residual_scale", QSF_HF_F32, 1, 1e-6, 1e6 },
    { "logits_scaling", "logit_scale", QSF_HF_F32, 1, 1e-6, 1e6 },
    QSF_HF_END,
};

static const QsfHfKey keys_granite_hybrid[] = {
    { "mamba_d_state", "ssm.state_size", QSF_HF_U32, 256, 1, 1e6 },
    { "mamba_n_groups", "ssm.group_count", QSF_HF_U32, 1, 1, 1e6 },
    QSF_HF_END,
};

/* Rows for models without experts. */
static const QsfHfMust no_experts[] = { { QSF_HF_EXPERTS, "0" }, QSF_HF_END };

/* --- what the tables cannot express --- */

static int put_granite_hybrid(QsfHfModel *m) {
    static const char *const kinds[] = { "mamba", "attention", NULL };
    const char *positions = qsf_json_string(qsf_hf_member(m->text, "position_embedding_type"), NULL);
    int rc = qsf_hf_put_kv_heads(m, kinds, 1);
    if (rc == QSF_OK) rc = qsf_hf_put_mamba_heads(m, "mamba_n_heads", "mamba_d_head");
    if (rc == QSF_OK && positions != NULL && strcmp(positions, "rope") != 0 && strcmp(positions, "nope") != 0)
        rc = qsf_hf_bad(m, "position_embedding_type", "is neither 'rope' nor 'nope'");
    if (rc == QSF_OK)
        rc = qsf_hf_put_bool(m, "rope.scaling.finetuned",
                             positions != NULL && strcmp(positions, "rope") == 0);
    return rc;
}

static int put_granite_dense(QsfHfModel *m) {
    uint32_t width;
    int rc = put_granite_hybrid(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "shared_intermediate_size", 0, &width);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "feed_forward_length", width) : rc;
}

static int put_granite_moe(QsfHfModel *m) {
    uint32_t width, shared;
    int rc = put_granite_hybrid(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "intermediate_size", 0, &width);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "feed_forward_length", width);
    if (rc == QSF_OK) rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "shared_intermediate_size", 0, &shared);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "expert_shared_feed_forward_length", shared) : rc;
}

/* --- architectures --- */

const QsfHfArch qsf_hf_arch_granite[] = {
    { .name = "GraniteForCausalLM",
      .gguf = "granite",
      .tensors = qsf_hf_like_llama,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_granite),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "GraniteMoeForCausalLM",
      .gguf = "granitemoe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk_pairs,
                              names_input_linear),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_granite),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put,
      .ropes = QSF_HF_ROPES_YARN },
    { .name = "GraniteMoeSharedForCausalLM",
      .gguf = "granitemoe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk_pairs,
                              names_input_linear, names_shared_linear),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_granite, qsf_hf_keys_shared_width),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put,
      .ropes = QSF_HF_ROPES_YARN },
    { .name = "GraniteMoeHybridForCausalLM",
      .gguf = "granitehybrid",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_vo,
                              qsf_hf_names_mamba_2, names_dense_linear),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_granite, qsf_hf_keys_mamba_conv, keys_granite_hybrid),
      .when = no_experts,
      .must = qsf_hf_must_jamba,
      .put = put_granite_dense,
      .ropes = QSF_HF_ROPE_PLAIN,
      .ffn_times = QSF_HF_NO_FFN,
      .own_kv_heads = true },
    { .name = "GraniteMoeHybridForCausalLM",
      .gguf = "granitehybrid",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_vo,
                              qsf_hf_names_mamba_2, names_input_linear, names_shared_linear),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_granite, qsf_hf_keys_mamba_conv, keys_granite_hybrid),
      .must = qsf_hf_must_jamba,
      .put = put_granite_moe,
      .ropes = QSF_HF_ROPE_PLAIN,
      .ffn_times = QSF_HF_NO_FFN,
      .own_kv_heads = true },
    QSF_HF_END,
};
