/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gemma 3n and Gemma 4. Names: huggingface/transformers models/gemma3n/modeling_gemma3n.py,
 * models/gemma4/modeling_gemma4.py; ggml-org/llama.cpp conversion/gemma.py. Defaults: transformers'
 * configuration files. */
#include <math.h>
#include <string.h>

#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

#define NO_ROTATION 1e30f /* the factor of a frequency of 0 (conversion/gemma.py) */
#define OWN_3N      20u   /* blocks of Gemma 3n with keys and values of their own, which the engine fixes */
#define SPARSE_3N   10u   /* blocks of Gemma 3n with a sparse activation; likewise */

static const char names_windows[] = "layer_types";
static const char *const kinds[] = { "full_attention", "sliding_attention", NULL };

/* The table has no rows for tokens of images and sound. */
static int rows_per_layer(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    (void)n;
    if (src_rows <= m->n_vocab) map->pad = m->n_vocab - src_rows;
    return QSF_OK;
}

static const QsfHfName names_both[] = {
    QSF_HF_VECTOR("norm", "output_norm"),
    { "embed_tokens_per_layer.weight", "per_layer_token_embd.weight", 2, QSF_DERIVE_COPY, rows_per_layer, 0,
      NULL },
    QSF_HF_MATRIX("per_layer_model_projection", "per_layer_model_proj"),
    QSF_HF_VECTOR("per_layer_projection_norm", "per_layer_proj_norm"),
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_VECTOR(QSF_HF_L("pre_feedforward_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_feedforward_layernorm"), QSF_HF_B("post_ffw_norm")),
    QSF_HF_MATRIX(QSF_HF_L("per_layer_input_gate"), QSF_HF_B("inp_gate")),
    QSF_HF_MATRIX(QSF_HF_L("per_layer_projection"), QSF_HF_B("proj")),
    QSF_HF_VECTOR(QSF_HF_L("post_per_layer_input_norm"), QSF_HF_B("post_norm")),
    QSF_HF_END,
};

static const QsfHfName names_3n[] = {
    QSF_HF_MATRIX("altup_projections.*", "altup_proj"),
    QSF_HF_MATRIX("altup_unembed_projections.*", "altup_unembd_proj"),
    QSF_HF_HOW(QSF_HF_L("altup.correction_coefs.weight"), QSF_HF_B("altup_correct_coef.weight"), 2,
               QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("altup.correct_output_scale"), QSF_HF_B("altup_correct_scale.weight"), 1,
               QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("altup.prediction_coefs.weight"), QSF_HF_B("altup_predict_coef.weight"), 2,
               QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("altup.modality_router"), QSF_HF_B("altup_router")),
    QSF_HF_VECTOR(QSF_HF_L("altup.router_norm"), QSF_HF_B("altup_router_norm")),
    QSF_HF_MATRIX(QSF_HF_L("laurel.linear_left"), QSF_HF_B("laurel_l")),
    QSF_HF_MATRIX(QSF_HF_L("laurel.linear_right"), QSF_HF_B("laurel_r")),
    QSF_HF_VECTOR(QSF_HF_L("laurel.post_laurel_norm"), QSF_HF_B("laurel_post_norm")),
    QSF_HF_END,
};

