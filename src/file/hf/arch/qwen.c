/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models with RMS norms before both branches that GGUF stores with rotated halves, as Hugging Face does. Sources as
 * in hf/arch/llama.c; ggml-org/llama.cpp conversion/qwen.py, phi.py, olmo.py, ernie.py, exaone.py, hunyuan.py. */
#include <math.h>
#include <stdio.h>

#include "src/file/hf/tables.h"

static const QsfHfKey *const keys[] = { qsf_hf_keys_rms, NULL };

static const QsfHfName *const plain[] = {
    qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};
static const QsfHfName *const with_head_norms[] = {
    qsf_hf_names_model,
    qsf_hf_names_norms,
    qsf_hf_names_qk,
    qsf_hf_names_vo,
    qsf_hf_names_mlp,
    qsf_hf_names_qk_norms,
    NULL,
};

/* Seed OSS: the second norm has another name in GGUF. */
static const QsfHfName seed_norms[] = {
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_END,
};
static const QsfHfName *const seed_tables[] = {
    qsf_hf_names_model, seed_norms, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};

/* HunYuan: other names of the norms of heads; a base that depends on "alpha". */
static const QsfHfName hunyuan_norms[] = {
    QSF_HF_VECTOR(QSF_HF_L("self_attn.query_layernorm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.key_layernorm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};
static const QsfHfName *const hunyuan_tables[] = {
    qsf_hf_names_model,
    qsf_hf_names_norms,
    qsf_hf_names_qk,
    qsf_hf_names_vo,
    qsf_hf_names_mlp,
    hunyuan_norms,
    NULL,
};
static const QsfHfMust hunyuan_must[] = {
    { "hidden_act", "silu|swish" },
    { "num_experts", "1" },
    QSF_HF_END,
};

/* Phi 3 and 4: fused projections; factors for long contexts. */
static const QsfHfName phi3_names[] = {
    QSF_HF_MATRIX(QSF_HF_L("self_attn.qkv_proj"), QSF_HF_B("attn_qkv")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.gate_up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};
static const QsfHfName *const phi3_tables[] = { qsf_hf_names_model, qsf_hf_names_norms, phi3_names, NULL };

static const QsfHfMust phi3_must[] = {
    { "hidden_act", "silu|swish" },
    { "attention_bias", "false" },
    QSF_HF_END,
};

/* Apertus: an activation with parameters of each layer. */
static const QsfHfName apertus_names[] = {
    QSF_HF_VECTOR(QSF_HF_L("attention_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("feedforward_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED(QSF_HF_L("mlp.act_fn.alpha_p")), /* metadata, see below */
    QSF_HF_IGNORED(QSF_HF_L("mlp.act_fn.alpha_n")),
    QSF_HF_IGNORED(QSF_HF_L("mlp.act_fn.beta")),
    QSF_HF_IGNORED(QSF_HF_L("mlp.act_fn.eps")),
    QSF_HF_END,
};
static const QsfHfName *const apertus_tables[] = {
    qsf_hf_names_model, qsf_hf_names_qk, qsf_hf_names_vo, apertus_names, qsf_hf_names_qk_norms, NULL,
};
static const QsfHfMust apertus_must[] = { { "hidden_act", "xielu" }, QSF_HF_END };

static int apertus(QsfHfModel *m) {
    static const struct {
        const char *name;
        float fallback; /* of buffers that some files lack; NAN = it must be there */
    } rows[] = { { "alpha_p", NAN }, { "alpha_n", NAN }, { "beta", 0.5f }, { "eps", -1e-6f } };
    float *v = qsf_source_alloc(m->s, m->n_layers, sizeof *v, m->err);
    int rc = v != NULL ? QSF_OK : m->err->code;
    for (size_t k = 0; rc == QSF_OK && k < sizeof rows / sizeof *rows; k++) {
        char name[64], key[32];
        for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) {
            v[i] = rows[k].fallback;
            (void)snprintf(name, sizeof name, "model.layers.%u.mlp.act_fn.%s", i, rows[k].name);
            if (!qsf_hf_first_value(m, name, &v[i]) && isnan(rows[k].fallback))
                rc = qsf_err_set(m->err, QSF_E_MODEL, "%s: tensor '%s' is missing", m->s->dir, name);
        }
        (void)snprintf(key, sizeof key, ".xielu.%s", rows[k].name);
        if (rc == QSF_OK) rc = qsf_hf_put_f32s(m, key, v, m->n_layers);
    }
    return rc;
}

/* EXAONE 3: names like those of GPT-2. */
static const QsfHfName exaone_names[] = {
    QSF_HF_MATRIX("wte", "token_embd"),
    QSF_HF_VECTOR("ln_f", "output_norm"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_IGNORED("rotary.inv_freq"),
    QSF_HF_VECTOR("h.#.ln_1", QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR("h.#.ln_2", QSF_HF_B("ffn_norm")),
    QSF_HF_MATRIX("h.#.attn.attention.q_proj", QSF_HF_B("attn_q")),
    QSF_HF_MATRIX("h.#.attn.attention.k_proj", QSF_HF_B("attn_k")),
    QSF_HF_MATRIX("h.#.attn.attention.v_proj", QSF_HF_B("attn_v")),
    QSF_HF_MATRIX("h.#.attn.attention.out_proj", QSF_HF_B("attn_output")),
    QSF_HF_MATRIX("h.#.mlp.c_fc_0", QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX("h.#.mlp.c_fc_1", QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX("h.#.mlp.c_proj", QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED("h.#.attn.attention.rotary.inv_freq"),
    QSF_HF_END,
};
static const QsfHfName *const exaone_tables[] = { exaone_names, NULL };
static const QsfHfKey exaone_rms[] = {
    { "layer_norm_epsilon", "attention.layer_norm_rms_epsilon", QSF_HF_F32, 1e-5, 0, 1 },
    QSF_HF_END,
};
static const QsfHfKey *const exaone_keys[] = { exaone_rms, NULL };
static const QsfHfMust exaone_must[] = { { "activation_function", "silu|swish" }, QSF_HF_END };
static const char *const transformer[] = { "transformer.", NULL };

/* BitNet: norms in front of the output projections; rows of the FFN of its original size use another activation. */
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

#define QWEN2VL                                                                  \
    .gguf = "qwen2vl", .tensors = plain, .keys = keys, .must = qsf_hf_must_silu, \
    .prefixes = qsf_hf_vision_prefixes, .left_out = qsf_hf_vision_left_out,      \
    .ropes = QSF_HF_ROPES_USUAL | QSF_HF_ROPE_SECTIONS, .window = QSF_HF_WINDOW_SWITCH

const QsfHfArch qsf_hf_arch_qwen[] = {
    { .name = "Qwen2ForCausalLM",
      .gguf = "qwen2",
      .tensors = plain,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_SWITCH },
    { .name = "Qwen3ForCausalLM",
      .gguf = "qwen3",
      .tensors = with_head_norms,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_SWITCH,
      .head_dim = 128 },
    { .name = "Qwen2VLForConditionalGeneration", QWEN2VL },
    { .name = "Qwen2_5_VLForConditionalGeneration", QWEN2VL },
    { .name = "Qwen3VLForConditionalGeneration",
      .gguf = "qwen3vl",
      .tensors = with_head_norms,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .prefixes = qsf_hf_vision_prefixes,
      .left_out = qsf_hf_vision_left_out,
      .ropes = QSF_HF_ROPES_USUAL | QSF_HF_ROPE_SECTIONS,
      .head_dim = 128,
      .rope_base = 5e6 },
    { .name = "SeedOssForCausalLM",
      .gguf = "seed_oss",
      .tensors = seed_tables,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .head_dim = 128 },
    { .name = "HunYuanDenseV1ForCausalLM",
      .gguf = "hunyuan-dense",
      .tensors = hunyuan_tables,
      .keys = keys,
      .must = hunyuan_must,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_ALPHA },
    { .name = "Phi3ForCausalLM",
      .gguf = "phi3",
      .tensors = phi3_tables,
      .keys = keys,
      .must = phi3_must,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LONG,
      .window = QSF_HF_WINDOW_WRITTEN,
      .rotary = 1 },
    { .name = "ApertusForCausalLM",
      .gguf = "apertus",
      .tensors = apertus_tables,
      .keys = keys,
      .must = apertus_must,
      .put = apertus,
      .ropes = QSF_HF_ROPES_USUAL,
      .rope_base = 12e6 },
    { .name = "ExaoneForCausalLM",
      .gguf = "exaone",
      .tensors = exaone_tables,
      .keys = exaone_keys,
      .must = exaone_must,
      .prefixes = transformer,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "Ernie4_5ForCausalLM",
      .gguf = "ernie4_5",
      .tensors = plain,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .rope_base = 5e5 },
    { .name = "Ernie4_5_ForCausalLM",
      .gguf = "ernie4_5",
      .tensors = plain,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .rope_base = 5e5 },
    { .name = "BitNetForCausalLM",
      .gguf = "bitnet-b1.58",
      .tensors = bitnet_tables,
      .keys = keys,
      .when = bitnet_squared,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rope_base = 5e5 },
    { .name = "BitNetForCausalLM",
      .gguf = "bitnet",
      .tensors = bitnet_tables,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rope_base = 5e5 },
    { 0 },
};
