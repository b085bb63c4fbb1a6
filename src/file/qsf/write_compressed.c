/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compresses layers on writing: collects a layer, compresses it, and writes the smaller version. */
#include <stdlib.h>
#include <string.h>

#include "src/file/qsf/layout.h"
#include "src/file/qsf/write.h"

#define CAP_FIRST  ((size_t)1 << 20)
#define SAVE_LEAST 3u /* minimum saving in percent */

int qsf_compressor_open(QsfWriter *w, const QsfWriteSpec *spec, QsfErr *err) {
    QsfCompressor *p = &w->compressor;
    p->how = spec->codec;
    if (p->how == QSFF_STORED) return QSF_OK;
    if (p->how != QSF_COMPRESS_AUTO && !qsf_codec_built(p->how))
        return qsf_err_set(err, QSF_E_USAGE,
                           "%s: cannot be compressed with %s: this build was configured without it", w->path,
                           qsf_codec_name(p->how));
    p->max_heads = spec->n_layer_tensors;
    p->heads = calloc((size_t)p->max_heads + 1, QSFF_TENSOR_BYTES);
    return p->heads != NULL ? QSF_OK : qsf_err_memory(err, "%s", w->path);
}

void qsf_compressor_close(QsfWriter *w) {
    free(w->compressor.whole);
    free(w->compressor.heads);
    w->compressor = (QsfCompressor){ 0 };
}

void qsf_compressor_begin(QsfWriter *w) {
    w->compressor.on = w->compressor.how != QSFF_STORED && !w->dry;
    w->compressor.n = 0;
}

int qsf_compressor_head(QsfWriter *w, const unsigned char b[QSFF_TENSOR_BYTES], QsfErr *err) {
    QsfCompressor *p = &w->compressor;
    uint32_t at = p->n_heads + w->scope.count - 1; /* the scope already counts this one */
    if (at >= p->max_heads)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: %s: more tensors in layers than announced",
                           w->path);
    memcpy(p->heads + (size_t)at * QSFF_TENSOR_BYTES, b, QSFF_TENSOR_BYTES);
    return QSF_OK;
}

/* ---- collecting */

static size_t most_bytes(const QsfCompressor *p) {
    return p->how == QSF_COMPRESS_AUTO ? QSF_COMPRESS_AUTO_MAX : (size_t)qsf_codec_max_bytes(p->how);
}

static int make_room(QsfWriter *w, size_t len, QsfErr *err) {
    QsfCompressor *p = &w->compressor;
    size_t cap = p->cap > 0 ? p->cap : CAP_FIRST;
    if (len <= p->cap - p->n) return QSF_OK;
    while (cap - p->n < len) cap *= 2; /* unused memory is never touched */
    unsigned char *more = realloc(p->whole, cap);
    if (more == NULL) return qsf_err_memory(err, "%s: a layer to be compressed", w->path);
    p->whole = more;
    p->cap = cap;
    return QSF_OK;
}

/* Writes the n bytes at data as the layer. */
static int put_layer(QsfWriter *w, const unsigned char *data, size_t n, QsfErr *err) {
    w->compressor.on = false;
    w->pos = w->start;
    w->crc = 0;
    return qsf_write_bytes(w, data, n, err);
}

int qsf_compressor_bytes(QsfWriter *w, const void *data, size_t len, QsfErr *err) {
    QsfCompressor *p = &w->compressor;
    if (len > most_bytes(p) - p->n) {
        int rc = put_layer(w, p->whole, p->n, err);
        return rc == QSF_OK ? qsf_write_bytes(w, data, len, err) : rc;
    }
    int rc = make_room(w, len, err);
    if (rc != QSF_OK) return rc;
    if (len > 0) memcpy(p->whole + p->n, data, len);
    p->n += len;
    w->pos += len;
    return QSF_OK;
}

/* ---- compressing */

/* Compresses with codec `how` to at most cap bytes at out; *n = 0 if it does not fit. */
static int try_one(const QsfCompressor *p, uint8_t how, unsigned char *out, size_t cap, size_t *n,
                   QsfErr *err) {
    int rc = qsf_codec_compress(how, p->whole, p->n, out, cap, n, err);
    if (*n < QSFF_TENSOR_BYTES) *n = 0;
    return rc;
}

/* The fast encoder shows whether compression saves anything; then LZ4 HC makes a smaller block in the same
 * format. */
static int try_auto(const QsfCompressor *p, unsigned char *out, size_t *n, QsfErr *err) {
    int rc = try_one(p, QSFF_LZ4, out, p->n - 1, n, err);
    if (rc != QSF_OK || *n == 0) return rc;
    return try_one(p, QSFF_LZ4_HC, out, p->n - (p->n * SAVE_LEAST + 99) / 100, n, err);
}

int qsf_compressor_end(QsfWriter *w, QsfIndexEntry *e, QsfErr *err) {
    QsfCompressor *p = &w->compressor;
    const bool any = p->how == QSF_COMPRESS_AUTO;
    size_t n = 0;
    unsigned char *out = p->n > 0 ? malloc(p->n) : NULL;
    if (out == NULL)
        return p->n > 0 ? qsf_err_memory(err, "%s: a layer to be compressed", w->path)
                        : put_layer(w, NULL, 0, err);
    int rc = any ? try_auto(p, out, &n, err) : try_one(p, p->how, out, p->n - 1, &n, err);
    if (rc == QSF_OK) rc = n > 0 ? put_layer(w, out, n, err) : put_layer(w, p->whole, p->n, err);
    free(out);
    if (n == 0 || rc != QSF_OK) return rc;
    e->compression = any ? QSFF_LZ4_HC : p->how;
    e->whole_bytes = (uint32_t)p->n;
    p->n_heads += w->scope.count;
    return QSF_OK;
}
