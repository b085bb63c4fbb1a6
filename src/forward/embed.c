/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Token ids to rows: from a resident table, from the pinned head of a tied model, or one read per row. */
#include <math.h>

#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/forward/state.h"

#define QSF_READ_PIECE (1u << 20)

static void count(QsfForward *f, uint64_t bytes, uint64_t t0) {
    atomic_fetch_add_explicit(&f->n.io.bytes_read, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&f->n.io.read_ns, qsf_now_ns() - t0, memory_order_relaxed);
}

static int read_at(QsfForward *f, const QsfTensor *t, uint64_t off, void *dst, size_t len, QsfErr *err) {
    uint64_t t0 = qsf_now_ns();
    int rc = qsf_file_pread(qsf_source_file(f->model->src, t->file), dst, len, t->offset + off, err);
    if (rc == QSF_OK) count(f, len, t0);
    return rc;
}

int qsf_embed_load(QsfForward *f, bool resident, QsfErr *err) {
    const QsfTensor *t = qsf_model_tensor(f->model, QSF_ROLE_EMBED, 0);
    void *mem;
    if (!resident || f->model->tied_head) return QSF_OK; /* a pinned tied head is the table */
    int rc = qsf_mem_map(f->ledger, QSF_MEM_EMBED, qsf_pages(t->bytes), "embedding table", &mem, err);
    if (rc != QSF_OK) return rc;
    f->embed = mem;
    f->embed_bytes = qsf_pages(t->bytes);
    for (uint64_t at = 0; rc == QSF_OK && at < t->bytes; at += QSF_READ_PIECE) {
        uint64_t left = t->bytes - at;
        if (qsf_cancelled(f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        rc = read_at(f, t, at, f->embed + at, left < QSF_READ_PIECE ? (size_t)left : QSF_READ_PIECE, err);
    }
    return rc;
}

static int packed_row(QsfForward *f, const QsfTensor *t, uint32_t id, const void **row, QsfErr *err) {
    uint64_t bytes = t->bytes / t->ne[1];
    if (f->embed != NULL) *row = f->embed + id * bytes;
    else if (f->model->tied_head) *row = qsf_weights_pinned_row(f->weights, qsf_weights_n_units(f->weights) - 1, 0, id);
    else *row = NULL;
    if (*row != NULL) return QSF_OK;
    *row = f->row;
    return read_at(f, t, id * bytes, f->row, (size_t)bytes, err);
}

int qsf_embed_rows(QsfForward *f, const int32_t *ids, uint32_t n, QsfErr *err) {
    const QsfHparams *hp = &f->model->hp;
    const QsfTensor *t = qsf_model_tensor(f->model, QSF_ROLE_EMBED, 0);
    float power = hp->arch->embed_scale_pow;
    for (uint32_t c = 0; c < n; c++) {
        const void *row;
        float *x = f->x + (size_t)c * f->l.x_stride;
        int rc = packed_row(f, t, (uint32_t)ids[c], &row, err);
        if (rc != QSF_OK) return rc;
        f->table->weight[qk_type_of(t->dtype)].dequant(row, x, hp->hidden);
        if (power != 0) f->table->scale(x, powf((float)hp->hidden, power), hp->hidden);
    }
    return QSF_OK;
}
