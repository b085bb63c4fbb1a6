/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads hyperparameters from metadata. Key names: ggml-org/ggml docs/gguf.md; defaults of absent keys:
 * ggml-org/llama.cpp src/llama-model.cpp. */
#include "src/model/hparams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/strbuf.h"
#include "src/base/utf8.h"

#define KEY_MAX      256
#define MAX_HIDDEN   (1u << 20)
#define MAX_HEADS    (1u << 14)
#define MAX_HEAD_DIM 4096u
#define MAX_FFN      (1u << 22)
#define MAX_VOCAB    (1u << 24)
#define MAX_CTX      (1u << 28)
#define REQUIRED     0u /* as a fallback: every number below must be at least 1 */

typedef struct Reader {
    const QsfSource *src;
    const char *arch;
    QsfErr *err;
    char key[KEY_MAX];
} Reader;

/* Sets r->key to "<arch>.<name>". */
static const char *full_key(Reader *r, const char *name) {
    snprintf(r->key, sizeof r->key, "%s.%s", r->arch, name);
    return r->key;
}

static int bad(const Reader *r, const char *what) {
    return qsf_err_set(r->err, QSF_E_MODEL, "%s: metadata key '%s' %s", qsf_source_path(r->src), r->key,
                       what);
}

static int check_u32(const Reader *r, uint32_t v, uint32_t max) {
    if (v >= 1 && v <= max) return QSF_OK;
    if (!qsf_meta_has(r->src, r->key)) return bad(r, "is missing");
    return qsf_err_set(r->err, QSF_E_MODEL, "%s: metadata key '%s' is %u, expected 1 to %u",
                       qsf_source_path(r->src), r->key, v, max);
}

/* Reads a number from 1 to max; fallback if the key is absent. */
static int get_u32(Reader *r, const char *name, uint32_t fallback, uint32_t max, uint32_t *out) {
    int rc = qsf_meta_u32(r->src, full_key(r, name), fallback, out, r->err);
    return rc == QSF_OK ? check_u32(r, *out, max) : rc;
}

static bool is_array(const Reader *r) {
    QsfMetaArray a;
    bool present = false;
    QsfErr ignored = { 0 };
    qsf_meta_array_open(r->src, r->key, QSF_META_I64, &a, &present, &ignored);
    if (present) qsf_meta_array_close(&a);
    return present;
}

/* Reads the common value of all n_layers elements of the array r->key. */
static int get_uniform(Reader *r, uint32_t n_layers, uint32_t max, uint32_t *out) {
    QsfMetaArray a;
    bool present;
    int64_t v, first = 0;
    int rc = qsf_meta_array_open(r->src, r->key, QSF_META_I64, &a, &present, r->err);
    if (rc != QSF_OK) return rc;
    if (a.count != n_layers) rc = bad(r, "is an array, but not of one element per layer");
    for (uint32_t i = 0; rc == QSF_OK && i < n_layers; i++) {
        rc = qsf_meta_array_i64(&a, &v, r->err);
        if (rc != QSF_OK) break;
        if (i == 0) first = v;
        if (v != first) rc = bad(r, "differs from layer to layer, which is not supported");
    }
    qsf_meta_array_close(&a);
    if (rc != QSF_OK) return rc;
    *out = first < 0 || first > UINT32_MAX ? 0 : (uint32_t)first;
    return check_u32(r, *out, max);
}

/* Like get_u32, for keys that have one number per layer in some files. */
static int get_per_layer(Reader *r, const char *name, uint32_t n_layers, uint32_t fallback, uint32_t max,
                         uint32_t *out) {
    full_key(r, name);
    return is_array(r) ? get_uniform(r, n_layers, max, out) : get_u32(r, name, fallback, max, out);
}

static int read_vocab_size(Reader *r, QsfHparams *h) {
    QsfMetaArray a;
    bool present;
    /* The token list takes precedence: vocab_size of some files is that of the model before padding. */
    int rc = qsf_meta_array_open(r->src, "tokenizer.ggml.tokens", QSF_META_STRING, &a, &present, r->err);
    if (rc != QSF_OK) return rc;
    uint64_t n = present ? a.count : 0;
    if (present) qsf_meta_array_close(&a);
    if (n > 0 && n <= MAX_VOCAB) {
        h->n_vocab = (uint32_t)n;
        return QSF_OK;
    }
    if (n > MAX_VOCAB)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tokenizer.ggml.tokens has %llu entries, at most %u are supported",
                           qsf_source_path(r->src), (unsigned long long)n, MAX_VOCAB);
    return get_u32(r, "vocab_size", REQUIRED, MAX_VOCAB, &h->n_vocab);
}

