/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mamba, Mamba-2 and Jamba. Names: huggingface/transformers models/NAME/modeling_NAME.py; ggml-org/llama.cpp
 * conversion/mamba.py, jamba.py. Defaults: transformers' configuration files. */
#include <string.h>

#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

static const QsfHfName names_jamba[] = {
    { "final_layernorm.weight", "output_norm.weight", 1, 0, NULL, 0, NULL },
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("pre_ff_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.gate_proj"), QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_HOW(QSF_HF_L("feed_forward.router.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.experts.*.gate_proj"), QSF_HF_B("ffn_gate_exps")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.experts.*.up_proj"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.experts.*.down_proj"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_END,
};

static const QsfHfMust must_mamba[] = {
    { "hidden_act", "silu" },
    { "use_bias", "false" },
    QSF_HF_END,
};

/* --- what the tables cannot express --- */

/* The rank of dt: a number, or "auto". */
static int put_rank(QsfHfModel *m, const char *names) {
    const QsfJson *v = qsf_hf_member(m->text, names);
    const char *text = v != NULL ? qsf_json_string(v, NULL) : "auto";
    uint32_t rank = (m->hidden + 15) / 16;
    int rc = text != NULL && strcmp(text, "auto") == 0 ? QSF_OK : qsf_hf_u32(m, names, 0, &rank);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "ssm.time_step_rank", rank) : rc;
}

/* The inner size: `expand` times hidden_size. */
static int inner_size(const QsfHfModel *m, const char *expand, uint32_t *inner) {
    uint32_t times;
    int rc = qsf_hf_u32(m, expand, 2, &times);
    if (rc == QSF_OK && (uint64_t)times * m->hidden > QSF_HF_NUMBER)
        rc = qsf_hf_bad(m, expand, "is out of range");
    *inner = rc == QSF_OK ? times * m->hidden : 0;
    return rc;
}

static int put_mamba(QsfHfModel *m) {
    uint32_t inner;
    int rc = inner_size(m, "expand", &inner);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "intermediate_size|d_inner", inner, &inner);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "ssm.inner_size", inner);
    if (rc == QSF_OK) rc = put_rank(m, "time_step_rank|dt_rank");
    return rc == QSF_OK ? qsf_hf_put_u32(m, "feed_forward_length", 0) : rc;
}

static int put_mamba2(QsfHfModel *m) {
    int rc = qsf_hf_put_mamba_heads(m, "num_heads", "head_dim");
    return rc == QSF_OK ? qsf_hf_put_u32(m, "feed_forward_length", 0) : rc;
}

static int put_jamba(QsfHfModel *m) {
    static const char offset_key[] = "attn_layer_offset";
    uint32_t kv[QSF_HF_LAYERS], period, inner;
    double offset;
    int rc = qsf_hf_layers_check(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "attn_layer_period", 8, &period);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, offset_key, 4, 0, period - 1, &offset);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++)
        kv[i] = i % period == (uint32_t)offset ? m->n_kv_heads : 0;
    if (rc == QSF_OK) rc = qsf_hf_put_u32s(m, "attention.head_count_kv", kv, m->n_layers);
    if (rc == QSF_OK) rc = inner_size(m, "mamba_expand", &inner);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "ssm.inner_size", inner);
    if (rc == QSF_OK) rc = put_rank(m, "mamba_dt_rank");
    return rc == QSF_OK ? qsf_hf_experts_put(m) : rc;
}

/* --- architectures --- */

const QsfHfArch qsf_hf_arch_mamba_jamba[] = {
    { .name = "MambaForCausalLM",
      .gguf = "mamba",
      .tensors = QSF_HF_NAMES(qsf_hf_names_backbone, qsf_hf_names_mixer_1),
      .keys = QSF_HF_KEYS(qsf_hf_keys_mamba, qsf_hf_keys_state_16),
      .must = must_mamba,
      .put = put_mamba,
      .prefixes = qsf_hf_backbone,
      .ffn_times = QSF_HF_NO_FFN,
      .n_ctx = 1u << 20,
      .tied = true,
      .no_heads = true },
    { .name = "Mamba2ForCausalLM",
      .gguf = "mamba2",
      .tensors = QSF_HF_NAMES(qsf_hf_names_backbone, qsf_hf_names_mixer_2),
      .keys = QSF_HF_KEYS(qsf_hf_keys_mamba, qsf_hf_keys_mamba_2),
      .must = must_mamba,
      .put = put_mamba2,
      .prefixes = qsf_hf_backbone,
      .ffn_times = QSF_HF_NO_FFN,
      .n_ctx = 1u << 20,
      .no_heads = true },
    { .name = "JambaForCausalLM",
      .gguf = "jamba",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, names_jamba, qsf_hf_names_qk, qsf_hf_names_vo,
                              qsf_hf_names_mamba_1),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, qsf_hf_keys_mamba_conv, qsf_hf_keys_state_16),
      .must = qsf_hf_must_jamba,
      .put = put_jamba,
      .kv_heads = 8,
      .own_kv_heads = true },
    QSF_HF_END,
};
