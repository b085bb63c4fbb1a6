/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derived tensors whose elements are those of a file, in a different place. */
#include <string.h>

#include "src/file/derive/derive.h"

#define NEAR 8u /* columns this far apart are read together */

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* --- rows --- */

/* Reads rows [row, row + n) of one head at once and puts them in place, as far as they are in
 * [at, at + len). */
static int read_head(const QsfDeriveRead *r, uint64_t row0, uint64_t head, uint64_t from, uint64_t to) {
    const uint64_t bytes = r->d->row_bytes, first = qsf_row_place(r->p->map, row0);
    int rc = qsf_derive_source(r, first * bytes, r->scratch, head * bytes);
    for (uint64_t at = from; rc == QSF_OK && at < to;) {
        const uint64_t row = at / bytes, in = at % bytes, n = min_u64(bytes - in, to - at);
        const uint64_t place = qsf_row_place(r->p->map, row) - first;
        memcpy(r->dst + (at - r->at), r->scratch + place * bytes + in, (size_t)n);
        at += n;
    }
    return rc;
}

/* Rows of heads that are stored in halves. */
static int copy_heads(const QsfDeriveRead *r) {
    const uint64_t bytes = r->d->row_bytes, head = r->p->map->head, end = r->at + r->len;
    const bool whole = head * bytes <= QSF_DERIVE_SCRATCH;
    int rc = QSF_OK;
    for (uint64_t at = r->at; rc == QSF_OK && at < end;) {
        const uint64_t row = at / bytes, in = at % bytes, row0 = row / head * head;
        const uint64_t to = min_u64(end, whole ? (row0 + head) * bytes : (row + 1) * bytes);
        if (whole)
            rc = read_head(r, row0, head, at, to);
        else
            rc = qsf_derive_source(r, qsf_row_place(r->p->map, row) * bytes + in, r->dst + (at - r->at),
                                   to - at);
        at = to;
    }
    return rc;
}

int qsf_derive_copy(const QsfDeriveRead *r) {
    const QsfRowMap *m = r->p->map;
    const uint64_t bytes = r->d->row_bytes, end = r->at + r->len;
    int rc = QSF_OK;
    if (m->head > 0) return copy_heads(r);
    for (uint64_t at = r->at; rc == QSF_OK && at < end;) {
        const uint64_t row = at / bytes, run_end = (row / m->run + 1) * m->run * bytes;
        const uint64_t to = min_u64(end, run_end);
        rc = qsf_derive_source(r, qsf_row_place(m, row) * bytes + at % bytes, r->dst + (at - r->at), to - at);
        at = to;
    }
    return rc;
}

/* --- columns --- */

/* A rectangle of a source matrix: columns that become consecutive rows. */
typedef struct Columns {
    uint64_t row0, n; /* rows of the part */
    uint64_t step;    /* from one column to the next, at least 1 */
    uint64_t at;      /* of the first element of the first column, in the source */
} Columns;

/* Puts element i of each of the columns, the first of which is at `from`, in its row. */
static void scatter(const QsfDeriveRead *r, const Columns *c, uint64_t i, const unsigned char *from) {
    const uint64_t elem = r->d->src_elem;
    for (uint64_t k = 0; k < c->n; k++) {
        const uint64_t at = (c->row0 + k) * r->d->row_bytes + i * elem;
        for (uint64_t b = 0; b < elem; b++) /* a range may begin or end within an element */
            if (at + b >= r->at && at + b < r->at + r->len)
                r->dst[at + b - r->at] = from[k * c->step * elem + b];
    }
}

static int read_columns(const QsfDeriveRead *r, const Columns *c) {
    const uint64_t elem = r->d->src_elem, stride = r->d->src_cols * elem,
                   span = ((c->n - 1) * c->step + 1) * elem;
    /* Rows of the source at a time, if what lies between the columns is worth reading. */
    uint64_t most = 1 + (QSF_DERIVE_SCRATCH - span) / stride;
    if (stride > 8 * span && stride > 4096) most = 1;
    int rc = QSF_OK;
    for (uint64_t i = 0; rc == QSF_OK && i < r->d->src_rows;) {
        const uint64_t n = min_u64(most, r->d->src_rows - i);
        rc = qsf_derive_source(r, c->at + i * stride, r->scratch, (n - 1) * stride + span);
        for (uint64_t k = 0; rc == QSF_OK && k < n; k++) scatter(r, c, i + k, r->scratch + k * stride);
        i += n;
    }
    return rc;
}

int qsf_derive_transpose(const QsfDeriveRead *r) {
    const QsfDerived *d = r->d;
    const QsfRowMap *m = r->p->map;
    const uint64_t last = (r->at + r->len - 1) / d->row_bytes,
                   matrix = d->src_step * d->src_cols * d->src_elem;
    int rc = QSF_OK;
    for (uint64_t row = r->at / d->row_bytes; rc == QSF_OK && row <= last;) {
        const uint64_t place = qsf_row_place(m, row), col = place % d->src_cols;
        const uint64_t step = m->run == 1 && m->period == 0 && m->stride <= NEAR ? m->stride : 1,
                       left = d->src_cols - col;
        uint64_t n = step > 1 ? (left + step - 1) / step : min_u64(m->run - row % m->run, left);
        n = min_u64(min_u64(n, last + 1 - row), QSF_DERIVE_SCRATCH / d->src_elem / step);
        const Columns c = { row, m->head > 0 ? 1 : n, step,
                            place / d->src_cols * matrix + col * d->src_elem };
        rc = read_columns(r, &c);
        row += c.n;
    }
    return rc;
}

/* --- columns in a different order --- */

/* Copies bytes [from, to) of a row of the result, whose first byte goes to dst, from a row of the source. */
static void gather(const QsfDeriveRead *r, uint64_t from, uint64_t to, unsigned char *dst) {
    const QsfRowMap *m = r->p->map;
    const uint64_t elem = r->d->src_elem;
    for (uint64_t at = from; at < to;) {
        const uint64_t col = at / elem, run_end = (col / m->run + 1) * m->run * elem,
                       end = min_u64(m->head > 0 ? (col + 1) * elem : run_end, to);
        memcpy(dst + (at - from), r->scratch + qsf_row_place(m, col) * elem + at % elem, (size_t)(end - at));
        at = end;
    }
}

int qsf_derive_columns(const QsfDeriveRead *r) {
    const uint64_t bytes = r->d->row_bytes, source = r->d->src_cols * r->d->src_elem, end = r->at + r->len;
    int rc = QSF_OK;
    for (uint64_t at = r->at; rc == QSF_OK && at < end;) {
        const uint64_t row = at / bytes, to = min_u64((row + 1) * bytes, end);
        rc = qsf_derive_source(r, row * source, r->scratch, source);
        if (rc == QSF_OK) gather(r, at - row * bytes, to - row * bytes, r->dst + (at - r->at));
        at = to;
    }
    return rc;
}
