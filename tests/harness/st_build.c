/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Safetensors files and model directories of the tests. */
#include "tests/harness/st_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/gguf_build.h"

void qsf_sb_member(QsfStBuild *b, const char *text) {
    if (b->header.len > 0) qsf_strbuf_addc(&b->header, ',');
    qsf_strbuf_adds(&b->header, text);
}

void qsf_sb_tensor(QsfStBuild *b, const char *name, const char *dtype, uint32_t n_dims, const uint64_t *shape,
                   const void *data, size_t len) {
    if (b->header.len > 0) qsf_strbuf_addc(&b->header, ',');
    qsf_strbuf_addf(&b->header, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", name, dtype);
    for (uint32_t i = 0; i < n_dims; i++)
        qsf_strbuf_addf(&b->header, "%s%llu", i > 0 ? "," : "", (unsigned long long)shape[i]);
    qsf_strbuf_addf(&b->header, "],\"data_offsets\":[%zu,%zu]}", b->data.len, b->data.len + len);
    qsf_strbuf_add(&b->data, data, len);
}

int qsf_sb_write(const QsfStBuild *b, const char *path) {
    QsfStrbuf out = QSF_STRBUF_INIT;
    uint64_t n = b->header.len + 2, padded = (n + 7) / 8 * 8;
    for (unsigned i = 0; i < 8; i++) qsf_strbuf_addc(&out, (char)(unsigned char)(padded >> (8 * i)));
    qsf_strbuf_addc(&out, '{');
    qsf_strbuf_add(&out, b->header.data, b->header.len);
    qsf_strbuf_addc(&out, '}');
    for (; n < padded; n++) qsf_strbuf_addc(&out, ' ');
    qsf_strbuf_add(&out, b->data.data, b->data.len);
    int rc = qsf_strbuf_ok(&out) ? qsf_test_write_file(path, out.data, out.len) : -1;
    qsf_strbuf_free(&out);
    return rc;
}

void qsf_sb_free(QsfStBuild *b) {
    qsf_strbuf_free(&b->header);
    qsf_strbuf_free(&b->data);
}

/* --- a model --- */

float qsf_test_hf_value(const char *name, uint64_t i) {
    uint64_t h = i * 0x9E3779B97F4A7C15u + 1;
    for (const char *p = name; *p != '\0'; p++) h = (h ^ (unsigned char)*p) * 0x100000001B3u;
    h ^= h >> 29;
    h *= 0xBF58476D1CE4E5B9u;
    return (float)((int)((h >> 40) % 255) - 127) / 64.0f;
}

/* Values that are zero, or normal numbers that are exact in either type. */
static void put_value(QsfStrbuf *out, const char *dtype, float v) {
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    unsigned bytes = 4;
    if (dtype[0] == 'B') {
        u >>= 16;
        bytes = 2;
    } else if (dtype[1] == '1') {
        uint32_t magnitude = u & 0x7FFFFFFF;
        u = (u >> 16 & 0x8000) | (magnitude == 0 ? 0 : (magnitude - 0x38000000) >> 13);
        bytes = 2;
    }
    for (unsigned i = 0; i < bytes; i++) qsf_strbuf_addc(out, (char)(unsigned char)(u >> (8 * i)));
}

typedef struct Model {
    QsfHfSpec spec;
    QsfStBuild file[2];
    QsfStrbuf index;
    unsigned shard; /* the offset of the next tensor */
} Model;

/* rows 0: a vector. */
static void add(Model *m, const char *name, uint64_t rows, uint64_t cols) {
    uint64_t shape[2] = { rows, cols }, n = rows == 0 ? cols : rows * cols;
    QsfStrbuf data = QSF_STRBUF_INIT;
    for (uint64_t i = 0; i < n; i++) put_value(&data, m->spec.dtype, qsf_test_hf_value(name, i));
    qsf_sb_tensor(&m->file[m->shard], name, m->spec.dtype, rows == 0 ? 1 : 2, rows == 0 ? shape + 1 : shape,
                  data.data, data.len);
    qsf_strbuf_addf(&m->index, "%s\"%s\":\"model-0000%u-of-00002.safetensors\"", m->index.len > 0 ? "," : "",
                    name, m->shard + 1);
    qsf_strbuf_free(&data);
}

static void add_of_layer(Model *m, uint32_t layer, const char *name, uint64_t rows, uint64_t cols) {
    char full[128];
    snprintf(full, sizeof full, "model.layers.%u.%s.weight", layer, name);
    add(m, full, rows, cols);
    if (!m->spec.biases || rows == 0) return;
    snprintf(full, sizeof full, "model.layers.%u.%s.bias", layer, name);
    add(m, full, 0, rows);
}

static void add_layer(Model *m, uint32_t i) {
    const QsfHfSpec *s = &m->spec;
    uint64_t q = (uint64_t)s->heads * s->head_dim, kv = (uint64_t)s->kv_heads * s->head_dim;
    add_of_layer(m, i, "input_layernorm", 0, s->hidden);
    add_of_layer(m, i, "mlp.down_proj", s->hidden, s->ffn);
    add_of_layer(m, i, "mlp.gate_proj", s->ffn, s->hidden);
    add_of_layer(m, i, "mlp.up_proj", s->ffn, s->hidden);
    add_of_layer(m, i, "post_attention_layernorm", 0, s->hidden);
    add_of_layer(m, i, "self_attn.k_proj", kv, s->hidden);
    add_of_layer(m, i, "self_attn.o_proj", s->hidden, q);
    add_of_layer(m, i, "self_attn.q_proj", q, s->hidden);
    add_of_layer(m, i, "self_attn.v_proj", kv, s->hidden);
    char name[128];
    snprintf(name, sizeof name, "model.layers.%u.self_attn.rotary_emb.inv_freq", i);
    if (s->rotary) add(m, name, 0, s->head_dim / 2);
}

static void default_to(uint32_t *v, uint32_t fallback) {
    if (*v == 0) *v = fallback;
}

static bool fill(Model *m, const QsfHfSpec *spec) {
    QsfHfSpec *s = &m->spec;
    if (spec != NULL) *s = *spec;
    default_to(&s->layers, 2);
    default_to(&s->hidden, 24);
    default_to(&s->heads, 4);
    default_to(&s->kv_heads, 2);
    bool says = s->head_dim != 0;
    default_to(&s->head_dim, s->hidden / s->heads);
    default_to(&s->ffn, 40);
    default_to(&s->vocab, QSF_HF_TOKENS);
    if (s->dtype == NULL) s->dtype = "F32";
    if (s->arch == NULL) s->arch = "LlamaForCausalLM";
    if (s->config == NULL) s->config = "";
    if (s->last == NULL) s->last = "";
    return says;
}

static int write_config(const Model *m, const char *dir, bool says_head_dim) {
    const QsfHfSpec *s = &m->spec;
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(
        &b,
        "{%s\"architectures\":[\"%s\"],\"hidden_size\":%u,\"intermediate_size\":%u,\"num_hidden_layers\":%u,"
        "\"num_attention_heads\":%u,\"num_key_value_heads\":%u,\"vocab_size\":%u,"
        "\"max_position_embeddings\":512,"
        "\"rms_norm_eps\":1e-05,\"hidden_act\":\"silu\",\"tie_word_embeddings\":%s,\"rope_theta\":20000.0,"
        "\"bos_token_id\":7,\"eos_token_id\":[8,7]",
        s->config, s->arch, s->hidden, s->ffn, s->layers, s->heads, s->kv_heads, s->vocab,
        s->tied ? "true" : "false");
    if (says_head_dim) qsf_strbuf_addf(&b, ",\"head_dim\":%u", s->head_dim);
    qsf_strbuf_addf(&b, "%s}", s->last);
    int rc = qsf_test_write_in(dir, "config.json", b.data, b.len);
    qsf_strbuf_free(&b);
    return rc;
}

static int write_tokenizer(const char *dir) {
    static const char tokens[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"ab\":4,"
        "\"\\u0120a\":5,\"d\":6},"
        "\"merges\":[\"a b\",\"\\u0120 "
        "a\"]},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
        "\"added_tokens\":[{\"id\":7,\"content\":\"<s>\",\"special\":true},{\"id\":8,\"content\":\"</s>\","
        "\"special\":true}]}";
    static const char config[] =
        "{\"bos_token\":\"<s>\",\"add_bos_token\":true,\"chat_template\":\"{{ messages }}\"}";
    int rc = qsf_test_write_in(dir, "tokenizer.json", tokens, sizeof tokens - 1);
    return rc == 0 ? qsf_test_write_in(dir, "tokenizer_config.json", config, sizeof config - 1) : rc;
}

static int write_weights(const Model *m, const char *dir) {
    char path[512];
    int rc = 0;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (!m->spec.shards) return qsf_sb_write(&m->file[0], path);
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        snprintf(path, sizeof path, "%s/model-0000%u-of-00002.safetensors", dir, i + 1);
        rc = qsf_sb_write(&m->file[i], path);
    }
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "{\"metadata\":{\"total_size\":1},\"weight_map\":{%s}}", qsf_strbuf_str(&m->index));
    if (rc == 0) rc = qsf_test_write_in(dir, "model.safetensors.index.json", b.data, b.len);
    qsf_strbuf_free(&b);
    return rc;
}

