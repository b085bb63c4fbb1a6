/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Baichuan. Names: baichuan-inc/Baichuan-7B modeling_baichuan.py; ggml-org/llama.cpp
 * conversion/baichuan.py. */
#include "src/file/hf/tables.h"

/* Queries, keys and values in one tensor. Baichuan 2, with 125696 tokens, normalizes its head. */
static const QsfHfName baichuan_qkv[] = {
    QSF_HF_ROWS(QSF_HF_L("self_attn.W_pack.weight"), QSF_HF_B("attn_q.weight"), 2, qsf_hf_rows_fused_q_pairs),
    QSF_HF_ROWS(QSF_HF_L("self_attn.W_pack.weight"), QSF_HF_B("attn_k.weight"), 2, qsf_hf_rows_fused_k_pairs),
    QSF_HF_ROWS(QSF_HF_L("self_attn.W_pack.weight"), QSF_HF_B("attn_v.weight"), 2, qsf_hf_rows_fused_v),
    QSF_HF_END,
};

static int baichuan(QsfHfModel *m) {
    const bool second = m->n_vocab == 125696;
    return second ? qsf_hf_bad(m, "vocab_size", "is that of Baichuan 2, which is not supported") : QSF_OK;
}

const QsfHfArch qsf_hf_arch_baichuan[] = {
    { .name = "BaichuanForCausalLM",
      .gguf = "baichuan",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_norms, baichuan_qkv, qsf_hf_names_vo,
                              qsf_hf_names_mlp),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = baichuan,
      .ropes = QSF_HF_ROPE_PLAIN,
      .ctx = "model_max_length|max_position_embeddings" },
    QSF_HF_END,
};
