/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes QSF files. Every piece is checked with the reader's checks before it is written. */
#include "src/file/qsf/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/crc32.h"
#include "src/base/half.h"
#include "src/file/dtype.h"
#include "src/file/qsf/groups.h"
#include "src/file/qsf/names.h"
#include "src/file/source_impl.h"

#define BUF_BYTES ((size_t)1 << 18)

static int misuse(QsfWriter *w, const char *what, QsfErr *err) {
    w->broken = true;
    return qsf_err_set(err, QSF_E_RUNTIME, "internal: %s: %s at byte offset %" PRIu64, w->path, what, w->pos);
}

/* Writes len bytes at off; the file position is not used. */
static int put_at(const QsfWriter *w, const unsigned char *p, size_t len, uint64_t off, QsfErr *err) {
    while (len > 0 && !w->dry) {
        ssize_t n = pwrite(w->out.file.fd, p, len, (off_t)off);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0)
            return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot write at byte offset %" PRIu64 ": %s", w->path,
                               off, strerror(errno));
        p += n;
        off += (uint64_t)n;
        len -= (size_t)n;
    }
    return QSF_OK;
}

/* Errors are permanent: a file with a gap must never be committed. */
static int noted(QsfWriter *w, int rc) {
    if (rc != QSF_OK) w->broken = true;
    return rc;
}

static int flush(QsfWriter *w, QsfErr *err) {
    size_t n = w->n_buf;
    w->n_buf = 0;
    return put_at(w, w->buf, n, w->pos - n, err);
}

static int append(QsfWriter *w, const void *data, size_t len, QsfErr *err) {
    if (w->compressor.on) return qsf_compressor_bytes(w, data, len, err);
    w->crc = qsf_crc32(w->crc, data, len);
    if (len > BUF_BYTES - w->n_buf) {
        int rc = flush(w, err);
        if (rc != QSF_OK) return rc;
    }
    w->pos += len;
    if (len > BUF_BYTES) return put_at(w, data, len, w->pos - len, err);
    if (len > 0) memcpy(w->buf + w->n_buf, data, len);
    w->n_buf += len;
    return QSF_OK;
}

int qsf_write_bytes(QsfWriter *w, const void *data, size_t len, QsfErr *err) {
    return noted(w, append(w, data, len, err));
}

static int put_zeros(QsfWriter *w, uint64_t n, QsfErr *err) {
    static const unsigned char zeros[QSFF_PAGE];
    int rc = QSF_OK;
    for (; rc == QSF_OK && n > 0; n -= n < sizeof zeros ? n : sizeof zeros)
        rc = qsf_write_bytes(w, zeros, n < sizeof zeros ? (size_t)n : sizeof zeros, err);
    return rc;
}

/* Starts a section at the next valid offset, with a new checksum. */
static int begin_section(QsfWriter *w, QsfErr *err) {
    uint64_t to = w->head.flags & QSFF_PAGES ? QSFF_PAGE : w->head.flags & QSFF_LINES ? QSFF_LINE : 1;
    int rc = put_zeros(w, (to - w->pos % to) % to, err);
    w->start = w->pos;
    w->crc = 0;
    return rc;
}

static int make_file(QsfWriter *w, QsfErr *err) {
    struct stat st;
    if (stat(w->path, &st) == 0 && !S_ISREG(st.st_mode))
        return qsf_err_set(err, QSF_E_USAGE, "%s: exists and is not a regular file; not overwritten",
                           w->path);
    return qsf_newfile_create(&w->out, w->path, err);
}

static int make_tables(QsfWriter *w, QsfErr *err) {
    w->buf = malloc(BUF_BYTES);
    w->index = calloc(w->head.n_layers, sizeof *w->index);
    w->layer_bytes = calloc(w->head.n_layers, sizeof *w->layer_bytes);
    return w->buf != NULL && w->index != NULL && w->layer_bytes != NULL ? QSF_OK
                                                                        : qsf_err_memory(err, "%s", w->path);
}

/* Writes header, index and metadata, the first two as zeros, so that an incomplete file is not a QSF file. */
static int write_front(QsfWriter *w, const QsfWriteSpec *spec, QsfErr *err) {
    int rc = put_zeros(w, QSFF_HEAD_BYTES, err);
    if (rc == QSF_OK) rc = begin_section(w, err);
    w->head.index_off = w->pos;
    if (rc == QSF_OK) rc = put_zeros(w, (uint64_t)w->head.n_layers * QSFF_INDEX_BYTES, err);
    if (rc == QSF_OK) rc = begin_section(w, err);
    w->head.meta_off = w->pos;
    if (rc == QSF_OK) rc = qsf_write_metadata(w, spec, err);
    w->head.meta_bytes = w->pos - w->head.meta_off;
    return rc;
}

