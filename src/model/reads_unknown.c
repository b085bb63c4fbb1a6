/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metadata keys of an architecture that nothing looked for. */
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/model/reads_impl.h"

/* Keys that converters write and that have no effect on text: of other inputs and outputs, of the training, or of parts
 * that models of an architecture do not have (ggml-org/llama.cpp gguf-py and src/models, ollama/ollama convert). arch NULL
 * means any architecture; a name that ends with a dot is a prefix. */
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
