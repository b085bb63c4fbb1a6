/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/stream/checksums.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/crc32.h"

enum { PIECE = 4096 };

struct QsfSum {
    uint64_t left; /* bytes that have not been there yet */
    uint32_t crc;  /* what the others contribute */
    uint64_t next; /* while gaps are read: where the next one begins */
    bool bad;
};

/* ---- which section a tensor is in */

static uint32_t section_of(const QsfChecksums *s, const QsfTensor *t) {
    for (uint32_t i = 0; i < s->n; i++) {
        const QsfChecksumPart *p = &s->part[i];
        if (t->file == p->file && t->offset >= p->off && t->offset - p->off < p->bytes) return i;
    }
    return UINT32_MAX;
}

static int damaged(const QsfChecksums *s, uint32_t i, QsfErr *err) {
    const QsfChecksumPart *p = &s->part[i];
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: %s from byte offset %" PRIu64 " is damaged: checksum %08" PRIX32
                       ", expected %08" PRIX32,
                       qsf_source_file(s->src, p->file)->path, p->name, p->off, s->sum[i].crc, p->crc);
}

/* Adds bytes [off, off + len) of section i, which are at p. */
static int add(QsfChecksums *s, uint32_t i, uint64_t off, const uint8_t *p, uint64_t len, QsfErr *err) {
    QsfSum *sum = &s->sum[i];
    const uint64_t end = s->part[i].off + s->part[i].bytes;
    if (sum->bad) return damaged(s, i, err);
    sum->crc ^= qsf_crc32_shift(qsf_crc32(0, p, (size_t)len), end - off - len);
    sum->left -= len;
    sum->bad = sum->left == 0 && sum->crc != s->part[i].crc;
    return sum->bad ? damaged(s, i, err) : QSF_OK;
}

/* ---- gaps between the matrices */

static int read_gap(QsfChecksums *s, uint32_t i, uint64_t end, QsfErr *err) {
    unsigned char b[PIECE];
    const QsfFile *f = qsf_source_file(s->src, s->part[i].file);
    int rc = QSF_OK;
    for (uint64_t at = s->sum[i].next; rc == QSF_OK && at < end;) {
        size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;
        rc = qsf_file_pread(f, b, n, at, err);
        if (rc == QSF_OK) rc = add(s, i, at, b, n, err);
        at += n;
    }
    return rc;
}

typedef struct Range {
    uint32_t section;
    uint64_t off, bytes;
} Range;

static int by_offset(const void *a, const void *b) {
    const Range *x = a, *y = b;
    return x->off < y->off ? -1 : x->off > y->off;
}

/* Reads the gap before each matrix and the one after the last of a section. A section without matrices here
 * (an embedding whose rows are read one by one) is skipped. */
static int read_gaps(QsfChecksums *s, const Range *range, size_t n, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t k = 0; rc == QSF_OK && k < n; k++) {
        const Range *r = &range[k];
        rc = read_gap(s, r->section, r->off, err);
        s->sum[r->section].next = r->off + r->bytes;
    }
    for (uint32_t i = 0; rc == QSF_OK && i < s->n; i++)
        if (s->sum[i].next > s->part[i].off) rc = read_gap(s, i, s->part[i].off + s->part[i].bytes, err);
    return rc;
}

int qsf_checksums_open(QsfChecksums *s, const QsfSource *src, QsfWeightUnit *units, uint32_t n_units,
                       QsfErr *err) {
    *s = (QsfChecksums){ .src = src };
    s->part = qsf_source_checksums(src, &s->n);
    if (s->n == 0) return QSF_OK;
    size_t n = 0;
    Range *range = calloc((size_t)n_units * QSF_UNIT_TENSORS, sizeof *range);
    s->sum = calloc(s->n, sizeof *s->sum);
    if (s->sum != NULL) pthread_mutex_init(&s->lock, NULL);
    int rc = range != NULL && s->sum != NULL ? QSF_OK : qsf_err_memory(err, "checksums of the weights");
    for (uint32_t i = 0; rc == QSF_OK && i < s->n; i++)
        s->sum[i] = (QsfSum){ .left = s->part[i].bytes, .next = s->part[i].off };
    for (uint32_t i = 0; rc == QSF_OK && i < n_units; i++)
        for (unsigned t = 0; t < units[i].u.n; t++) {
            const QsfTensor *tensor = units[i].u.tensor[t];
            units[i].section[t] = section_of(s, tensor);
            if (units[i].section[t] == UINT32_MAX) continue;
            range[n++] = (Range){ units[i].section[t], units[i].u.offset[t],
                                  qsf_unit_row_end(&units[i].u, t, units[i].u.rows[t]) };
        }
    if (n > 0) qsort(range, n, sizeof *range, by_offset);
    if (rc == QSF_OK) rc = read_gaps(s, range, n, err);
    free(range);
    if (rc != QSF_OK) qsf_checksums_close(s);
    return rc;
}

void qsf_checksums_close(QsfChecksums *s) {
    if (s->sum != NULL) pthread_mutex_destroy(&s->lock);
    free(s->sum);
    *s = (QsfChecksums){ 0 };
}

int qsf_checksums_add(QsfChecksums *s, const QsfWeightUnit *u, unsigned t, uint32_t row0, uint32_t row1,
                      const uint8_t *p, QsfErr *err) {
    const uint32_t i = u->section[t];
    if (s->n == 0 || i == UINT32_MAX || row0 == row1) return QSF_OK;
    const uint64_t from = row0 * u->u.row_bytes[t];
    pthread_mutex_lock(&s->lock);
    const int rc = add(s, i, u->u.offset[t] + from, p, qsf_unit_row_end(&u->u, t, row1) - from, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
