/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mamba, Mamba-2 and Jamba, and the tables of Mamba layers. Names: huggingface/transformers
 * models/NAME/modeling_NAME.py; ggml-org/llama.cpp conversion/mamba.py, jamba.py. Defaults: transformers'
 * configuration files. */
#include <string.h>

#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

const char *const qsf_hf_backbone[] = { "backbone.", NULL };

/* --- Mamba layers --- */

/* A is -exp(A_log), one number per head (Mamba-2) or a row per channel. */
#define SCAN(p)                                                                             \
    { p "in_proj.weight", "blk.#.ssm_in.weight", 2, 0, NULL, 0, NULL },                     \
        { p "conv1d.weight", "blk.#.ssm_conv1d.weight", 2, QSF_DERIVE_F32, NULL, 0, NULL }, \
        { p "conv1d.bias", "blk.#.ssm_conv1d.bias", 1, QSF_DERIVE_F32, NULL, 0, NULL }, {   \
        p "out_proj.weight", "blk.#.ssm_out.weight", 2, 0, NULL, 0, NULL                    \
    }
#define MAMBA_1(p)                                                                                 \
    { p "x_proj.weight", "blk.#.ssm_x.weight", 2, 0, NULL, 0, NULL },                              \
        { p "dt_proj.weight", "blk.#.ssm_dt.weight", 2, 0, NULL, 0, NULL },                        \
        { p "dt_proj.bias", "blk.#.ssm_dt.bias", 1, QSF_DERIVE_F32, NULL, 0, NULL },               \
        { p "dt_layernorm.weight", "blk.#.ssm_dt_norm.weight", 1, QSF_DERIVE_F32, NULL, 0, NULL }, \
        { p "b_layernorm.weight", "blk.#.ssm_b_norm.weight", 1, QSF_DERIVE_F32, NULL, 0, NULL },   \
        { p "c_layernorm.weight", "blk.#.ssm_c_norm.weight", 1, QSF_DERIVE_F32, NULL, 0, NULL },   \
        { p "A_log", "blk.#.ssm_a", 2, QSF_DERIVE_NEG_EXP, NULL, 0, NULL }, {                      \
        p "D", "blk.#.ssm_d", 1, QSF_DERIVE_F32, NULL, 0, NULL                                     \
    }
#define MAMBA_2(p)                                                                                \
    { p "dt_bias", "blk.#.ssm_dt.bias", 1, QSF_DERIVE_F32, NULL, 0, NULL },                       \
        { p "A_log", "blk.#.ssm_a", 1, QSF_DERIVE_NEG_EXP, NULL, 0, qsf_hf_shape_column },        \
        { p "D", "blk.#.ssm_d", 1, QSF_DERIVE_F32, NULL, 0, qsf_hf_shape_column }, {              \
        p "norm.weight", "blk.#.ssm_norm.weight", 1, QSF_DERIVE_F32, NULL, 0, qsf_hf_shape_groups \
    }

const QsfHfName qsf_hf_names_backbone[] = {
    { "embeddings.weight", "token_embd.weight", 2, 0, NULL, 0, NULL },
    { "embedding.weight", "token_embd.weight", 2, 0, NULL, 0, NULL },
    { "norm_f.weight", "output_norm.weight", 1, 0, NULL, 0, NULL },
    { "lm_head.weight", "output.weight", 2, 0, NULL, 0, NULL },
    QSF_HF_VECTOR(QSF_HF_L("norm"), QSF_HF_B("attn_norm")),
    QSF_HF_END,
};
static const QsfHfName names_mixer_1[] = { SCAN("layers.#.mixer."), MAMBA_1("layers.#.mixer."), { 0 } };
const QsfHfName qsf_hf_names_mixer_2[] = { SCAN("layers.#.mixer."), MAMBA_2("layers.#.mixer."), { 0 } };
static const QsfHfName names_mamba_1[] = { SCAN("layers.#.mamba."), MAMBA_1("layers.#.mamba."), { 0 } };
const QsfHfName qsf_hf_names_mamba_2[] = { SCAN("layers.#.mamba."), MAMBA_2("layers.#.mamba."), { 0 } };

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

