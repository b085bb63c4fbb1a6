/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of merged matrices. */
#include "src/convert/pack/merged.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/half.h"
#include "src/convert/pack/tensor_rows.h"
#include "src/file/dtype.h"
#include "src/file/source_impl.h"

/* One tensor of the source that was changed. */
typedef struct Merged {
    QsfTensor base; /* as it was */
    uint32_t dtype;
    uint64_t off, bytes;  /* in the virtual file */
    const QsfAddend *add; /* (n) */
    size_t n;
} Merged;

struct QsfMerged {
    const QsfVirtualOps *before; /* of the source itself, or NULL */
    QsfFile file;
    QsfAddend *add;
    Merged *t; /* (n_t) by off */
    size_t n_t;
    qk_table kernels;
    pthread_mutex_t lock; /* of the rest */
    const Merged *open;   /* whose halves are in memory; NULL = none */
    QsfWeights weights;
    float **a, **b; /* (n) of its addends */
    float *row;     /* (cols) */
    uint8_t *raw;
};

/* ---- halves of adapters ---- */

/* Reads rows [first, first + n) of a tensor as floats, of any type. */
static float *read_rows(const struct QsfMerged *m, const QsfAddend *a, const QsfTensor *t, uint64_t first,
                        uint64_t n, QsfErr *err) {
    const size_t k = (size_t)t->ne[0];
    float *x = calloc((size_t)n, k * sizeof *x);
    uint8_t *raw = NULL;
    QsfWeights w;
    if (x == NULL || qsf_weights_open(&w, a->src, t, &m->kernels, err) != QSF_OK) {
        if (x == NULL) (void)qsf_err_memory(err, "tensor '%s'", t->name);
        free(x);
        return NULL;
    }
    raw = malloc((size_t)w.row_bytes);
    int rc = raw == NULL ? qsf_err_memory(err, "tensor '%s'", t->name) : QSF_OK;
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) {
        rc = qsf_weights_read(&w, first + i, 1, raw, err);
        if (rc == QSF_OK) qsf_weights_unpack(&w, raw, 1, x + i * k);
    }
    free(raw);
    qsf_weights_close(&w);
    if (rc == QSF_OK) return x;
    free(x);
    return NULL;
}

static void close_tensor(struct QsfMerged *m) {
    if (m->open == NULL) return;
    for (size_t i = 0; i < m->open->n; i++) {
        if (m->a != NULL) free(m->a[i]);
        if (m->b != NULL) free(m->b[i]);
    }
    free(m->a);
    free(m->b);
    free(m->row);
    free(m->raw);
    qsf_weights_close(&m->weights);
    m->a = m->b = NULL;
    m->row = NULL;
    m->raw = NULL;
    m->open = NULL;
}

static int open_tensor(const QsfSource *s, const Merged *t, QsfErr *err) {
    struct QsfMerged *m = s->merged;
    if (m->open == t) return QSF_OK;
    close_tensor(m);
    int rc = qsf_weights_open(&m->weights, s, &t->base, &m->kernels, err);
    if (rc != QSF_OK) return rc;
    m->open = t;
    m->a = calloc(t->n, sizeof *m->a);
    m->b = calloc(t->n, sizeof *m->b);
    m->row = malloc((size_t)t->base.ne[0] * sizeof *m->row);
    m->raw = malloc((size_t)m->weights.row_bytes);
    if (m->a == NULL || m->b == NULL || m->row == NULL || m->raw == NULL)
        rc = qsf_err_memory(err, "tensor '%s'", t->base.name);
    for (size_t i = 0; rc == QSF_OK && i < t->n; i++) {
        const QsfAddend *a = &t->add[i];
        m->a[i] = read_rows(m, a, a->a, a->a_row, a->rank, err);
        m->b[i] = m->a[i] != NULL ? read_rows(m, a, a->b, a->b_row, a->rows, err) : NULL;
        if (m->b[i] == NULL) rc = err->code;
    }
    if (rc != QSF_OK) close_tensor(m);
    return rc;
}

/* ---- rows ---- */

static int make_row(const struct QsfMerged *m, const Merged *t, uint64_t row, QsfErr *err) {
    const size_t k = (size_t)t->base.ne[0];
    int rc = qsf_weights_read((QsfWeights *)(uintptr_t)&m->weights, row, 1, m->raw, err);
    if (rc != QSF_OK) return rc;
    qsf_weights_unpack(&m->weights, m->raw, 1, m->row);
    for (size_t i = 0; i < t->n; i++) {
        const QsfAddend *a = &t->add[i];
        if (row < a->row0 || row - a->row0 >= a->rows) continue;
        const float *b = m->b[i] + (row - a->row0) * a->rank;
        for (uint32_t r = 0; r < a->rank; r++)
            for (size_t c = 0; c < k; c++) m->row[c] += a->factor * b[r] * m->a[i][r * k + c];
    }
    const float most = t->dtype == QK_GGML_F16 ? QSF_HALF_MAX : INFINITY;
    for (size_t c = 0; c < k; c++)
        if (!(fabsf(m->row[c]) <= most) || !isfinite(m->row[c]))
            return qsf_err_set(err, QSF_E_MODEL, "tensor '%s': with the adapters a value is too large",
                               t->base.name);
    return QSF_OK;
}

