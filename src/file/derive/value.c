/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derived tensors with new values: float types and simple functions of them. */
#include <math.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/base/half.h"
#include "src/file/derive/derive.h"
#include "src/file/rows.h"

/* --- the source of a derived tensor: bytes of a file, or BF16 made from F8 and scales of blocks
 * (deepseek-ai/DeepSeek-V3 inference/kernel.py, weight_dequant), of rows, of columns or of the whole tensor:
 * weight x scale, rounded to the nearest, as ggml-org/llama.cpp's converter makes it --- */

#define BF16_BYTES 2u
#define MOST       256u /* scales at a time */

/* Writes BF16: to the nearest, ties to even; NaN stays NaN. */
static void derive_put_bf16(unsigned char *out, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits |= 0x400000u;
    else
        bits += 0x7fffu + ((bits >> 16) & 1u);
    out[0] = (unsigned char)(bits >> 16);
    out[1] = (unsigned char)(bits >> 24);
}

/* The values of all codes; scales of consecutive blocks of one row of blocks. */
typedef struct Scales {
    float code[256];
    uint64_t first, n; /* in the tensor of scales; n 0 = none were read */
    unsigned char v[MOST * sizeof(float)];
} Scales;

static int read_scales(const QsfDeriveRead *r, Scales *s, uint64_t first, uint64_t n) {
    const uint64_t each = r->p->f8.dtype == QK_GGML_F32 ? 4 : 2;
    if (s->n > 0 && first >= s->first && first + n <= s->first + s->n) return QSF_OK;
    s->first = first;
    s->n = n;
    return qsf_derive_scales(r, first * each, s->v, n * each);
}

/* Writes elements [col, col + n) of row `row`, all of whose scales are in s. codes may be the end of out. */
static void put_elements(const QsfDeriveRead *r, const Scales *s, uint64_t first, uint64_t col, uint64_t n,
                         const unsigned char *codes, unsigned char *out) {
    const QsfF8Scales *f8 = &r->p->f8;
    const uint64_t each = f8->dtype == QK_GGML_F32 ? 4 : 2, skipped = first - s->first - col / f8->block_c;
    for (uint64_t i = 0; i < n;) {
        const uint64_t block = (col + i) / f8->block_c, end = (block + 1) * f8->block_c - col;
        const float scale = qsf_float_of(f8->dtype, s->v + (skipped + block) * each);
        for (const uint64_t to = end < n ? end : n; i < to; i++)
            derive_put_bf16(out + BF16_BYTES * i, s->code[codes[i]] * scale);
    }
}

/* Makes elements [at, at + n) of the source. The codes are read into the second half of out, which is
 * overwritten from its start. */
static int read_elements(const QsfDeriveRead *r, uint64_t at, uint64_t n, unsigned char *out) {
    const QsfF8Scales *f8 = &r->p->f8;
    const uint64_t cols = r->d->src_cols, blocks = (f8->rows + f8->block_r - 1) / f8->block_r;
    Scales s;
    s.n = 0;
    for (unsigned i = 0; i < 256; i++)
        s.code[i] = qsf_float_of(f8->codes, &(const unsigned char){ (unsigned char)i });
    int rc = qsf_derive_stored(r, at, out + n, n);
    for (uint64_t i = 0; rc == QSF_OK && i < n;) {
        const uint64_t row = (at + i) / cols, col = (at + i) % cols, block = col / f8->block_c;
        uint64_t end = (block + MOST) * f8->block_c; /* of the columns whose scales fit */
        if (end > cols) end = cols;
        if (end - col > n - i) end = col + (n - i);
        const uint64_t first = (row / f8->rows * blocks + row % f8->rows / f8->block_r) * f8->cols + block;
        rc = read_scales(r, &s, first, (end - 1) / f8->block_c - block + 1);
        if (rc == QSF_OK) put_elements(r, &s, first, col, end - col, out + n + i, out + BF16_BYTES * i);
        i += end - col;
    }
    return rc;
}

/* Reads one byte of an element. */
static int read_half(const QsfDeriveRead *r, uint64_t at, unsigned char *dst) {
    unsigned char element[BF16_BYTES] = { 0 };
    int rc = read_elements(r, at / BF16_BYTES, 1, element);
    *dst = element[at % BF16_BYTES];
    return rc;
}

int qsf_derive_source(const QsfDeriveRead *r, uint64_t at, void *dst, uint64_t len) {
    unsigned char *out = dst;
    if (!r->d->scaled_f8) return qsf_derive_stored(r, at, dst, len);
    int rc = QSF_OK;
    if (len > 0 && at % BF16_BYTES != 0) {
        rc = read_half(r, at++, out++);
        len--;
    }
    if (rc == QSF_OK && len >= BF16_BYTES) rc = read_elements(r, at / BF16_BYTES, len / BF16_BYTES, out);
    if (rc == QSF_OK && len % BF16_BYTES != 0) rc = read_half(r, at + len - 1, out + (len - 1));
    return rc;
}

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
    default: derive_put_bf16(out, x); break;
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
