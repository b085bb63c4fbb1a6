/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads config.json of a Hugging Face model, and writes its contents as metadata. Names and defaults:
 * huggingface/transformers, models/NAME/configuration_NAME.py; names of other versions of the same setting:
 * ggml-org/llama.cpp, conversion/base.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/hf/model.h"

#define NAME_MAX_SHOWN 120
#define MAX_FILE       ((uint64_t)16 << 20)

/* Reads a token id, or the first of a list; -1 if there is none. */
static int get_id(const QsfHfModel *m, const char *key, int64_t *out) {
    const QsfJson *v = qsf_hf_member(m->text, key);
    if (v == NULL) v = qsf_hf_member(m->root, key);
    if (v != NULL && qsf_json_type(v) == QSF_JSON_ARRAY) v = qsf_json_at(v, 0);
    *out = v == NULL ? -1 : qsf_json_int(v, INT64_MIN);
    if (*out >= -1 && *out <= UINT32_MAX) return QSF_OK;
    return qsf_hf_bad(m, key, "is not a token id");
}

/* --- architecture --- */

static int read_arch(QsfHfModel *m) {
    const char *name = qsf_json_string(qsf_json_at(qsf_hf_member(m->root, "architectures"), 0), NULL);
    if (name == NULL)
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: 'architectures' is missing or not a list of names",
                           m->path);
    m->arch = qsf_hf_arch_find(m, name);
    if (m->arch != NULL) return QSF_OK;
    return qsf_err_set(
        m->err, QSF_E_MODEL,
        "%s: the architecture '%.*s' is not supported as a directory (docs/FORMATS.md lists those that "
        "are); use a GGUF file of the model, or, for tokenizing only, open the tokenizer file",
        m->path, QSF_HF_SHOWN, name);
}

/* --- quantized weights --- */

static bool is_text(const QsfJson *object, const char *key, const char *text) {
    const char *s = qsf_json_string(qsf_json_get(object, key), NULL);
    return s != NULL && strcmp(s, text) == 0;
}

/* Refuses a quantization_config that changes weights in ways that hf/tensors.c does not undo. */
static int refuse_transforms(const QsfHfModel *m, const QsfJson *q) {
    if (qsf_json_size(qsf_hf_member(q, "transform_config")) > 0)
        return qsf_err_set(m->err, QSF_E_MODEL,
                           "%s: 'transform_config' of quantization_config: weights that need a rotation or "
                           "another transformation are not supported",
                           m->path);
    if (qsf_json_bool(qsf_json_get(q, "use_rms_norm"), false))
        return qsf_err_set(m->err, QSF_E_MODEL,
                           "%s: 'use_rms_norm' of quantization_config is true: a norm before each matrix is "
                           "not supported",
                           m->path);
    if (is_text(q, "quantization_mode", "online"))
        return qsf_err_set(m->err, QSF_E_MODEL,
                           "%s: 'quantization_mode' is 'online': weights that are not packed yet are not "
                           "supported",
                           m->path);
    return QSF_OK;
}

/* Sets m->quantized. */
static int read_method(QsfHfModel *m, const QsfJson *q) {
    static const char *const methods[] = { "fp8", "fbgemm_fp8", "mxfp4", "bitnet" };
    const char *method = qsf_json_string(qsf_json_get(q, "quant_method"), NULL);
    for (size_t i = 0; method != NULL && m->quantized == NULL && i < sizeof methods / sizeof *methods; i++)
        if (strcmp(method, methods[i]) == 0) m->quantized = method;
    if (is_text(q, "quant_method", "compressed-tensors") && is_text(q, "format", "float-quantized"))
        m->quantized = "fp8";
    if (m->quantized != NULL) return QSF_OK;
    return qsf_err_set(m->err, QSF_E_MODEL,
                       "%s: 'quantization_config': weights quantized by '%.*s' are not supported, only fp8, "
                       "mxfp4 and bitnet, or F32, F16 and BF16; use a GGUF file of the model",
                       m->path, QSF_HF_SHOWN, method != NULL ? method : "?");
}

static int read_scale_block(QsfHfModel *m, const QsfJson *block) {
    for (size_t i = 0; block != NULL && i < 2; i++) {
        const int64_t n = qsf_json_int(qsf_json_at(block, i), -1);
        if (n < 1 || n > QSF_HF_NUMBER || qsf_json_size(block) != 2)
            return qsf_err_set(m->err, QSF_E_MODEL, "%s: 'weight_block_size' is not a list of two sizes",
                               m->path);
        m->scale_block[i] = (uint32_t)n;
    }
    return QSF_OK;
}