/* Checks the fixed fields as a reader would, with offsets that are valid for any reader. */
static int check_head(const QsfWriter *w, QsfErr *err) {
    unsigned char b[QSFF_HEAD_BYTES];
    QsfFileHeader h = w->head, seen;
    h.index_off = h.embed_off = h.final_off = QSFF_HEAD_BYTES;
    h.meta_off = h.meta_bytes = 0;
    qsf_file_header_encode(&h, b);
    return qsf_file_header_decode(&seen, b, w->as_qsf, err);
}

/* An invalid model is the fault of the input, so messages name the input; byte offsets are those of the
 * output. */
static int name_input(QsfWriter *w, const char *path) {
    static const char suffix[] = " (as QSF)";
    size_t n = strlen(path) + sizeof suffix;
    w->input = strdup(path);
    w->as_qsf = malloc(n);
    if (w->input == NULL || w->as_qsf == NULL) return QSF_E_RUNTIME;
    snprintf(w->as_qsf, n, "%s%s", path, suffix);
    return QSF_OK;
}

int qsf_write_open(QsfWriter *w, const char *path, const QsfWriteSpec *spec, QsfErr *err) {
    *w = (QsfWriter){ .path = strdup(path), .head = spec->head, .dry = spec->dry, .named = spec->named };
    w->head.version = QSFF_VERSION;
    w->head.bytes = QSFF_HEAD_BYTES;
    w->head.code = QSFF_MIXED;
    int rc = w->path != NULL ? name_input(w, qsf_source_path(spec->meta)) : QSF_E_RUNTIME;
    rc = rc == QSF_OK ? check_head(w, err) : qsf_err_memory(err, "%s", path);
    if (rc == QSF_OK) rc = make_tables(w, err);
    if (rc == QSF_OK) rc = qsf_compressor_open(w, spec, err);
    if (rc == QSF_OK && !w->dry) rc = make_file(w, err);
    if (rc == QSF_OK) rc = write_front(w, spec, err);
    if (rc != QSF_OK) qsf_write_discard(w);
    return rc;
}

int qsf_write_embedding(QsfWriter *w, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err) {
    QsfEmbedHeader e = { .code = code, .rows = rows, .cols = cols };
    unsigned char b[QSFF_EMBED_BYTES];
    uint32_t dtype;
    if (w->stage != QSFW_START) return misuse(w, "a second embedding", err);
    if (!qsf_code_dtype(code, w->head.block, &dtype) || !qsf_code_bytes(dtype, rows, cols, &w->left) ||
        rows != w->head.n_vocab || cols != w->head.hidden)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: an embedding of %" PRIu32 " x %" PRIu32
                           " of quantization type %u does not match "
                           "a model of %" PRIu32 " tokens and hidden dimension %" PRIu32,
                           w->input, rows, cols, code, w->head.n_vocab, w->head.hidden);
    e.bytes = w->left < QSFF_LONG ? (uint32_t)w->left : QSFF_LONG;
    int rc = begin_section(w, err);
    w->head.embed_off = w->pos;
    w->stage = QSFW_EMBED;
    qsf_embed_header_encode(&e, b);
    return rc == QSF_OK ? qsf_write_bytes(w, b, sizeof b, err) : rc;
}

static int end_layer(QsfWriter *w, QsfErr *err) {
    QsfIndexEntry *e = &w->index[w->n_layers - 1];
    int rc = w->compressor.on ? qsf_compressor_end(w, e, err) : QSF_OK;
    if (rc != QSF_OK) return rc;
    uint64_t bytes = w->pos - w->start;
    e->bytes = bytes < QSFF_LONG ? (uint32_t)bytes : QSFF_LONG;
    if (e->compression == QSFF_STORED) e->whole_bytes = e->bytes;
    e->crc = w->crc;
    e->n_tensors = (uint16_t)w->scope.count;
    w->layer_bytes[w->n_layers - 1] = bytes;
    w->scope.path = w->input;
    return qsf_scope_end(&w->scope, false, err);
}

/* Checks that the current piece is complete. */
static int end_section(QsfWriter *w, QsfErr *err) {
    if (w->left != 0) return misuse(w, "data is missing", err);
    if (w->stage == QSFW_EMBED) w->embed_crc = w->crc;
    if (w->stage == QSFW_LAYERS) return noted(w, end_layer(w, err));
    w->scope.path = w->input;
    return w->stage == QSFW_FINAL ? qsf_scope_end(&w->scope, w->tied, err) : QSF_OK;
}

