/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Falcon, and Falcon-H1, whose weights GGUF stores times the multipliers of config.json. Names:
 * huggingface/transformers models/falcon/, models/falcon_h1/; what is joined, and which multiplier applies
 * to what: ggml-org/llama.cpp conversion/falcon.py, falcon_h1.py. Defaults: transformers' configuration
 * files. */
#include <math.h>

#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

/* --- Falcon: queries, keys and values by groups --- */

static const QsfHfName falcon_names[] = {
    QSF_HF_MATRIX("word_embeddings", "token_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_NORM("ln_f", "output_norm"),
    QSF_HF_NORM("h.#.input_layernorm", QSF_HF_B("attn_norm")), /* 7B; two norms: 40B and 180B */
    QSF_HF_NORM("h.#.ln_mlp", QSF_HF_B("attn_norm")),
    QSF_HF_NORM("h.#.ln_attn", QSF_HF_B("attn_norm_2")),
    QSF_HF_PART("h.#.self_attention.query_key_value.weight", QSF_HF_B("attn_qkv.weight"), 2,
                qsf_hf_rows_group_q, 0),
    QSF_HF_PART("h.#.self_attention.query_key_value.weight", QSF_HF_B("attn_qkv.weight"), 2,
                qsf_hf_rows_group_k, 1),
    QSF_HF_PART("h.#.self_attention.query_key_value.weight", QSF_HF_B("attn_qkv.weight"), 2,
                qsf_hf_rows_group_v, 2),
    QSF_HF_MATRIX("h.#.self_attention.dense", QSF_HF_B("attn_output")),
    QSF_HF_MATRIX("h.#.mlp.dense_h_to_4h", QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX("h.#.mlp.dense_4h_to_h", QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED("h.#.self_attention.rotary_emb.inv_freq"),
    QSF_HF_IGNORED("h.#.self_attention.maybe_rotary.inv_freq"),
    QSF_HF_END,
};

static const QsfHfMust falcon_must[] = {
    { "alibi", "false" },        { "bias", "false" },      { "multi_query", "true" },
    { "parallel_attn", "true" }, { "activation", "gelu" }, QSF_HF_END,
};

/* --- Falcon-H1 --- */

#define MULTIPLIER_MAX 1e6

static int get(const QsfHfModel *m, const char *name, double *v) {
    return qsf_hf_real(m, m->text, name, 1, -MULTIPLIER_MAX, MULTIPLIER_MAX, v);
}

static int get_nth(const QsfHfModel *m, const char *name, size_t n, size_t i, double *v) {
    const QsfJson *list = qsf_hf_member(m->text, name);
    *v = 1;
    if (list == NULL) return QSF_OK;
    *v = qsf_json_size(list) == n ? qsf_json_real(qsf_json_at(list, i), (double)NAN) : (double)NAN;
    return fabs(*v) <= MULTIPLIER_MAX ? QSF_OK : qsf_hf_bad(m, name, "is not a list of its multipliers");
}

/* All rows, times one or two multipliers. */
static int times(const QsfHfModel *m, const char *a, const char *b, QsfRowMap *map) {
    double x = 1, y = 1;
    int rc = get(m, a, &x);
    if (rc == QSF_OK && b != NULL) rc = get(m, b, &y);
    map->factor = (float)(x * y);
    return rc;
}

#define TIMES(function, a, b)                                                                  \
    static int function(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) { \
        (void)src_rows;                                                                        \
        (void)n;                                                                               \
        return times(m, a, b, map);                                                            \
    }

TIMES(embedding, "embedding_multiplier", NULL)
TIMES(head, "lm_head_multiplier", NULL)
TIMES(attention_in, "attention_in_multiplier", NULL)
TIMES(attention_key, "attention_in_multiplier", "key_multiplier")
TIMES(attention_out, "attention_out_multiplier", NULL)
TIMES(ssm_out, "ssm_out_multiplier", NULL)

static int mlp(const QsfHfModel *m, size_t i, QsfRowMap *map) {
    double v;
    int rc = get_nth(m, "mlp_multipliers", 2, i, &v);
    map->factor = (float)v;
    return rc;
}

static int gate(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    (void)src_rows;
    (void)n;
    return mlp(m, 0, map);
}

static int down(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    (void)src_rows;
    (void)n;
    return mlp(m, 1, map);
}

/* The rows of in_proj are z, x, B, C and dt. */
static int in_rows(const QsfHfModel *m, size_t i, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    uint32_t inner, groups, state, heads;
    double in, own;
    int rc = qsf_hf_u32(m, "mamba_d_ssm", 0, &inner);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "mamba_n_groups", 1, &groups);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "mamba_d_state", 256, &state);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "mamba_n_heads", 128, &heads);
    if (rc == QSF_OK) rc = get(m, "ssm_in_multiplier", &in);
    if (rc == QSF_OK) rc = get_nth(m, "ssm_multipliers", 5, i, &own);
    if (rc != QSF_OK) return rc;
    const uint64_t bc = (uint64_t)groups * state, size[] = { inner, inner, bc, bc, heads };
    uint64_t all = 0;
    for (size_t k = 0; k < 5; k++) {
        if (k == i) map->first = all;
        all += size[k];
    }
    if (src_rows != all) return qsf_hf_bad_rows(m, src_rows, all, "its parts (config.json)");
    *n = map->run = map->stride = size[i];
    map->factor = (float)(in * own);
    return QSF_OK;
}

#define IN_ROWS(function, i)                                                                   \
    static int function(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) { \
        return in_rows(m, i, src_rows, map, n);                                                \
    }

IN_ROWS(in_z, 0)
IN_ROWS(in_x, 1)
IN_ROWS(in_b, 2)
IN_ROWS(in_c, 3)
IN_ROWS(in_dt, 4)