const QsfHfKey qsf_hf_keys_mamba[] = {
    { "layer_norm_epsilon|rms_norm_eps", "attention.layer_norm_rms_epsilon", QSF_HF_F32, 1e-5, 0, 1 },
    { "conv_kernel|d_conv|mamba_d_conv", "ssm.conv_kernel", QSF_HF_U32, 4, 1, 1e5 },
    QSF_HF_END,
};

const QsfHfKey qsf_hf_keys_mamba_2[] = {
    { "state_size|d_state|ssm_state_size|mamba_d_state", "ssm.state_size", QSF_HF_U32, 128, 1, 1e6 },
    { "n_groups|mamba_n_groups", "ssm.group_count", QSF_HF_U32, 8, 1, 1e6 },
    QSF_HF_END,
};

const QsfHfKey qsf_hf_keys_mamba_conv[] = {
    { "mamba_d_conv", "ssm.conv_kernel", QSF_HF_U32, 4, 1, 1e5 },
    QSF_HF_END,
};

static const QsfHfMust must_mamba[] = {
    { "hidden_act", "silu" },
    { "use_bias", "false" },
    QSF_HF_END,
};

const QsfHfMust qsf_hf_must_jamba[] = {
    { "hidden_act", "silu" },
    { "mamba_proj_bias", "false" },
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

/* The engine does not limit the time step. */
static int check_limits(const QsfHfModel *m) {
    static const char key[] = "time_step_limit|mamba_dt_limit";
    const QsfJson *v = qsf_hf_member(m->text, key);
    if (v == NULL) return QSF_OK;
    const double low = qsf_json_real(qsf_json_at(v, 0), 1), high = qsf_json_real(qsf_json_at(v, 1), 0);
    return low <= 0 && high >= 1e30 ? QSF_OK
                                    : qsf_hf_bad(m, key, "is not from 0 to infinity, which is not supported");
}

/* Heads of Mamba-2, of the same size. */
int qsf_hf_put_mamba_heads(QsfHfModel *m, const char *heads, const char *dim) {
    uint32_t n, d;
    int rc = check_limits(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, heads, 0, &n);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, dim, 64, &d);
    if (rc == QSF_OK && (uint64_t)n * d > QSF_HF_NUMBER) rc = qsf_hf_bad(m, heads, "is out of range");
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "ssm.inner_size", n * d);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "ssm.time_step_rank", n) : rc;
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

#define NAMES(...) ((const QsfHfName *const[]){ __VA_ARGS__, NULL })
#define KEYS(...)  ((const QsfHfKey *const[]){ __VA_ARGS__, NULL })

const QsfHfArch qsf_hf_arch_mamba[] = {
    { .name = "MambaForCausalLM",
      .gguf = "mamba",
      .tensors = NAMES(qsf_hf_names_backbone, names_mixer_1),
      .keys = KEYS(qsf_hf_keys_mamba, qsf_hf_keys_state_16),
      .must = must_mamba,
      .put = put_mamba,
      .prefixes = qsf_hf_backbone,
      .ffn_times = QSF_HF_NO_FFN,
      .n_ctx = 1u << 20,
      .tied = true,
      .no_heads = true },
    { .name = "Mamba2ForCausalLM",
      .gguf = "mamba2",
      .tensors = NAMES(qsf_hf_names_backbone, qsf_hf_names_mixer_2),
      .keys = KEYS(qsf_hf_keys_mamba, qsf_hf_keys_mamba_2),
      .must = must_mamba,
      .put = put_mamba2,
      .prefixes = qsf_hf_backbone,
      .ffn_times = QSF_HF_NO_FFN,
      .n_ctx = 1u << 20,
      .no_heads = true },
    { .name = "JambaForCausalLM",
      .gguf = "jamba",
      .tensors = NAMES(qsf_hf_names_model, names_jamba, qsf_hf_names_qk, qsf_hf_names_vo, names_mamba_1),
      .keys = KEYS(qsf_hf_keys_rms, qsf_hf_keys_mamba_conv, qsf_hf_keys_state_16),
      .must = qsf_hf_must_jamba,
      .put = put_jamba,
      .kv_heads = 8,
      .own_kv_heads = true },
    QSF_HF_END,
};
