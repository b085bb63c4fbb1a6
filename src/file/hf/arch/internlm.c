/* SPDX-License-Identifier: GPL-3.0-or-later */
/* InternLM 2 and 3. Names: internlm/internlm2-7b modeling_internlm2.py, internlm/internlm3-8b-instruct
 * modeling_internlm3.py; ggml-org/llama.cpp conversion/internlm.py. */
#include "src/file/hf/tables.h"

/* InternLM 2: queries, keys and values in one tensor, by groups. */
static const QsfHfName internlm2_names[] = {
    QSF_HF_MATRIX("tok_embeddings", "token_embd"),
    QSF_HF_VECTOR("norm", "output_norm"),
    QSF_HF_MATRIX("output", "output"),
    QSF_HF_VECTOR(QSF_HF_L("attention_norm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("ffn_norm"), QSF_HF_B("ffn_norm")),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.weight"), QSF_HF_B("attn_q.weight"), 2, qsf_hf_rows_group_q_pairs),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.weight"), QSF_HF_B("attn_k.weight"), 2, qsf_hf_rows_group_k_pairs),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.weight"), QSF_HF_B("attn_v.weight"), 2, qsf_hf_rows_group_v),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.bias"), QSF_HF_B("attn_q.bias"), 1, qsf_hf_rows_group_q_pairs),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.bias"), QSF_HF_B("attn_k.bias"), 1, qsf_hf_rows_group_k_pairs),
    QSF_HF_ROWS(QSF_HF_L("attention.wqkv.bias"), QSF_HF_B("attn_v.bias"), 1, qsf_hf_rows_group_v),
    QSF_HF_LINEAR(QSF_HF_L("attention.wo"), QSF_HF_B("attn_output")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w1"), QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w3"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.w2"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

const QsfHfArch qsf_hf_arch_internlm[] = {
    { .name = "InternLM2ForCausalLM",
      .gguf = "internlm2",
      .tensors = QSF_HF_NAMES(internlm2_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR | QSF_HF_ROPE_DYNAMIC },
    { .name = "InternLM3ForCausalLM",
      .gguf = "llama",
      .tensors = qsf_hf_like_llama,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL | QSF_HF_ROPE_DYNAMIC },
    QSF_HF_END,
};
