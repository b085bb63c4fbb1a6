/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models with experts and usual attention. Names: huggingface/transformers models/NAME/modeling_NAME.py, and the
 * conversion of older names, conversion_mapping.py; ggml-org/llama.cpp conversion/NAME.py. Defaults:
 * transformers' configuration files. */
#include "src/file/hf/experts.h"

/* --- routers, experts, shared experts --- */

const QsfHfName qsf_hf_names_experts[] = {
    QSF_HF_HOW(QSF_HF_L("mlp.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("mlp.gate.e_score_correction_bias"), QSF_HF_B("exp_probs_b.bias"), 1, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("mlp.experts.*.gate_proj"), QSF_HF_B("ffn_gate_exps")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.experts.*.up_proj"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.experts.*.down_proj"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_END,
};

/* Of newer files: all experts in one tensor, gate over up. */
const QsfHfName qsf_hf_names_stacked[] = {
    QSF_HF_ROWS(QSF_HF_L("mlp.experts.gate_up_proj"), QSF_HF_B("ffn_gate_exps.weight"), 3, qsf_hf_rows_gate),
    QSF_HF_ROWS(QSF_HF_L("mlp.experts.gate_up_proj"), QSF_HF_B("ffn_up_exps.weight"), 3, qsf_hf_rows_up),
    { "layers.#.mlp.experts.down_proj", "blk.#.ffn_down_exps.weight", 3, 0, NULL, 0, NULL },
    QSF_HF_END,
};

/* The same, with columns for gate and up: x . W instead of W . x. */
static const QsfHfName names_stacked_t[] = {
    { "layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_gate_exps.weight", 3, QSF_DERIVE_TRANSPOSE,
      qsf_hf_rows_gate, 0, NULL },
    { "layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_up_exps.weight", 3, QSF_DERIVE_TRANSPOSE,
      qsf_hf_rows_up, 0, NULL },
    QSF_HF_HOW(QSF_HF_L("mlp.experts.down_proj"), QSF_HF_B("ffn_down_exps.weight"), 3, QSF_DERIVE_TRANSPOSE),
    QSF_HF_END,
};

static const QsfHfName names_w123[] = {
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    { "layers.#.block_sparse_moe.e_score_correction_bias", "blk.#.exp_probs_b.bias", 1, QSF_DERIVE_F32, NULL,
      0, NULL },
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w1"), QSF_HF_B("ffn_gate_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w3"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w2"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_shared_expert[] = {
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_expert.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_expert.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_expert.down_proj"), QSF_HF_B("ffn_down_shexp")),
    { "layers.#.mlp.shared_expert_gate.weight", "blk.#.ffn_gate_inp_shexp.weight", 2, QSF_DERIVE_F32, NULL, 0,
      qsf_hf_shape_vector },
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_shared_experts[] = {
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_experts.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_experts.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_experts.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_input_linear[] = {
    { "layers.#.block_sparse_moe.router.layer.weight", "blk.#.ffn_gate_inp.weight", 2, QSF_DERIVE_F32, NULL,
      0, NULL },
    { "layers.#.block_sparse_moe.input_linear.weight", "blk.#.ffn_gate_exps.weight", 3, 0, qsf_hf_rows_gate,
      0, NULL },
    QSF_HF_ROWS(QSF_HF_L("block_sparse_moe.input_linear.weight"), QSF_HF_B("ffn_up_exps.weight"), 3,
                qsf_hf_rows_up),
    { "layers.#.block_sparse_moe.output_linear.weight", "blk.#.ffn_down_exps.weight", 3, 0, NULL, 0, NULL },
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_shared_linear[] = {
    QSF_HF_ROWS(QSF_HF_L("shared_mlp.input_linear.weight"), QSF_HF_B("ffn_gate_shexp.weight"), 2,
                qsf_hf_rows_first),
    QSF_HF_ROWS(QSF_HF_L("shared_mlp.input_linear.weight"), QSF_HF_B("ffn_up_shexp.weight"), 2,
                qsf_hf_rows_second),
    QSF_HF_MATRIX(QSF_HF_L("shared_mlp.output_linear"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

/* --- other tables --- */

/* The second norm has another name in GGUF. */
static const QsfHfName names_norms_post[] = {
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_END,
};

static const QsfHfName names_phimoe[] = {
    { "norm.bias", "output_norm.bias", 1, 0, NULL, 0, NULL },
    { "lm_head.bias", "output.bias", 1, 0, NULL, 0, NULL },
    QSF_HF_BIAS(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_BIAS(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};

static const QsfHfName names_ernie[] = {
    { "layers.#.mlp.moe_statics.e_score_correction_bias", "blk.#.exp_probs_b.bias", 2, QSF_DERIVE_F32, NULL,
      0, qsf_hf_shape_vector },
    QSF_HF_END,
};

static const QsfHfName names_hunyuan[] = {
    QSF_HF_VECTOR(QSF_HF_L("self_attn.query_layernorm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.key_layernorm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_HOW(QSF_HF_L("mlp.gate.wg.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_mlp.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_mlp.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_mlp.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

static const QsfHfName names_llama4[] = {
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.gate_proj"), QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_HOW(QSF_HF_L("feed_forward.router.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    { "layers.#.feed_forward.experts.gate_up_proj", "blk.#.ffn_gate_exps.weight", 3, QSF_DERIVE_TRANSPOSE,
      qsf_hf_rows_gate, 0, NULL },
    { "layers.#.feed_forward.experts.gate_up_proj", "blk.#.ffn_up_exps.weight", 3, QSF_DERIVE_TRANSPOSE,
      qsf_hf_rows_up, 0, NULL },
    { "layers.#.feed_forward.experts.down_proj", "blk.#.ffn_down_exps.weight", 3, QSF_DERIVE_TRANSPOSE, NULL,
      0, NULL },
    { "layers.#.feed_forward.shared_expert.gate_proj.weight", "blk.#.ffn_gate_shexp.weight", 2, 0, NULL, 0,
      NULL },
    { "layers.#.feed_forward.shared_expert.up_proj.weight", "blk.#.ffn_up_shexp.weight", 2, 0, NULL, 0,
      NULL },
    { "layers.#.feed_forward.shared_expert.down_proj.weight", "blk.#.ffn_down_shexp.weight", 2, 0, NULL, 0,
      NULL },
    QSF_HF_END,
};

/* --- settings --- */

static const QsfHfKey keys_shared_width[] = {
    { "shared_expert_intermediate_size|shared_intermediate_size", "expert_shared_feed_forward_length",
      QSF_HF_U32, QSF_HF_ABSENT, 0, QSF_HF_NUMBER },
    QSF_HF_END,
};

static const QsfHfKey keys_ernie[] = {
    { "moe_layer_interval", "interleave_moe_layer_step", QSF_HF_U32, 1, 1, 1e5 },
    { "moe_layer_start_index", "leading_dense_block_count", QSF_HF_U32, 1, 0, 1e5 },
    QSF_HF_END,
};

static const QsfHfKey keys_llama4[] = {
    { "intermediate_size_mlp", "feed_forward_length", QSF_HF_U32, QSF_HF_NEEDED, 1, QSF_HF_NUMBER },
    { "intermediate_size", "expert_feed_forward_length", QSF_HF_U32, QSF_HF_NEEDED, 1, QSF_HF_NUMBER },
    { "interleave_moe_layer_step", "interleave_moe_layer_step", QSF_HF_U32, 1, 1, 1e5 },
    QSF_HF_END,
};

static const QsfHfMust must_llama4[] = {
    { "hidden_act", "silu" }, { "attention_chunk_size", "8192" },      { "floor_scale", "8192" },
    { "attn_scale", "0.1" },  { "attn_temperature_tuning", "true|4" }, { 0 },
};

static const QsfHfMust must_ernie[] = {
    { "hidden_act", "silu" },
    { "moe_norm_min", "1e-12" },
    QSF_HF_END,
};

static const QsfHfMust must_minimax[] = {
    { "hidden_act", "silu" },
    { "scoring_func", "sigmoid" },
    { "qk_norm_type", "per_layer" },
    { "use_qk_norm", "true" },
    QSF_HF_END,
};

/* --- what the tables cannot express --- */

static int put_divided(QsfHfModel *m) {
    int rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_need_bool(m, "norm_topk_prob", false, true);
    return rc == QSF_OK ? qsf_hf_experts_everywhere(m) : rc;
}

static int put_not_divided(QsfHfModel *m) {
    int rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_need_bool(m, "norm_topk_prob", false, false);
    if (rc == QSF_OK && qsf_hf_member(m->text, "clip_qkv") != NULL)
        rc = qsf_hf_bad(m, "clip_qkv", "is set, which is not supported for this architecture");
    return rc == QSF_OK ? qsf_hf_experts_everywhere(m) : rc;
}

static int put_deepseek(QsfHfModel *m) {
    int rc = qsf_hf_experts_put(m);
    return rc == QSF_OK ? qsf_hf_deepseek_put(m, "sigmoid") : rc;
}

/* The width of the shared expert is that of all of them, and the last block with experts is the last one. */
static int put_ernie(QsfHfModel *m) {
    uint32_t width, shared = 0, last;
    int rc = qsf_hf_experts_put(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "moe_intermediate_size", 0, &width);
    if (rc == QSF_OK && qsf_hf_member(m->text, "moe_num_shared_experts") != NULL)
        rc = qsf_hf_u32(m, "moe_num_shared_experts", 0, &shared);
    if (rc == QSF_OK && (uint64_t)width * shared > QSF_HF_NUMBER)
        rc = qsf_hf_bad(m, "moe_num_shared_experts", "is out of range");
    if (rc == QSF_OK && shared > 0)
        rc = qsf_hf_put_u32(m, "expert_shared_feed_forward_length", width * shared);
    if (rc != QSF_OK || qsf_json_int(qsf_hf_member(m->text, "moe_layer_end_index"), -1) < 0) return rc;
    rc = qsf_hf_u32(m, "moe_layer_end_index", m->n_layers, &last);
    if (rc == QSF_OK && last + 1 < m->n_layers)
        rc = qsf_hf_bad(m, "moe_layer_end_index", "is not the last layer, which is not supported");
    return rc;
}

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

static int put_minimax(QsfHfModel *m) {
    int rc = qsf_hf_experts_put(m);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "expert_feed_forward_length", m->ffn) : rc;
}

/* Rotation in three of four blocks; norms of queries and keys in all models but those of 128 experts. */
static int put_llama4(QsfHfModel *m) {
    const QsfJson *list = qsf_hf_member(m->text, "no_rope_layers");
    uint32_t experts;
    int rc = qsf_hf_experts_put(m);
    for (size_t i = 0; rc == QSF_OK && i < qsf_json_size(list); i++)
        if (qsf_json_int(qsf_json_at(list, i), -1) != ((i + 1) % 4 != 0))
            rc = qsf_hf_bad(m, "no_rope_layers", "is not every fourth layer, which is not supported");
    if (rc == QSF_OK) rc = qsf_hf_u32(m, QSF_HF_EXPERTS, 0, &experts);
    return rc == QSF_OK ? qsf_hf_need_bool(m, "use_qk_norm", true, experts != 128) : rc;
}

/* --- architectures --- */

#define TABLES(...) \
    (const QsfHfName *const[]) { qsf_hf_names_model, qsf_hf_names_vo, __VA_ARGS__, NULL }
#define KEYS(...) \
    (const QsfHfKey *const[]) { qsf_hf_keys_rms, __VA_ARGS__, NULL }
#define RMS_KEYS    ((const QsfHfKey *const[]){ qsf_hf_keys_rms, NULL })
#define PLAIN_ROPES (QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR | QSF_HF_ROPE_YARN)

const QsfHfArch qsf_hf_arch_moe[] = {
    { .name = "MixtralForCausalLM",
      .gguf = "llama",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk_pairs, names_w123),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put,
      .ropes = PLAIN_ROPES,
      .window = QSF_HF_WINDOW_LIMITS,
      .kv_heads = 8,
      .rope_base = 1e6 },
    { .name = "Qwen2MoeForCausalLM",
      .gguf = "qwen2moe",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_experts, qsf_hf_names_stacked,
                        qsf_hf_names_shared_expert),
      .keys = KEYS(keys_shared_width),
      .must = qsf_hf_must_silu,
      .put = put_not_divided,
      .ropes = PLAIN_ROPES,
      .window = QSF_HF_WINDOW_SWITCH },
    { .name = "Qwen3MoeForCausalLM",
      .gguf = "qwen3moe",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_qk_norms, qsf_hf_names_experts,
                        qsf_hf_names_stacked),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = put_divided,
      .ropes = PLAIN_ROPES,
      .window = QSF_HF_WINDOW_SWITCH },
    { .name = "Qwen3VLMoeForConditionalGeneration",
      .gguf = "qwen3vlmoe",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_qk_norms, qsf_hf_names_experts,
                        names_stacked_t),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = put_divided,
      .prefixes = qsf_hf_vision_prefixes,
      .left_out = qsf_hf_vision_left_out,
      .ropes = PLAIN_ROPES,
      .rope_base = 5e6 },
    { .name = "OlmoeForCausalLM",
      .gguf = "olmoe",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_qk_norms, qsf_hf_names_experts,
                        qsf_hf_names_stacked),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = put_not_divided,
      .ropes = PLAIN_ROPES },
    { .name = "GraniteMoeForCausalLM",
      .gguf = "granitemoe",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_input_linear),
      .keys = KEYS(qsf_hf_keys_granite),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put,
      .ropes = PLAIN_ROPES },
    { .name = "GraniteMoeSharedForCausalLM",
      .gguf = "granitemoe",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_input_linear,
                        qsf_hf_names_shared_linear),
      .keys = KEYS(qsf_hf_keys_granite, keys_shared_width),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put,
      .ropes = PLAIN_ROPES },
    { .name = "PhimoeForCausalLM",
      .gguf = "phimoe",
      .tensors = TABLES(qsf_hf_names_norms, names_phimoe, qsf_hf_names_qk, names_w123),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LONG,
      .window = QSF_HF_WINDOW_LIMITS },
    { .name = "PhiMoEForCausalLM",
      .gguf = "phimoe",
      .tensors = TABLES(qsf_hf_names_norms, names_phimoe, qsf_hf_names_qk, names_w123),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LONG,
      .window = QSF_HF_WINDOW_LIMITS },
    { .name = "Dots1ForCausalLM",
      .gguf = "dots1",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_qk_norms, qsf_hf_names_mlp,
                        qsf_hf_names_experts, qsf_hf_names_stacked, qsf_hf_names_shared_experts),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = put_deepseek,
      .ropes = PLAIN_ROPES,
      .window = QSF_HF_WINDOW_LIMITS },
    { .name = "Glm4MoeForCausalLM",
      .gguf = "glm4moe",
      .tensors = TABLES(names_norms_post, qsf_hf_names_qk, qsf_hf_names_qk_norms, qsf_hf_names_mlp,
                        qsf_hf_names_experts, qsf_hf_names_stacked, qsf_hf_names_shared_experts),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = put_deepseek,
      .ropes = PLAIN_ROPES,
      .rotary = 0.5 },
    { .name = "Ernie4_5_MoeForCausalLM",
      .gguf = "ernie4_5-moe",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_mlp, qsf_hf_names_experts,
                        qsf_hf_names_stacked, qsf_hf_names_shared_experts, names_ernie),
      .keys = KEYS(keys_ernie),
      .must = must_ernie,
      .put = put_ernie,
      .ropes = PLAIN_ROPES,
      .rope_base = 500000,
      .tied = true },
    { .name = "HunYuanMoEV1ForCausalLM",
      .gguf = "hunyuan-moe",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, names_hunyuan, qsf_hf_names_experts),
      .keys = RMS_KEYS,
      .must = qsf_hf_must_silu,
      .put = put_hunyuan,
      .ropes = QSF_HF_ROPE_PLAIN },
    { .name = "MiniMaxM2ForCausalLM",
      .gguf = "minimax-m2",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_qk_norms, names_w123),
      .keys = RMS_KEYS,
      .must = must_minimax,
      .put = put_minimax,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rotary = 1,
      .rope_base = 5e6 },
    { .name = "Llama4ForCausalLM",
      .gguf = "llama4",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, names_llama4),
      .keys = KEYS(keys_llama4),
      .must = must_llama4,
      .put = put_llama4,
      .prefixes = qsf_hf_vision_prefixes,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LLAMA3,
      .ffn_times = QSF_HF_NO_FFN,
      .rope_base = 500000 },
    { .name = "Llama4ForConditionalGeneration",
      .gguf = "llama4",
      .tensors = TABLES(qsf_hf_names_norms, qsf_hf_names_qk, names_llama4),
      .keys = KEYS(keys_llama4),
      .must = must_llama4,
      .put = put_llama4,
      .prefixes = qsf_hf_vision_prefixes,
      .left_out = qsf_hf_vision_left_out,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LLAMA3,
      .ffn_times = QSF_HF_NO_FFN,
      .rope_base = 500000 },
    QSF_HF_END,
};