/* Quantized weights that hf/tensors.c can read: each has its scales beside it. */
static int read_quantization(QsfHfModel *m) {
    const QsfJson *q = qsf_hf_member(m->root, "quantization_config");
    if (q == NULL) q = qsf_hf_member(m->text, "quantization_config");
    if (q == NULL && qsf_hf_member(qsf_hf_member(m->root, "quantization"), "group_size") != NULL)
        return qsf_err_set(m->err, QSF_E_MODEL,
                           "%s: 'quantization': weights quantized by MLX are not supported; use the original "
                           "model or a GGUF file of it",
                           m->path);
    if (q == NULL) return QSF_OK;
    m->scale_is_factor = is_text(q, "linear_class", "autobitlinear"); /* integrations/bitnet.py */
    int rc = refuse_transforms(m, q);
    if (rc == QSF_OK) rc = read_method(m, q);
    return rc == QSF_OK ? read_scale_block(m, qsf_hf_member(q, "weight_block_size")) : rc;
}

static int refuse_features(const QsfHfModel *m) {
    int rc = QSF_OK;
    for (const QsfHfMust *row = m->arch->must; rc == QSF_OK && row != NULL && row->hf != NULL; row++)
        rc = qsf_hf_must(m, row);
    return rc;
}

/* --- sizes --- */

static int read_rotated(QsfHfModel *m) {
    int rc = qsf_hf_u32(m, m->arch->rotated, 0, &m->head_dim);
    if (rc == QSF_OK && m->head_dim % 2 != 0) rc = qsf_hf_bad(m, m->arch->rotated, "is an odd number");
    return rc;
}

static int read_head_dim(QsfHfModel *m) {
    if (m->arch->rotated != NULL) return read_rotated(m);
    m->says_head_dim = m->arch->head_dim > 0 || qsf_hf_member(m->text, "head_dim") != NULL;
    if (!m->says_head_dim && m->hidden % m->n_heads != 0)
        return qsf_err_set(
            m->err, QSF_E_MODEL,
            "%s: 'hidden_size' %u is not a multiple of the %u heads, and 'head_dim' is missing", m->path,
            m->hidden, m->n_heads);
    const uint32_t usual = m->arch->head_dim > 0 ? m->arch->head_dim : m->hidden / m->n_heads;
    int rc = qsf_hf_u32(m, "head_dim", usual, &m->head_dim);
    if (rc == QSF_OK && m->head_dim % 2 != 0)
        rc = qsf_err_set(m->err, QSF_E_MODEL, "%s: the size of a head is %u, expected an even number",
                         m->path, m->head_dim);
    return rc;
}

static int read_heads(QsfHfModel *m) {
    const QsfHfArch *a = m->arch;
    int rc = qsf_hf_u32(m, "num_attention_heads|n_head|n_heads", a->heads, &m->n_heads);
    if (rc == QSF_OK)
        rc = qsf_hf_u32(m, "num_key_value_heads|num_kv_heads|n_head_kv|n_kv_heads",
                        a->kv_heads > 0 ? a->kv_heads : m->n_heads, &m->n_kv_heads);
    if (rc == QSF_OK && m->n_heads % m->n_kv_heads != 0)
        rc = qsf_err_set(m->err, QSF_E_MODEL,
                         "%s: 'num_key_value_heads' is %u, which does not divide the %u heads", m->path,
                         m->n_kv_heads, m->n_heads);
    return rc == QSF_OK ? read_head_dim(m) : rc;
}

static int read_window(QsfHfModel *m) {
    bool used = true;
    int rc = QSF_OK;
    if (m->arch->window == QSF_HF_WINDOW_OTHER || qsf_hf_member(m->text, "sliding_window") == NULL)
        return QSF_OK;
    if (m->arch->window == QSF_HF_WINDOW_SWITCH) rc = qsf_hf_bool(m, "use_sliding_window", false, &used);
    return rc == QSF_OK && used ? qsf_hf_u32(m, "sliding_window", 0, &m->window) : rc;
}