#define SCALED(hf, gguf, rows) \
    { hf ".weight", gguf ".weight", 2, QSF_DERIVE_TIMES, rows, 0, NULL }
#define IN(rows, part) \
    { QSF_HF_L("mamba.in_proj.weight"), QSF_HF_B("ssm_in.weight"), 2, QSF_DERIVE_TIMES, rows, part, NULL }
static const QsfHfName h1_names[] = {
    SCALED("embed_tokens", "token_embd", embedding),
    QSF_HF_VECTOR("final_layernorm", "output_norm"),
    SCALED("lm_head", "output", head),
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_HOW(QSF_HF_L("pre_ff_layernorm.weight"), QSF_HF_B("ffn_norm"), 1,
               QSF_DERIVE_COPY), /* without .weight */
    SCALED(QSF_HF_L("self_attn.q_proj"), QSF_HF_B("attn_q"), attention_in),
    SCALED(QSF_HF_L("self_attn.k_proj"), QSF_HF_B("attn_k"), attention_key),
    SCALED(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v"), attention_in),
    SCALED(QSF_HF_L("self_attn.o_proj"), QSF_HF_B("attn_output"), attention_out),
    SCALED(QSF_HF_L("feed_forward.gate_proj"), QSF_HF_B("ffn_gate"), gate),
    QSF_HF_MATRIX(QSF_HF_L("feed_forward.up_proj"), QSF_HF_B("ffn_up")),
    SCALED(QSF_HF_L("feed_forward.down_proj"), QSF_HF_B("ffn_down"), down),
    IN(in_z, 0),
    IN(in_x, 1),
    IN(in_b, 2),
    IN(in_c, 3),
    IN(in_dt, 4),
    QSF_HF_HOW(QSF_HF_L("mamba.conv1d.weight"), QSF_HF_B("ssm_conv1d.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("mamba.conv1d.bias"), QSF_HF_B("ssm_conv1d.bias"), 1, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("mamba.dt_bias"), QSF_HF_B("ssm_dt.bias"), 1, QSF_DERIVE_F32),
    { QSF_HF_L("mamba.A_log"), QSF_HF_B("ssm_a"), 1, QSF_DERIVE_NEG_EXP, NULL, 0, qsf_hf_shape_column },
    { QSF_HF_L("mamba.D"), QSF_HF_B("ssm_d"), 1, QSF_DERIVE_F32, NULL, 0, qsf_hf_shape_column },
    { QSF_HF_L("mamba.norm.weight"), QSF_HF_B("ssm_norm.weight"), 1, QSF_DERIVE_F32, NULL, 0,
      qsf_hf_shape_groups },
    SCALED(QSF_HF_L("mamba.out_proj"), QSF_HF_B("ssm_out"), ssm_out),
    QSF_HF_END,
};

static const QsfHfKey h1_keys[] = {
    { "mamba_d_ssm", "ssm.inner_size", QSF_HF_U32, QSF_HF_NEEDED, 1, QSF_HF_NUMBER },
    { "mamba_n_heads", "ssm.time_step_rank", QSF_HF_U32, 128, 1, QSF_HF_NUMBER },
    { "mamba_n_groups", "ssm.group_count", QSF_HF_U32, 1, 1, 1e6 },
    { "mamba_d_state", "ssm.state_size", QSF_HF_U32, 256, 1, 1e6 },
    { "mamba_d_conv", "ssm.conv_kernel", QSF_HF_U32, 4, 1, 1e5 },
    QSF_HF_END,
};

static const QsfHfMust h1_must[] = {
    { "hidden_act", "silu" },
    { "mamba_norm_before_gate", "false" },
    { "mamba_proj_bias", "false" },
    { "projectors_bias", "false" },
    { "attention_bias", "false" },
    { "mlp_bias", "false" },
    QSF_HF_END,
};

/* The inner size is that of all heads. */
static int put(QsfHfModel *m) {
    uint32_t inner, heads, dim;
    double embed, logits;
    int rc = get(m, "embedding_multiplier", &embed);
    if (rc == QSF_OK) rc = get(m, "lm_head_multiplier", &logits);
    if (rc == QSF_OK && m->tied && (embed < logits || embed > logits))
        rc = qsf_hf_bad(m, "lm_head_multiplier", "differs from that of the embedding, which is the head");
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "mamba_d_ssm", 0, &inner);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "mamba_n_heads", 128, &heads);
    if (rc == QSF_OK)
        rc = inner % heads == 0 ? QSF_OK : qsf_hf_bad(m, "mamba_n_heads", "does not divide mamba_d_ssm");
    if (rc == QSF_OK && qsf_json_string(qsf_hf_member(m->text, "mamba_d_head"), NULL) == NULL)
        rc = qsf_hf_u32(m, "mamba_d_head", inner / heads, &dim);
    else
        dim = inner / heads;
    if (rc == QSF_OK && dim != inner / heads)
        rc = qsf_hf_bad(m, "mamba_d_head", "times mamba_n_heads is not mamba_d_ssm");
    return rc;
}

const QsfHfArch qsf_hf_arch_falcon[] = {
    { .name = "FalconForCausalLM",
      .gguf = "falcon",
      .tensors = QSF_HF_NAMES(falcon_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm),
      .must = falcon_must,
      .prefixes = qsf_hf_transformer,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .kv_heads = 1,
      .ffn_times = 4,
      .n_ctx = 2048 },
    { .name = "FalconH1ForCausalLM",
      .gguf = "falcon-h1",
      .tensors = QSF_HF_NAMES(h1_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, h1_keys),
      .must = h1_must,
      .put = put,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rope_base = 100000 },
    QSF_HF_END,
};
