/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The same for the formats with grids (kernels/grids.h): indices become bytes and their upper bits a byte of
 * each, so that the four indices of a dword are looked up side by side; signs lie as the steps need them. */
#ifndef QSF_KERNELS_X16_REARRANGE_GRID_H
#define QSF_KERNELS_X16_REARRANGE_GRID_H

#include "kernels/x16/rearrange.h"

/* Bits 7l .. 7l + 6 of x to bits 8l .. 8l + 6, l < 4, and back. */
static inline uint32_t qk_sevens_apart(uint32_t x) {
    return (x & 0x7f) | (x & 0x3f80) << 1 | (x & 0x1fc000) << 2 | (x & 0xfe00000) << 3;
}

static inline uint32_t qk_sevens_together(uint32_t x) {
    return (x & 0x7f) | (x >> 1 & 0x3f80) | (x >> 2 & 0x1fc000) | (x >> 3 & 0xfe00000);
}

/* Four times seven signs and a scale of four bits: a sign is where its step takes it, bit 8i + s
 * of element 4s + i; the eighth of each eight, which follows from the others, makes room for the
 * bits 0, 2, 1, 3 of the scale. */
static inline uint32_t qk_fix_signs(uint32_t x) {
    const uint32_t scale = (x >> 28 & 1) << 7 | (x >> 30 & 1) << 15 | (x >> 29 & 1) << 23 | (x >> 31) << 31;
    return qk_bits_by_four(qk_sevens_apart(x) | scale);
}

static inline uint32_t qk_unfix_signs(uint32_t x) {
    x = qk_bits_in_row(x);
    return qk_sevens_together(x) | (x >> 7 & 1) << 28 | (x >> 15 & 1) << 30 | (x >> 23 & 1) << 29 |
           (x >> 31) << 31;
}

/* Pairs of dwords, four indices and their signs, to all indices and all signs. */
static inline void qk_fix_iq2_xxs(uint32_t *w) {
    uint32_t in[16];
    memcpy(in, w, sizeof in);
    for (int n = 0; n < 8; n++) {
        w[n] = in[2 * n];
        w[8 + n] = qk_fix_signs(in[2 * n + 1]);
    }
}

static inline void qk_unfix_iq2_xxs(uint32_t *w) {
    uint32_t in[16];
    memcpy(in, w, sizeof in);
    for (int n = 0; n < 8; n++) {
        w[2 * n] = in[n];
        w[2 * n + 1] = qk_unfix_signs(in[8 + n]);
    }
}

/* Words of nine bits of an index and seven signs: the low bytes of four, then their signs, with the ninth
 * bits where an eighth sign would be. */
static inline void qk_fix_iq2_xs(uint32_t *w) {
    uint32_t in[16];
    memcpy(in, w, sizeof in);
    for (int n = 0; n < 8; n++) {
        const uint32_t a = in[2 * n], b = in[2 * n + 1];
        w[n] = (a & 0xff) | (a >> 8 & 0xff00) | (b & 0xff) << 16 | (b << 8 & 0xff000000);
        const uint32_t high = (a >> 8 & 0xff) | (a >> 16 & 0xff00) | (b << 8 & 0xff0000) | (b & 0xff000000);
        w[8 + n] = qk_bits_by_four((high >> 1 & 0x7f7f7f7f) | (high & 0x01010101) << 7);
    }
}

static inline void qk_unfix_iq2_xs(uint32_t *w) {
    uint32_t in[16];
    memcpy(in, w, sizeof in);
    for (int n = 0; n < 8; n++) {
        const uint32_t low = in[n], signs = qk_bits_in_row(in[8 + n]);
        const uint32_t high = (signs & 0x7f7f7f7f) << 1 | (signs >> 7 & 0x01010101);
        w[2 * n] = (low & 0xff) | (high & 0xff) << 8 | (low & 0xff00) << 8 | (high & 0xff00) << 16;
        w[2 * n + 1] = (low >> 16 & 0xff) | (high >> 8 & 0xff00) | (low >> 8 & 0xff0000) |
                       (high & 0xff000000);
    }
}

/* Indices, signs; two bits above each index: bits 8l + 2n of the dword of index l of 32
 * elements n; scales. */
static inline void qk_fix_iq2_s(uint32_t *w) {
    for (int n = 8; n < 16; n++) w[n] = qk_bits_by_four(w[n]);
    w[16] = qk_pairs_turn(w[16]);
    w[17] = qk_pairs_turn(w[17]);
}

