/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gemma 1 to 3, whose norms multiply by 1 + weight; GGUF stores the sum. Names: huggingface/transformers
 * models/gemma/, models/gemma2/, models/gemma3/; ggml-org/llama.cpp conversion/gemma.py. Defaults:
 * transformers' configuration files. */
#include "src/file/hf/tables.h"

static const QsfHfName gemma_norms[] = {
    QSF_HF_ADD_ONE("norm", "output_norm"),
    QSF_HF_ADD_ONE(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_ADD_ONE(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};

static const QsfHfName gemma2_norms[] = {
    QSF_HF_ADD_ONE("norm", "output_norm"),
    QSF_HF_ADD_ONE(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_ADD_ONE(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_ADD_ONE(QSF_HF_L("pre_feedforward_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_ADD_ONE(QSF_HF_L("post_feedforward_layernorm"), QSF_HF_B("post_ffw_norm")),
    QSF_HF_END,
};

static const QsfHfName gemma3_head_norms[] = {
    QSF_HF_ADD_ONE(QSF_HF_L("self_attn.q_norm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_ADD_ONE(QSF_HF_L("self_attn.k_norm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};

/* All compute GELU by tanh, also where config.json says "gelu". */
static const QsfHfMust gemma_must[] = {
    { "hidden_activation|hidden_act", "gelu_pytorch_tanh|gelu" },
    { "use_bidirectional_attention", "false" },
    { "attention_bias", "false" },
    QSF_HF_END,
};
static const QsfHfMust gemma3_must[] = {
    { "hidden_activation|hidden_act", "gelu_pytorch_tanh|gelu" },
    { "use_bidirectional_attention", "false" },
    { "attention_bias", "false" },
    { "attn_logit_softcapping", "" },
    { "final_logit_softcapping", "" },
    QSF_HF_END,
};

/* The engine divides scores by the root of the size of a head, and of hidden_size / heads in the 27B
 * models. */
static int check_scale(QsfHfModel *m) {
    double scale;
    const bool large = m->n_layers == 46 || m->n_layers == 62;
    const double expected = large ? (double)m->hidden / m->n_heads : m->head_dim;
    int rc = qsf_hf_real(m, m->text, "query_pre_attn_scalar", 256, 1, QSF_HF_NUMBER, &scale);
    if (rc != QSF_OK || (scale >= expected && scale <= expected)) return rc;
    return qsf_err_set(m->err, QSF_E_MODEL,
                       "%s: 'query_pre_attn_scalar' is %g, only %g is supported for this model", m->path,
                       scale, expected);
}

/* A cap that is null is none, but one that is absent has a default. */
static int put_cap(QsfHfModel *m, const char *name, double fallback) {
    const QsfJson *v = qsf_json_get(m->text, name);
    double cap;
    if (v != NULL && qsf_json_type(v) == QSF_JSON_NULL) return qsf_hf_put_f32(m, name, 0);
    int rc = qsf_hf_real(m, m->text, name, fallback, 0, 1e6, &cap);
    return rc == QSF_OK ? qsf_hf_put_f32(m, name, cap) : rc;
}

static int gemma2(QsfHfModel *m) {
    int rc = check_scale(m);
    if (rc == QSF_OK) rc = put_cap(m, "attn_logit_softcapping", 50);
    if (rc == QSF_OK) rc = put_cap(m, "final_logit_softcapping", 30);
    return rc == QSF_OK ? qsf_hf_put_window(m, 4096) : rc;
}

/* Layers with a window rotate with their own base, unscaled. */
static int gemma3(QsfHfModel *m) {
    double base;
    uint32_t period;
    const QsfJson *local = qsf_hf_member(qsf_hf_member(m->text, "rope_parameters"), "sliding_attention");
    int rc = check_scale(m);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "rope_local_base_freq", 10000, 1, 1e12, &base);
    if (rc == QSF_OK) rc = qsf_hf_real(m, local, "rope_theta", base, 1, 1e12, &base);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "rope.freq_base_swa", base);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "sliding_window_pattern|_sliding_window_pattern", 6, &period);
    if (rc != QSF_OK || period == 1) return rc; /* no windows */
    if (period != 6 && qsf_hf_member(m->text, "layer_types") == NULL)
        rc = qsf_hf_put_u32(m, "attention.sliding_window_pattern", period);
    return rc == QSF_OK ? qsf_hf_put_window(m, 4096) : rc;
}

#define GEMMA3                                                                                 \
    .gguf = "gemma3",                                                                          \
    .tensors = QSF_HF_NAMES(qsf_hf_names_ends, gemma2_norms, qsf_hf_names_qk, qsf_hf_names_vo, \
                            qsf_hf_names_mlp, gemma3_head_norms),                              \
    .keys = QSF_HF_KEYS(qsf_hf_keys_rms), .must = gemma3_must, .put = gemma3,                  \
    .prefixes = qsf_hf_vision_prefixes, .left_out = qsf_hf_vision_left_out,                    \
    .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR, .tied = true, .heads = 8, .kv_heads = 4,  \
    .head_dim = 256, .n_vocab = 262208, .n_ctx = 131072, .rope_base = 1e6

const QsfHfArch qsf_hf_arch_gemma[] = {
    { .name = "GemmaForCausalLM",
      .gguf = "gemma",
      .tensors = QSF_HF_NAMES(qsf_hf_names_ends, gemma_norms, qsf_hf_names_qk, qsf_hf_names_vo,
                              qsf_hf_names_mlp),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = gemma_must,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .head_dim = 256,
      .n_ctx = 8192 },
    { .name = "Gemma2ForCausalLM",
      .gguf = "gemma2",
      .tensors = QSF_HF_NAMES(qsf_hf_names_ends, gemma2_norms, qsf_hf_names_qk, qsf_hf_names_vo,
                              qsf_hf_names_mlp),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = gemma_must,
      .put = gemma2,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .kv_heads = 4,
      .head_dim = 256,
      .n_ctx = 8192 },
    { .name = "Gemma3ForCausalLM", GEMMA3 },
    { .name = "Gemma3ForConditionalGeneration", GEMMA3 },
    { 0 },
};
