/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Encoders and decoders of single blocks; private to src/convert/quant. Pure functions, any thread. */
#ifndef QSF_CONVERT_QUANT_BLOCKS_H
#define QSF_CONVERT_QUANT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* ---- layouts ---- */

/* n finite values within +-65504, and their weights, which are not negative and not all zero. */
typedef struct QsfBlockIn {
    size_t n;
    const float *x, *w;
} QsfBlockIn;

/* Encodes a block to out. */
typedef void (*qsf_block_encode)(const QsfBlockIn *b, uint8_t *out);
/* Decodes the n values of a block to x. */
typedef void (*qsf_block_decode)(const uint8_t *in, size_t n, float *x);

/* The functions of a layout, with an encoder for each rule. */
typedef struct QsfBlockOps {
    qsf_block_encode search, minmax;
    qsf_block_decode decode;
} QsfBlockOps;

/* blocks_affine.c */
extern const QsfBlockOps qsf_block_2bit, qsf_block_2bit_asym, qsf_block_3bit, qsf_block_4bit;
extern const QsfBlockOps qsf_block_ternary;                                             /* blocks_ternary.c */
extern const QsfBlockOps qsf_block_q8_0, qsf_block_q4_0, qsf_block_f16;                 /* blocks_scale.c */
extern const QsfBlockOps qsf_block_q2_k, qsf_block_q4_k;                                /* blocks_k_min.c */
extern const QsfBlockOps qsf_block_q3_k, qsf_block_q6_k;                                /* blocks_k_scale.c */
extern const QsfBlockOps qsf_block_2bit_book, qsf_block_3bit_book, qsf_block_4bit_book; /* books.c */

/* ---- codes ---- */

/* Codes of a few bits as a little-endian bit stream: code i starts at bit i * bits, counted from the lowest
 * bit of the first byte. For 2 and 4 bits that is the order of QSF files, too (man/qsf-format.5: byte i/4,
 * bits 2(i%4); low nibble first).
 *
 * Packs n codes below 2^bits into n * bits / 8 bytes, which must be an integer; bits is 1 to 8. */
static inline void qsf_bits_put(uint8_t *out, const uint8_t *codes, size_t n, unsigned bits) {
    uint32_t held = 0;
    unsigned have = 0;
    for (size_t i = 0; i < n; i++) {
        held |= (uint32_t)codes[i] << have;
        for (have += bits; have >= 8; have -= 8, held >>= 8) *out++ = (uint8_t)held;
    }
}

static inline void qsf_bits_get(uint8_t *codes, const uint8_t *in, size_t n, unsigned bits) {
    uint32_t held = 0;
    unsigned have = 0;
    for (size_t i = 0; i < n; i++) {
        for (; have < bits; have += 8) held |= (uint32_t)*in++ << have;
        codes[i] = (uint8_t)(held & ((1u << bits) - 1));
        held >>= bits;
        have -= bits;
    }
}

#endif
