/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compressed layers of an open QSF file. */
#include "src/file/qsf/compressed.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/crc32.h"
#include "src/file/qsf/fields.h"
#include "src/file/source_impl.h"

#define LABEL_MAX 512
#define MEM_NAME  "decompressed layer"

/* The most recently decompressed layer. */
struct QsfCompressedCache {
    pthread_mutex_t lock;
    const QsfCompressed *of; /* NULL: none */
    unsigned char *whole;    /* (of->whole_bytes) */
};

const char *qsf_compressed_label(const QsfCompressed *c, const char *path, char *buf, size_t cap) {
    snprintf(buf, cap, "%s: layer %" PRIu32 ", decompressed from byte offset %" PRIu64, path, c->layer,
             c->off);
    return buf;
}

int qsf_compressed_check(const QsfSource *s, const QsfCompressed *c, const void *raw, QsfErr *err) {
    uint32_t crc = qsf_crc32(0, raw, (size_t)c->bytes);
    if (crc == c->crc) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: layer %" PRIu32 " from byte offset %" PRIu64 " is damaged: checksum %08" PRIX32
                       ", but the file says %08" PRIX32,
                       s->files[c->file].path, c->layer, c->off, crc, c->crc);
}

static int check_heads(const QsfSource *s, const QsfCompressed *c, const unsigned char *whole, QsfErr *err) {
    char label[LABEL_MAX];
    for (uint32_t i = 0; c->heads != NULL && i < c->n_heads; i++) {
        if (memcmp(whole + c->head_at[i], c->heads + i * QSFF_TENSOR_BYTES, QSFF_TENSOR_BYTES) == 0) continue;
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the header of tensor %" PRIu32 ", %" PRIu32
                           " bytes after its start, does not match "
                           "the metadata (" QSF_KEY_LAYER_HEADS ")",
                           qsf_compressed_label(c, s->files[c->file].path, label, sizeof label), i,
                           c->head_at[i]);
    }
    return QSF_OK;
}

int qsf_compressed_unpack(const QsfSource *s, const QsfCompressed *c, const QsfUnpacker *u, const void *raw,
                          void *whole, QsfErr *err) {
    if (!qsf_unpack(u, c->how, raw, (size_t)c->bytes, whole, (size_t)c->whole_bytes))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: layer %" PRIu32 ": the %" PRIu64 " bytes at byte offset %" PRIu64
                           " are not %s data that decompresses to %" PRIu64 " bytes",
                           s->files[c->file].path, c->layer, c->bytes, c->off, qsf_codec_name(c->how),
                           c->whole_bytes);
    return check_heads(s, c, whole, err);
}

/* ---- one layer in memory */

static int read_raw(const QsfSource *s, const QsfCompressed *c, unsigned char **raw, QsfErr *err) {
    void *p;
    int rc = qsf_mem_map(s->ledger, QSF_MEM_META, c->bytes, "compressed layer", &p, err);
    *raw = p;
    if (rc == QSF_OK) rc = qsf_file_pread(&s->files[c->file], p, (size_t)c->bytes, c->off, err);
    return rc == QSF_OK ? qsf_compressed_check(s, c, p, err) : rc;
}

static void drop(const QsfSource *s, const QsfCompressed *c, unsigned char *whole) {
    if (whole != NULL) qsf_mem_unmap_named(s->ledger, QSF_MEM_META, whole, c->whole_bytes, MEM_NAME);
}

/* The caller unmaps *whole. */
static int load(const QsfSource *s, const QsfCompressed *c, unsigned char **whole, QsfErr *err) {
    QsfUnpacker u = { NULL };
    unsigned char *raw = NULL;
    void *p = NULL;
    int rc = qsf_unpacker_need(&u, c->how, err);
    if (rc == QSF_OK) rc = read_raw(s, c, &raw, err);
    if (rc == QSF_OK) rc = qsf_mem_map(s->ledger, QSF_MEM_META, c->whole_bytes, MEM_NAME, &p, err);
    if (rc == QSF_OK) rc = qsf_compressed_unpack(s, c, &u, raw, p, err);
    if (raw != NULL) qsf_mem_unmap_named(s->ledger, QSF_MEM_META, raw, c->bytes, "compressed layer");
    qsf_unpacker_close(&u);
    if (rc != QSF_OK) drop(s, c, p);
    *whole = rc == QSF_OK ? p : NULL;
    return rc;
}

/* Reads bytes [at, at + len) of a tensor. The decompressed layer is cached, charged to QSF_MEM_META, until a
 * different one is read. Any thread. */
static int compressed_read(const QsfSource *s, const QsfTensor *t, uint64_t at, void *dst, size_t len,
                           QsfErr *err) {
    struct QsfCompressedCache *k = s->cache;
    int rc = QSF_OK;
    pthread_mutex_lock(&k->lock);
    if (k->of != t->compressed) {
        drop(s, k->of, k->whole);
        k->of = NULL;
        rc = load(s, t->compressed, &k->whole, err);
        if (rc == QSF_OK) k->of = t->compressed;
    }
    if (rc == QSF_OK) memcpy(dst, k->whole + t->offset + at, len);
    pthread_mutex_unlock(&k->lock);
    return rc;
}

/* ---- opening */

