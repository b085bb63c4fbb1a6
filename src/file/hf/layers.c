/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings per layer; tables, settings and shapes of tensors of Mamba layers. */
#include "src/file/hf/layers.h"

#include <stdio.h>
#include <string.h>

/* --- tables of Mamba layers --- */

const char *const qsf_hf_backbone[] = { "backbone.", NULL };

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

const QsfHfName qsf_hf_names_mixer_1[] = { SCAN("layers.#.mixer."), MAMBA_1("layers.#.mixer."), { 0 } };
const QsfHfName qsf_hf_names_mixer_2[] = { SCAN("layers.#.mixer."), MAMBA_2("layers.#.mixer."), { 0 } };
const QsfHfName qsf_hf_names_mamba_1[] = { SCAN("layers.#.mamba."), MAMBA_1("layers.#.mamba."), { 0 } };
const QsfHfName qsf_hf_names_mamba_2[] = { SCAN("layers.#.mamba."), MAMBA_2("layers.#.mamba."), { 0 } };

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

const QsfHfMust qsf_hf_must_jamba[] = {
    { "hidden_act", "silu" },
    { "mamba_proj_bias", "false" },
    QSF_HF_END,
};

const QsfHfKey qsf_hf_keys_state_16[] = {
    { "state_size|d_state|mamba_d_state", "ssm.state_size", QSF_HF_U32, 16, 1, 1e6 },
    { 0 },
};

/* --- settings per layer --- */

int qsf_hf_layers_check(const QsfHfModel *m) {
    if (m->n_layers <= QSF_HF_LAYERS) return QSF_OK;
    return qsf_err_set(m->err, QSF_E_MODEL, "%s: 'num_hidden_layers' is %u, at most %u are supported",
                       m->path, m->n_layers, QSF_HF_LAYERS);
}

/* Names of kinds that changed (huggingface/transformers configuration_utils.py). */
static const char *new_name(const char *name, const char *const *kinds) {
    static const char *const pairs[][2] = {
        { "linear_attention", "mamba" },
        { "full_attention", "attention" },
        { "attention", "full_attention" },
        { "short_conv", "conv" },
    };
    for (const char *const *k = kinds; *k != NULL; k++)
        if (strcmp(*k, name) == 0) return name;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (const char *const *k = kinds; *k != NULL; k++)
            if (strcmp(pairs[i][0], name) == 0 && strcmp(pairs[i][1], *k) == 0) return *k;
    return name;
}

int qsf_hf_layer_kinds(const QsfHfModel *m, const char *names, const char *const *kinds, uint32_t *kind) {
    const QsfJson *list = qsf_hf_member(m->text, names);
    int rc = qsf_hf_layers_check(m);
    if (rc != QSF_OK) return rc;
    if (list == NULL) return qsf_hf_bad(m, names, "is missing");
    if (qsf_json_type(list) != QSF_JSON_ARRAY || qsf_json_size(list) != m->n_layers)
        return qsf_hf_bad(m, names, "is not a list of num_hidden_layers names");
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const char *name = qsf_json_string(qsf_json_at(list, i), NULL);
        kind[i] = 0;
        if (name != NULL) name = new_name(name, kinds);
        while (name != NULL && kinds[kind[i]] != NULL && strcmp(kinds[kind[i]], name) != 0) kind[i]++;
        if (name == NULL || kinds[kind[i]] == NULL)
            return qsf_err_set(m->err, QSF_E_MODEL,
                               "%s: '%.*s' of layer %u is '%.*s', which is not supported", m->path,
                               (int)strcspn(names, "|"), names, i, QSF_HF_SHOWN, name != NULL ? name : "?");
    }
    return QSF_OK;
}

int qsf_hf_put_kv_heads(QsfHfModel *m, const char *const *kinds, uint32_t attention) {
    uint32_t kind[QSF_HF_LAYERS];
    int rc = qsf_hf_layer_kinds(m, "layer_types", kinds, kind);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++)
        kind[i] = kind[i] == attention ? m->n_kv_heads : 0;
    return rc == QSF_OK ? qsf_hf_put_u32s(m, "attention.head_count_kv", kind, m->n_layers) : rc;
}

/* --- settings and shapes of Mamba layers --- */

/* The engine does not limit the time step. */
static int check_limits(const QsfHfModel *m) {
    static const char key[] = "time_step_limit|mamba_dt_limit";
    const QsfJson *v = qsf_hf_member(m->text, key);
    if (v == NULL) return QSF_OK;
    const double low = qsf_json_real(qsf_json_at(v, 0), 1), high = qsf_json_real(qsf_json_at(v, 1), 0);
    return low <= 0 && high >= 1e30
               ? QSF_OK
               : qsf_hf_bad(m, key, "is not unlimited (0 to infinity), which is not supported");
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

int qsf_hf_shape_column(const QsfHfModel *m, QsfTensor *t) {
    (void)m;
    t->ne[1] = t->ne[0];
    t->ne[0] = 1;
    t->n_dims = 2;
    return QSF_OK;
}

int qsf_hf_shape_groups(const QsfHfModel *m, QsfTensor *t) {
    char key[80];
    (void)snprintf(key, sizeof key, "%s.ssm.group_count", m->arch->gguf);
    uint32_t groups;
    int rc = qsf_meta_u32(m->s, key, 0, &groups, m->err);
    if (rc != QSF_OK) return rc;
    if (groups == 0 || t->ne[0] % groups != 0)
        return qsf_err_set(m->err, QSF_E_MODEL,
                           "%s: tensor '%s' has %llu elements, which '%s' (%u) does not divide", m->s->dir,
                           t->name, (unsigned long long)t->ne[0], key, groups);
    t->ne[0] /= groups;
    t->ne[1] = groups;
    t->n_dims = 2;
    return QSF_OK;
}
