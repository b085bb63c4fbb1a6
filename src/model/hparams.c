/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads hyperparameters from metadata. Key names: ggml-org/ggml docs/gguf.md; defaults of absent keys:
 * ggml-org/llama.cpp src/llama-model.cpp. */
#include "src/model/hparams.h"

#include <stdio.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/model/keys.h"
#include "src/model/purpose.h"

#define MAX_VOCAB (1u << 24)
#define MAX_CTX   (1u << 28)

static int read_vocab_size(QsfKeys *k, QsfHparams *h) {
    QsfMetaArray a;
    bool present;
    /* The token list takes precedence: vocab_size of some files is that of the model before padding. */
    int rc = qsf_meta_array_open(k->src, "tokenizer.ggml.tokens", QSF_META_STRING, &a, &present, k->err);
    if (rc != QSF_OK) return rc;
    uint64_t n = present ? a.count : 0;
    if (present) qsf_meta_array_close(&a);
    if (n > 0 && n <= MAX_VOCAB) {
        h->n_vocab = (uint32_t)n;
        return QSF_OK;
    }
    if (n > MAX_VOCAB)
        return qsf_err_set(k->err, QSF_E_MODEL,
                           "%s: tokenizer.ggml.tokens has %llu entries, at most %u are supported",
                           qsf_source_path(k->src), (unsigned long long)n, MAX_VOCAB);
    return qsf_keys_need_u32(k, "vocab_size", 1, MAX_VOCAB, &h->n_vocab);
}

/* Blocks for predicting several tokens at a time lie after the others and count in block_count. */
static int read_blocks(QsfKeys *k, QsfHparams *h) {
    uint32_t n;
    int rc = qsf_keys_need_u32(k, "block_count", 1, QSF_MAX_LAYERS, &n);
    k->bound = "block_count";
    if (rc == QSF_OK) rc = qsf_keys_u32(k, "nextn_predict_layers", 0, 0, n - 1, &h->n_extra);
    if (rc == QSF_OK) h->n_layers = n - h->n_extra;
    k->n_extra = h->n_extra;
    return rc;
}

/* Reads one number for each block, also for those that are not run, and fills the field at offset `field`. */
static int read_each(QsfKeys *k, QsfHparams *h, const char *name, QsfPresence need, uint32_t max,
                     size_t field) {
    uint32_t v[QSF_MAX_LAYERS];
    if (need == QSF_NO_BLOCK) return QSF_OK;
    if (need == QSF_EACH_BLOCK && !qsf_keys_has(k, name)) return qsf_keys_bad(k, "is missing");
    int rc = qsf_keys_u32_each(k, name, 0, need == QSF_EACH_BLOCK ? 1 : 0, max, h->n_layers + h->n_extra, v);
    for (uint32_t i = 0; rc == QSF_OK && i < h->n_layers + h->n_extra; i++)
        memcpy((char *)&h->block[i] + field, &v[i], sizeof v[i]);
    return rc;
}

static int read_sizes(QsfKeys *k, QsfHparams *h) {
    int rc = read_blocks(k, h);
    if (rc == QSF_OK) rc = qsf_keys_need_u32(k, "embedding_length", 1, QSF_MAX_HIDDEN, &h->hidden);
    if (rc == QSF_OK)
        rc = read_each(k, h, "feed_forward_length", h->arch->ffn, QSF_MAX_FFN, offsetof(QsfBlockSizes, ffn));
    if (rc == QSF_OK) rc = qsf_keys_need_u32(k, "context_length", 1, MAX_CTX, &h->n_ctx_train);
    return rc == QSF_OK ? read_vocab_size(k, h) : rc;
}

/* Checks the heads of blocks [first, end). */
static int check_heads(QsfKeys *k, const QsfHparams *h, uint32_t first, uint32_t end) {
    qsf_keys_name(k, "attention.head_count_kv");
    for (uint32_t i = first; i < end; i++) {
        const QsfBlockSizes *b = &h->block[i];
        if (b->heads == 0 && h->arch->heads == QSF_KV_BLOCKS) continue;
        if (b->kv_heads == 0 || (b->heads > 0 && b->heads % b->kv_heads == 0)) continue;
        return qsf_err_set(k->err, QSF_E_MODEL,
                           b->heads == 0 ? "%s: metadata key '%s' is %u in a layer with %u heads"
                                         : "%s: metadata key '%s' is %u, which does not divide the %u heads",
                           qsf_source_path(k->src), k->key, b->kv_heads, b->heads);
    }
    return QSF_OK;
}

static uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void find_maxima(QsfHparams *h, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        h->n_heads = max_u32(h->n_heads, h->block[i].heads);
        h->n_kv_heads = max_u32(h->n_kv_heads, h->block[i].kv_heads);
        h->ffn = max_u32(h->ffn, h->block[i].ffn);
    }
}

static int check_width(QsfKeys *k, const QsfHparams *h) {
    if ((uint64_t)h->n_heads * max_u32(h->head_dim, h->v_dim) <= QSF_MAX_HIDDEN) return QSF_OK;
    return qsf_err_set(k->err, QSF_E_MODEL, "%s: %u heads of %u elements are more than supported",
                       qsf_source_path(k->src), h->n_heads, h->head_dim);
}

static int read_head_sizes(QsfKeys *k, QsfHparams *h) {
    if (!qsf_keys_has(k, "attention.key_length") && h->hidden % h->n_heads != 0)
        return qsf_err_set(k->err, QSF_E_MODEL,
                           "%s: metadata key '%s.embedding_length' is %u, not a multiple of the %u heads of "
                           "'%s.attention.head_count', and '%s' is missing",
                           qsf_source_path(k->src), k->arch, h->hidden, h->n_heads, k->arch, k->key);
    int rc = qsf_keys_u32(k, "attention.key_length", h->hidden / h->n_heads, 1, QSF_MAX_HEAD_DIM,
                          &h->head_dim);
    if (rc == QSF_OK && h->head_dim % 2 != 0) rc = qsf_keys_bad(k, "(the size of a head) is odd");
    if (rc == QSF_OK)
        rc = qsf_keys_u32(k, "attention.value_length", h->head_dim, 1, QSF_MAX_HEAD_DIM, &h->v_dim);
    return rc == QSF_OK ? check_width(k, h) : rc;
}

static int read_heads(QsfKeys *k, QsfHparams *h) {
    const QsfPresence need = h->arch->heads;
    int rc = read_each(k, h, "attention.head_count", need, QSF_MAX_HEADS, offsetof(QsfBlockSizes, heads));
    if (rc == QSF_OK && qsf_keys_has(k, "attention.head_count_kv"))
        rc = read_each(k, h, "attention.head_count_kv", need, QSF_MAX_HEADS,
                       offsetof(QsfBlockSizes, kv_heads));
    else
        for (uint32_t i = 0; i < h->n_layers + h->n_extra; i++) h->block[i].kv_heads = h->block[i].heads;
    if (rc == QSF_OK) rc = check_heads(k, h, 0, h->n_layers);
    if (rc != QSF_OK) return rc;
    find_maxima(h, 0, h->n_layers);
    return h->n_heads > 0 ? read_head_sizes(k, h) : QSF_OK;
}

/* Each pass over the blocks counts as blocks of their own, with their own caches. */
static int read_loops(QsfKeys *k, QsfHparams *h) {
    uint32_t n = 1;
    h->n_named = h->n_layers;
    if (!h->arch->loops) return QSF_OK;
    int rc = qsf_keys_u32(k, "num_loops", 1, 1, QSF_MAX_LAYERS / h->n_layers, &n);
    if (rc != QSF_OK) return rc;
    if (n > 1 && h->n_extra > 0) {
        qsf_keys_name(k, "nextn_predict_layers");
        return qsf_keys_bad(k, "is not supported together with num_loops");
    }
    h->n_layers *= n;
    for (uint32_t i = h->n_named; i < h->n_layers; i++) h->block[i] = h->block[i - h->n_named];
    return QSF_OK;
}

