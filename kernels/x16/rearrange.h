/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Converts the dwords of a row's block to those of its planes (the table in x16.h) and back, in place, for
 * the formats whose bytes do not hold four consecutive elements at the same bit position. */
#ifndef QSF_KERNELS_X16_REARRANGE_H
#define QSF_KERNELS_X16_REARRANGE_H

#include "kernels/load.h"

/* Exchanges each bit of the mask with the one delta above it. Swapping two digits of a bit's
 * index is one of these. */
static inline uint32_t qk_bits_swap(uint32_t x, uint32_t mask, int delta) {
    const uint32_t t = (x ^ x >> delta) & mask;
    return x ^ t ^ t << delta;
}

/* Bit 4s + i to bit 8i + s (s < 8, i < 4), and back. */
static inline uint32_t qk_bits_by_four(uint32_t x) {
    x = qk_bits_swap(x, 0x0000cccc, 14);
    x = qk_bits_swap(x, 0x00aa00aa, 7);
    x = qk_bits_swap(x, 0x0c0c0c0c, 2);
    return qk_bits_swap(x, 0x22222222, 1);
}

static inline uint32_t qk_bits_in_row(uint32_t x) {
    x = qk_bits_swap(x, 0x22222222, 1);
    x = qk_bits_swap(x, 0x0c0c0c0c, 2);
    x = qk_bits_swap(x, 0x00aa00aa, 7);
    return qk_bits_swap(x, 0x0000cccc, 14);
}

/* Pair 4s + i (bits 2 (4s + i)) to bits 8i + 2s: its own inverse. */
static inline uint32_t qk_pairs_turn(uint32_t x) {
    return qk_bits_swap(qk_bits_swap(x, 0x00cc00cc, 6), 0x0000f0f0, 12);
}

/* Nibble 4s + i to bits 8i + 4s, and back. */
static inline uint32_t qk_nibbles_by_four(uint32_t x) {
    return qk_bits_swap(qk_bits_swap(x, 0x0000ff00, 8), 0x00f000f0, 4);
}

static inline uint32_t qk_nibbles_in_row(uint32_t x) {
    return qk_bits_swap(qk_bits_swap(x, 0x00f000f0, 4), 0x0000ff00, 8);
}

static inline void qk_fix_none(uint32_t *w) { (void)w; }

static inline void qk_fix_q5(uint32_t *w) { w[0] = qk_bits_by_four(w[0]); }

static inline void qk_unfix_q5(uint32_t *w) { w[0] = qk_bits_in_row(w[0]); }

/* Four dwords of bits: bit 4s + i of dword j to bit 8i + 2j + s / 4 of plane s % 4, so that a step is one bit
 * of a plane and a run of 32 elements two neighbours. And back. */
static inline void qk_fix_q1_0(uint32_t *w) {
    uint32_t out[4] = { 0 };
    for (int j = 0; j < 4; j++) {
        const uint32_t bits = qk_bits_by_four(w[j]);
        for (int s = 0; s < 8; s++) out[s % 4] |= (bits >> s & 0x01010101u) << (2 * j + s / 4);
    }
    memcpy(w, out, sizeof out);
}

static inline void qk_unfix_q1_0(uint32_t *w) {
    uint32_t out[4] = { 0 };
    for (int j = 0; j < 4; j++) {
        for (int s = 0; s < 8; s++) out[j] |= (w[s % 4] >> (2 * j + s / 4) & 0x01010101u) << s;
        out[j] = qk_bits_in_row(out[j]);
    }
    memcpy(w, out, sizeof out);
}

static inline void qk_fix_qsf2(uint32_t *w) {
    for (int p = 0; p < 4; p++) w[p] = qk_pairs_turn(w[p]);
}

static inline void qk_fix_i2_256(uint32_t *w) {
    for (int p = 0; p < 16; p++) w[p] = qk_pairs_turn(w[p]);
}

static inline void qk_fix_i2_32(uint32_t *w) {
    w[0] = qk_pairs_turn(w[0]);
    w[1] = qk_pairs_turn(w[1]);
}

static inline void qk_fix_qsf4(uint32_t *w) {
    for (int p = 0; p < 8; p++) w[p] = qk_nibbles_by_four(w[p]);
}

static inline void qk_unfix_qsf4(uint32_t *w) {
    for (int p = 0; p < 8; p++) w[p] = qk_nibbles_in_row(w[p]);
}

/* Spreads sixteen bits, one in every two; and gathers every second of 32 bits. */
static inline uint32_t qk_bits_spread(uint32_t x) {
    x = (x | x << 8) & 0x00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f;
    x = (x | x << 2) & 0x33333333;
    return (x | x << 1) & 0x55555555;
}

static inline uint32_t qk_bits_gather(uint32_t x) {
    x &= 0x55555555;
    x = (x | x >> 1) & 0x33333333;
    x = (x | x >> 2) & 0x0f0f0f0f;
    x = (x | x >> 4) & 0x00ff00ff;
    return (x | x >> 8) & 0xffff;
}

