/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of Hugging Face architectures and the GGUF names of their tensors. Names: huggingface/transformers
 * models/llama/modeling_llama.py, models/mistral/modeling_mistral.py; ggml-org/llama.cpp
 * gguf-py/gguf/tensor_mapping.py. Permuted rows and default counts of KV heads: its convert_hf_to_gguf.py;
 * transformers' configuration files. */
#include "src/format/hf_model.h"

#include <string.h>

#define LAYER_PREFIX     "model.layers."
#define LAYER_DIGITS_MAX 5

static const QsfHfName llama_names[] = {
    { "model.embed_tokens.weight", "token_embd.weight", 2, QSF_HF_ROWS_KEPT },
    { "model.norm.weight", "output_norm.weight", 1, QSF_HF_ROWS_KEPT },
    { "lm_head.weight", "output.weight", 2, QSF_HF_ROWS_KEPT },
    { "model.rotary_emb.inv_freq", NULL, 1, QSF_HF_ROWS_KEPT }, /* computed from the config by every reader */
    { 0 },
};

static const QsfHfName llama_layer[] = {
    { "input_layernorm.weight", "attn_norm.weight", 1, QSF_HF_ROWS_KEPT },
    { "self_attn.q_proj.weight", "attn_q.weight", 2, QSF_HF_ROWS_Q },
    { "self_attn.k_proj.weight", "attn_k.weight", 2, QSF_HF_ROWS_K },
    { "self_attn.v_proj.weight", "attn_v.weight", 2, QSF_HF_ROWS_KEPT },
    { "self_attn.o_proj.weight", "attn_output.weight", 2, QSF_HF_ROWS_KEPT },
    { "self_attn.q_proj.bias", "attn_q.bias", 1, QSF_HF_ROWS_Q },
    { "self_attn.k_proj.bias", "attn_k.bias", 1, QSF_HF_ROWS_K },
    { "self_attn.v_proj.bias", "attn_v.bias", 1, QSF_HF_ROWS_KEPT },
    { "self_attn.o_proj.bias", "attn_output.bias", 1, QSF_HF_ROWS_KEPT },
    { "post_attention_layernorm.weight", "ffn_norm.weight", 1, QSF_HF_ROWS_KEPT },
    { "mlp.gate_proj.weight", "ffn_gate.weight", 2, QSF_HF_ROWS_KEPT },
    { "mlp.up_proj.weight", "ffn_up.weight", 2, QSF_HF_ROWS_KEPT },
    { "mlp.down_proj.weight", "ffn_down.weight", 2, QSF_HF_ROWS_KEPT },
    { "mlp.gate_proj.bias", "ffn_gate.bias", 1, QSF_HF_ROWS_KEPT },
    { "mlp.up_proj.bias", "ffn_up.bias", 1, QSF_HF_ROWS_KEPT },
    { "mlp.down_proj.bias", "ffn_down.bias", 1, QSF_HF_ROWS_KEPT },
    { "self_attn.rotary_emb.inv_freq", NULL, 1, QSF_HF_ROWS_KEPT },
    { 0 },
};

static const QsfHfArch table[] = {
    { "LlamaForCausalLM", "llama", llama_names, llama_layer, 0 },
    { "MistralForCausalLM", "llama", llama_names, llama_layer, 8 },
};

const QsfHfArch *qsf_hf_arch_at(unsigned i) { return i < sizeof table / sizeof *table ? &table[i] : NULL; }

const QsfHfArch *qsf_hf_arch_find(const char *name) {
    for (unsigned i = 0; qsf_hf_arch_at(i) != NULL; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

/* Parses "model.layers.N.rest", N without leading zeros, and returns rest; NULL for other names. */
static const char *behind_layer(const char *name, int32_t *layer) {
    const size_t prefix = sizeof LAYER_PREFIX - 1;
    if (strncmp(name, LAYER_PREFIX, prefix) != 0) return NULL;
    const char *digits = name + prefix;
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > LAYER_DIGITS_MAX || digits[n] != '.' || (digits[0] == '0' && n > 1)) return NULL;
    *layer = 0;
    for (size_t i = 0; i < n; i++) *layer = *layer * 10 + (digits[i] - '0');
    return digits + n + 1;
}

const QsfHfName *qsf_hf_name_find(const QsfHfArch *a, const char *name, int32_t *layer) {
    *layer = -1;
    const char *rest = behind_layer(name, layer);
    const QsfHfName *row = rest != NULL ? a->layer : a->names;
    for (; row->hf != NULL; row++)
        if (strcmp(row->hf, rest != NULL ? rest : name) == 0) return row;
    return NULL;
}