static int read_norm(QsfKeys *k, QsfHparams *h) {
    static const char *const rms = "attention.layer_norm_rms_epsilon";
    h->norm = h->arch->rms_by_key && qsf_keys_has(k, rms) ? QSF_NORM_RMS : h->arch->norm;
    const char *name = h->norm == QSF_NORM_RMS ? rms : "attention.layer_norm_epsilon";
    const bool maybe = h->arch->maybe_eps, given = qsf_keys_has(k, name);
    h->norm_eps = 0.0f;
    if (!given) return maybe ? QSF_OK : qsf_keys_bad(k, "is missing");
    int rc = qsf_meta_f32(k->src, k->key, 0.0f, &h->norm_eps, k->err);
    if (rc == QSF_OK && !(h->norm_eps > 0.0f && h->norm_eps < 1.0f) && !(maybe && h->norm_eps == 0.0f))
        rc = qsf_keys_bad(k, "is out of range, expected 0 < epsilon < 1");
    return rc;
}

static int check_causal(QsfKeys *k) {
    bool causal;
    int rc = qsf_keys_bool(k, "attention.causal", true, &causal);
    if (rc == QSF_OK && !causal) rc = qsf_keys_bad(k, "is false: the model cannot generate text");
    return rc;
}

static int unsupported_arch(const QsfSource *src, const char *name, QsfErr *err) {
    unsigned n = 0;
    const char *what = qsf_purpose_of_arch(name);
    if (what != NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: is %s (general.architecture is '%s')", qsf_source_path(src),
                           what, name);
    while (qsf_family_at(n) != NULL) n++;
    return qsf_err_set(
        err, QSF_E_MODEL,
        "%s: model architecture '%s' (general.architecture) is not supported: docs/MODELS.md lists "
        "the %u that are",
        qsf_source_path(src), name, n);
}

static int read_name(QsfHparams *h, const QsfSource *src, QsfErr *err) {
    const char *name;
    size_t len;
    int rc = qsf_meta_str(src, "general.name", &name, &len, err);
    if (rc != QSF_OK || name == NULL) return rc;
    if (len > sizeof h->name - 1) {
        len = sizeof h->name - 1;
        len -= qsf_utf8_incomplete_tail(name, len);
    }
    memcpy(h->name, name, len);
    h->name[qsf_utf8_clean(h->name, len, false)] = '\0';
    return QSF_OK;
}

static int read_numbers(QsfHparams *h, const QsfSource *src, QsfReads *reads, QsfErr *err) {
    QsfKeys k = { .src = src, .arch = h->arch->name, .err = err, .reads = reads };
    int rc = read_sizes(&k, h);
    if (rc == QSF_OK) rc = read_heads(&k, h);
    if (rc == QSF_OK) rc = read_norm(&k, h);
    if (rc == QSF_OK) rc = read_loops(&k, h);
    return rc == QSF_OK ? check_causal(&k) : rc;
}

int qsf_hparams_of_meta(QsfHparams *h, const QsfSource *src, bool vocab_only, QsfReads *reads, QsfErr *err) {
    const char *arch;
    *h = (QsfHparams){ 0 };
    int rc = qsf_purpose_check(src, err);
    if (rc == QSF_OK) rc = qsf_meta_str(src, "general.architecture", &arch, NULL, err);
    if (rc == QSF_OK) rc = read_name(h, src, err);
    if (rc != QSF_OK) return rc;
    h->arch = arch == NULL ? NULL : qsf_family_find(arch);
    if (vocab_only) return QSF_OK;
    if (arch == NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key 'general.architecture' is missing",
                           qsf_source_path(src));
    if (h->arch == NULL) return unsupported_arch(src, arch, err);
    rc = qsf_purpose_check_computation(src, err);
    return rc == QSF_OK ? read_numbers(h, src, reads, err) : rc;
}

int qsf_hparams_read(QsfHparams *h, const QsfSource *src, bool *vocab_only, QsfReads *reads, QsfErr *err) {
    *vocab_only = qsf_source_n_tensors(src) == 0;
    return qsf_hparams_of_meta(h, src, *vocab_only, reads, err);
}

int qsf_hparams_nextn(QsfHparams *h, const QsfSource *src, uint32_t k, QsfErr *err) {
    QsfKeys keys = { .src = src, .arch = h->arch->name, .err = err };
    const uint32_t block = h->n_layers + k;
    int rc = check_heads(&keys, h, block, block + 1);
    if (rc == QSF_OK && h->block[block].heads == 0)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: layer %u, which predicts a further token, has no heads",
                         qsf_source_path(src), block);
    find_maxima(h, block, block + 1);
    return rc == QSF_OK ? check_width(&keys, h) : rc;
}
