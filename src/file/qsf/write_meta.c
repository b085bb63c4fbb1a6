/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes the metadata section of a QSF file: the metadata of a source, encoded as in GGUF v3 (ggml-org/ggml
 * docs/gguf.md), followed by pairs about the file itself, whose values are known only at the end. */
#include <string.h>

#include "src/file/qsf/fields.h"
#include "src/file/qsf/write.h"

#define N_OWN 5u

bool qsf_key_of_file(const char *key) {
    static const char *const keys[] = { QSF_KEY_LAYER_BYTES, QSF_KEY_LAYER_HEADS, QSF_KEY_NAMES,
                                        QSF_KEY_DIMS,        QSF_KEY_FUSED,       QSF_KEY_EMBEDDING,
                                        QSF_KEY_FINAL_NORM };
    if (strncmp(key, "qsf.crc32.", 10) == 0 || strncmp(key, "split.", 6) == 0) return true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* GGUF's file type names one of GGML's mixtures of types, which may no longer apply. */
static bool carried(const QsfWriteSpec *spec, const QsfMetaEntry *e) {
    if (spec->instead != NULL && strncmp(e->key, spec->instead, strlen(spec->instead)) == 0) return false;
    return !e->hidden && !qsf_key_of_file(e->key) && strcmp(e->key, "general.file_type") != 0;
}

static int put_bytes(void *w, const void *data, size_t len, QsfErr *err) {
    return qsf_write_bytes(w, data, len, err);
}

static int write_entries(QsfWriter *w, const QsfWriteSpec *spec, QsfStrbuf *b, QsfErr *err) {
    const QsfMetaTable *t = &spec->meta->meta;
    QsfStrbuf named = QSF_STRBUF_INIT;
    uint64_t n = spec->n_extra + N_OWN + (w->compressor.max_heads > 0);
    if (spec->named != NULL) qsf_named_put(spec->named, &named, &n);
    for (uint32_t i = 0; i < t->n; i++) n += carried(spec, &t->e[i]);
    b->len = 0;
    qsf_meta_put_le(b, n, 8);
    int rc = qsf_strbuf_ok(b) ? qsf_write_bytes(w, b->data, b->len, err) : qsf_err_memory(err, "%s", w->path);
    w->meta_pairs = n;
    w->crc = 0; /* the count may become smaller; its part of the checksum is added at the end */
    for (uint32_t i = 0; rc == QSF_OK && i < t->n; i++)
        if (carried(spec, &t->e[i])) rc = qsf_meta_copy_entry(spec->meta, &t->e[i], put_bytes, w, err);
    if (rc == QSF_OK && spec->extra != NULL)
        rc = qsf_write_bytes(w, spec->extra->data, spec->extra->len, err);
    if (rc == QSF_OK && !qsf_strbuf_ok(&named)) rc = qsf_err_memory(err, "%s", w->path);
    if (rc == QSF_OK) rc = qsf_write_bytes(w, named.data, named.len, err);
    qsf_strbuf_free(&named);
    return rc;
}

int qsf_write_metadata(QsfWriter *w, const QsfWriteSpec *spec, QsfErr *err) {
    static const uint32_t none[4];
    QsfStrbuf b = QSF_STRBUF_INIT;
    int rc = write_entries(w, spec, &b, err);
    w->own_off = w->pos;
    w->meta_crc = w->crc;
    b.len = 0;
    if (rc == QSF_OK) {
        w->compressor.n_heads = w->compressor.max_heads;
        qsf_write_own_pairs(w, none, &b);
        rc = qsf_strbuf_ok(&b) ? qsf_write_bytes(w, b.data, b.len, err) : qsf_err_memory(err, "%s", w->path);
    }
    w->compressor.n_heads = 0;
    qsf_strbuf_free(&b);
    return rc;
}

/* Encodes the tensor headers of compressed layers, if any: the last pair. */
static void put_heads(const QsfCompressor *p, QsfStrbuf *b) {
    size_t bytes = (size_t)p->n_heads * QSFF_TENSOR_BYTES;
    if (bytes == 0) return;
    qsf_meta_put_str(b, QSF_KEY_LAYER_HEADS, strlen(QSF_KEY_LAYER_HEADS));
    qsf_meta_put_le(b, QSF_META_ARRAY, 4);
    qsf_meta_put_le(b, QSF_META_U8, 4);
    qsf_meta_put_le(b, bytes, 8);
    qsf_strbuf_add(b, p->heads, bytes);
}

static uint64_t heads_bytes(uint32_t n) {
    return n > 0 ? 8 + strlen(QSF_KEY_LAYER_HEADS) + 4 + 4 + 8 + (uint64_t)n * QSFF_TENSOR_BYTES : 0;
}

uint64_t qsf_write_spare(const QsfWriter *w) {
    return heads_bytes(w->compressor.max_heads) - heads_bytes(w->compressor.n_heads);
}

void qsf_write_own_pairs(const QsfWriter *w, const uint32_t crc[4], QsfStrbuf *b) {
    static const char *const keys[] = { QSF_KEY_CRC_INDEX, QSF_KEY_CRC_EMBED, QSF_KEY_CRC_FINAL,
                                        QSF_KEY_CRC_HEAD100 };
    for (unsigned i = 0; i < 4; i++) {
        qsf_meta_put_str(b, keys[i], strlen(keys[i]));
        qsf_meta_put_le(b, QSF_META_U32, 4);
        qsf_meta_put_le(b, crc[i], 4);
    }
    qsf_meta_put_str(b, QSF_KEY_LAYER_BYTES, strlen(QSF_KEY_LAYER_BYTES));
    qsf_meta_put_le(b, QSF_META_ARRAY, 4);
    qsf_meta_put_le(b, QSF_META_U64, 4);
    qsf_meta_put_le(b, w->head.n_layers, 8);
    for (uint32_t i = 0; i < w->head.n_layers; i++) qsf_meta_put_le(b, w->layer_bytes[i], 8);
    put_heads(&w->compressor, b);
}
