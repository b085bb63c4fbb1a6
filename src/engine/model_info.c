/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is known about a model without its weights: implements model_info.h. */
#include "src/engine/model_info.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/strbuf.h"
#include "src/base/utf8.h"
#include "src/chat/chat.h"
#include "src/engine/number.h"
#include "src/file/dirhint.h"
#include "src/file/dtype.h"

/* ---- can it be opened? ---- */

int qsf_check_weights(const QsfModel *m, QsfErr *err) {
    if (!m->vocab_only) return QSF_OK;
    char hint[QSF_DIR_HINT] = "";
    const char *path = qsf_source_path(m->src), *slash = strrchr(path, '/');
    if (qsf_pytorch_in(path, slash != NULL ? (size_t)(slash - path) + 1 : 0))
        return qsf_err_set(err, QSF_E_MODEL, "%s: the weights beside this vocabulary are " QSF_PYTORCH_ADVICE,
                           path);
    if (qsf_source_from_dir(m->src)) qsf_dir_hint(path, slash != NULL ? (size_t)(slash - path) + 1 : 0, hint);
    return qsf_err_set(err, QSF_E_MODEL, "%s: contains a vocabulary but no weights: it can only tokenize%s",
                       path, hint);
}

/* Copies general.architecture to foreign when the table has no row for it. */
static int find_foreign(const QsfSource *src, char *foreign, size_t cap, QsfErr *err) {
    const char *name;
    int rc = qsf_meta_str(src, "general.architecture", &name, NULL, err);
    const bool known = rc != QSF_OK || name == NULL || qsf_family_find(name) != NULL;
    snprintf(foreign, cap, "%s", known ? "" : name);
    return rc;
}

static int check_text(const QsfSource *src, QsfLedger *ledger, QsfErr *err) {
    QsfTokenizer *tok = NULL;
    QsfChatTemplate *t = NULL;
    int32_t turn_end;
    int rc = qsf_tokenizer_open(&tok, src, ledger, err);
    if (rc == QSF_OK) rc = qsf_chat_template_open(&t, src, tok, NULL, NULL, 0, err);
    if (rc == QSF_OK) rc = qsf_chat_turn_end(t, tok, &turn_end, err);
    qsf_chat_template_close(t);
    qsf_tokenizer_close(tok);
    return rc;
}

int qsf_check_source(QsfSource *src, bool to_convert, char *foreign, size_t cap, QsfLedger *ledger,
                     QsfErr *err) {
    QsfModel m;
    int rc = find_foreign(src, foreign, cap, err);
    if (rc == QSF_OK && *foreign == '\0') {
        rc = qsf_model_of_source(&m, src, to_convert, ledger, err);
        if (rc != QSF_OK) return rc;
        rc = qsf_check_weights(&m, err);
        qsf_model_close(&m);
    }
    return rc == QSF_OK ? check_text(src, ledger, err) : rc;
}

int qsf_check_meta(const QsfSource *meta, char *foreign, size_t cap, QsfLedger *ledger, QsfErr *err) {
    QsfHparams hp;
    int rc = find_foreign(meta, foreign, cap, err);
    if (rc == QSF_OK && *foreign == '\0') rc = qsf_hparams_of_meta(&hp, meta, false, NULL, err);
    return rc == QSF_OK ? check_text(meta, ledger, err) : rc;
}

/* ---- its description ---- */

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

#define SEQUENCE "general.sampling.sequence"

/* Whole numbers are exact up to 2^24 and printed without a decimal point; larger ones are out of range
 * anyway. */
static bool read_value(const QsfSource *src, const char *key, char *dst, size_t cap) {
    float v;
    const char *text = NULL;
    size_t len = 0;
    QsfErr err = { 0 };
    if (strcmp(key, SEQUENCE) == 0) {
        if (!qsf_meta_has(src, key) || qsf_meta_str(src, key, &text, &len, &err) != QSF_OK) return false;
        snprintf(dst, cap, "%.*s", (int)(len < cap ? len : cap), text);
        return len > 0 && len < cap;
    }
    if (!qsf_meta_has(src, key) || qsf_meta_f32(src, key, 0, &v, &err) != QSF_OK) return false;
    if (!(fabsf(v) < 16777216.0f)) return false;
    qsf_number_print(v, dst, cap);
    return true;
}

/* Says why the order of the stages that it recommends is not used. */
static void put_refused_order(QsfStrbuf *b, const QsfSource *src, QSFSettings *scratch) {
    char value[QSF_SETTING_LINE], err[256];
    if (!read_value(src, SEQUENCE, value, sizeof value)) return;
    if (qsf_setting_set(scratch, qsf_setting_find("samplers"), value, err, sizeof err) == 0) return;
    const size_t len = qsf_utf8_clean(err, strlen(err), false);
    qsf_strbuf_addf(b, "%-16s%s: %.*s\n", "not used", SEQUENCE, (int)len, err);
}

