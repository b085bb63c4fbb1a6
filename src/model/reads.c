/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What opening a model read: the record, its text and JSON, and the keys that nothing looked for. */
#include "src/model/reads.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/model/hparams.h"

struct QsfReadKey {
    QsfReadKey *next;
    const char *arch, *name;
    bool absent;
    QsfReadValue value; /* if absent */
};

struct QsfAbsentTensor {
    QsfAbsentTensor *next;
    uint64_t block[QSF_MAX_LAYERS / 64]; /* bits; none = it is not of a block */
    char name[];
};

/* ---- the record ---- */

static void *append(QsfReads *r, size_t size) {
    void *mem = qsf_arena_alloc(r->arena, size, _Alignof(max_align_t), NULL);
    if (mem == NULL) r->failed = true;
    return mem;
}

static QsfReadKey *find_key(const QsfReads *r, const char *arch, const char *name) {
    for (QsfReadKey *k = r->keys; k != NULL; k = k->next)
        if ((k->name == name || strcmp(k->name, name) == 0) && strcmp(k->arch, arch) == 0) return k;
    return NULL;
}

void qsf_reads_key(QsfReads *r, const char *arch, const char *name, const QsfReadValue *absent) {
    if (r == NULL || r->arena == NULL) return;
    QsfReadKey *k = find_key(r, arch, name);
    if (k == NULL) {
        k = append(r, sizeof *k);
        if (k == NULL) return;
        *k = (QsfReadKey){ .arch = arch, .name = name, .value.type = QSF_META_N };
        if (r->last_key != NULL)
            r->last_key->next = k;
        else
            r->keys = k;
        r->last_key = k;
    }
    k->absent = absent != NULL;
    if (absent != NULL && k->value.type == QSF_META_N) k->value = *absent;
}

static QsfAbsentTensor *add_tensor(QsfReads *r, const char *name) {
    const size_t len = strlen(name);
    QsfAbsentTensor *t = append(r, sizeof *t + len + 1);
    if (t == NULL) return NULL;
    memcpy(t->name, name, len + 1);
    if (r->last_tensor != NULL)
        r->last_tensor->next = t;
    else
        r->tensors = t;
    r->last_tensor = t;
    return t;
}

void qsf_reads_tensor(QsfReads *r, const char *name, uint32_t block) {
    QsfAbsentTensor *t;
    if (r == NULL || r->arena == NULL) return;
    for (t = r->tensors; t != NULL && strcmp(t->name, name) != 0; t = t->next) continue;
    if (t == NULL) t = add_tensor(r, name);
    if (t != NULL && block < QSF_MAX_LAYERS) t->block[block / 64] |= 1ull << (block % 64);
}

/* ---- text and JSON ---- */

static bool has_block(const QsfAbsentTensor *t, uint32_t i) {
    return i < QSF_MAX_LAYERS && (t->block[i / 64] >> (i % 64) & 1) != 0;
}

static uint32_t count_blocks(const QsfAbsentTensor *t) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < QSF_MAX_LAYERS; i++) n += has_block(t, i);
    return n;
}

static void put_value(QsfStrbuf *out, const QsfReadValue *v, bool json) {
    switch (v->type) {
    case QSF_META_U32: qsf_strbuf_addf(out, "%u", v->v.u); break;
    case QSF_META_F32: qsf_json_put_real(out, (double)v->v.f); break;
    case QSF_META_BOOL: qsf_strbuf_adds(out, v->v.b ? "true" : "false"); break;
    case QSF_META_STRING: qsf_strbuf_addf(out, json ? "\"%s\"" : "%s", v->v.s); break;
    default: qsf_strbuf_adds(out, json ? "null" : "not set"); break;
    }
}

/* Appends "all blocks", or "blocks 0 to 2, 5". */
static void put_blocks(QsfStrbuf *out, const QsfAbsentTensor *t, uint32_t n_blocks) {
    const uint32_t n = count_blocks(t);
    const char *sep = n == 1 ? "block " : "blocks ";
    if (n > 0 && n == n_blocks) {
        qsf_strbuf_adds(out, "all blocks");
        return;
    }
    for (uint32_t i = 0; i < QSF_MAX_LAYERS; i++) {
        uint32_t end = i;
        if (!has_block(t, i)) continue;
        while (has_block(t, end + 1)) end++;
        qsf_strbuf_addf(out, end > i ? "%s%u to %u" : "%s%u", sep, i, end);
        sep = ", ";
        i = end;
    }
}

void qsf_reads_put_text(QsfStrbuf *out, const QsfReads *r, uint32_t n_blocks) {
    const char *title = "\nkeys that the file does not have, and what was used\n";
    char full[512];
    for (const QsfReadKey *k = r->keys; k != NULL; k = k->next) {
        if (!k->absent) continue;
        qsf_strbuf_addf(out, "%s", title);
        (void)snprintf(full, sizeof full, "%s.%s", k->arch, k->name);
        qsf_strbuf_addf(out, "  %-52s ", full);
        put_value(out, &k->value, false);
        qsf_strbuf_addc(out, '\n');
        title = "";
    }
    title = "\noptional tensors that the file does not have\n";
    for (const QsfAbsentTensor *t = r->tensors; t != NULL; t = t->next) {
        qsf_strbuf_addf(out, count_blocks(t) > 0 ? "%s  %-52s " : "%s  %s", title, t->name);
        put_blocks(out, t, n_blocks);
        qsf_strbuf_addc(out, '\n');
        title = "";
    }
}