static const QsfHfName names_4[] = {
    QSF_HF_HOW(QSF_HF_L("layer_scalar"), QSF_HF_B("layer_output_scale.weight"), 1, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("router.proj.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("router.scale"), QSF_HF_B("ffn_gate_inp.scale"), 1, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("router.per_expert_scale"), QSF_HF_B("ffn_down_exps.scale"), 1, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("experts.gate_up_proj"), QSF_HF_B("ffn_gate_up_exps.weight"), 3, QSF_DERIVE_COPY),
    QSF_HF_HOW(QSF_HF_L("experts.down_proj"), QSF_HF_B("ffn_down_exps.weight"), 3, QSF_DERIVE_COPY),
    QSF_HF_VECTOR(QSF_HF_L("post_feedforward_layernorm_1"), QSF_HF_B("post_ffw_norm_1")),
    QSF_HF_VECTOR(QSF_HF_L("pre_feedforward_layernorm_2"), QSF_HF_B("pre_ffw_norm_2")),
    QSF_HF_VECTOR(QSF_HF_L("post_feedforward_layernorm_2"), QSF_HF_B("post_ffw_norm_2")),
    QSF_HF_END,
};

static const QsfHfKey keys[] = {
    { "sliding_window", "attention.sliding_window", QSF_HF_U32, 512, 1, QSF_HF_NUMBER },
    QSF_HF_END,
};
static const QsfHfKey keys_3n[] = {
    { "altup_num_inputs", "altup.num_inputs", QSF_HF_U32, 4, 1, 1e3 },
    { "altup_active_idx", "altup.active_idx", QSF_HF_U32, 0, 0, 1e3 },
    { "hidden_size_per_layer_input", "embedding_length_per_layer_input", QSF_HF_U32, 256, 1, QSF_HF_NUMBER },
    { "final_logit_softcapping", "final_logit_softcapping", QSF_HF_F32, 30, 0, 1e6 },
    QSF_HF_END,
};
static const QsfHfKey keys_4[] = {
    { "head_dim", "attention.key_length_swa", QSF_HF_U32, 256, 1, QSF_HF_NUMBER },
    { "head_dim", "attention.value_length_swa", QSF_HF_U32, 256, 1, QSF_HF_NUMBER },
    { "head_dim", "rope.dimension_count_swa", QSF_HF_U32, 256, 1, QSF_HF_NUMBER },
    { "global_head_dim", "attention.key_length", QSF_HF_U32, 512, 1, QSF_HF_NUMBER },
    { "global_head_dim", "attention.value_length", QSF_HF_U32, 512, 1, QSF_HF_NUMBER },
    { "global_head_dim", "rope.dimension_count", QSF_HF_U32, 512, 1, QSF_HF_NUMBER },
    { "num_kv_shared_layers", "attention.shared_kv_layers", QSF_HF_U32, 0, 0, 1e5 },
    { "hidden_size_per_layer_input", "embedding_length_per_layer_input", QSF_HF_U32, 256, 0, QSF_HF_NUMBER },
    QSF_HF_END,
};

static const QsfHfMust must_3n[] = {
    { "hidden_activation|hidden_act", "gelu_pytorch_tanh" },
    { "attention_bias", "false" },
    { "laurel_rank", "64" },
    { "altup_correct_scale", "true" },
    QSF_HF_END,
};
static const QsfHfMust must_4[] = {
    { "hidden_activation|hidden_act", "gelu_pytorch_tanh" },
    { "attention_bias", "false" },
    { "use_bidirectional_attention", "vision" },
    QSF_HF_END,
};

/* --- what the tables cannot express --- */

/* Reads which layers have a window: the kind is 1. */
static int read_windows(QsfHfModel *m, uint32_t period, uint32_t *kind) {
    if (qsf_hf_member(m->text, names_windows) != NULL)
        return qsf_hf_layer_kinds(m, names_windows, kinds, kind);
    int rc = qsf_hf_layers_check(m);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) kind[i] = (i + 1) % period != 0;
    return rc;
}

static int put_windows(QsfHfModel *m, const uint32_t *kind) {
    bool window[QSF_HF_LAYERS];
    for (uint32_t i = 0; i < m->n_layers; i++) window[i] = kind[i] == 1;
    return qsf_hf_put_bools(m, "attention.sliding_window_pattern", window, m->n_layers);
}

/* Reads rope_theta of one kind of layers. */
static int put_base(QsfHfModel *m, const char *kind, const char *older, double fallback, const char *gguf) {
    const QsfJson *rope = qsf_hf_member(qsf_hf_member(m->text, "rope_parameters"), kind);
    double base;
    int rc = qsf_hf_real(m, m->text, older, fallback, 1, 1e12, &base);
    if (rc == QSF_OK) rc = qsf_hf_real(m, rope, "rope_theta", base, 1, 1e12, &base);
    return rc == QSF_OK ? qsf_hf_put_f32(m, gguf, base) : rc;
}

/* The width of the feed-forward network, one number or one per layer. */
static int put_widths(QsfHfModel *m) {
    static const char key[] = "intermediate_size";
    const QsfJson *v = qsf_hf_member(m->text, key);
    uint32_t width[QSF_HF_LAYERS];
    int rc = QSF_OK;
    if (v == NULL || qsf_json_type(v) != QSF_JSON_ARRAY) {
        rc = qsf_hf_u32(m, key, 0, &width[0]);
        return rc == QSF_OK ? qsf_hf_put_u32(m, "feed_forward_length", width[0]) : rc;
    }
    if (qsf_json_size(v) != m->n_layers)
        return qsf_hf_bad(m, key, "is not a list of num_hidden_layers numbers");
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const int64_t n = qsf_json_int(qsf_json_at(v, i), -1);
        if (n < 1 || n > QSF_HF_NUMBER) return qsf_hf_bad(m, key, "is not a list of positive numbers");
        width[i] = (uint32_t)n;
    }
    return qsf_hf_put_u32s(m, "feed_forward_length", width, m->n_layers);
}

