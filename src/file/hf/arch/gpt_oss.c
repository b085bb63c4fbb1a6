/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gpt-oss, with experts in MXFP4 or not quantized. Names: huggingface/transformers
 * models/gpt_oss/modeling_gpt_oss.py, integrations/mxfp4.py; ggml-org/llama.cpp conversion/gpt_oss.py.
 * Defaults: configuration_gpt_oss.py. */
#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

/* Gate and up by turns. */
static int turns(uint64_t src_rows, bool second, QsfRowMap *map, uint64_t *n) {
    map->run = 1;
    map->first = second;
    map->stride = 2;
    *n = src_rows / 2;
    return QSF_OK;
}

static int even(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    (void)m;
    return turns(src_rows, false, map, n);
}

static int odd(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    (void)m;
    return turns(src_rows, true, map, n);
}

static const QsfHfName names[] = {
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_HOW(QSF_HF_L("self_attn.sinks"), QSF_HF_B("attn_sinks.weight"), 1, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("mlp.router.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("mlp.router.bias"), QSF_HF_B("ffn_gate_inp.bias"), 1, QSF_DERIVE_F32),
    { QSF_HF_L("mlp.experts.gate_up_proj"), QSF_HF_B("ffn_gate_exps.weight"), 3, QSF_DERIVE_TRANSPOSE, even,
      0, NULL },
    { QSF_HF_L("mlp.experts.gate_up_proj"), QSF_HF_B("ffn_up_exps.weight"), 3, QSF_DERIVE_TRANSPOSE, odd, 0,
      NULL },
    QSF_HF_HOW(QSF_HF_L("mlp.experts.down_proj"), QSF_HF_B("ffn_down_exps.weight"), 3, QSF_DERIVE_TRANSPOSE),
    { QSF_HF_L("mlp.experts.gate_up_proj_blocks"), QSF_HF_B("ffn_gate_exps.weight"), 3, QSF_DERIVE_MXFP4,
      even, 0, NULL },
    { QSF_HF_L("mlp.experts.gate_up_proj_blocks"), QSF_HF_B("ffn_up_exps.weight"), 3, QSF_DERIVE_MXFP4, odd,
      0, NULL },
    QSF_HF_HOW(QSF_HF_L("mlp.experts.down_proj_blocks"), QSF_HF_B("ffn_down_exps.weight"), 3,
               QSF_DERIVE_MXFP4),
    { QSF_HF_L("mlp.experts.gate_up_proj_bias"), QSF_HF_B("ffn_gate_exps.bias"), 2, QSF_DERIVE_COLUMNS, even,
      0, NULL },
    { QSF_HF_L("mlp.experts.gate_up_proj_bias"), QSF_HF_B("ffn_up_exps.bias"), 2, QSF_DERIVE_COLUMNS, odd, 0,
      NULL },
    QSF_HF_HOW(QSF_HF_L("mlp.experts.down_proj_bias"), QSF_HF_B("ffn_down_exps.bias"), 2, QSF_DERIVE_COPY),
    QSF_HF_END,
};

static const QsfHfKey keys[] = {
    { "sliding_window", "attention.sliding_window", QSF_HF_U32, 128, 1, QSF_HF_NUMBER },
    { "intermediate_size", "expert_feed_forward_length", QSF_HF_U32, 2880, 1, QSF_HF_NUMBER },
    QSF_HF_END,
};

static const QsfHfMust must[] = {
    { "hidden_act", "silu" },
    { "swiglu_limit", "7" },
    { "swiglu_alpha", "1.702" },
    QSF_HF_END,
};

/* Every second layer has a window, the first one included. */
static int put(QsfHfModel *m) {
    static const char *const kinds[] = { "sliding_attention", "full_attention", NULL };
    uint32_t kind[QSF_HF_LAYERS];
    int rc = qsf_hf_experts_put(m);
    if (rc != QSF_OK || qsf_hf_member(m->text, "layer_types") == NULL) return rc;
    rc = qsf_hf_layer_kinds(m, "layer_types", kinds, kind);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++)
        if (kind[i] != i % 2)
            rc = qsf_hf_bad(m, "layer_types",
                            "is not alternating, which is not supported for this architecture");
    return rc;
}

const QsfHfArch qsf_hf_arch_gpt_oss[] = {
    { .name = "GptOssForCausalLM",
      .gguf = "gpt-oss",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_qk, qsf_hf_names_vo, names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, keys),
      .must = must,
      .put = put,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_YARN,
      .kv_heads = 8,
      .head_dim = 64,
      .rope_base = 150000,
      .rope = "{\"rope_type\": \"yarn\", \"factor\": 32, \"beta_fast\": 32, \"beta_slow\": 1, "
              "\"truncate\": false, \"original_max_position_embeddings\": 4096}" },
    QSF_HF_END,
};