int qsf_write_layer(QsfWriter *w, uint8_t code, float importance, QsfErr *err) {
    if ((w->stage != QSFW_EMBED && w->stage != QSFW_LAYERS) || w->n_layers == w->head.n_layers)
        return misuse(w, "a layer out of order", err);
    int rc = end_section(w, err);
    if (rc == QSF_OK) rc = begin_section(w, err);
    if (rc != QSF_OK) return rc;
    w->stage = QSFW_LAYERS;
    w->scope = (QsfTensorScope){
        .path = w->as_qsf, .head = &w->head, .names = w->named, .layer = w->n_layers, .code = code
    };
    w->index[w->n_layers++] = (QsfIndexEntry){ .off = w->pos, .code = code, .importance = importance };
    qsf_compressor_begin(w);
    return QSF_OK;
}

void qsf_write_uncompressed(QsfWriter *w) { w->compressor.on = false; }

/* Writes n floats, or zeros, in 2 or 4 bytes each. */
static int put_floats(QsfWriter *w, const float *x, uint32_t n, unsigned bytes, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++) {
        float v = x != NULL ? x[i] : 0.0f;
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        if (bytes == 2) bits = qsf_half_bits(v);
        const unsigned char le[4] = { (unsigned char)bits, (unsigned char)(bits >> 8),
                                      (unsigned char)(bits >> 16), (unsigned char)(bits >> 24) };
        rc = qsf_write_bytes(w, le, bytes, err);
    }
    return rc;
}

static int put_exact(QsfWriter *w, uint32_t type, const float *x, QsfErr *err) {
    int rc = qsf_write_tensor(w, type, QSFF_F32, 1, w->head.hidden, err);
    w->left = 0;
    return rc == QSF_OK ? put_floats(w, x, w->head.hidden, 4, err) : rc;
}

int qsf_write_final(QsfWriter *w, const float *norm, const float *bias, bool tied, bool exact, QsfErr *err) {
    const unsigned char flag = tied ? 0xFF : 0x00;
    bool has_bias = w->head.norm == QSFF_LAYER_NORM;
    if (w->stage != QSFW_LAYERS || w->n_layers != w->head.n_layers)
        return misuse(w, "layers are missing", err);
    if (bias != NULL && !has_bias) exact = true; /* only an exact norm can have a bias here */
    int rc = end_section(w, err);
    if (rc == QSF_OK) rc = begin_section(w, err);
    w->head.final_off = w->pos;
    w->stage = QSFW_FINAL;
    w->tied = tied;
    w->scope = (QsfTensorScope){
        .path = w->as_qsf, .head = &w->head, .names = w->named, .final = true, .code = QSFF_MIXED
    };
    if (rc == QSF_OK) rc = put_floats(w, norm, w->head.hidden, 2, err);
    if (rc == QSF_OK && has_bias) rc = put_floats(w, bias, w->head.hidden, 2, err);
    if (rc == QSF_OK) rc = qsf_write_bytes(w, &flag, 1, err);
    if (rc == QSF_OK && exact) rc = put_exact(w, QSFT_FINAL_NORM, norm, err);
    if (rc == QSF_OK && exact && bias != NULL) rc = put_exact(w, QSFT_FINAL_NORM_BIAS, bias, err);
    return rc;
}

static int begin_tensor(QsfWriter *w, const QsfTensorHeader *t, QsfErr *err) {
    QsfTensorPlace place;
    unsigned char b[QSFF_TENSOR_BYTES];
    if (w->stage < QSFW_LAYERS || w->left != 0) return misuse(w, "a tensor out of order", err);
    uint64_t used = w->pos - w->start;
    int rc = put_zeros(w, qsf_tensor_next(used, w->head.flags) - used, err);
    qsf_tensor_header_encode(t, b);
    if (rc == QSF_OK) rc = qsf_scope_tensor(&w->scope, b, w->pos, &place, err);
    if (noted(w, rc) != QSF_OK) return rc;
    w->left = place.bytes;
    if (w->compressor.on) rc = noted(w, qsf_compressor_head(w, b, err));
    return rc == QSF_OK ? qsf_write_bytes(w, b, sizeof b, err) : rc;
}

int qsf_write_tensor(QsfWriter *w, uint32_t type, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err) {
    const QsfTensorHeader t = { .type = type, .rows = rows, .cols = cols, .code = code };
    return begin_tensor(w, &t, err);
}

