/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derived tensors made from packed weights and their scales. */
#include <string.h>

#include "kernels/blocks.h"
#include "src/format/derive.h"
#include "src/format/rows.h"

#define PIECE_ELEMS  1024u
#define MXFP4_BYTES  17u /* of a block of 32: the exponent, then the nibbles */
#define MXFP4_HALVES 16u

void qsf_derive_put_bf16(unsigned char *out, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits |= 0x400000u;
    else
        bits += 0x7fffu + ((bits >> 16) & 1u);
    out[0] = (unsigned char)(bits >> 16);
    out[1] = (unsigned char)(bits >> 24);
}

static uint32_t scale_bytes(const QsfDerived *d) { return d->scale_dtype == QK_GGML_F32 ? 4 : 2; }

/* --- F8 with scales of blocks (deepseek-ai/DeepSeek-V3 inference/kernel.py, weight_dequant), of rows or of the
 * whole tensor: weight x scale, as ggml-org/llama.cpp's converter makes it --- */

static int make_f8(const QsfDeriveRead *r, uint64_t row, uint64_t col, uint64_t n, unsigned char *out) {
    const QsfDerived *d = r->d;
    const uint64_t place = qsf_row_place(r->p->map, row), matrix = place / d->src_rows,
                   in = place % d->src_rows;
    const uint64_t blocks = (d->src_rows + d->block_r - 1) / d->block_r, each = scale_bytes(d);
    const uint64_t first = (matrix * blocks + in / d->block_r) * d->scale_cols + col / d->block_c;
    const uint64_t count = (col + n - 1) / d->block_c - col / d->block_c + 1;
    unsigned char *scales = r->scratch, *codes = r->scratch + 4 * (PIECE_ELEMS + 1);
    int rc = qsf_derive_scales(r, first * each, scales, count * each);
    if (rc == QSF_OK) rc = qsf_derive_source(r, place * d->src_cols + col, codes, n);
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) {
        const uint64_t block = (col + i) / d->block_c - col / d->block_c;
        qsf_derive_put_bf16(out + 2 * i, qsf_float_of(d->src_dtype, codes + i) *
                                             qsf_float_of(d->scale_dtype, scales + block * each));
    }
    return rc;
}

int qsf_derive_scaled_f8(const QsfDeriveRead *r) { return qsf_derive_elements(r, 2, PIECE_ELEMS, make_f8); }

/* --- MXFP4 (openai/gpt-oss gpt_oss/torch/weights.py): byte j of a block has elements 2j and 2j + 1, low nibble
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
    if (rc == QSF_OK) rc = qsf_derive_source(r, first * MXFP4_HALVES, blocks, n * MXFP4_HALVES);
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
    int rc = qsf_derive_source(r, at + col * QK_I2S_BLOCK, r->scratch, n * QK_I2S_BLOCK);
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
