/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the contents of config.json as the metadata of a GGUF file (ggml-org/ggml docs/gguf.md; which keys
 * are written: ggml-org/llama.cpp conversion/base.py). */
#include <string.h>

#include "src/file/hf/model.h"

#define NAME_MAX_SHOWN 120

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
    const struct {
        const char *name;
        bool said;
        uint32_t v;
    } rows[] = {
        { "vocab_size", true, m->n_vocab },
        { "context_length", true, ctx },
        { "embedding_length", true, m->hidden },
        { "block_count", true, m->n_layers },
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