int qsf_write_groups(QsfWriter *w, uint32_t type, uint8_t code, uint32_t rows, uint32_t cols, QsfErr *err) {
    uint32_t dtype;
    const bool by_use = qsf_code_dtype(code, w->head.block, &dtype) && qsf_group_by_use(dtype);
    const QsfTensorHeader t = { .type = type,
                                .rows = rows,
                                .cols = cols,
                                .code = code,
                                .layout = by_use ? QSFF_GROUPS_BY_USE : QSFF_GROUPS };
    w->head.flags |= QSFF_X16;
    return begin_tensor(w, &t, err);
}

int qsf_write_data(QsfWriter *w, const void *data, size_t len, QsfErr *err) {
    if (len > w->left) return misuse(w, "more data than announced", err);
    w->left -= len;
    return qsf_write_bytes(w, data, len, err);
}

int qsf_write_skip(QsfWriter *w, QsfErr *err) {
    if (!w->dry) return misuse(w, "bytes are skipped", err);
    int rc = noted(w, flush(w, err));
    w->pos += w->left;
    w->left = 0;
    return rc;
}

/* Writes the pairs at the end of the metadata, zeros in the unused space, and the number of all pairs, and
 * updates the checksum. */
static int fill_in_metadata(QsfWriter *w, const uint32_t crc[4], QsfErr *err) {
    QsfStrbuf count = QSF_STRBUF_INIT, b = QSF_STRBUF_INIT;
    qsf_meta_put_le(&count, w->meta_pairs - (qsf_write_spare(w) > 0 && w->compressor.n_heads == 0), 8);
    qsf_write_own_pairs(w, crc, &b);
    w->head.meta_crc = qsf_crc32_shift(qsf_crc32(0, count.data, count.len), w->head.meta_bytes - count.len) ^
                       qsf_crc32(w->meta_crc, b.data, b.len);
    for (uint64_t n = qsf_write_spare(w); n > 0; n--) qsf_strbuf_addc(&b, '\0');
    bool ok = qsf_strbuf_ok(&b) && qsf_strbuf_ok(&count);
    int rc = ok ? put_at(w, (const unsigned char *)b.data, b.len, w->own_off, err)
                : qsf_err_memory(err, "%s", w->path);
    if (rc == QSF_OK) rc = put_at(w, (const unsigned char *)count.data, count.len, w->head.meta_off, err);
    qsf_strbuf_free(&count);
    qsf_strbuf_free(&b);
    return rc;
}

static int fill_in_index(QsfWriter *w, uint32_t *crc, QsfErr *err) {
    unsigned char b[QSFF_INDEX_BYTES];
    QsfIndexEntry seen;
    int rc = QSF_OK;
    *crc = 0;
    for (uint32_t i = 0; rc == QSF_OK && i < w->head.n_layers; i++) {
        qsf_index_entry_encode(&w->index[i], b);
        *crc = qsf_crc32(*crc, b, sizeof b);
        uint64_t at = w->head.index_off + (uint64_t)i * sizeof b;
        rc = qsf_index_entry_decode(&seen, b, w->as_qsf, at, err);
        if (rc == QSF_OK) rc = put_at(w, b, sizeof b, at, err);
    }
    return rc;
}

static int fill_in(QsfWriter *w, QsfErr *err) {
    unsigned char b[QSFF_HEAD_BYTES];
    uint32_t crc[4] = { 0, w->embed_crc, w->crc, 0 };
    w->head.size_low = (uint32_t)w->pos;
    w->head.meta_bytes -= qsf_write_spare(w);
    w->head.code = qsf_common_code(w->index, w->head.n_layers);
    qsf_file_header_encode(&w->head, b);
    crc[3] = qsf_file_header_crc100(b);
    int rc = fill_in_index(w, &crc[0], err);
    if (rc == QSF_OK) rc = fill_in_metadata(w, crc, err);
    qsf_file_header_encode(&w->head, b);
    return rc == QSF_OK ? put_at(w, b, sizeof b, 0, err) : rc;
}

int qsf_write_finish(QsfWriter *w, QsfErr *err) {
    int rc = w->stage == QSFW_FINAL && !w->broken ? end_section(w, err)
                                                  : misuse(w, "finished too early", err);
    if (rc == QSF_OK) rc = flush(w, err);
    if (rc == QSF_OK) rc = fill_in(w, err);
    if (rc == QSF_OK) rc = qsf_newfile_commit(&w->out, err);
    qsf_write_discard(w);
    return rc;
}

void qsf_write_discard(QsfWriter *w) {
    if (w->path == NULL) return;
    qsf_newfile_discard(&w->out);
    free(w->path);
    free(w->input);
    free(w->as_qsf);
    free(w->buf);
    free(w->index);
    free(w->layer_bytes);
    qsf_compressor_close(w);
    *w = (QsfWriter){ 0 };
}
