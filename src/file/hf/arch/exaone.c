/* SPDX-License-Identifier: GPL-3.0-or-later */
/* EXAONE 3, with names like those of GPT-2, and EXAONE 4. Names: LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct
 * modeling_exaone.py, huggingface/transformers models/exaone4/modeling_exaone4.py; ggml-org/llama.cpp
 * conversion/exaone.py. */
#include <string.h>

#include "src/file/hf/tables.h"

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

static const QsfHfKey exaone_rms[] = {
    { "layer_norm_epsilon", "attention.layer_norm_rms_epsilon", QSF_HF_F32, 1e-5, 0, 1 },
    QSF_HF_END,
};

static const QsfHfMust exaone_must[] = { { "activation_function", "silu|swish" }, QSF_HF_END };

/* EXAONE 4: the engine knows the models with windows by their 64 layers. */
static int exaone4(QsfHfModel *m) {
    uint32_t window;
    const QsfJson *text = qsf_hf_member(m->text, "sliding_window_pattern");
    const char *pattern = qsf_json_string(text, NULL);
    if (qsf_hf_member(m->text, "sliding_window") == NULL) return QSF_OK;
    int rc = qsf_hf_u32(m, "sliding_window", 0, &window);
    if (rc == QSF_OK && m->n_layers != 64)
        rc = qsf_hf_bad(m, "sliding_window", "is supported only in models with 64 layers");
    if (rc == QSF_OK && qsf_hf_member(m->text, "layer_types") == NULL && text != NULL &&
        qsf_json_int(text, 0) != 4 && (pattern == NULL || strcmp(pattern, "LLLG") != 0))
        rc = qsf_hf_bad(m, "sliding_window_pattern", "is not 4 or LLLG, which is not supported");
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.sliding_window", window);
    return rc == QSF_OK ? qsf_hf_put_windows(m) : rc;
}

const QsfHfArch qsf_hf_arch_exaone[] = {
    { .name = "ExaoneForCausalLM",
      .gguf = "exaone",
      .tensors = QSF_HF_NAMES(exaone_names),
      .keys = QSF_HF_KEYS(exaone_rms),
      .must = exaone_must,
      .prefixes = qsf_hf_transformer,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "Exaone4ForCausalLM",
      .gguf = "exaone4",
      .tensors = qsf_hf_norms_after,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = exaone4,
      .ropes = QSF_HF_ROPES_USUAL },
    QSF_HF_END,
};