/* The engine fixes which layers are sparse and which share keys and values. */
static int check_3n(const QsfHfModel *m) {
    const QsfJson *list = qsf_hf_member(m->text, "activation_sparsity_pattern");
    double shared;
    int rc = qsf_hf_layers_check(m);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "num_kv_shared_layers", 15, 0, 1e5, &shared);
    if (rc == QSF_OK && (uint32_t)shared != (m->n_layers > OWN_3N ? m->n_layers - OWN_3N : 0))
        rc = qsf_hf_bad(m, "num_kv_shared_layers", "is not the number of layers after the first 20");
    for (uint32_t i = 0; rc == QSF_OK && list != NULL && i < m->n_layers; i++) {
        const double v = qsf_json_real(qsf_json_type(list) == QSF_JSON_ARRAY ? qsf_json_at(list, i) : list,
                                       (double)NAN);
        const double expected = i < SPARSE_3N ? 0.95 : 0;
        if (!(fabs(v - expected) < 1e-6))
            rc = qsf_hf_bad(m, "activation_sparsity_pattern",
                            "is not 0.95 in the first 10 layers and 0 in the others");
    }
    return rc;
}

static int put_3n(QsfHfModel *m) {
    uint32_t kind[QSF_HF_LAYERS];
    int rc = check_3n(m);
    if (rc == QSF_OK) rc = read_windows(m, 5, kind);
    if (rc == QSF_OK) rc = put_windows(m, kind);
    if (rc == QSF_OK)
        rc = put_base(m, "sliding_attention", "rope_local_base_freq", 10000, "rope.freq_base_swa");
    return rc == QSF_OK ? put_widths(m) : rc;
}

/* Heads of full layers rotate only some of their pairs, by frequencies of the whole head. */
static int make_factors(QsfHfModel *m) {
    const QsfJson *rope = qsf_hf_member(qsf_hf_member(m->text, "rope_parameters"), "full_attention");
    const char *type = qsf_json_string(qsf_hf_member(rope, "rope_type"), NULL);
    double part;
    uint32_t dim;
    int rc = qsf_hf_u32(m, "global_head_dim", 512, &dim);
    if (rc == QSF_OK && type != NULL && strcmp(type, "proportional") != 0)
        rc = qsf_hf_bad(m, "rope_parameters", "has a rope_type of full_attention other than 'proportional'");
    if (rc == QSF_OK) rc = qsf_hf_real(m, rope, "partial_rotary_factor", 0.25, 0, 1, &part);
    float *v = rc == QSF_OK ? qsf_hf_make(m, "rope_freqs.weight", dim / 2) : NULL;
    for (uint32_t i = 0; v != NULL && i < dim / 2; i++)
        v[i] = i < (uint32_t)(dim * part / 2) ? 1.0f : NO_ROTATION;
    return v != NULL ? QSF_OK : m->err->code;
}

