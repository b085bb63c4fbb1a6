/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derived tensors with new values: float types and simple functions of them. */
#include <math.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/base/half.h"
#include "src/file/derive/derive.h"
#include "src/file/rows.h"

#define PIECE_BYTES 4096u

int qsf_derive_elements(const QsfDeriveRead *r, unsigned bytes, uint64_t most, QsfDeriveElems make) {
    unsigned char piece[PIECE_BYTES];
    const uint64_t end = r->at + r->len, row_bytes = r->d->row_bytes;
    int rc = QSF_OK;
    for (uint64_t at = r->at; rc == QSF_OK && at < end;) {
        const uint64_t row = at / row_bytes, col = at % row_bytes / bytes,
                       from = row * row_bytes + col * bytes;
        uint64_t n = row_bytes / bytes - col, wanted = (end - from + bytes - 1) / bytes;
        n = n < most ? n : most;
        n = n < wanted ? n : wanted;
        rc = make(r, row, col, n, piece);
        const uint64_t to = from + n * bytes < end ? from + n * bytes : end;
        if (rc == QSF_OK) memcpy(r->dst + (at - r->at), piece + (at - from), (size_t)(to - at));
        at = to;
    }
    return rc;
}

static float value_of(QsfDeriveKind kind, float x) {
    if (kind == QSF_DERIVE_ADD_ONE) return x + 1.0f;
    return kind == QSF_DERIVE_NEG_EXP ? -expf(x) : x;
}

static int make_values(const QsfDeriveRead *r, uint64_t row, uint64_t col, uint64_t n, unsigned char *out) {
    const QsfDerived *d = r->d;
    const uint64_t at = (qsf_row_place(r->p->map, row) * d->src_cols + col) * d->src_elem;
    int rc = qsf_derive_source(r, at, r->scratch, n * d->src_elem);
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) {
        const float x = value_of(d->kind, qsf_float_of(d->src_dtype, r->scratch + i * d->src_elem));
        memcpy(out + i * sizeof x, &x, sizeof x);
    }
    return rc;
}

int qsf_derive_value(const QsfDeriveRead *r) {
    return qsf_derive_elements(r, sizeof(float), PIECE_BYTES / sizeof(float), make_values);
}

static void put_float(uint32_t dtype, unsigned char *out, float x) {
    switch (dtype) {
    case QK_GGML_F32: memcpy(out, &x, sizeof x); break;
    case QK_GGML_F16: qsf_half_put(out, qsf_half_bits((double)x)); break;
    default: qsf_derive_put_bf16(out, x); break;
    }
}

static int make_times(const QsfDeriveRead *r, uint64_t row, uint64_t col, uint64_t n, unsigned char *out) {
    const QsfDerived *d = r->d;
    const uint64_t at = (qsf_row_place(r->p->map, row) * d->src_cols + col) * d->src_elem;
    int rc = qsf_derive_source(r, at, r->scratch, n * d->src_elem);
    for (uint64_t i = 0; rc == QSF_OK && i < n * d->src_elem; i += d->src_elem)
        put_float(d->src_dtype, out + i, qsf_float_of(d->src_dtype, r->scratch + i) * r->p->map->factor);
    return rc;
}

int qsf_derive_times(const QsfDeriveRead *r) {
    return qsf_derive_elements(r, r->d->src_elem, PIECE_BYTES / sizeof(float), make_times);
}
