/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MiniCPM. Names: openbmb/MiniCPM-2B-sft-bf16 modeling_minicpm.py; ggml-org/llama.cpp
 * conversion/minicpm.py. */
#include <math.h>

#include "src/file/hf/tables.h"

/* MiniCPM: factors from other numbers. */
static const QsfHfMust minicpm_must[] = {
    { "hidden_act", "silu|swish" },
    { "sparse_config", "" },
    QSF_HF_END,
};

static int minicpm(QsfHfModel *m) {
    double scale = 0, depth = 0, base = 0;
    int rc = qsf_hf_real(m, m->text, "scale_emb", (double)NAN, 1e-6, 1e6, &scale);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "scale_depth", (double)NAN, 1e-6, 1e6, &depth);
    if (rc == QSF_OK) rc = qsf_hf_real(m, m->text, "dim_model_base", (double)NAN, 1, 1e6, &base);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "embedding_scale", scale);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "residual_scale", depth / sqrt(m->n_layers));
    return rc == QSF_OK ? qsf_hf_put_f32(m, "logit_scale", m->hidden / base) : rc;
}

const QsfHfArch qsf_hf_arch_minicpm[] = {
    { .name = "MiniCPMForCausalLM",
      .gguf = "minicpm",
      .tensors = qsf_hf_like_llama,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = minicpm_must,
      .put = minicpm,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LONG,
      .tied = true },
    QSF_HF_END,
};
