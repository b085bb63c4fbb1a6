/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ERNIE 4.5, dense and with experts. Names: huggingface/transformers models/ernie4_5/, models/ernie4_5_moe/;
 * ggml-org/llama.cpp conversion/ernie.py. Defaults: transformers' configuration files. */
#include "src/file/hf/experts.h"

static const QsfHfName names_ernie[] = {
    { "layers.#.mlp.moe_statics.e_score_correction_bias", "blk.#.exp_probs_b.bias", 2, QSF_DERIVE_F32, NULL,
      0, qsf_hf_shape_vector },
    QSF_HF_END,
};

static const QsfHfKey keys_ernie[] = {
    { "moe_layer_interval", "interleave_moe_layer_step", QSF_HF_U32, 1, 1, 1e5 },
    { "moe_layer_start_index", "leading_dense_block_count", QSF_HF_U32, 1, 0, 1e5 },
    QSF_HF_END,
};

static const QsfHfMust must_ernie[] = {
    { "hidden_act", "silu" },
    { "moe_norm_min", "1e-12" },
    QSF_HF_END,
};

/* The width of the shared expert is that of all of them, and the last block with experts is the last one. */
static int put_ernie(QsfHfModel *m) {
    uint32_t width, shared = 0, last;
    int rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "moe_intermediate_size", 0, &width);
    if (rc == QSF_OK && qsf_hf_member(m->text, "moe_num_shared_experts") != NULL)
        rc = qsf_hf_u32(m, "moe_num_shared_experts", 0, &shared);
    if (rc == QSF_OK && (uint64_t)width * shared > QSF_HF_NUMBER)
        rc = qsf_hf_bad(m, "moe_num_shared_experts", "is out of range");
    if (rc == QSF_OK && shared > 0)
        rc = qsf_hf_put_u32(m, "expert_shared_feed_forward_length", width * shared);
    if (rc != QSF_OK || qsf_json_int(qsf_hf_member(m->text, "moe_layer_end_index"), -1) < 0) return rc;
    rc = qsf_hf_u32(m, "moe_layer_end_index", m->n_layers, &last);
    if (rc == QSF_OK && last + 1 < m->n_layers)
        rc = qsf_hf_bad(m, "moe_layer_end_index", "is not the last layer, which is not supported");
    return rc;
}

#define ERNIE                                                                              \
    .gguf = "ernie4_5", .tensors = qsf_hf_like_qwen, .keys = QSF_HF_KEYS(qsf_hf_keys_rms), \
    .must = qsf_hf_must_silu, .ropes = QSF_HF_ROPE_PLAIN, .tied = true, .rope_base = 5e5

const QsfHfArch qsf_hf_arch_ernie[] = {
    { .name = "Ernie4_5ForCausalLM", ERNIE },
    { .name = "Ernie4_5_ForCausalLM", ERNIE },
    { .name = "Ernie4_5_MoeForCausalLM",
      .gguf = "ernie4_5-moe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk,
                              qsf_hf_names_mlp, qsf_hf_names_experts, qsf_hf_names_stacked,
                              qsf_hf_names_shared_experts, names_ernie),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_ernie),
      .must = must_ernie,
      .put = put_ernie,
      .ropes = QSF_HF_ROPES_YARN,
      .rope_base = 500000,
      .tied = true },
    QSF_HF_END,
};
