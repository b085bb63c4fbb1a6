/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of tensor types. GGUF's names: ggml-org/ggml docs/gguf.md, ggml-org/llama.cpp
 * gguf-py/gguf/constants.py. */
#include "src/file/qsf/names.h"

#include <stddef.h>
#include <string.h>

#include "src/file/qsf/layout.h"

enum { LAYER = 1, FINAL = 2, VECTOR = 4, EXPERTS = 8, MATRIX = 16 };

typedef struct TypeRow {
    const char *name;
    unsigned is;
} TypeRow;

static const TypeRow types[QSFT_N] = {
    [QSFT_Q] = { "attn_q.weight", LAYER | MATRIX },
    [QSFT_K] = { "attn_k.weight", LAYER | MATRIX },
    [QSFT_V] = { "attn_v.weight", LAYER | MATRIX },
    [QSFT_O] = { "attn_output.weight", LAYER | MATRIX },
    [QSFT_GATE] = { "ffn_gate.weight", LAYER | MATRIX },
    [QSFT_UP] = { "ffn_up.weight", LAYER | MATRIX },
    [QSFT_DOWN] = { "ffn_down.weight", LAYER | MATRIX },
    [QSFT_ATTN_NORM] = { "attn_norm.weight", LAYER | VECTOR },
    [QSFT_FFN_NORM] = { "ffn_norm.weight", LAYER | VECTOR },
    [QSFT_Q_BIAS] = { "attn_q.bias", LAYER | VECTOR },
    [QSFT_K_BIAS] = { "attn_k.bias", LAYER | VECTOR },
    [QSFT_V_BIAS] = { "attn_v.bias", LAYER | VECTOR },
    [QSFT_O_BIAS] = { "attn_output.bias", LAYER | VECTOR },
    [QSFT_FFN_BIASES] = { "ffn_up.bias", LAYER | VECTOR },
    [QSFT_ATTN_NORM_BIAS] = { "attn_norm.bias", LAYER | VECTOR },
    [QSFT_FFN_NORM_BIAS] = { "ffn_norm.bias", LAYER | VECTOR },
    [QSFT_Q_NORM] = { "attn_q_norm.weight", LAYER | VECTOR },
    [QSFT_K_NORM] = { "attn_k_norm.weight", LAYER | VECTOR },
    [QSFT_POST_ATTN_NORM] = { "post_attention_norm.weight", LAYER | VECTOR },
    [QSFT_POST_FFN_NORM] = { "post_ffw_norm.weight", LAYER | VECTOR },
    [QSFT_ATTN_SUB_NORM] = { "attn_sub_norm.weight", LAYER | VECTOR },
    [QSFT_FFN_SUB_NORM] = { "ffn_sub_norm.weight", LAYER | VECTOR },
    [QSFT_ROUTER] = { "ffn_gate_inp.weight", LAYER },
    [QSFT_GATE_EXPERTS] = { "ffn_gate_exps.weight", LAYER | EXPERTS | MATRIX },
    [QSFT_UP_EXPERTS] = { "ffn_up_exps.weight", LAYER | EXPERTS | MATRIX },
    [QSFT_DOWN_EXPERTS] = { "ffn_down_exps.weight", LAYER | EXPERTS | MATRIX },
    [QSFT_HEAD] = { "output.weight", FINAL | MATRIX },
    [QSFT_HEAD_BIAS] = { "output.bias", FINAL | VECTOR },
    [QSFT_POSITIONS] = { "position_embd.weight", FINAL },
    [QSFT_ROPE_FREQS] = { "rope_freqs.weight", FINAL | VECTOR },
    [QSFT_SINKS] = { "attn_sinks.weight", FINAL },
    [QSFT_OUTLIERS] = { "outliers", LAYER | FINAL },
    [QSFT_FINAL_NORM] = { "output_norm.weight", FINAL | VECTOR },
    [QSFT_FINAL_NORM_BIAS] = { "output_norm.bias", FINAL | VECTOR },
    [QSFT_GATE_BIAS] = { "ffn_gate.bias", LAYER | VECTOR },
    [QSFT_NAMED] = { "named", LAYER | FINAL | MATRIX },
};

static unsigned kind(uint32_t type) { return type < QSFT_N ? types[type].is : 0; }

const char *qsf_tensor_type_name(uint32_t type) { return type < QSFT_N ? types[type].name : NULL; }
bool qsf_tensor_type_in_layer(uint32_t type) { return (kind(type) & LAYER) != 0; }
bool qsf_tensor_type_in_final(uint32_t type) { return (kind(type) & FINAL) != 0; }
bool qsf_tensor_type_is_vector(uint32_t type) { return (kind(type) & VECTOR) != 0; }
bool qsf_tensor_type_is_experts(uint32_t type) { return (kind(type) & EXPERTS) != 0; }
bool qsf_tensor_type_is_matrix(uint32_t type) { return (kind(type) & MATRIX) != 0; }

const char *qsf_name_in_layer(const char *name, uint32_t *layer) {
    if (strncmp(name, "blk.", 4) != 0 || (name[4] == '0' && name[5] != '.')) return NULL;
    const char *p = name + 4;
    for (*layer = 0; *p >= '0' && *p <= '9' && *layer < QSFF_LAYERS_MAX; p++)
        *layer = *layer * 10 + (uint32_t)(*p - '0');
    return *p == '.' && p > name + 4 ? p + 1 : NULL;
}

bool qsf_tensor_type_of(const char *name, uint32_t *type, uint32_t *layer) {
    *layer = 0;
    const char *rest = qsf_name_in_layer(name, layer);
    unsigned where = rest != NULL ? LAYER : FINAL;
    if (rest == NULL) rest = name;
    *type = QSFT_EMBED;
    if (where == FINAL && strcmp(name, "token_embd.weight") == 0) return true;
    *type = QSFT_FFN_BIASES;
    if (where == LAYER && strcmp(rest, "ffn_down.bias") == 0) return true;
    for (uint32_t t = 0; t < QSFT_N; t++) {
        if (t == QSFT_OUTLIERS || t == QSFT_SINKS || t == QSFT_NAMED || !(types[t].is & where) ||
            strcmp(types[t].name, rest) != 0)
            continue;
        *type = t;
        return true;
    }
    return false;
}

#define BIT(t) ((uint64_t)1 << (t))
#define PLAIN_LAYER                                                                          \
    (BIT(QSFT_Q) | BIT(QSFT_K) | BIT(QSFT_V) | BIT(QSFT_O) | BIT(QSFT_UP) | BIT(QSFT_DOWN) | \
     BIT(QSFT_ATTN_NORM))

uint64_t qsf_arch_needs(uint32_t arch) {
    static const uint64_t needs[] = {
        [QSFF_GPT2] = PLAIN_LAYER | BIT(QSFT_FFN_NORM),
        [QSFF_LLAMA] = PLAIN_LAYER | BIT(QSFT_FFN_NORM) | BIT(QSFT_GATE),
        [QSFF_MISTRAL] = PLAIN_LAYER | BIT(QSFT_FFN_NORM) | BIT(QSFT_GATE),
        [QSFF_PHI] = PLAIN_LAYER,
    };
    return arch < sizeof needs / sizeof *needs ? needs[arch] : 0;
}
