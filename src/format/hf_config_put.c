/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the contents of config.json as the metadata of a GGUF file (ggml-org/ggml docs/gguf.md; which keys
 * are written: ggml-org/llama.cpp convert_hf_to_gguf.py). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/format/hf_model.h"

#define KEY_MAX        128
#define NAME_MAX_SHOWN 120
#define PI             3.14159265358979323846

/* Returns "llama.name", with the lifetime of the source. */
static const char *full_key(QsfSource *s, const QsfHfConfig *c, const char *name, QsfErr *err) {
    char key[KEY_MAX];
    int n = snprintf(key, sizeof key, "%s.%s", c->arch->gguf, name);
    return qsf_arena_strdup(&s->arena, key, (size_t)n, err);
}

static int put_u32(QsfSource *s, const QsfHfConfig *c, const char *name, uint32_t v, QsfErr *err) {
    const char *key = full_key(s, c, name, err);
    return key != NULL ? qsf_meta_make_u32(s, key, v, err) : err->code;
}

static int put_f32(QsfSource *s, const QsfHfConfig *c, const char *name, float v, QsfErr *err) {
    const char *key = full_key(s, c, name, err);
    return key != NULL ? qsf_meta_make_f32(s, key, v, err) : err->code;
}

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

static int put_numbers(QsfSource *s, const QsfHfConfig *c, QsfErr *err) {
    /* Within the sliding window, attention over the window equals full attention. */
    const uint32_t ctx = c->window > 0 && c->window < c->n_ctx ? c->window : c->n_ctx;
    const struct {
        const char *name;
        bool said;
        uint32_t v;
    } rows[] = {
        { "vocab_size", true, c->n_vocab },
        { "context_length", true, ctx },
        { "embedding_length", true, c->hidden },
        { "block_count", true, c->n_layers },
        { "feed_forward_length", true, c->ffn },
        { "attention.head_count", true, c->n_heads },
        { "attention.head_count_kv", true, c->n_kv_heads },
        { "attention.key_length", c->says_head_dim, c->head_dim },
        { "attention.value_length", c->says_head_dim, c->head_dim },
        { "attention.sliding_window", c->window > 0, c->window },
        { "rope.dimension_count", true, c->head_dim },
    };
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].said) rc = put_u32(s, c, rows[i].name, rows[i].v, err);
    return rc;
}

static int put_rope(QsfSource *s, const QsfHfConfig *c, QsfErr *err) {
    int rc = put_f32(s, c, "rope.freq_base", c->rope_base, err);
    if (rc != QSF_OK || c->rope != QSF_HF_ROPE_LINEAR) return rc;
    const char *key = full_key(s, c, "rope.scaling.type", err);
    if (key == NULL) return err->code;
    rc = qsf_meta_make_str(s, key, "linear", 6, err);
    return rc == QSF_OK ? put_f32(s, c, "rope.scaling.factor", (float)c->rope_factor, err) : rc;
}

int qsf_hf_config_put(QsfSource *s, const QsfHfConfig *c, QsfErr *err) {
    int rc = qsf_meta_make_str(s, "general.architecture", c->arch->gguf, strlen(c->arch->gguf), err);
    if (rc == QSF_OK) rc = put_name(s, err);
    if (rc == QSF_OK) rc = put_numbers(s, c, err);
    if (rc == QSF_OK) rc = put_f32(s, c, "attention.layer_norm_rms_epsilon", c->norm_eps, err);
    return rc == QSF_OK ? put_rope(s, c, err) : rc;
}

/* Wavelengths above trained context / `low` are scaled by the full factor, those below trained context /
 * `high` not at all; in between, the frequency is interpolated in proportion to how often the wave fits into
 * that context (meta-llama/llama-models models/llama3/model.py; huggingface/transformers
 * modeling_rope_utils.py). */
void qsf_hf_rope_factors(const QsfHfConfig *c, float *out) {
    for (uint32_t i = 0; i < c->head_dim / 2; i++) {
        double wave = 2 * PI * pow((double)c->rope_base, 2.0 * i / c->head_dim);
        double t = (c->rope_ctx / wave - c->rope_low) / (c->rope_high - c->rope_low);
        if (t > 1) t = 1;
        if (t < 0) t = 0;
        out[i] = (float)(1 / ((1 - t) / c->rope_factor + t));
    }
}