/* Two dwords of signs, two of zeros; code bit 0 = zero, bit 1 = positive. */
static inline void qk_fix_qsft(uint32_t *w) {
    uint32_t out[4];
    for (int p = 0; p < 4; p++) {
        const uint32_t sign = w[p / 2] >> p % 2 * 16 & 0xffff, zero = w[2 + p / 2] >> p % 2 * 16 & 0xffff;
        out[p] = qk_pairs_turn(qk_bits_spread(zero) | qk_bits_spread(~(zero | sign) & 0xffff) << 1);
    }
    memcpy(w, out, sizeof out);
}

static inline void qk_unfix_qsft(uint32_t *w) {
    uint32_t out[4] = { 0 };
    for (int p = 0; p < 4; p++) {
        const uint32_t codes = qk_pairs_turn(w[p]);
        const uint32_t zero = qk_bits_gather(codes), positive = qk_bits_gather(codes >> 1);
        out[p / 2] |= (~(zero | positive) & 0xffff) << p % 2 * 16;
        out[2 + p / 2] |= zero << p % 2 * 16;
    }
    memcpy(w, out, sizeof out);
}

/* Gathers sixteen fields of n bits, three apart; and spreads them again. Step j moves every second run of 2^j
 * fields; the masks are the other runs. */
static inline uint64_t qk_thirds_mask(int n, int j) {
    static const uint64_t ones[] = { 0x041041041041, 0x003003003003, 0x00000f00000f, 0x0000000000ff };
    static const uint64_t twos[] = { 0x0c30c30c30c3, 0x00f00f00f00f, 0x0000ff0000ff, 0x00000000ffff };
    return n == 1 ? ones[j] : twos[j];
}

#define QK_GATHER_STEP(x, n, j) \
    ((x & qk_thirds_mask(n, j)) | (x & qk_thirds_mask(n, j) << (3 << j)) >> ((3 - n) << j))
#define QK_SPREAD_STEP(x, n, j) \
    ((x & qk_thirds_mask(n, j)) | (x & qk_thirds_mask(n, j) << (n << j)) << ((3 - n) << j))

/* The fields start at bits 0, 3, .., 45 of x; all other bits of x are 0. */
static inline uint32_t qk_thirds_gather(uint64_t x, int n) {
    x = QK_GATHER_STEP(x, n, 0);
    x = QK_GATHER_STEP(x, n, 1);
    x = QK_GATHER_STEP(x, n, 2);
    return (uint32_t)QK_GATHER_STEP(x, n, 3);
}

static inline uint64_t qk_thirds_spread(uint64_t x, int n) {
    x = QK_SPREAD_STEP(x, n, 3);
    x = QK_SPREAD_STEP(x, n, 2);
    x = QK_SPREAD_STEP(x, n, 1);
    return QK_SPREAD_STEP(x, n, 0);
}

/* Four times 48 bits of the stream: each makes a plane of low pairs and half a plane of top bits. */
static inline void qk_fix_qsf3(uint32_t *w) {
    uint8_t stream[32] = { 0 };
    memcpy(stream, w, 24);
    w[4] = w[5] = 0;
    for (int p = 0; p < 4; p++) {
        const uint64_t x = qk_load_u64(stream + 6 * p);
        w[p] = qk_pairs_turn(qk_thirds_gather(x & 0x6db6db6db6db, 2));
        w[4 + p / 2] |= qk_thirds_gather(x >> 2 & 0x249249249249, 1) << p % 2 * 16;
    }
    w[4] = qk_bits_by_four(w[4]);
    w[5] = qk_bits_by_four(w[5]);
}

static inline void qk_unfix_qsf3(uint32_t *w) {
    uint8_t stream[32];
    for (int p = 0; p < 4; p++) {
        const uint32_t top = qk_bits_in_row(w[4 + p / 2]) >> p % 2 * 16 & 0xffff;
        const uint64_t x = qk_thirds_spread(qk_pairs_turn(w[p]), 2) | qk_thirds_spread(top, 1) << 2;
        memcpy(stream + 6 * p, &x, sizeof x);
    }
    memcpy(w, stream, 24);
}

/* The formats with codebooks: three dwords of words, which do not change, then codes as in four of the blocks
 * above. */
static inline void qk_fix_qsb2(uint32_t *w) {
    for (int i = 0; i < 4; i++) qk_fix_qsf2(w + 3 + 4 * i);
}

static inline void qk_fix_qsb3(uint32_t *w) {
    for (int i = 0; i < 4; i++) qk_fix_qsf3(w + 3 + 6 * i);
}

static inline void qk_unfix_qsb3(uint32_t *w) {
    for (int i = 0; i < 4; i++) qk_unfix_qsf3(w + 3 + 6 * i);
}

static inline void qk_fix_qsb4(uint32_t *w) {
    for (int i = 0; i < 4; i++) qk_fix_qsf4(w + 3 + 8 * i);
}

static inline void qk_unfix_qsb4(uint32_t *w) {
    for (int i = 0; i < 4; i++) qk_unfix_qsf4(w + 3 + 8 * i);
}

#endif
