/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Llama, and Llama 4 with experts. Names: huggingface/transformers models/llama/modeling_llama.py,
 * models/llama4/modeling_llama4.py; what is written and permuted: ggml-org/llama.cpp conversion/llama.py.
 * Defaults: transformers' configuration files. */
#include "src/file/hf/experts.h"

static const QsfHfName names_llama4[] = {
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.gate_proj"), QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_HOW(QSF_HF_L("feed_forward.router.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    { QSF_HF_L("feed_forward.experts.gate_up_proj"), QSF_HF_B("ffn_gate_exps.weight"), 3,
      QSF_DERIVE_TRANSPOSE, qsf_hf_rows_gate, 0, NULL },
    { QSF_HF_L("feed_forward.experts.gate_up_proj"), QSF_HF_B("ffn_up_exps.weight"), 3, QSF_DERIVE_TRANSPOSE,
      qsf_hf_rows_up, 0, NULL },
    QSF_HF_HOW(QSF_HF_L("feed_forward.experts.down_proj"), QSF_HF_B("ffn_down_exps.weight"), 3,
               QSF_DERIVE_TRANSPOSE),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.shared_expert.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.shared_expert.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.shared_expert.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

static const QsfHfKey keys_llama4[] = {
    { "intermediate_size_mlp", "feed_forward_length", QSF_HF_U32, QSF_HF_NEEDED, 1, QSF_HF_NUMBER },
    { "intermediate_size", "expert_feed_forward_length", QSF_HF_U32, QSF_HF_NEEDED, 1, QSF_HF_NUMBER },
    { "interleave_moe_layer_step", "interleave_moe_layer_step", QSF_HF_U32, 1, 1, 1e5 },
    QSF_HF_END,
};

static const QsfHfMust must_llama4[] = {
    { "hidden_act", "silu" }, { "attention_chunk_size", "8192" },      { "floor_scale", "8192" },
    { "attn_scale", "0.1" },  { "attn_temperature_tuning", "true|4" }, { 0 },
};

/* Rotation in three of four blocks; norms of queries and keys in all models but those of 128 experts. */
static int put_llama4(QsfHfModel *m) {
    const QsfJson *list = qsf_hf_member(m->text, "no_rope_layers");
    uint32_t experts;
    int rc = qsf_hf_experts_put(m);
    for (size_t i = 0; rc == QSF_OK && i < qsf_json_size(list); i++)
        if (qsf_json_int(qsf_json_at(list, i), -1) != ((i + 1) % 4 != 0))
            rc = qsf_hf_bad(m, "no_rope_layers", "is not every fourth layer, which is not supported");
    if (rc == QSF_OK) rc = qsf_hf_u32(m, QSF_HF_EXPERTS, 0, &experts);
    return rc == QSF_OK ? qsf_hf_need_bool(m, "use_qk_norm", true, experts != 128) : rc;
}

#define LLAMA4                                                                                        \
    .gguf = "llama4",                                                                                 \
    .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk, \
                            names_llama4),                                                            \
    .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys_llama4), .must = must_llama4, .put = put_llama4,        \
    .prefixes = qsf_hf_vision_prefixes, .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LLAMA3,              \
    .ffn_times = QSF_HF_NO_FFN, .rope_base = 500000

const QsfHfArch qsf_hf_arch_llama[] = {
    { .name = "LlamaForCausalLM",
      .gguf = "llama",
      .tensors = qsf_hf_like_llama,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_LIMITS },
    { .name = "Llama4ForCausalLM", LLAMA4 },
    { .name = "Llama4ForConditionalGeneration", .left_out = qsf_hf_vision_left_out, LLAMA4 },
    QSF_HF_END,
};
