/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings per layer, and shapes of the tensors of recurrent layers. */
#include "src/file/hf/layers.h"

#include <stdio.h>
#include <string.h>

const QsfHfKey qsf_hf_keys_state_16[] = {
    { "state_size|d_state|mamba_d_state", "ssm.state_size", QSF_HF_U32, 16, 1, 1e6 },
    { 0 },
};

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
