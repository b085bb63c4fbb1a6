/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derived tensors made from packed weights. */
#include <string.h>

#include "kernels/blocks.h"
#include "src/file/derive/derive.h"

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
