/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of tensors in QSF files: the table of types (GGUF's names: ggml-org/ggml docs/gguf.md,
 * ggml-org/llama.cpp gguf-py/gguf/constants.py), and the list of named tensors. */
#include "src/file/qsf/names.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/qsf/layout.h"
#include "src/file/source_impl.h"

/* ---- types ---- */

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

/* ---- named tensors ---- */

enum { DIMS = 4 };

uint32_t qsf_named_section(const char *name, uint32_t n_layers) {
    uint32_t layer;
    return qsf_name_in_layer(name, &layer) != NULL && layer < n_layers ? layer : n_layers;
}

const char *qsf_named_embedding(const QsfNamed *l) {
    return l->embed_is_head ? "output.weight" : "token_embd.weight";
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const QsfNamedTensor *const *)a)->name, (*(const QsfNamedTensor *const *)b)->name);
}

static int check_unique(const QsfNamed *l, const char *path, QsfErr *err) {
    const QsfNamedTensor **order = malloc(((size_t)l->n + 1) * sizeof *order);
    int rc = QSF_OK;
    if (order == NULL) return qsf_err_memory(err, "%s", path);
    for (uint32_t i = 0; i < l->n; i++) order[i] = &l->tensor[i];
    qsort(order, l->n, sizeof *order, by_name);
    for (uint32_t i = 1; rc == QSF_OK && i < l->n; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            rc = qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' occurs twice in " QSF_KEY_NAMES, path,
                             order[i]->name);
    free(order);
    return rc;
}

static int check_name(const QsfNamedTensor *t, const char *path, QsfErr *err) {
    const size_t len = strlen(t->name);
    if (len == 0 || len > QSFF_NAME_MAX)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the name '%.32s%s' of a tensor has %zu bytes, expected 1 to %u", path,
                           t->name, len > 32 ? "..." : "", len, QSFF_NAME_MAX);
    for (uint32_t d = 0; d < DIMS; d++)
        if (t->n_dims == 0 || t->n_dims > DIMS || t->ne[d] == 0)
            return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' has a dimension of 0 (" QSF_KEY_DIMS ")",
                               path, t->name);
    return QSF_OK;
}

int qsf_named_index(QsfNamed *l, const char *path, QsfErr *err) {
    uint32_t section = 0;
    l->first[0] = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        int rc = check_name(&l->tensor[i], path, err);
        if (rc != QSF_OK) return rc;
        const uint32_t of = qsf_named_section(l->tensor[i].name, l->n_layers);
        if (of < section)
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: tensor '%s' of layer %" PRIu32
                               " follows one of a later section (" QSF_KEY_NAMES ")",
                               path, l->tensor[i].name, of);
        while (section < of) l->first[++section] = i;
    }
    while (section <= l->n_layers) l->first[++section] = l->n;
    return check_unique(l, path, err);
}

/* ---- reading */

static int read_name(QsfSource *s, QsfMetaArray *a, const char **out, QsfErr *err) {
    const char *name;
    size_t len;
    int rc = qsf_meta_array_str(a, &name, &len, err);
    if (rc != QSF_OK) return rc;
    if (len > QSFF_NAME_MAX || memchr(name, '\0', len) != NULL)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: a name in '%s' contains a NUL byte, or has %zu bytes, expected at most %u",
                           qsf_source_path(s), a->key, len, QSFF_NAME_MAX);
    char *copy = qsf_source_alloc(s, len + 1, 1, err);
    if (copy == NULL) return err->code;
    memcpy(copy, name, len);
    *out = copy;
    return QSF_OK;
}

/* Reads a string array, if it is there. The number of names is bounded by the size of the
 * array, at least 8 bytes each. */
static int read_names(QsfSource *s, const char *key, const char ***out, uint32_t *n, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(s, key, QSF_META_STRING, &a, &present, err);
    if (rc != QSF_OK || !present) return rc;
    if (a.count > a.bytes / 8 || a.count > UINT32_MAX)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' has too many elements", qsf_source_path(s),
                         key);
    if (rc == QSF_OK) {
        *out = qsf_source_alloc(s, a.count, sizeof **out, err);
        if (*out == NULL) rc = err->code;
    }
    for (; rc == QSF_OK && *n < a.count; ++*n) rc = read_name(s, &a, &(*out)[*n], err);
    qsf_meta_array_close(&a);
    return rc;
}

static int read_tensors(QsfSource *s, QsfNamed *l, QsfErr *err) {
    const char **names = NULL;
    int rc = read_names(s, QSF_KEY_NAMES, &names, &l->n, err);
    if (rc != QSF_OK || l->n == 0) return rc;
    l->tensor = qsf_source_alloc(s, l->n, sizeof *l->tensor, err);
    if (l->tensor == NULL) return err->code;
    for (uint32_t i = 0; i < l->n; i++) l->tensor[i].name = names[i];
    return QSF_OK;
}

static int read_embedding(const QsfSource *s, QsfNamed *l, QsfErr *err) {
    const char *name;
    int rc = qsf_meta_str(s, QSF_KEY_EMBEDDING, &name, NULL, err);
    if (rc != QSF_OK || name == NULL) return rc;
    l->embed_is_head = true;
    if (strcmp(name, qsf_named_embedding(l)) == 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '" QSF_KEY_EMBEDDING "' is '%s', expected '%s'",
                       qsf_source_path(s), name, qsf_named_embedding(l));
}