static size_t elem_bytes(const Merged *t) { return t->dtype == QK_GGML_F32 ? 4 : 2; }

static void put(const Merged *t, float v, uint8_t *to) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (t->dtype == QK_GGML_F32)
        memcpy(to, &v, sizeof v);
    else if (t->dtype == QK_GGML_F16)
        qsf_half_put(to, qsf_half_bits((double)v));
    else
        qsf_half_put(to, (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)); /* BF16, to nearest even */
}

/* Bytes [at, at + len) of a tensor, which lie in it. */
static int read_tensor(const QsfSource *s, const Merged *t, uint64_t at, uint64_t len, uint8_t *dst,
                       QsfErr *err) {
    const size_t elem = elem_bytes(t);
    const uint64_t row_bytes = t->base.ne[0] * elem;
    int rc = open_tensor(s, t, err);
    while (rc == QSF_OK && len > 0) {
        const uint64_t row = at / row_bytes, from = at % row_bytes;
        const uint64_t n = row_bytes - from < len ? row_bytes - from : len;
        rc = make_row(s->merged, t, row, err);
        for (uint64_t i = from; rc == QSF_OK && i < from + n;) {
            uint8_t value[4];
            const uint64_t in = i % elem, left = elem - in, take = from + n - i < left ? from + n - i : left;
            put(t, s->merged->row[i / elem], value);
            memcpy(dst + (i - from), value + in, (size_t)take);
            i += take;
        }
        at += n;
        dst += n;
        len -= n;
    }
    return rc;
}

/* ---- the virtual file ---- */

static const QsfFile *file_of(const QsfSource *s) { return &s->merged->file; }

static int read_file(const QsfSource *s, uint64_t off, uint64_t len, void *dst, QsfErr *err) {
    struct QsfMerged *m = s->merged;
    if (m->before != NULL && off < m->t[0].off) return m->before->read(s, off, len, dst, err);
    for (size_t i = 0; i < m->n_t; i++) {
        const Merged *t = &m->t[i];
        if (off < t->off || off - t->off > t->bytes || len > t->bytes - (off - t->off)) continue;
        pthread_mutex_lock(&m->lock);
        int rc = read_tensor(s, t, off - t->off, len, dst, err);
        pthread_mutex_unlock(&m->lock);
        return rc;
    }
    return qsf_err_set(err, QSF_E_RUNTIME, "internal: read outside the merged tensors");
}

static void advise(const QsfSource *s, uint64_t off, uint64_t len, QsfAdvice advice) {
    const struct QsfMerged *m = s->merged;
    if (m->before != NULL && off < m->t[0].off) m->before->advise(s, off, len, advice);
}

static void free_merged(struct QsfMerged *m) {
    close_tensor(m);
    pthread_mutex_destroy(&m->lock);
    free(m->add);
    free(m->t);
    free(m);
}

static void close_file(QsfSource *s) {
    const QsfVirtualOps *before = s->merged->before;
    free_merged(s->merged);
    s->merged = NULL;
    s->virtual_ops = before;
    if (before != NULL) before->close(s);
}

static const QsfVirtualOps ops = { file_of, read_file, advise, close_file };

/* ---- */

static void change(QsfSource *s, struct QsfMerged *m, Merged *t, const QsfAddend *first, size_t n) {
    QsfTensor *of = &s->tensors[first->index];
    *t = (Merged){ .base = *of, .add = first, .n = n, .off = m->file.size };
    t->dtype = of->dtype == QK_GGML_F32 || of->dtype == QK_GGML_BF16 ? of->dtype : QK_GGML_F16;
    t->bytes = of->ne[0] * of->ne[1] * of->ne[2] * elem_bytes(t);
    m->file.size += (t->bytes + 63) & ~(uint64_t)63;
    of->dtype = t->dtype;
    of->bytes = t->bytes;
    of->file = s->n_files;
    of->offset = t->off;
    of->scale = 1;
    of->x16 = of->by_block = false;
    of->compressed = NULL;
}

int qsf_merge_into(QsfSource *s, const QsfAddend *add, size_t n, QsfErr *err) {
    struct QsfMerged *m = calloc(1, sizeof *m);
    if (m == NULL) return qsf_err_memory(err, "adapters");
    m->add = calloc(n, sizeof *m->add);
    m->t = calloc(n, sizeof *m->t);
    pthread_mutex_init(&m->lock, NULL);
    if (n == 0 || m->add == NULL || m->t == NULL) {
        free_merged(m);
        return n == 0 ? QSF_OK : qsf_err_memory(err, "adapters");
    }
    memcpy(m->add, add, n * sizeof *add);
    qk_table_init(&m->kernels, QK_LEVEL_REF);
    m->before = s->virtual_ops;
    m->file.fd = -1;
    if (m->before != NULL) m->file = *m->before->file(s);
    m->file.path = s->files[0].path;
    m->file.size = (m->file.size + 63) & ~(uint64_t)63;
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && add[k].index == add[i].index;) k++;
        change(s, m, &m->t[m->n_t++], &m->add[i], k - i);
    }
    s->merged = m;
    s->virtual_ops = &ops;
    return QSF_OK;
}
