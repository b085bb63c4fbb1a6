/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models with layer norms and names like those of Llama: Command R, Phi 2, StableLM, Starcoder 2, Nemotron. Sources
 * as in hf/arch/llama.c; ggml-org/llama.cpp conversion/command_r.py, phi.py, stablelm.py, nemotron.py. */
#include "src/file/hf/tables.h"

#define NORM(hf, gguf) QSF_HF_VECTOR(hf, gguf), QSF_HF_BIAS(hf, gguf)

static const QsfHfName norms[] = {
    NORM("norm", "output_norm"),
    NORM(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    NORM(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};
static const QsfHfKey *const keys[] = { qsf_hf_keys_layer_norm, NULL };

/* --- Command R: attention and FFN in parallel; norms of heads have a row for each of them --- */

static const QsfHfName cohere_norms[] = {
    QSF_HF_VECTOR("norm", "output_norm"),
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_norm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.k_norm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};
static const QsfHfName *const cohere_tables[] = {
    qsf_hf_names_ends, cohere_norms, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};
static const QsfHfKey cohere_scale[] = {
    { "logit_scale", "logit_scale", QSF_HF_F32, 0.0625, 1e-6, 1e6 },
    QSF_HF_END,
};
static const QsfHfKey *const cohere_keys[] = { qsf_hf_keys_layer_norm, cohere_scale, NULL };

/* Command R7B: windows except in every fourth layer. */
static int cohere2(QsfHfModel *m) {
    uint32_t window, period;
    int rc = qsf_hf_u32(m, "sliding_window", 4096, &window);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "sliding_window_pattern|_sliding_window_pattern", 4, &period);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.sliding_window", window);
    if (rc == QSF_OK && period != 4 && qsf_hf_member(m->text, "layer_types") == NULL)
        rc = qsf_hf_put_u32(m, "attention.sliding_window_pattern", period);
    return rc == QSF_OK ? qsf_hf_put_windows(m) : rc;
}

/* --- Phi 1, 1.5 and 2 --- */

static const QsfHfName phi2_names[] = {
    QSF_HF_BIAS("lm_head", "output"),
    NORM("final_layernorm", "output_norm"),
    NORM(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_BIAS(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.dense"), QSF_HF_B("attn_output")),
    QSF_HF_BIAS(QSF_HF_L("self_attn.dense"), QSF_HF_B("attn_output")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.fc1"), QSF_HF_B("ffn_up")),
    QSF_HF_BIAS(QSF_HF_L("mlp.fc1"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.fc2"), QSF_HF_B("ffn_down")),
    QSF_HF_BIAS(QSF_HF_L("mlp.fc2"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};
static const QsfHfName *const phi2_tables[] = { qsf_hf_names_ends, qsf_hf_names_qk, phi2_names, NULL };
static const QsfHfMust phi2_must[] = {
    { "hidden_act", "gelu_new|gelu_pytorch_tanh|gelu_fast" },
    { "qk_layernorm", "false" },
    QSF_HF_END,
};

/* --- StableLM: with q/k norms, a tensor for each head --- */

static const QsfHfName stablelm_heads[] = {
    QSF_HF_VECTOR(QSF_HF_L("self_attn.q_layernorm.norms.*"), QSF_HF_B("attn_q_norm")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.k_layernorm.norms.*"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};
static const QsfHfName *const stablelm_tables[] = {
    qsf_hf_names_ends, norms, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp, stablelm_heads, NULL,
};
static const QsfHfKey stablelm_residual[] = {
    { "use_parallel_residual", "use_parallel_residual", QSF_HF_BOOL, 0, 0, 0 },
    QSF_HF_END,
};
static const QsfHfKey *const stablelm_keys[] = { qsf_hf_keys_layer_norm, stablelm_residual, NULL };

/* --- Starcoder 2 --- */

static const QsfHfName starcoder2_mlp[] = {
    QSF_HF_MATRIX(QSF_HF_L("mlp.c_fc"), QSF_HF_B("ffn_up")),
    QSF_HF_BIAS(QSF_HF_L("mlp.c_fc"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.c_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_BIAS(QSF_HF_L("mlp.c_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};
static const QsfHfName *const starcoder2_tables[] = {
    qsf_hf_names_ends, norms, qsf_hf_names_qk, qsf_hf_names_vo, starcoder2_mlp, NULL,
};
static const QsfHfMust starcoder2_must[] = {
    { "hidden_act", "gelu_pytorch_tanh|gelu_new" },
    { "norm_type", "layer_norm" },
    { "mlp_type", "default" },
    QSF_HF_END,
};

/* --- Nemotron: norms multiply by 1 + weight --- */

#define NORM1(hf, gguf) QSF_HF_HOW(hf ".weight", gguf ".weight", 1, QSF_DERIVE_ADD_ONE), QSF_HF_BIAS(hf, gguf)

static const QsfHfName nemotron_norms[] = {
    NORM1("norm", "output_norm"),
    NORM1(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    NORM1(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};
static const QsfHfName *const nemotron_tables[] = {
    qsf_hf_names_ends, nemotron_norms, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};
static const QsfHfMust nemotron_must[] = { { "hidden_act", "relu2" }, QSF_HF_END };

const QsfHfArch qsf_hf_arch_layer_norm[] = {
    { .name = "CohereForCausalLM",
      .gguf = "command-r",
      .tensors = cohere_tables,
      .keys = cohere_keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .ctx = "model_max_length|max_position_embeddings" },
    { .name = "Cohere2ForCausalLM",
      .gguf = "cohere2",
      .tensors = cohere_tables,
      .keys = cohere_keys,
      .must = qsf_hf_must_silu,
      .put = cohere2,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .rotary = 1 },
    { .name = "PhiForCausalLM",
      .gguf = "phi2",
      .tensors = phi2_tables,
      .keys = keys,
      .must = phi2_must,
      .ropes = QSF_HF_ROPE_PLAIN,
      .n_ctx = 2048,
      .rotary = 0.5 },
    { .name = "StableLmForCausalLM",
      .gguf = "stablelm",
      .tensors = stablelm_tables,
      .keys = stablelm_keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .n_ctx = 4096,
      .rotary = 0.25 },
    { .name = "Starcoder2ForCausalLM",
      .gguf = "starcoder2",
      .tensors = starcoder2_tables,
      .keys = keys,
      .must = starcoder2_must,
      .ropes = QSF_HF_ROPE_PLAIN,
      .window = QSF_HF_WINDOW_LIMITS,
      .tied = true,
      .kv_heads = 2 },
    { .name = "NemotronForCausalLM",
      .gguf = "nemotron",
      .tensors = nemotron_tables,
      .keys = keys,
      .must = nemotron_must,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR,
      .rotary = 0.5 },
    { 0 },
};