static void put_block_numbers(QsfStrbuf *out, const QsfAbsentTensor *t) {
    const char *sep = "";
    if (count_blocks(t) == 0) {
        qsf_strbuf_adds(out, "null");
        return;
    }
    qsf_strbuf_addc(out, '[');
    for (uint32_t i = 0; i < QSF_MAX_LAYERS; i++) {
        if (!has_block(t, i)) continue;
        qsf_strbuf_addf(out, "%s%u", sep, i);
        sep = ", ";
    }
    qsf_strbuf_addc(out, ']');
}

void qsf_reads_put_json(QsfStrbuf *out, const QsfReads *r) {
    const char *sep = "";
    qsf_strbuf_adds(out, ", \"defaults\": {");
    for (const QsfReadKey *k = r->keys; k != NULL; k = k->next) {
        if (!k->absent) continue;
        qsf_strbuf_addf(out, "%s\"%s.%s\": ", sep, k->arch, k->name);
        put_value(out, &k->value, true);
        sep = ", ";
    }
    qsf_strbuf_adds(out, "}, \"absent_tensors\": [");
    sep = "";
    for (const QsfAbsentTensor *t = r->tensors; t != NULL; t = t->next) {
        qsf_strbuf_addf(out, "%s{\"name\": \"%s\", \"blocks\": ", sep, t->name);
        put_block_numbers(out, t);
        qsf_strbuf_addc(out, '}');
        sep = ", ";
    }
    qsf_strbuf_addc(out, ']');
}

/* ---- keys that nothing looked for ---- */

/* Keys that converters write and that have no effect on text: of other inputs and outputs, of the training,
 * or of parts that models of an architecture do not have (ggml-org/llama.cpp gguf-py and src/models,
 * ollama/ollama convert). arch NULL means any architecture; a name that ends with a dot is a prefix. */
static const struct {
    const char *arch, *name;
} harmless[] = {
    { NULL, "vocab_size" },
    { NULL, "vision." },
    { NULL, "audio." },
    { NULL, "mm." },
    { NULL, "image_token_id" },
    { NULL, "tensor_data_layout" },
    { NULL, "pooling_type" },
    { NULL, "embedding_length_out" },
    { NULL, "classifier." },
    { NULL, "deepstack_mapping" },
    { NULL, "n_deepstack_layers" },
    { NULL, "altup." },
    { NULL, "rope.dimension_sections" },
    { NULL, "attention.layer_norm_epsilon" },
    { NULL, "attention.layer_norm_rms_epsilon" },
    { NULL, "attention.group_norm_epsilon" },
    { NULL, "attention.group_norm_groups" },
    { NULL, "expert_group_used_count" }, /* read where there are groups */
    { "arwkv7", "attention." },
    { "bailingmoe", "leading_dense_block_count" },
    { "cogvlm", "rope." },
    { "dots3note", "attention.key_length_swa" },
    { "dots3note", "attention.value_length_swa" },
    { "granitehybrid", "rope." },
    { "grok", "router_logit_softcapping" },
    { "hy_v3", "leading_dense_block_count" },
    { "jamba", "rope." },
    { "kimi-k3", "rope." },
    { "kimi-linear", "rope." },
    { "mamba", "attention." },
    { "mamba", "feed_forward_length" },
    { "mamba2", "attention." },
    { "mamba2", "feed_forward_length" },
    { "mellum", "rope.freq_base_swa" },
    { "nemotron_h", "rope." },
    { "nemotron_h_moe", "rope." },
    { "phi3", "attention.sliding_window" },
    { "phimoe", "attention.sliding_window" },
    { "rwkv6", "attention." },
    { "rwkv7", "attention." },
    { "stablelm", "use_parallel_residual" },
};

static bool is_harmless(const char *arch, const char *name) {
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        const char *h = harmless[i].name;
        const size_t n = strlen(h);
        if (harmless[i].arch != NULL && strcmp(harmless[i].arch, arch) != 0) continue;
        if (h[n - 1] == '.' ? strncmp(name, h, n) == 0 : strcmp(name, h) == 0) return true;
    }
    return false;
}

static bool was_read(const QsfReads *r, const char *arch, const char *name) {
    for (const QsfReadKey *k = r->keys; k != NULL; k = k->next)
        if (strcmp(k->name, name) == 0 && strcmp(k->arch, arch) == 0) return true;
    return false;
}

uint32_t qsf_reads_unknown(const QsfReads *r, const QsfSource *src, const char *arch,
                           void (*each)(void *arg, const char *key), void *arg) {
    const size_t len = strlen(arch), count = qsf_meta_count(src);
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++) {
        QsfMetaType type, elem;
        uint64_t elems;
        const char *key = qsf_meta_at(src, i, &type, &elem, &elems);
        if (strncmp(key, arch, len) != 0 || key[len] != '.') continue;
        if (is_harmless(arch, key + len + 1) || was_read(r, arch, key + len + 1)) continue;
        n++;
        if (each != NULL) each(arg, key);
    }
    return n;
}

typedef struct List {
    QsfStrbuf *out;
    const char *sep;
} List;

static void put_key(void *arg, const char *key) {
    List *list = arg;
    const size_t len = strlen(key);
    char *clean = malloc(len + 1);
    qsf_strbuf_adds(list->out, list->sep);
    list->sep = ", ";
    if (clean == NULL) return;
    memcpy(clean, key, len + 1);
    qsf_strbuf_add(list->out, clean, qsf_utf8_clean(clean, len, false));
    free(clean);
}

uint32_t qsf_reads_put_unknown(QsfStrbuf *out, const QsfReads *r, const QsfSource *src, const char *arch) {
    List list = { out, "" };
    return qsf_reads_unknown(r, src, arch, put_key, &list);
}
