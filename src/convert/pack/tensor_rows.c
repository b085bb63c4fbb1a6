/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of tensors: read as stored, read as floats, and collected into groups of 16. */
#include "src/convert/pack/tensor_rows.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/bytes.h"
#include "src/file/dtype.h"
#include "src/file/qsf/groups.h"
#include "src/file/rows.h"

/* ---- rows as stored ---- */

static int open_larger(QsfRowReader *r, QsfErr *err) {
    const QsfDtype *large = qsf_dtype(r->t->dtype);
    r->stored_bytes = r->t->ne[0] / large->block_elems * large->block_bytes; /* checked at open */
    r->stored = malloc((size_t)r->stored_bytes);
    return r->stored != NULL ? QSF_OK : qsf_err_memory(err, "a row of tensor '%s'", r->t->name);
}

static int open_groups(QsfRowReader *r, const qk_table *kernels, QsfErr *err) {
    r->ops = &kernels->weight[qk_type_of(r->dtype)]; /* checked at open: it has groups */
    r->group = malloc((size_t)(QSFF_GROUP_ROWS * r->row_bytes));
    return r->group != NULL ? QSF_OK : qsf_err_memory(err, "16 rows of tensor '%s'", r->t->name);
}

int qsf_rowreader_open(QsfRowReader *r, const QsfSource *s, const QsfTensor *t, const qk_table *kernels,
                       QsfErr *err) {
    *r = (QsfRowReader){ .s = s, .t = t, .dtype = qsf_dtype_of_64(t->dtype), .number = UINT64_MAX };
    const QsfDtype *type = qsf_dtype(r->dtype); /* not NULL: the readers reject unknown types */
    if (!qsf_dtype_row_bytes(type, t->ne[0], &r->row_bytes))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: tensor '%s': rows of %llu elements are not a multiple of its block size %u",
                           qsf_source_path(s), t->name, (unsigned long long)t->ne[0], type->block_elems);
    if (r->dtype != t->dtype) return open_larger(r, err);
    return t->x16 ? open_groups(r, kernels, err) : QSF_OK;
}

void qsf_rowreader_close(QsfRowReader *r) {
    free(r->stored);
    free(r->group);
    *r = (QsfRowReader){ 0 };
}

/* Splits the stored row into blocks of 64: each has the header of its large block and a part of its codes.
 * The codes of a large block are one stream (two for ternary), in which each part has the same number of full
 * bytes. */
static void cut_blocks(const QsfRowReader *r, uint8_t *out) {
    const QsfDtype *large = qsf_dtype(r->t->dtype), *small = qsf_dtype(r->dtype);
    const size_t parts = large->block_elems / small->block_elems, streams = r->dtype == QK_GGML_QSFT ? 2 : 1;
    const size_t head = (parts * small->block_bytes - large->block_bytes) / (parts - 1);
    const size_t piece = (small->block_bytes - head) / streams;
    for (size_t b = 0; b < r->row_bytes / small->block_bytes; b++, out += small->block_bytes) {
        const uint8_t *in = r->stored + b / parts * large->block_bytes;
        memcpy(out, in, head);
        for (size_t k = 0; k < streams; k++)
            memcpy(out + head + k * piece, in + head + (k * parts + b % parts) * piece, piece);
    }
}

static int fetch(QsfRowReader *r, uint64_t number, QsfErr *err) {
    const uint64_t bytes = QSFF_GROUP_ROWS * r->row_bytes;
    if (r->number == number) return QSF_OK;
    r->number = UINT64_MAX;
    int rc = qsf_source_read_bytes(r->s, r->t, number * bytes, r->group, (size_t)bytes, err);
    if (rc == QSF_OK) r->number = number;
    if (rc == QSF_OK && r->t->by_block) r->ops->by_use(r->group, (size_t)r->t->ne[0]);
    return rc;
}

static int read_larger(QsfRowReader *r, uint64_t row, uint8_t *out, QsfErr *err) {
    int rc = qsf_source_read_bytes(r->s, r->t, row * r->stored_bytes, r->stored, (size_t)r->stored_bytes,
                                   err);
    if (rc == QSF_OK) cut_blocks(r, out);
    return rc;
}

static int read_grouped(QsfRowReader *r, uint64_t row, uint8_t *out, QsfErr *err) {
    int rc = fetch(r, row / QSFF_GROUP_ROWS, err);
    if (rc == QSF_OK)
        r->ops->unpack_row(out, r->group, (unsigned)(row % QSFF_GROUP_ROWS), (size_t)r->t->ne[0]);
    return rc;
}

/* Reads rows [first, first + n), counted over all dimensions but the first, to out (n, row_bytes).
 * QSF_E_RUNTIME if they are not inside the tensor or cannot be read. */
static int rowreader_read(QsfRowReader *r, uint64_t first, uint64_t n, uint8_t *out, QsfErr *err) {
    int rc = QSF_OK;
    if (r->group == NULL && r->stored == NULL) return qsf_source_read_stored(r->s, r->t, first, n, out, err);
    if (first > qsf_tensor_n_rows(r->t) || n > qsf_tensor_n_rows(r->t) - first)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: read outside tensor '%s'", r->t->name);
    for (uint64_t row = first; rc == QSF_OK && row < first + n; row++, out += r->row_bytes)
        rc = r->stored != NULL ? read_larger(r, row, out, err) : read_grouped(r, row, out, err);
    return rc;
}