static void put_advice(QsfStrbuf *b, const QsfModel *m) {
    QSFSettings advice;
    char value[QSF_SETTING_TEXT];
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
    put_refused_order(b, m->src, &advice);
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

/* ---- the settings it recommends ---- */

/* The keys of ggml-org/llama.cpp. The sequence is a text of names with ';' in between. */
static const struct {
    const char *key, *setting;
} rows[] = {
    { "general.sampling.temp", "temperature" },
    { "general.sampling.top_k", "top-k" },
    { "general.sampling.top_p", "top-p" },
    { "general.sampling.min_p", "min-p" },
    { "general.sampling.penalty_repeat", "repeat-penalty" },
    { "general.sampling.penalty_last_n", "repeat-last-n" },
    { "general.sampling.xtc_probability", "xtc" },
    { "general.sampling.xtc_threshold", "xtc-threshold" },
    { "general.sampling.mirostat", "mirostat" },
    { "general.sampling.mirostat_tau", "mirostat-tau" },
    { "general.sampling.mirostat_eta", "mirostat-eta" },
    { SEQUENCE, "samplers" },
};
#define N_ROWS (sizeof rows / sizeof *rows)

void qsf_model_defaults_read(const QsfSource *src, QSFSettings *advice) {
    char value[QSF_SETTING_TEXT], err[256];
    qsf_settings_default(advice);
    for (size_t i = 0; i < N_ROWS; i++) {
        const QSFSetting *row = qsf_setting_find(rows[i].setting);
        if (row != NULL && read_value(src, rows[i].key, value, sizeof value))
            (void)qsf_setting_set(advice, row, value, err, sizeof err);
    }
}

void qsf_model_defaults_apply(QSFSettings *dst, const QSFSettings *advice) {
    char value[QSF_SETTING_TEXT], err[256];
    const QSFSettingSet user_set = dst->user_set;
    for (size_t i = 0; i < N_ROWS; i++) {
        const QSFSetting *row = qsf_setting_find(rows[i].setting);
        if (row == NULL || qsf_setting_user_set(dst, row)) continue;
        qsf_setting_get(advice, row, value, sizeof value);
        (void)qsf_setting_set(dst, row, value, err, sizeof err);
        dst->user_set = user_set; /* not set by the user */
    }
}

/* ---- its identity: a 64-bit FNV-1a hash (Fowler, Noll and Vo) over what makes it that model ---- */

#define SAMPLES      64u
#define SAMPLE_BYTES 64u
#define END_BYTES    4096u /* of the start and of the end of a file */

static uint64_t add(uint64_t h, const void *p, size_t n) {
    const unsigned char *c = p;
    for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * 0x100000001B3u;
    return h;
}

static uint64_t add_u64(uint64_t h, uint64_t v) {
    unsigned char b[8];
    for (unsigned i = 0; i < 8; i++) b[i] = (unsigned char)(v >> 8 * i);
    return add(h, b, sizeof b);
}

static uint64_t add_str(uint64_t h, const char *s) { return add(h, s, strlen(s) + 1); }

/* A value that cannot be read as its type adds nothing: the number only has to be the same each time. */
static uint64_t add_value(uint64_t h, const QsfSource *s, const char *key, QsfMetaType type) {
    QsfErr none = { 0 };
    const char *text = NULL;
    size_t len = 0;
    float x = 0;
    bool yes = false;
    int64_t v = 0;
    uint32_t bits;
    if (type == QSF_META_STRING) {
        if (qsf_meta_str(s, key, &text, &len, &none) == QSF_OK && text != NULL) h = add(h, text, len);
    } else if (type == QSF_META_F32 || type == QSF_META_F64) {
        (void)qsf_meta_f32(s, key, 0, &x, &none);
        memcpy(&bits, &x, sizeof bits);
        h = add_u64(h, bits);
    } else if (type == QSF_META_BOOL) {
        (void)qsf_meta_bool(s, key, false, &yes, &none);
        h = add_u64(h, yes);
    } else if (type != QSF_META_ARRAY) {
        (void)qsf_meta_i64(s, key, 0, &v, &none);
        h = add_u64(h, (uint64_t)v);
    }
    return h;
}

static uint64_t add_meta(uint64_t h, const QsfSource *s) {
    for (size_t i = 0; i < qsf_meta_count(s); i++) {
        QsfMetaType type, elem;
        uint64_t count = 0;
        const char *key = qsf_meta_at(s, i, &type, &elem, &count);
        if (key == NULL) continue;
        h = add_u64(add_u64(add_str(h, key), type), count);
        h = add_value(h, s, key, type);
    }
    return h;
}

static uint64_t add_tensors(uint64_t h, const QsfSource *s) {
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        h = add_u64(add_str(h, t->name), t->dtype);
        for (unsigned d = 0; d < 4; d++) h = add_u64(h, t->ne[d]);
        h = add_u64(add_u64(h, t->offset), t->bytes);
        if (t->compressed != NULL) h = add_u64(h, t->compressed->crc);
    }
    return h;
}

static int add_bytes(uint64_t *h, const QsfFile *f, uint64_t off, size_t n, QsfErr *err) {
    unsigned char b[END_BYTES];
    if (off >= f->size) return QSF_OK;
    if (n > f->size - off) n = (size_t)(f->size - off);
    int rc = qsf_file_pread(f, b, n, off, err);
    if (rc == QSF_OK) *h = add(*h, b, n);
    return rc;
}

static int add_file(uint64_t *h, const QsfFile *f, QsfErr *err) {
    *h = add_u64(*h, f->size);
    int rc = add_bytes(h, f, 0, END_BYTES, err);
    for (unsigned i = 1; rc == QSF_OK && i <= SAMPLES; i++)
        rc = add_bytes(h, f, f->size / (SAMPLES + 1) * i, SAMPLE_BYTES, err);
    if (rc == QSF_OK && f->size > END_BYTES) rc = add_bytes(h, f, f->size - END_BYTES, END_BYTES, err);
    return rc;
}

int qsf_model_identity(const QsfSource *src, uint64_t *out, QsfErr *err) {
    uint32_t n_parts;
    const QsfChecksumPart *part = qsf_source_checksums(src, &n_parts);
    uint64_t h = 0xCBF29CE484222325u;
    int rc = QSF_OK;
    h = add_tensors(add_meta(h, src), src);
    for (uint32_t i = 0; i < n_parts; i++) h = add_u64(h, part[i].crc);
    for (uint32_t i = 0; rc == QSF_OK && i < qsf_source_n_files(src); i++)
        rc = add_file(&h, qsf_source_file(src, i), err);
    *out = h;
    return rc;
}