static int read_sizes(Reader *r, QsfHparams *h) {
    int rc = get_u32(r, "block_count", REQUIRED, QSF_MAX_LAYERS, &h->n_layers);
    if (rc == QSF_OK) rc = get_u32(r, "embedding_length", REQUIRED, MAX_HIDDEN, &h->hidden);
    if (rc == QSF_OK) rc = get_per_layer(r, "feed_forward_length", h->n_layers, REQUIRED, MAX_FFN, &h->ffn);
    if (rc == QSF_OK) rc = get_u32(r, "context_length", REQUIRED, MAX_CTX, &h->n_ctx_train);
    return rc == QSF_OK ? read_vocab_size(r, h) : rc;
}

static int read_heads(Reader *r, QsfHparams *h) {
    uint32_t v_dim;
    int rc = get_per_layer(r, "attention.head_count", h->n_layers, REQUIRED, MAX_HEADS, &h->n_heads);
    if (rc == QSF_OK)
        rc = get_per_layer(r, "attention.head_count_kv", h->n_layers, h->n_heads, MAX_HEADS, &h->n_kv_heads);
    if (rc != QSF_OK) return rc;
    if (h->n_heads % h->n_kv_heads != 0)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: metadata key '%s' is %u, which does not divide the %u heads",
                           qsf_source_path(r->src), r->key, h->n_kv_heads, h->n_heads);
    full_key(r, "attention.key_length");
    if (!qsf_meta_has(r->src, r->key) && h->hidden % h->n_heads != 0)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: embedding length %u is not a multiple of the %u heads and '%s' is missing",
                           qsf_source_path(r->src), h->hidden, h->n_heads, r->key);
    rc = get_u32(r, "attention.key_length", h->hidden / h->n_heads, MAX_HEAD_DIM, &h->head_dim);
    if (rc == QSF_OK && h->head_dim % 2 != 0) rc = bad(r, "(the size of a head) is odd");
    if (rc == QSF_OK) rc = get_u32(r, "attention.value_length", h->head_dim, MAX_HEAD_DIM, &v_dim);
    if (rc == QSF_OK && v_dim != h->head_dim)
        rc = bad(r, "differs from attention.key_length, which is not supported");
    if (rc == QSF_OK && (uint64_t)h->n_heads * h->head_dim > MAX_HIDDEN)
        rc = qsf_err_set(r->err, QSF_E_MODEL, "%s: %u heads of %u elements are more than supported",
                         qsf_source_path(r->src), h->n_heads, h->head_dim);
    return rc;
}

/* Reads the RoPE scale, 1 without scaling. Anything but linear scaling is an error: ignoring it would give
 * wrong results. */
static int read_rope_scale(Reader *r, QsfHparams *h) {
    const char *type;
    h->rope_scale = 1.0f;
    int rc = qsf_meta_str(r->src, full_key(r, "rope.scaling.type"), &type, NULL, r->err);
    if (rc != QSF_OK) return rc;
    if (type != NULL && strcmp(type, "none") == 0) return QSF_OK;
    if (type != NULL && strcmp(type, "linear") != 0)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: RoPE scaling of type '%s' (%s) is not supported, only linear is",
                           qsf_source_path(r->src), type, r->key);
    const char *name = "rope.scaling.factor";
    if (!qsf_meta_has(r->src, full_key(r, name))) name = "rope.scale_linear"; /* in older files */
    rc = qsf_meta_f32(r->src, full_key(r, name), 1.0f, &h->rope_scale, r->err);
    if (rc != QSF_OK) return rc;
    if (fpclassify(h->rope_scale) == FP_ZERO) h->rope_scale = 1.0f; /* 0 means "none" */
    if (!isfinite(h->rope_scale) || h->rope_scale < 1e-6f || h->rope_scale > 1e6f)
        return bad(r, "is out of range");
    return QSF_OK;
}

