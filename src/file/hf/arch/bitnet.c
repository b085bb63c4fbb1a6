/* SPDX-License-Identifier: GPL-3.0-or-later */
/* BitNet: norms before the output projections; models with the original size of the FFN have another
 * activation. Names: huggingface/transformers models/bitnet/modeling_bitnet.py; ggml-org/llama.cpp
 * conversion/bitnet.py. */
#include "src/file/hf/tables.h"

static const QsfHfName bitnet_norms[] = {
    QSF_HF_VECTOR(QSF_HF_L("self_attn.attn_sub_norm"), QSF_HF_B("attn_sub_norm")),
    QSF_HF_VECTOR(QSF_HF_L("mlp.ffn_sub_norm"), QSF_HF_B("ffn_sub_norm")),
    QSF_HF_END,
};

static const QsfHfName *const bitnet_tables[] = {
    qsf_hf_names_model,
    qsf_hf_names_norms,
    qsf_hf_names_qk,
    qsf_hf_names_vo,
    qsf_hf_names_mlp,
    bitnet_norms,
    NULL,
};

static const QsfHfMust bitnet_squared[] = { { "hidden_act", "relu2" }, QSF_HF_END };

const QsfHfArch qsf_hf_arch_bitnet[] = {
    { .name = "BitNetForCausalLM",
      .gguf = "bitnet-b1.58",
      .tensors = bitnet_tables,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .when = bitnet_squared,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rope_base = 5e5 },
    { .name = "BitNetForCausalLM",
      .gguf = "bitnet",
      .tensors = bitnet_tables,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rope_base = 5e5 },
    QSF_HF_END,
};
