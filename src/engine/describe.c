/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The facts of a model, for the status pane, /show model and qsf-run. */
#include "src/engine/describe.h"

#include <stdio.h>
#include <string.h>

#include "src/base/strbuf.h"
#include "src/base/utf8.h"
#include "src/engine/advice.h"
#include "src/file/dtype.h"

typedef struct TypeCount {
    uint64_t tensors, bytes;
} TypeCount;

static void count_types(const QsfModel *m, TypeCount *counts) {
    memset(counts, 0, QSF_DTYPES_MAX * sizeof *counts);
    for (uint64_t i = 0; i < qsf_source_n_tensors(m->src); i++) {
        const QsfTensor *t = qsf_source_tensor(m->src, i);
        const uint32_t k = qsf_dtype_index(t->dtype);
        if (k == QSF_DTYPES_MAX) continue;
        counts[k].tensors++;
        counts[k].bytes += t->bytes;
    }
}

static const char *type_name(uint32_t index) {
    const QsfDtype *d = qsf_dtype_at(index);
    return d != NULL ? d->name : "?";
}

/* Prints 1.1B or 260K: model names use two digits. */
static void print_count(uint64_t n, char *dst, size_t cap) {
    static const struct {
        double unit;
        char name;
    } units[] = { { 1e9, 'B' }, { 1e6, 'M' }, { 1e3, 'K' } };
    for (size_t i = 0; i < 3; i++) {
        double v = (double)n / units[i].unit;
        if (v < 0.9995) continue;
        snprintf(dst, cap, v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[i].name);
        return;
    }
    snprintf(dst, cap, "%llu", (unsigned long long)n);
}

void qsf_model_summary(const QsfModel *m, char *dst, size_t cap) {
    TypeCount counts[QSF_DTYPES_MAX];
    uint32_t best = 0;
    char params[32];
    count_types(m, counts);
    for (uint32_t i = 1; i < QSF_DTYPES_MAX; i++)
        if (counts[i].bytes > counts[best].bytes) best = i;
    print_count(qsf_model_n_params(m), params, sizeof params);
    snprintf(dst, cap, "%s %s %s", m->hp.arch != NULL ? m->hp.arch->name : "?", params, type_name(best));
}

/* Appends a metadata string, cleaned; nothing when it is absent. */
static void put_meta(QsfStrbuf *b, const QsfModel *m, const char *key, const char *label) {
    const char *s;
    size_t len;
    char text[256];
    QsfErr err = { 0 };
    if (qsf_meta_str(m->src, key, &s, &len, &err) != QSF_OK || s == NULL || len == 0) return;
    if (len > sizeof text) len = sizeof text;
    memcpy(text, s, len);
    len = qsf_utf8_clean(text, len, false);
    qsf_strbuf_addf(b, "%-16s%.*s\n", label, (int)len, text);
}

static void put_types(QsfStrbuf *b, const QsfModel *m) {
    TypeCount counts[QSF_DTYPES_MAX];
    const char *sep = "";
    count_types(m, counts);
    qsf_strbuf_addf(b, "%-16s", "weight types");
    for (uint32_t i = 0; i < QSF_DTYPES_MAX; i++) {
        if (counts[i].tensors == 0) continue;
        qsf_strbuf_addf(b, "%s%s (%llu tensors, %.1f MB)", sep, type_name(i),
                        (unsigned long long)counts[i].tensors, (double)counts[i].bytes / 1048576);
        sep = ", ";
    }
    qsf_strbuf_adds(b, "\n");
}

static void put_advice(QsfStrbuf *b, const QsfModel *m) {
    QSFSettings advice;
    char value[64];
    const char *sep = "recommends";
    qsf_model_defaults_read(m->src, &advice);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(&advice, row)) continue;
        qsf_setting_get(&advice, row, value, sizeof value);
        qsf_strbuf_addf(b, *sep == ',' ? "%s%s %s" : "%-16s%s %s", sep, row->name, value);
        sep = ", ";
    }
    if (*sep == ',') qsf_strbuf_adds(b, "\n");
}

static void put_unknown(QsfStrbuf *b, const QsfModel *m) {
    QsfStrbuf keys = QSF_STRBUF_INIT;
    if (m->hp.arch != NULL && !m->vocab_only &&
        qsf_reads_put_unknown(&keys, &m->reads, m->src, m->hp.arch->name) > 0)
        qsf_strbuf_addf(b, "%-16s%s\n", "unknown keys", qsf_strbuf_str(&keys));
    qsf_strbuf_free(&keys);
}

char *qsf_model_text(const QsfModel *m) {
    const QsfHparams *h = &m->hp;
    QsfStrbuf b = QSF_STRBUF_INIT;
    char params[32], path[512];
    print_count(qsf_model_n_params(m), params, sizeof params);
    if (h->name[0] != '\0') qsf_strbuf_addf(&b, "%-16s%s\n", "name", h->name);
    qsf_strbuf_addf(&b, "%-16s%s\n", "architecture", h->arch != NULL ? h->arch->name : "?");
    qsf_strbuf_addf(&b, "%-16s%s (%llu)\n", "parameters", params, (unsigned long long)qsf_model_n_params(m));
    qsf_strbuf_addf(&b, "%-16s%u\n%-16s%u\n", "layers", h->n_layers, "hidden", h->hidden);
    qsf_strbuf_addf(&b, "%-16s%u of %u dimensions, %u for keys and values\n", "heads", h->n_heads,
                    h->head_dim, h->n_kv_heads);
    qsf_strbuf_addf(&b, "%-16s%u\n%-16s%u tokens\n%-16s%u tokens\n", "feed-forward", h->ffn, "vocabulary",
                    h->n_vocab, "context", h->n_ctx_train);
    put_types(&b, m);
    put_advice(&b, m);
    put_meta(&b, m, "general.license", "licence");
    snprintf(path, sizeof path, "%s", qsf_source_path(m->src));
    size_t len = qsf_utf8_clean(path, strlen(path), false);
    qsf_strbuf_addf(&b, "%-16s%.*s\n", "file", (int)len, path);
    qsf_strbuf_addf(&b, "%-16s%s, %.1f MB\n", "format", qsf_source_format(m->src),
                    (double)qsf_source_bytes(m->src) / 1048576);
    put_unknown(&b, m);
    return qsf_strbuf_take(&b, NULL);
}