static int read_sizes(QsfHfModel *m) {
    const QsfHfArch *a = m->arch;
    int rc = qsf_hf_u32(m, "num_hidden_layers|n_layer|num_layers|n_layers", 0, &m->n_layers);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "hidden_size|n_embd|d_model|n_embed", 0, &m->hidden);
    if (rc == QSF_OK && (uint64_t)m->hidden * a->ffn_times > QSF_HF_NUMBER)
        rc = qsf_hf_bad(m, "hidden_size|n_embd|d_model|n_embed", "is out of range");
    if (rc == QSF_OK && a->ffn_times < QSF_HF_NO_FFN)
        rc = qsf_hf_u32(m, "intermediate_size|n_inner|ffn_hidden_size", m->hidden * a->ffn_times, &m->ffn);
    if (rc == QSF_OK && !a->no_heads) rc = read_heads(m);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "vocab_size", a->n_vocab, &m->n_vocab);
    const char *ctx = "max_position_embeddings|n_positions|n_ctx|max_seq_len|seq_length";
    if (rc == QSF_OK) rc = qsf_hf_u32(m, a->ctx != NULL ? a->ctx : ctx, a->n_ctx, &m->n_ctx);
    return rc == QSF_OK ? read_window(m) : rc;
}

/* --- */

static int get_ids(QsfHfModel *m) {
    int rc = get_id(m, "bos_token_id", &m->bos);
    return rc == QSF_OK ? get_id(m, "eos_token_id", &m->eos) : rc;
}

/* Finds the settings of the language model. */
static int read_text(QsfHfModel *m) {
    m->text = m->root;
    if (qsf_json_type(m->root) != QSF_JSON_OBJECT)
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: is not a JSON object", m->path);
    /* Models that also take images or sound have the settings of the language model in their own object. */
    const QsfJson *inner = qsf_hf_member(m->root, "text_config|llm_config|language_config");
    if (inner != NULL && qsf_json_type(inner) == QSF_JSON_OBJECT) m->text = inner;
    return QSF_OK;
}

static int read_object(QsfHfModel *m) {
    int rc = read_arch(m);
    if (rc == QSF_OK) rc = read_quantization(m);
    if (rc == QSF_OK) rc = refuse_features(m);
    if (rc == QSF_OK) rc = read_sizes(m);
    if (rc == QSF_OK && m->arch->ropes > 0) rc = qsf_hf_rope_read(m);
    const QsfJson *tied = qsf_json_get(m->root, "tie_word_embeddings");
    if (rc == QSF_OK)
        rc = qsf_hf_bool(m, "tie_word_embeddings", qsf_json_bool(tied, m->arch->tied), &m->tied);
    return rc == QSF_OK ? get_ids(m) : rc;
}

/* Reads dir/config.json, if it exists, as m->root and m->text. */
static int open_file(QsfHfModel *m, QsfSource *s, const char *dir, QsfErr *err) {
    *m = (QsfHfModel){ .s = s, .err = err, .bos = -1, .eos = -1 };
    m->path = qsf_hf_path(dir, "config.json", err);
    if (m->path == NULL) return err->code;
    int rc = qsf_whole_open(s, m->path, MAX_FILE, &m->file, err);
    if (rc != QSF_OK || m->file.text == NULL) return rc;
    rc = qsf_whole_json(&m->file, &m->root, err);
    return rc == QSF_OK ? read_text(m) : rc;
}

int qsf_hf_config_open(QsfHfModel *m, QsfSource *s, const char *dir, QsfErr *err) {
    int rc = open_file(m, s, dir, err);
    if (rc == QSF_OK && m->root == NULL)
        rc = qsf_err_set(err, QSF_E_MODEL,
                         "%s: is missing; safetensors weights need it in the same directory", m->path);
    return rc == QSF_OK ? read_object(m) : rc;
}

int qsf_hf_config_open_tokens(QsfHfModel *m, QsfSource *s, const char *dir, QsfErr *err) {
    int rc = open_file(m, s, dir, err);
    if (rc != QSF_OK || m->root == NULL) return rc;
    if (qsf_hf_member(m->text, "vocab_size") != NULL) rc = qsf_hf_u32(m, "vocab_size", 0, &m->n_vocab);
    return rc == QSF_OK ? get_ids(m) : rc;
}

void qsf_hf_config_close(QsfHfModel *m) {
    qsf_json_free(m->root);
    qsf_json_free(m->rope_fallback);
    qsf_whole_close(m->s, &m->file);
    free(m->path);
}