int qsf_test_write_hf_dir(const char *dir, const QsfHfSpec *spec) {
    Model m = { 0 };
    bool says = fill(&m, spec);
    const QsfHfSpec *s = &m.spec;
    qsf_sb_member(&m.file[0], "\"__metadata__\":{\"format\":\"pt\"}");
    add(&m, "model.embed_tokens.weight", s->vocab, s->hidden);
    for (uint32_t i = 0; i < s->layers; i++) {
        if (s->shards && i > 0) m.shard = 1;
        add_layer(&m, i);
    }
    add(&m, "model.norm.weight", 0, s->hidden);
    if (!s->tied) add(&m, "lm_head.weight", s->vocab, s->hidden);
    int rc = write_weights(&m, dir);
    if (rc == 0) rc = write_config(&m, dir, says);
    if (rc == 0) rc = write_tokenizer(dir);
    qsf_sb_free(&m.file[0]);
    qsf_sb_free(&m.file[1]);
    qsf_strbuf_free(&m.index);
    return rc;
}

int qsf_test_write_in(const char *dir, const char *name, const void *bytes, size_t len) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return qsf_test_write_file(path, bytes, len);
}

void qsf_test_remove_hf_dir(const char *dir) {
    static const char *const names[] = {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    };
    char path[512];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}