static int read_norms(const QsfSource *s, QsfNamed *l, QsfErr *err) {
    int rc = qsf_meta_u32(s, QSF_KEY_FINAL_NORM, QSF_NORMS_ALL, &l->norms, err);
    if (rc != QSF_OK || l->norms <= QSF_NORMS_ALL) return rc;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: metadata key '" QSF_KEY_FINAL_NORM "' is %" PRIu32 ", expected 0 to %u",
                       qsf_source_path(s), l->norms, QSF_NORMS_ALL);
}

static int read_shape(const QsfSource *s, QsfMetaArray *a, QsfNamedTensor *t, QsfErr *err) {
    bool end = false;
    for (uint32_t d = 0; d < DIMS; d++) {
        int64_t v;
        int rc = qsf_meta_array_i64(a, &v, err);
        if (rc != QSF_OK) return rc;
        if (v < 0 || (end && v != 0))
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: tensor '%s' has impossible dimensions (" QSF_KEY_DIMS ")",
                               qsf_source_path(s), t->name);
        end = v == 0;
        t->ne[d] = end ? 1 : (uint64_t)v;
        t->n_dims += !end;
    }
    return QSF_OK;
}

static int read_dims(QsfSource *s, QsfNamed *l, QsfErr *err) {
    QsfMetaArray a = { .count = 0 };
    bool present;
    int rc = qsf_meta_array_open(s, QSF_KEY_DIMS, QSF_META_I64, &a, &present, err);
    if (rc != QSF_OK) return rc;
    if ((present ? a.count : 0) != (uint64_t)l->n * DIMS)
        rc = qsf_err_set(err, QSF_E_MODEL,
                         "%s: metadata key '" QSF_KEY_DIMS "' has %" PRIu64
                         " elements, expected %u for each of the %" PRIu32 " names in " QSF_KEY_NAMES,
                         qsf_source_path(s), present ? a.count : 0, DIMS, l->n);
    for (uint32_t i = 0; rc == QSF_OK && i < l->n; i++) rc = read_shape(s, &a, &l->tensor[i], err);
    if (present) qsf_meta_array_close(&a);
    return rc;
}

int qsf_named_read(QsfSource *s, uint32_t n_layers, QsfErr *err) {
    QsfNamed *l = qsf_source_alloc(s, 1, sizeof *l, err);
    if (l == NULL) return err->code;
    *l = (QsfNamed){ .n_layers = n_layers };
    l->first = qsf_source_alloc(s, (uint64_t)n_layers + 2, sizeof *l->first, err);
    if (l->first == NULL) return err->code;
    int rc = read_tensors(s, l, err);
    if (rc == QSF_OK) rc = read_dims(s, l, err);
    if (rc == QSF_OK) rc = read_names(s, QSF_KEY_FUSED, &l->fused, &l->n_fused, err);
    if (rc == QSF_OK) rc = read_embedding(s, l, err);
    if (rc == QSF_OK) rc = read_norms(s, l, err);
    if (rc == QSF_OK) rc = qsf_named_index(l, qsf_source_path(s), err);
    s->named = l;
    return rc;
}

/* ---- writing */

static void put_array(QsfStrbuf *b, const char *key, QsfMetaType elem, uint64_t count) {
    qsf_meta_put_str(b, key, strlen(key));
    qsf_meta_put_le(b, QSF_META_ARRAY, 4);
    qsf_meta_put_le(b, elem, 4);
    qsf_meta_put_le(b, count, 8);
}

static void put_tensors(const QsfNamed *l, QsfStrbuf *b) {
    put_array(b, QSF_KEY_NAMES, QSF_META_STRING, l->n);
    for (uint32_t i = 0; i < l->n; i++) qsf_meta_put_str(b, l->tensor[i].name, strlen(l->tensor[i].name));
    put_array(b, QSF_KEY_DIMS, QSF_META_U64, (uint64_t)l->n * DIMS);
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t d = 0; d < DIMS; d++)
            qsf_meta_put_le(b, d < l->tensor[i].n_dims ? l->tensor[i].ne[d] : 0, 8);
}

static void put_key(QsfStrbuf *b, const char *key, QsfMetaType type) {
    qsf_meta_put_str(b, key, strlen(key));
    qsf_meta_put_le(b, type, 4);
}

void qsf_named_put(const QsfNamed *l, QsfStrbuf *b, uint64_t *n) {
    if (l->n > 0) put_tensors(l, b);
    if (l->n_fused > 0) put_array(b, QSF_KEY_FUSED, QSF_META_STRING, l->n_fused);
    for (uint32_t i = 0; i < l->n_fused; i++) qsf_meta_put_str(b, l->fused[i], strlen(l->fused[i]));
    if (l->embed_is_head) {
        put_key(b, QSF_KEY_EMBEDDING, QSF_META_STRING);
        qsf_meta_put_str(b, qsf_named_embedding(l), strlen(qsf_named_embedding(l)));
    }
    if (l->norms != QSF_NORMS_ALL) {
        put_key(b, QSF_KEY_FINAL_NORM, QSF_META_U32);
        qsf_meta_put_le(b, l->norms, 4);
    }
    *n += (l->n > 0 ? 2u : 0u) + (l->n_fused > 0) + l->embed_is_head + (l->norms != QSF_NORMS_ALL);
}