int qsf_layer_heads(const QsfSource *s, const QsfIndexEntry *index, uint32_t n, uint64_t *at,
                    const unsigned char **mem, uint64_t *count, QsfErr *err) {
    const QsfMetaEntry *e = qsf_meta_find(&s->meta, QSF_KEY_LAYER_HEADS);
    uint64_t want = 0;
    *count = 0;
    if (e == NULL) return QSF_OK;
    for (uint32_t i = 0; i < n; i++)
        if (index[i].compression != QSFF_STORED) want += index[i].n_tensors;
    if (e->type != QSF_META_ARRAY || e->elem != QSF_META_U8 || e->v.arr.count != want * QSFF_TENSOR_BYTES)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: metadata key '" QSF_KEY_LAYER_HEADS
                           "', with its value at byte offset %" PRIu64
                           " of the %s, is not an array of %" PRIu64 " u8, the headers of %" PRIu64
                           " tensors in compressed layers",
                           qsf_source_path(s), e->type == QSF_META_ARRAY ? e->v.arr.off : 0,
                           e->v.arr.mem != NULL ? "metadata" : "file", want * QSFF_TENSOR_BYTES, want);
    *at = e->v.arr.off;
    *mem = e->v.arr.mem;
    *count = want;
    return QSF_OK;
}

/* Reads the tensor headers of a layer from the layer itself. Errors in them are not reported here: the code
 * that walks the tensors reports them with more detail. */
static int heads_of_layer(const QsfSource *s, const QsfCompressed *c, const QsfFileHeader *h, uint8_t code,
                          unsigned char *heads, QsfErr *err) {
    char label[LABEL_MAX];
    unsigned char *whole;
    int rc = load(s, c, &whole, err);
    if (rc != QSF_OK) return rc;
    QsfTensorScope sc = { .head = h,
                          .names = s->named,
                          .layer = c->layer,
                          .code = code,
                          .path = qsf_compressed_label(c, s->files[c->file].path, label, sizeof label) };
    for (uint64_t pos = 0; rc == QSF_OK && sc.count < c->n_heads;) {
        QsfTensorPlace p;
        pos = qsf_tensor_next(pos, h->flags);
        rc = qsf_tensor_fits(&sc, 0, pos, QSFF_TENSOR_BYTES, c->whole_bytes, err);
        if (rc != QSF_OK) break;
        memcpy(heads + sc.count * QSFF_TENSOR_BYTES, whole + pos, QSFF_TENSOR_BYTES);
        rc = qsf_scope_tensor(&sc, whole + pos, pos, &p, err);
        if (rc == QSF_OK) rc = qsf_tensor_fits(&sc, 0, pos + QSFF_TENSOR_BYTES, p.bytes, c->whole_bytes, err);
        pos += QSFF_TENSOR_BYTES + p.bytes;
    }
    drop(s, c, whole);
    return rc;
}

static void compressed_close(QsfSource *s) {
    if (s->cache->of != NULL) drop(s, s->cache->of, s->cache->whole);
    pthread_mutex_destroy(&s->cache->lock);
    free(s->cache);
    s->cache = NULL;
}

static const QsfCompressedOps ops = { compressed_read, compressed_close };

static int make_list(QsfSource *s, const QsfIndexEntry *index, uint32_t n, QsfErr *err) {
    s->compressed = qsf_source_alloc(s, s->n_compressed, sizeof *s->compressed, err);
    if (s->compressed == NULL) return err->code;
    QsfCompressed *c = s->compressed;
    for (uint32_t i = 0; i < n; i++)
        if (index[i].compression != QSFF_STORED)
            *c++ = (QsfCompressed){ .layer = i,
                                    .off = index[i].off,
                                    .bytes = index[i].bytes,
                                    .whole_bytes = index[i].whole_bytes,
                                    .crc = index[i].crc,
                                    .how = index[i].compression,
                                    .n_heads = index[i].n_tensors };
    s->cache = calloc(1, sizeof *s->cache);
    if (s->cache == NULL) return qsf_err_memory(err, "%s", qsf_source_path(s));
    pthread_mutex_init(&s->cache->lock, NULL);
    s->compressed_ops = &ops;
    return QSF_OK;
}

int qsf_compressed_open(QsfSource *s, const QsfFileHeader *h, const QsfIndexEntry *index, QsfErr *err) {
    const unsigned char *mem;
    uint64_t at = 0, count = 0;
    for (uint32_t i = 0; i < h->n_layers; i++) s->n_compressed += index[i].compression != QSFF_STORED;
    if (s->n_compressed == 0) return QSF_OK;
    int rc = make_list(s, index, h->n_layers, err);
    if (rc == QSF_OK) rc = qsf_layer_heads(s, index, h->n_layers, &at, &mem, &count, err);
    for (uint32_t i = 0; rc == QSF_OK && i < s->n_compressed; i++) {
        QsfCompressed *c = &s->compressed[i];
        size_t bytes = (size_t)c->n_heads * QSFF_TENSOR_BYTES;
        unsigned char *heads = qsf_source_alloc(s, bytes, 1, err);
        c->head_at = qsf_source_alloc(s, c->n_heads, sizeof *c->head_at, err);
        if (heads == NULL || c->head_at == NULL) return err->code;
        rc = count > 0 ? qsf_file_pread(&s->files[0], heads, bytes, at, err)
                       : heads_of_layer(s, c, h, index[c->layer].code, heads, err);
        c->heads = heads;
        at += bytes;
    }
    return rc;
}

QsfCompressed *qsf_compressed_of(const QsfSource *s, uint32_t layer) {
    for (uint32_t i = 0; i < s->n_compressed; i++)
        if (s->compressed[i].layer == layer) return &s->compressed[i];
    return NULL;
}