/* Window layers and full ones may have different numbers of KV heads, and the last layers wider networks. */
static int put_sizes_4(QsfHfModel *m, const uint32_t *kind) {
    uint32_t kv[QSF_HF_LAYERS], ffn[QSF_HF_LAYERS], full = m->n_kv_heads, width;
    double shared;
    bool same, wide;
    int rc = qsf_hf_bool(m, "attention_k_eq_v", false, &same);
    if (rc == QSF_OK && same) rc = qsf_hf_u32(m, "num_global_key_value_heads", full, &full);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "intermediate_size", 0, &width);
    if (rc == QSF_OK) rc = qsf_hf_bool(m, "use_double_wide_mlp", false, &wide);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "num_kv_shared_layers", 0, 0, m->n_layers - 1, &shared);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) {
        kv[i] = kind[i] == 1 ? m->n_kv_heads : full;
        ffn[i] = wide && i >= m->n_layers - (uint32_t)shared ? 2 * width : width;
    }
    if (rc == QSF_OK) rc = qsf_hf_put_u32s(m, "attention.head_count_kv", kv, m->n_layers);
    return rc == QSF_OK ? qsf_hf_put_u32s(m, "feed_forward_length", ffn, m->n_layers) : rc;
}

static int put_4(QsfHfModel *m) {
    uint32_t kind[QSF_HF_LAYERS];
    const QsfJson *cap = qsf_hf_member(m->text, "final_logit_softcapping");
    double limit = 0;
    bool experts;
    int rc = read_windows(m, 6, kind);
    if (rc == QSF_OK) rc = put_windows(m, kind);
    if (rc == QSF_OK) rc = put_sizes_4(m, kind);
    if (rc == QSF_OK)
        rc = put_base(m, "sliding_attention", "rope_local_base_freq", 10000, "rope.freq_base_swa");
    if (rc == QSF_OK) rc = put_base(m, "full_attention", "rope_theta", 1e6, "rope.freq_base");
    if (rc == QSF_OK) rc = make_factors(m);
    if (rc == QSF_OK && cap != NULL)
        rc = qsf_hf_real(m, m->text, "final_logit_softcapping", 0, 0, 1e6, &limit);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "final_logit_softcapping", limit);
    if (rc == QSF_OK) rc = qsf_hf_bool(m, "enable_moe_block", false, &experts);
    return rc == QSF_OK && experts ? qsf_hf_experts_put(m) : rc;
}

/* --- architectures --- */

#define NAMES(more)                                                                                      \
    QSF_HF_NAMES(qsf_hf_names_ends, names_both, qsf_hf_names_qk, qsf_hf_names_qk_norms, qsf_hf_names_vo, \
                 qsf_hf_names_mlp, more)
#define KEYS(more) QSF_HF_KEYS(qsf_hf_keys_rms, keys, more)

static const char *const left_out[] = { "model.vision_tower.",          "model.audio_tower.",
                                        "model.embed_vision.",          "model.embed_audio.",
                                        "model.multi_modal_projector.", NULL };

#define GEMMA_3N                                                                                          \
    .gguf = "gemma3n", .tensors = NAMES(names_3n), .keys = KEYS(keys_3n), .must = must_3n, .put = put_3n, \
    .prefixes = qsf_hf_vision_prefixes, .left_out = left_out, .ropes = QSF_HF_ROPE_PLAIN, .tied = true,   \
    .heads = 8, .kv_heads = 2, .head_dim = 256, .ffn_times = QSF_HF_NO_FFN, .n_vocab = 262400,            \
    .n_ctx = 32768, .rope_base = 1e6
#define GEMMA_4                                                                                      \
    .gguf = "gemma4", .tensors = NAMES(names_4), .keys = KEYS(keys_4), .must = must_4, .put = put_4, \
    .prefixes = qsf_hf_vision_prefixes, .left_out = left_out, .tied = true, .rotated = "head_dim",   \
    .own_kv_heads = true, .heads = 8, .kv_heads = 4, .ffn_times = QSF_HF_NO_FFN, .n_vocab = 262144,  \
    .n_ctx = 131072

const QsfHfArch qsf_hf_arch_gemma3n_gemma4[] = {
    { .name = "Gemma3nForConditionalGeneration", GEMMA_3N },
    { .name = "Gemma3nForCausalLM", GEMMA_3N },
    { .name = "Gemma4ForConditionalGeneration", GEMMA_4 },
    { .name = "Gemma4ForCausalLM", GEMMA_4 },
    QSF_HF_END,
};