/* --- metadata of a GGUF file: ggml-org/ggml docs/gguf.md; which keys are written: ggml-org/llama.cpp
 * conversion/base.py --- */

/* Writes the last component of the directory as the name, unless it is "." or the like. */
static int put_name(QsfSource *s, QsfErr *err) {
    size_t end = strlen(s->dir);
    while (end > 0 && s->dir[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && s->dir[begin - 1] != '/') begin--;
    size_t len = end - begin;
    if (len == 0 || len > NAME_MAX_SHOWN || strspn(s->dir + begin, ".") >= len) return QSF_OK;
    return qsf_meta_make_str(s, "general.name", s->dir + begin, len, err);
}

static int put_sizes(QsfHfModel *m) {
    /* Within the sliding window, attention over the window equals full attention. */
    const bool limits = m->arch->window == QSF_HF_WINDOW_LIMITS || m->arch->window == QSF_HF_WINDOW_SWITCH;
    const uint32_t ctx = limits && m->window > 0 && m->window < m->n_ctx ? m->window : m->n_ctx;
    const uint32_t nextn = m->arch->nextn != QSF_HF_NEXTN_NONE ? m->n_nextn : 0;
    const struct {
        const char *name;
        bool said;
        uint32_t v;
    } rows[] = {
        { "vocab_size", true, m->n_vocab },
        { "context_length", true, ctx },
        { "embedding_length", true, m->hidden },
        { "block_count", true, m->n_layers + nextn },
        { "nextn_predict_layers", nextn > 0, nextn },
        { "feed_forward_length", m->ffn > 0, m->ffn },
        { "attention.head_count", m->n_heads > 0, m->n_heads },
        { "attention.head_count_kv", m->n_kv_heads > 0 && !m->arch->own_kv_heads, m->n_kv_heads },
        { "attention.key_length", m->says_head_dim, m->head_dim },
        { "attention.value_length", m->says_head_dim, m->head_dim },
        { "attention.sliding_window", m->window > 0, m->window },
    };
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].said) rc = qsf_hf_put_u32(m, rows[i].name, rows[i].v);
    return rc;
}

static bool is_fallback(double v, double special) { return v <= special && v >= special; }

static int put_key(QsfHfModel *m, const QsfHfKey *k) {
    uint32_t n;
    double v;
    bool b;
    const bool there = qsf_hf_member(m->text, k->hf) != NULL;
    if (!there && is_fallback(k->fallback, QSF_HF_ABSENT)) return QSF_OK;
    if (!there && is_fallback(k->fallback, QSF_HF_NEEDED)) return qsf_hf_bad(m, k->hf, "is missing");
    int rc = QSF_OK;
    switch (k->type) {
    case QSF_HF_U32:
        rc = qsf_hf_real(m, m->text, k->hf, k->fallback, k->low, k->high, &v);
        n = (uint32_t)v;
        if (rc == QSF_OK && (double)n < v) rc = qsf_hf_bad(m, k->hf, "is not a whole number");
        return rc == QSF_OK ? qsf_hf_put_u32(m, k->gguf, n) : rc;
    case QSF_HF_F32:
        rc = qsf_hf_real(m, m->text, k->hf, k->fallback, k->low, k->high, &v);
        return rc == QSF_OK ? qsf_hf_put_f32(m, k->gguf, v) : rc;
    default:
        rc = qsf_hf_bool(m, k->hf, k->fallback > 0, &b);
        return rc == QSF_OK ? qsf_hf_put_bool(m, k->gguf, b) : rc;
    }
}

static int put_keys(QsfHfModel *m) {
    int rc = QSF_OK;
    for (const QsfHfKey *const *table = m->arch->keys; table != NULL && *table != NULL; table++)
        for (const QsfHfKey *k = *table; rc == QSF_OK && k->hf != NULL; k++) rc = put_key(m, k);
    return rc;
}

int qsf_hf_config_put(QsfHfModel *m) {
    int rc = qsf_meta_make_str(m->s, "general.architecture", m->arch->gguf, strlen(m->arch->gguf), m->err);
    if (rc == QSF_OK) rc = put_name(m->s, m->err);
    if (rc == QSF_OK) rc = put_sizes(m);
    if (rc == QSF_OK) rc = put_keys(m);
    if (rc == QSF_OK && m->arch->ropes > 0) rc = qsf_hf_rope_put(m);
    return rc == QSF_OK && m->arch->put != NULL ? m->arch->put(m) : rc;
}
