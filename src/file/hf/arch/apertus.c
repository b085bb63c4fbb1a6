/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Apertus (swiss-ai), whose activation has parameters of each layer. Names: huggingface/transformers
 * models/apertus/modeling_apertus.py. */
#include <math.h>
#include <stdio.h>

#include "src/file/hf/tables.h"

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

const QsfHfArch qsf_hf_arch_apertus[] = {
    { .name = "ApertusForCausalLM",
      .gguf = "apertus",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_qk, qsf_hf_names_vo, apertus_names,
                              qsf_hf_names_qk_norms),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = apertus_must,
      .put = apertus,
      .ropes = QSF_HF_ROPES_USUAL,
      .rope_base = 12e6 },
    QSF_HF_END,
};
