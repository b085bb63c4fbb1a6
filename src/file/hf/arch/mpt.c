/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MPT. Names: huggingface/transformers models/mpt/modeling_mpt.py; ggml-org/llama.cpp conversion/mpt.py.
 * Defaults: configuration_mpt.py. */
#include "src/file/hf/tables.h"

static const QsfHfName mpt_names[] = {
    QSF_HF_MATRIX("wte", "token_embd"),
    QSF_HF_MATRIX("wpe", "position_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_NORM("norm_f", "output_norm"),
    QSF_HF_NORM("blocks.#.norm_1", QSF_HF_B("attn_norm")),
    QSF_HF_NORM("blocks.#.norm_2", QSF_HF_B("ffn_norm")),
    QSF_HF_LINEAR("blocks.#.attn.Wqkv", QSF_HF_B("attn_qkv")),
    QSF_HF_LINEAR("blocks.#.attn.out_proj", QSF_HF_B("attn_output")),
    QSF_HF_LINEAR("blocks.#.ffn.up_proj", QSF_HF_B("ffn_up")),
    QSF_HF_LINEAR("blocks.#.ffn.down_proj", QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfMust mpt_must[] = {
    { "expansion_ratio", "4" },
    { "logit_scale", "" },
    { "norm_type", "low_precision_layernorm|layernorm" },
    QSF_HF_END,
};

static int mpt(QsfHfModel *m) {
    const QsfJson *a = qsf_hf_member(m->text, "attn_config");
    double clip = 0, bias = 0;
    if (qsf_json_bool(qsf_hf_member(a, "qk_ln"), false))
        return qsf_hf_bad(m, "attn_config", "has qk_ln, which is not supported");
    if (qsf_hf_member(a, "softmax_scale") != NULL)
        return qsf_hf_bad(m, "attn_config", "has softmax_scale, which is not supported");
    int rc = qsf_hf_real(m, a, "clip_qkv", 0, 0, 1e6, &clip);
    if (rc == QSF_OK && clip > 0) rc = qsf_hf_put_f32(m, "attention.clamp_kqv", clip);
    if (rc == QSF_OK && qsf_json_bool(qsf_hf_member(a, "alibi"), true))
        rc = qsf_hf_real(m, a, "alibi_bias_max", 8, 1e-6, 1e3, &bias);
    return rc == QSF_OK ? qsf_hf_put_f32(m, "attention.max_alibi_bias", bias) : rc;
}

const QsfHfArch qsf_hf_arch_mpt[] = {
    { .name = "MPTForCausalLM",
      .gguf = "mpt",
      .tensors = QSF_HF_NAMES(mpt_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm),
      .must = mpt_must,
      .put = mpt,
      .prefixes = qsf_hf_transformer,
      .tied = true,
      .ffn_times = 4,
      .n_ctx = 2048 },
    QSF_HF_END,
};