static inline void qk_unfix_iq2_s(uint32_t *w) {
    for (int n = 8; n < 16; n++) w[n] = qk_bits_in_row(w[n]);
    w[16] = qk_pairs_turn(w[16]);
    w[17] = qk_pairs_turn(w[17]);
}

/* Sixteen dwords of indices, then signs and scales. */
static inline void qk_fix_iq3_xxs(uint32_t *w) {
    for (int n = 16; n < 24; n++) w[n] = qk_fix_signs(w[n]);
}

static inline void qk_unfix_iq3_xxs(uint32_t *w) {
    for (int n = 16; n < 24; n++) w[n] = qk_unfix_signs(w[n]);
}

/* Sixteen dwords of indices; one bit above each: bit 8l + n of the dword of index l of 16
 * elements n; signs; scales. */
static inline void qk_fix_iq3_s(uint32_t *w) {
    for (int n = 16; n < 26; n++) w[n] = qk_bits_by_four(w[n]);
}

static inline void qk_unfix_iq3_s(uint32_t *w) {
    for (int n = 16; n < 26; n++) w[n] = qk_bits_in_row(w[n]);
}

/* A word of four times three bits and four more: each of these above three of the others. And back. */
static inline uint32_t qk_threes_apart(uint32_t x) {
    return (x & 7) | (x & 0x38) << 1 | (x & 0x1c0) << 2 | (x & 0xe00) << 3 | (x >> 9 & 8) | (x >> 6 & 0x80) |
           (x >> 3 & 0x800) | (x & 0x8000);
}

static inline uint32_t qk_threes_together(uint32_t x) {
    return (x & 7) | (x >> 1 & 0x38) | (x >> 2 & 0x1c0) | (x >> 3 & 0xe00) | (x & 8) << 9 | (x & 0x80) << 6 |
           (x & 0x800) << 3 | (x & 0x8000);
}

/* Eight dwords of indices; their upper three bits and one more: bits 8l + 4n of the dword of
 * index l of 32 elements n. */
static inline void qk_fix_iq1_s(uint32_t *w) {
    for (int n = 8; n < 12; n++)
        w[n] = qk_nibbles_by_four(qk_threes_apart(w[n] & 0xffff) | qk_threes_apart(w[n] >> 16) << 16);
}

static inline void qk_unfix_iq1_s(uint32_t *w) {
    for (int n = 8; n < 12; n++) {
        const uint32_t x = qk_nibbles_in_row(w[n]);
        w[n] = qk_threes_together(x & 0xffff) | qk_threes_together(x >> 16) << 16;
    }
}

/* The same with the nibbles as they are; then sixteen scales of three bits and four of d in words of four
 * scales and a nibble: the low pairs of the scales, then as halves d and their third bits. */
static inline void qk_fix_iq1_m(uint32_t *w) {
    const uint64_t sc = (uint64_t)w[12] | (uint64_t)w[13] << 32;
    uint32_t low = 0, high = 0, d = 0;
    for (int j = 0; j < 16; j++) {
        const uint32_t s = (uint32_t)(sc >> (j / 4 * 16 + j % 4 * 3)) & 7;
        low |= (s & 3) << 2 * j;
        high |= s >> 2 << j;
    }
    for (int k = 0; k < 4; k++) d |= (uint32_t)(sc >> (16 * k + 12) & 15) << 4 * k;
    for (int n = 8; n < 12; n++) w[n] = qk_nibbles_by_four(w[n]);
    w[12] = low;
    w[13] = d | high << 16;
}

static inline void qk_unfix_iq1_m(uint32_t *w) {
    uint64_t sc = 0;
    for (int j = 0; j < 16; j++) {
        const uint32_t s = (w[12] >> 2 * j & 3) | (w[13] >> (16 + j) & 1) << 2;
        sc |= (uint64_t)s << (j / 4 * 16 + j % 4 * 3);
    }
    for (int k = 0; k < 4; k++) sc |= (uint64_t)(w[13] >> 4 * k & 15) << (16 * k + 12);
    for (int n = 8; n < 12; n++) w[n] = qk_nibbles_in_row(w[n]);
    w[12] = (uint32_t)sc;
    w[13] = (uint32_t)(sc >> 32);
}

#endif
