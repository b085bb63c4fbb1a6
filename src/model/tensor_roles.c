/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of tensor roles. Names and shapes: ggml-org/ggml docs/gguf.md, section on tensor names,
 * and ggml-org/llama.cpp gguf-py/gguf/constants.py. */
#include "src/model/tensor_roles.h"

#include <string.h>

typedef enum Dim { ONE, HIDDEN, Q, KV, FFN, VOCAB, FREQS } Dim;

typedef struct RoleRow {
    const char *name; /* without "blk.N." for roles of a layer */
    Dim cols, rows;
    QsfRoleKind kind;
    QsfNeed need;
} RoleRow;

static const RoleRow rows_of[QSF_ROLE_N] = {
    [QSF_ROLE_ATTN_NORM] = { "attn_norm.weight", HIDDEN, ONE, QSF_KIND_VECTOR, QSF_NEED_ALWAYS },
    [QSF_ROLE_ATTN_NORM_B] = { "attn_norm.bias", HIDDEN, ONE, QSF_KIND_VECTOR, QSF_NEED_LAYER_NORM },
    [QSF_ROLE_Q] = { "attn_q.weight", HIDDEN, Q, QSF_KIND_MATRIX, QSF_NEED_ALWAYS },
    [QSF_ROLE_K] = { "attn_k.weight", HIDDEN, KV, QSF_KIND_MATRIX, QSF_NEED_ALWAYS },
    [QSF_ROLE_V] = { "attn_v.weight", HIDDEN, KV, QSF_KIND_MATRIX, QSF_NEED_ALWAYS },
    [QSF_ROLE_O] = { "attn_output.weight", Q, HIDDEN, QSF_KIND_MATRIX, QSF_NEED_ALWAYS },
    [QSF_ROLE_Q_B] = { "attn_q.bias", Q, ONE, QSF_KIND_VECTOR, QSF_NEED_MAYBE },
    [QSF_ROLE_K_B] = { "attn_k.bias", KV, ONE, QSF_KIND_VECTOR, QSF_NEED_MAYBE },
    [QSF_ROLE_V_B] = { "attn_v.bias", KV, ONE, QSF_KIND_VECTOR, QSF_NEED_MAYBE },
    [QSF_ROLE_O_B] = { "attn_output.bias", HIDDEN, ONE, QSF_KIND_VECTOR, QSF_NEED_MAYBE },
    [QSF_ROLE_FFN_NORM] = { "ffn_norm.weight", HIDDEN, ONE, QSF_KIND_VECTOR, QSF_NEED_ALWAYS },
    [QSF_ROLE_FFN_NORM_B] = { "ffn_norm.bias", HIDDEN, ONE, QSF_KIND_VECTOR, QSF_NEED_LAYER_NORM },
    [QSF_ROLE_GATE] = { "ffn_gate.weight", HIDDEN, FFN, QSF_KIND_MATRIX, QSF_NEED_GATED },
    [QSF_ROLE_UP] = { "ffn_up.weight", HIDDEN, FFN, QSF_KIND_MATRIX, QSF_NEED_ALWAYS },
    [QSF_ROLE_DOWN] = { "ffn_down.weight", FFN, HIDDEN, QSF_KIND_MATRIX, QSF_NEED_ALWAYS },
    [QSF_ROLE_GATE_B] = { "ffn_gate.bias", FFN, ONE, QSF_KIND_VECTOR, QSF_NEED_MAYBE_GATED },
    [QSF_ROLE_UP_B] = { "ffn_up.bias", FFN, ONE, QSF_KIND_VECTOR, QSF_NEED_MAYBE },
    [QSF_ROLE_DOWN_B] = { "ffn_down.bias", HIDDEN, ONE, QSF_KIND_VECTOR, QSF_NEED_MAYBE },
    [QSF_ROLE_EMBED] = { "token_embd.weight", HIDDEN, VOCAB, QSF_KIND_MATRIX, QSF_NEED_ALWAYS },
    [QSF_ROLE_FINAL_NORM] = { "output_norm.weight", HIDDEN, ONE, QSF_KIND_VECTOR, QSF_NEED_ALWAYS },
    [QSF_ROLE_FINAL_NORM_B] = { "output_norm.bias", HIDDEN, ONE, QSF_KIND_VECTOR, QSF_NEED_LAYER_NORM },
    [QSF_ROLE_HEAD] = { "output.weight", HIDDEN, VOCAB, QSF_KIND_MATRIX, QSF_NEED_MAYBE },
    [QSF_ROLE_HEAD_B] = { "output.bias", VOCAB, ONE, QSF_KIND_VECTOR, QSF_NEED_MAYBE },
    [QSF_ROLE_ROPE_FREQS] = { "rope_freqs.weight", FREQS, ONE, QSF_KIND_F32, QSF_NEED_MAYBE },
};

/* Tables written by older converters; every reader computes them itself. */
static const char *const ignored[] = { "attn_rot_embd", "attn_rot_embd.weight", "attn.rotary_emb.inv_freq" };

const char *qsf_role_name(QsfRole role) {
    return (unsigned)role < QSF_ROLE_N ? rows_of[role].name : "unknown";
}
QsfRoleKind qsf_role_kind(QsfRole role) { return rows_of[role].kind; }
QsfNeed qsf_role_need(QsfRole role) { return rows_of[role].need; }

/* Parses "blk.N.rest", N without leading zeros, and returns rest; NULL for other names. */
static const char *layer_prefix(const char *name, uint32_t *layer) {
    if (strncmp(name, "blk.", 4) != 0) return NULL;
    const char *p = name + 4;
    uint32_t n = 0;
    if (*p == '0' && p[1] != '.') return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (n > 100000) return NULL;
        n = n * 10 + (uint32_t)(*p - '0');
    }
    if (*p != '.' || p == name + 4) return NULL;
    *layer = n;
    return p + 1;
}

QsfNameClass qsf_role_of_name(const char *name, QsfRole *role, uint32_t *layer) {
    *layer = 0;
    const char *rest = layer_prefix(name, layer);
    int first = rest != NULL ? 0 : QSF_ROLE_LAYER_N, last = rest != NULL ? QSF_ROLE_LAYER_N : QSF_ROLE_N;
    if (rest == NULL) rest = name;
    for (int i = first; i < last; i++) {
        if (strcmp(rows_of[i].name, rest) != 0) continue;
        *role = (QsfRole)i;
        return QSF_NAME_ROLE;
    }
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strcmp(ignored[i], rest) == 0) return QSF_NAME_IGNORED;
    return QSF_NAME_UNKNOWN;
}

static uint64_t dim(Dim d, const QsfHparams *h) {
    switch (d) {
    case HIDDEN: return h->hidden;
    case Q: return (uint64_t)h->n_heads * h->head_dim;
    case KV: return (uint64_t)h->n_kv_heads * h->head_dim;
    case FFN: return h->ffn;
    case VOCAB: return h->n_vocab;
    case FREQS: return h->n_rot / 2;
    default: return 1;
    }
}

void qsf_role_shape(QsfRole role, const QsfHparams *h, uint64_t *cols, uint64_t *rows) {
    *cols = dim(rows_of[role].cols, h);
    *rows = dim(rows_of[role].rows, h);
}