int qsf_rowreader_copy(QsfRowReader *r, uint64_t first, uint64_t rows, unsigned char *piece, size_t cap,
                       QsfEncodeSink sink, void *arg, QsfErr *err) {
    const uint64_t row = r->row_bytes, at_once = row > 0 && row < cap ? cap / row : 1;
    unsigned char *big = row > cap ? malloc((size_t)row) : NULL, *buf = big != NULL ? big : piece;
    int rc = row > cap && big == NULL ? qsf_err_memory(err, "tensor '%s'", r->t->name) : QSF_OK;
    for (uint64_t k = 0; rc == QSF_OK && k < rows; k += at_once) {
        uint64_t n = rows - k < at_once ? rows - k : at_once;
        rc = rowreader_read(r, first + k, n, buf, err);
        if (rc == QSF_OK) rc = sink(arg, buf, (size_t)(n * row), err);
    }
    free(big);
    return rc;
}

/* ---- rows as floats ---- */

enum { I2_S_TAIL = 32 }; /* bytes after the last row, which begin with the scale */

/* Reads the scale of an I2_S tensor, which is not part of its rows. */
static int read_scale(QsfWeights *w, QsfErr *err) {
    unsigned char b[4];
    int rc = qsf_source_read_bytes(w->s, w->t, w->t->bytes - I2_S_TAIL, b, sizeof b, err);
    const uint32_t bits = qsf_get_le32(b);
    if (rc == QSF_OK) memcpy(&w->scale, &bits, sizeof w->scale);
    return rc;
}

int qsf_weights_open(QsfWeights *w, const QsfSource *s, const QsfTensor *t, const qk_table *kernels,
                     QsfErr *err) {
    const QsfDtype *type = qsf_dtype(t->dtype); /* not NULL: the readers reject unknown types */
    const qk_type k = qk_type_of(qsf_dtype_of_64(t->dtype));
    *w = (QsfWeights){ .s = s, .t = t, .scale = 1.0f };
    if (k == QK_NONE)
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is of type %s, which cannot be dequantized",
                           qsf_source_path(s), t->name, type->name);
    int rc = qsf_rowreader_open(&w->rows, s, t, kernels, err);
    w->row_bytes = w->rows.row_bytes;
    w->unpack = kernels->weight[k].dequant;
    if (rc == QSF_OK && k == QK_I2_S) rc = read_scale(w, err);
    if (rc != QSF_OK) qsf_weights_close(w);
    return rc;
}

void qsf_weights_close(QsfWeights *w) { qsf_rowreader_close(&w->rows); }

int qsf_weights_read(QsfWeights *w, uint64_t first, uint64_t n, uint8_t *raw, QsfErr *err) {
    return rowreader_read(&w->rows, first, n, raw, err);
}

void qsf_weights_unpack(const QsfWeights *w, const uint8_t *raw, size_t n, float *out) {
    const size_t k = (size_t)w->t->ne[0];
    for (size_t r = 0; r < n; r++) {
        float *row = out + r * k;
        w->unpack(raw + r * w->row_bytes, row, k);
        for (size_t i = 0; w->scale != 1.0f && i < k; i++) row[i] *= w->scale;
    }
}

/* ---- groups of rows ---- */

int qsf_grouper_open(QsfGrouper *g, uint32_t dtype, size_t k, const qk_table *kernels, QsfEncodeSink sink,
                     void *arg, QsfErr *err) {
    const QsfDtype *d = qsf_dtype(dtype);
    *g = (QsfGrouper){
        .dtype = dtype, .k = k, .row_bytes = k / d->block_elems * d->block_bytes, .sink = sink, .arg = arg
    };
    g->pack = kernels->weight[qk_type_of(dtype)].pack;
    g->rows = malloc(QSFF_GROUP_ROWS * g->row_bytes);
    g->group = malloc(QSFF_GROUP_ROWS * g->row_bytes);
    if (g->rows != NULL && g->group != NULL) return QSF_OK;
    qsf_grouper_close(g);
    return qsf_err_memory(err, "16 rows of a tensor");
}

void qsf_grouper_close(QsfGrouper *g) {
    free(g->rows);
    free(g->group);
    *g = (QsfGrouper){ 0 };
}

int qsf_grouper_add(void *grouper, const void *data, size_t len, QsfErr *err) {
    QsfGrouper *g = grouper;
    const size_t all = QSFF_GROUP_ROWS * g->row_bytes;
    const uint8_t *p = data;
    int rc = QSF_OK;
    while (rc == QSF_OK && len > 0) {
        const size_t n = all - g->have < len ? all - g->have : len;
        memcpy(g->rows + g->have, p, n);
        g->have += n;
        p += n;
        len -= n;
        if (g->have < all) break;
        g->pack(g->group, g->rows, g->row_bytes, g->k);
        g->have = 0;
        rc = g->sink(g->arg, g->group, all, err);
    }
    return rc;
}

int qsf_grouper_end(QsfGrouper *g, QsfErr *err) {
    const size_t all = QSFF_GROUP_ROWS * g->row_bytes, rows = g->have / g->row_bytes;
    if (rows == 0) return QSF_OK;
    memset(g->rows + g->have, 0, all - g->have);
    g->have = 0;
    g->pack(g->group, g->rows, g->row_bytes, g->k);
    /* of some types a row of zeros is not */
    qsf_group_clear(g->group, g->k / qsf_dtype(g->dtype)->block_elems, g->dtype, (unsigned)rows);
    return g->sink(g->arg, g->group, all, err);
}
