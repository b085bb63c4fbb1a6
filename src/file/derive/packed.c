/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derived tensors made from packed weights. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/base/half.h"
#include "src/file/derive/derive.h"
#include "src/file/rows.h"

#define MOST         4096u /* blocks at a time */
#define CODE_BYTES   (QK_BLOCK / 4u)
#define PIECE_ELEMS  1024u
#define MXFP4_BYTES  17u /* of a block of 32: the exponent, then the nibbles */
#define MXFP4_HALVES 16u

/* --- MXFP4 (openai/gpt-oss gpt_oss/torch/weights.py): byte j of a block has elements 2j and
 * 2j + 1, low nibble
 * first; GGML's has elements j and j + 16 --- */

static void repack(const unsigned char *from, unsigned char *to) {
    unsigned char e[2 * MXFP4_HALVES];
    for (unsigned j = 0; j < MXFP4_HALVES; j++) {
        e[2 * j] = from[j] & 15;
        e[2 * j + 1] = from[j] >> 4;
    }
    for (unsigned j = 0; j < MXFP4_HALVES; j++) to[j] = (unsigned char)(e[j] | e[j + MXFP4_HALVES] << 4);
}

static int make_mxfp4(const QsfDeriveRead *r, uint64_t row, uint64_t col, uint64_t n, unsigned char *out) {
    const uint64_t first = qsf_row_place(r->p->map, row) * r->d->src_cols + col;
    unsigned char *scales = r->scratch, *blocks = r->scratch + PIECE_ELEMS;
    int rc = qsf_derive_scales(r, first, scales, n);
    if (rc == QSF_OK) rc = qsf_derive_stored(r, first * MXFP4_HALVES, blocks, n * MXFP4_HALVES);
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) {
        out[i * MXFP4_BYTES] = scales[i];
        repack(blocks + i * MXFP4_HALVES, out + i * MXFP4_BYTES + 1);
    }
    return rc;
}

int qsf_derive_mxfp4(const QsfDeriveRead *r) { return qsf_derive_elements(r, MXFP4_BYTES, 240, make_mxfp4); }

/* --- two bits (huggingface/transformers integrations/bitnet.py): bits 2i of a byte are those of row
 * i x rows/4 + the byte's row; 0, 1, 2 stand for -1, 0, 1, as in I2_S, whose scale follows the rows --- */

static int make_ternary(const QsfDeriveRead *r, uint64_t row, uint64_t col, uint64_t n, unsigned char *out) {
    const QsfDerived *d = r->d;
    const uint64_t place = qsf_row_place(r->p->map, row), at = place % d->src_rows * d->src_cols;
    const unsigned shift = 2 * (unsigned)(place / d->src_rows);
    int rc = qsf_derive_stored(r, at + col * QK_I2S_BLOCK, r->scratch, n * QK_I2S_BLOCK);
    if (rc == QSF_OK) memset(out, 0, (size_t)n * sizeof(qk_i2_s));
    for (uint64_t i = 0; rc == QSF_OK && i < n * QK_I2S_BLOCK; i++) {
        const unsigned j = i % QK_I2S_BLOCK, code = (unsigned)r->scratch[i] >> shift & 3u;
        out[i / QK_I2S_BLOCK * sizeof(qk_i2_s) + j % 32] |= (unsigned char)(code << (6 - 2 * (j / 32)));
    }
    return rc;
}

int qsf_derive_ternary(const QsfDeriveRead *r) {
    return qsf_derive_elements(r, sizeof(qk_i2_s), PIECE_ELEMS / sizeof(qk_i2_s), make_ternary);
}

/* --- I2_32: blocks of codes and their scales, which are two tensors --- */

_Static_assert(MOST *(CODE_BYTES + sizeof(float)) <= QSF_DERIVE_SCRATCH, "codes and scales of a piece");

static const char *name_of(const QsfSource *s, const QsfDerived *d) {
    for (uint64_t i = 0; i < s->n_tensors; i++)
        if (s->tensors[i].file == s->n_files && s->tensors[i].offset == d->off) return s->tensors[i].name;
    return "";
}

/* Puts the scale of block i of the tensor as a half. One that a half represents less exactly than a normal
 * one would give other answers without a word. */
static int put_scale(const QsfDeriveRead *r, uint64_t i, const unsigned char *from, unsigned char *out) {
    if (r->d->scale_dtype == QK_GGML_F16) {
        memcpy(out, from, 2);
        return QSF_OK;
    }
    const float x = qsf_float_of(QK_GGML_F32, from);
    const uint16_t half = qsf_half_bits((double)x);
    if (!(fabsf(qsf_half_value(half) - x) <= fabsf(x) / 2048.0f) || isinf(x))
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%s': the scale of block %" PRIu64 " is %g, expected a value that "
                           "float16 can represent",
                           r->s->files[r->p->scale_file].path, name_of(r->s, r->d), i, (double)x);
    qsf_half_put(out, half);
    return QSF_OK;
}

/* Makes blocks [first, first + n); bytes of them outside the read are left out. */
static int make_blocks(const QsfDeriveRead *r, uint64_t first, uint64_t n) {
    const uint64_t each = r->d->scale_dtype == QK_GGML_F32 ? 4 : 2, end = r->at + r->len;
    unsigned char *codes = r->scratch, *scales = r->scratch + (size_t)MOST * CODE_BYTES;
    int rc = qsf_derive_stored(r, first * CODE_BYTES, codes, n * CODE_BYTES);
    if (rc == QSF_OK) rc = qsf_derive_scales(r, first * each, scales, n * each);
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) {
        unsigned char block[sizeof(qk_i2_32)];
        const uint64_t at = (first + i) * sizeof block, from = at > r->at ? at : r->at,
                       to = at + sizeof block < end ? at + sizeof block : end;
        memcpy(block, codes + i * CODE_BYTES, CODE_BYTES);
        rc = put_scale(r, first + i, scales + i * each, block + CODE_BYTES);
        memcpy(r->dst + (from - r->at), block + (from - at), (size_t)(to - from));
    }
    return rc;
}

int qsf_derive_split32(const QsfDeriveRead *r) {
    const uint64_t end = (r->at + r->len + sizeof(qk_i2_32) - 1) / sizeof(qk_i2_32);
    int rc = QSF_OK;
    for (uint64_t i = r->at / sizeof(qk_i2_32); rc == QSF_OK && i < end; i += MOST)
        rc = make_blocks(r, i, end - i < MOST ? end - i : MOST);
    return rc;
}
