/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chunk reads through the file layer. */
#include "src/stream/reader.h"

#include "src/base/clock.h"
#include "src/base/file.h"

static int read_range(const QsfFile *f, uint8_t *dst, uint64_t len, uint64_t off, const QsfReadHooks *h,
                      QsfErr *err) {
    while (len > 0) {
        size_t n = len < QSF_READ_PIECE ? (size_t)len : QSF_READ_PIECE;
        if (h->stop(h->arg)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        uint64_t t0 = qsf_now_ns();
        int rc = qsf_file_pread(f, dst, n, off, err);
        if (rc != QSF_OK) return rc;
        h->did(h->arg, n, qsf_now_ns() - t0);
        dst += n;
        off += n;
        len -= n;
    }
    return QSF_OK;
}

int qsf_read_chunk(const QsfSource *src, const QsfUnit *u, const QsfChunk *c, uint8_t *dst,
                   const QsfReadHooks *h, QsfErr *err) {
    for (unsigned i = 0; i < c->n_parts; i++) {
        const QsfPart *p = &c->part[i];
        const QsfTensor *t = u->tensor[p->tensor];
        uint64_t row = u->row_bytes[p->tensor];
        int rc = read_range(qsf_source_file(src, t->file), dst + p->at, (p->row1 - p->row0) * row,
                            t->offset + p->row0 * row, h, err);
        if (rc != QSF_OK) return rc;
    }
    return QSF_OK;
}

int qsf_source_check_unchanged(const QsfSource *src, QsfErr *err) {
    for (uint32_t i = 0; i < qsf_source_n_files(src); i++) {
        int rc = qsf_file_unchanged(qsf_source_file(src, i), err);
        if (rc != QSF_OK) return rc;
    }
    return QSF_OK;
}