static int read_rope(Reader *r, QsfHparams *h) {
    int rc = get_u32(r, "rope.dimension_count", h->head_dim, h->head_dim, &h->n_rot);
    if (rc == QSF_OK && h->n_rot % 2 != 0) rc = bad(r, "is odd");
    if (rc == QSF_OK)
        rc = qsf_meta_f32(r->src, full_key(r, "rope.freq_base"), 10000.0f, &h->rope_base, r->err);
    if (rc == QSF_OK && (!isfinite(h->rope_base) || h->rope_base < 1.0f))
        rc = bad(r, "is out of range, expected 1 or more");
    return rc == QSF_OK ? read_rope_scale(r, h) : rc;
}

static int read_norm(Reader *r, QsfHparams *h) {
    const char *name = h->arch->norm == QSF_NORM_RMS ? "attention.layer_norm_rms_epsilon"
                                                     : "attention.layer_norm_epsilon";
    full_key(r, name);
    if (!qsf_meta_has(r->src, r->key)) return bad(r, "is missing");
    int rc = qsf_meta_f32(r->src, r->key, 0.0f, &h->norm_eps, r->err);
    if (rc == QSF_OK && !(h->norm_eps > 0.0f && h->norm_eps < 1.0f))
        rc = bad(r, "is out of range, expected 0 < epsilon < 1");
    return rc;
}

/* Unsupported features that change the computation. */
static int refuse_features(Reader *r) {
    uint32_t experts;
    bool causal;
    int rc = qsf_meta_u32(r->src, full_key(r, "expert_count"), 0, &experts, r->err);
    if (rc == QSF_OK && experts > 0) rc = bad(r, "is not 0: mixture-of-experts models are not supported");
    if (rc == QSF_OK) rc = qsf_meta_bool(r->src, full_key(r, "attention.causal"), true, &causal, r->err);
    if (rc == QSF_OK && !causal) rc = bad(r, "is false: the model cannot generate text");
    return rc;
}

static int unsupported_arch(const QsfSource *src, const char *name, QsfErr *err) {
    QsfStrbuf list = QSF_STRBUF_INIT;
    const QsfArch *a;
    for (unsigned i = 0; (a = qsf_arch_at(i)) != NULL; i++) {
        if (i > 0) qsf_strbuf_adds(&list, ", ");
        qsf_strbuf_adds(&list, a->name);
    }
    int rc = qsf_err_set(err, QSF_E_MODEL,
                         "%s: model architecture '%s' (general.architecture) is not supported; supported: %s",
                         qsf_source_path(src), name, qsf_strbuf_str(&list));
    qsf_strbuf_free(&list);
    return rc;
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

static int read_numbers(QsfHparams *h, const QsfSource *src, QsfErr *err) {
    Reader r = { .src = src, .arch = h->arch->name, .err = err };
    int rc = read_sizes(&r, h);
    if (rc == QSF_OK) rc = read_heads(&r, h);
    if (rc == QSF_OK) rc = read_norm(&r, h);
    if (rc == QSF_OK && h->arch->rope != QSF_ROPE_NONE) rc = read_rope(&r, h);
    return rc == QSF_OK ? refuse_features(&r) : rc;
}

int qsf_hparams_of_meta(QsfHparams *h, const QsfSource *src, bool vocab_only, QsfErr *err) {
    const char *arch;
    *h = (QsfHparams){ 0 };
    int rc = qsf_meta_str(src, "general.architecture", &arch, NULL, err);
    if (rc == QSF_OK) rc = read_name(h, src, err);
    if (rc != QSF_OK) return rc;
    h->arch = arch == NULL ? NULL : qsf_arch_find(arch);
    if (vocab_only) return QSF_OK;
    if (arch == NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: metadata key 'general.architecture' is missing",
                           qsf_source_path(src));
    return h->arch != NULL ? read_numbers(h, src, err) : unsupported_arch(src, arch, err);
}

int qsf_hparams_read(QsfHparams *h, const QsfSource *src, bool *vocab_only, QsfErr *err) {
    *vocab_only = qsf_source_n_tensors(src) == 0;
    return qsf_hparams_of_meta(h, src, *vocab_only, err);
}
