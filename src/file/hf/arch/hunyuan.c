/* SPDX-License-Identifier: GPL-3.0-or-later */
/* HunYuan, dense and with experts: other names of the norms of heads; a base of RoPE that depends on
 * "alpha". Names: huggingface/transformers models/hunyuan_v1_dense/, models/hunyuan_v1_moe/;
 * ggml-org/llama.cpp conversion/hunyuan.py. Defaults: transformers' configuration files. */
#include "src/file/hf/experts.h"

static const QsfHfName hunyuan_norms[] = {
    QSF_HF_VECTOR(QSF_HF_L("self_attn.query_layernorm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.key_layernorm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};

static const QsfHfName hunyuan_experts[] = {
    QSF_HF_HOW(QSF_HF_L("mlp.gate.wg.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_mlp.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_mlp.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_mlp.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

static const QsfHfMust hunyuan_must[] = {
    { "hidden_act", "silu|swish" },
    { "num_experts", "1" },
    QSF_HF_END,
};

/* Numbers per layer, which must be the same. */
static int one_of(const QsfHfModel *m, const char *key, uint32_t *out) {
    const QsfJson *v = qsf_hf_member(m->text, key);
    if (v == NULL || qsf_json_type(v) != QSF_JSON_ARRAY) return qsf_hf_u32(m, key, 0, out);
    const int64_t first = qsf_json_int(qsf_json_at(v, 0), -1);
    if (first < 1 || first > QSF_HF_NUMBER) return qsf_hf_bad(m, key, "is not a list of positive numbers");
    for (size_t i = 1; i < qsf_json_size(v); i++)
        if (qsf_json_int(qsf_json_at(v, i), -1) != first)
            return qsf_hf_bad(m, key, "differs between layers, which is not supported");
    *out = (uint32_t)first;
    return QSF_OK;
}

static int put_hunyuan(QsfHfModel *m) {
    uint32_t used, width, shared;
    int rc = one_of(m, "moe_topk", &used);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "expert_used_count", used);
    if (rc == QSF_OK) rc = qsf_hf_experts_count_put(m);
    if (rc == QSF_OK) rc = one_of(m, "moe_intermediate_size", &width);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "expert_feed_forward_length", width);
    if (rc == QSF_OK) rc = one_of(m, "num_shared_expert", &shared);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "expert_shared_count", shared);
    if (rc == QSF_OK && (uint64_t)shared * m->ffn > QSF_HF_NUMBER)
        rc = qsf_hf_bad(m, "num_shared_expert", "is out of range");
    return rc == QSF_OK ? qsf_hf_put_u32(m, "expert_shared_feed_forward_length", shared * m->ffn) : rc;
}

const QsfHfArch qsf_hf_arch_hunyuan[] = {
    { .name = "HunYuanDenseV1ForCausalLM",
      .gguf = "hunyuan-dense",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_vo,
                              qsf_hf_names_mlp, hunyuan_norms),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = hunyuan_must,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_ALPHA },
    { .name = "HunYuanMoEV1ForCausalLM",
      .gguf = "hunyuan-moe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk,
                              hunyuan_norms, hunyuan_experts, qsf_hf_names_experts),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = put_hunyuan,
      .ropes = QSF_HF_ROPE_PLAIN },
    QSF_HF_END,
};
