/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packed weight blocks as they lie in files. Layouts are those of ggml-org/ggml (src/ggml-common.h), of
 * microsoft/BitNet (src/ggml-bitnet-mad.cpp) for I2_S, and of QSF v1 for the last seven: facts of the formats. All
 * little-endian, unaligned in memory. */
#ifndef QSF_KERNELS_BLOCKS_H
#define QSF_KERNELS_BLOCKS_H

#include <stdint.h>

/* Dense index of the weight types that kernels know; GGML type numbers map to it by qk_type_of. */
typedef enum qk_type {
    QK_F32, QK_F16, QK_BF16, QK_Q8_0, QK_Q4_0, QK_Q4_1, QK_Q5_0, QK_Q5_1, QK_Q4_K, QK_Q5_K, QK_Q6_K,
    QK_Q2_K, QK_Q3_K, QK_IQ4_NL, QK_IQ4_XS, QK_TQ1_0, QK_TQ2_0, QK_I2_S,
    QK_QSF2, QK_QSF3, QK_QSF4, QK_QSFT, /* QSF codes 0 and 1, 2, 3, 4 with blocks of 64; code 6 is Q8_0 */
    QK_QSB2, QK_QSB3, QK_QSB4,          /* QSF codes 10, 11, 12: codebooks */
    QK_TYPE_N,
    QK_NONE = -1
} qk_type;

#define QK_BLOCK 32       /* elements of a simple block */
#define QK_K 256          /* elements of a K-quant super-block */
#define QK_K_SCALES 12
#define QK_I2S_BLOCK 128  /* elements of an I2_S block */
#define QK_QSF_BLOCK 64   /* elements of a QSF block */

typedef struct { uint16_t d; int8_t qs[QK_BLOCK]; } qk_q8_0;                       /* x = d * q */
typedef struct { uint16_t d; uint8_t qs[QK_BLOCK / 2]; } qk_q4_0;                  /* x = d * (q - 8); byte j holds elements j (low) and j+16 (high) */
typedef struct { uint16_t d, m; uint8_t qs[QK_BLOCK / 2]; } qk_q4_1;               /* x = d * q + m */
typedef struct { uint16_t d; uint8_t qh[4]; uint8_t qs[QK_BLOCK / 2]; } qk_q5_0;   /* x = d * (q - 16); bit j of qh is bit 4 of element j */
typedef struct { uint16_t d, m; uint8_t qh[4]; uint8_t qs[QK_BLOCK / 2]; } qk_q5_1;
typedef struct { uint16_t d, dmin; uint8_t scales[QK_K_SCALES]; uint8_t qs[QK_K / 2]; } qk_q4_k;
typedef struct { uint16_t d, dmin; uint8_t scales[QK_K_SCALES]; uint8_t qh[QK_K / 8]; uint8_t qs[QK_K / 2]; } qk_q5_k;
typedef struct { uint8_t ql[QK_K / 2]; uint8_t qh[QK_K / 4]; int8_t scales[QK_K / 16]; uint16_t d; } qk_q6_k;
/* Bits 2j, 2j+1 of qs[32c + l] hold element 128c + 32j + l; a byte of scales holds scale (low) and minimum (high) of 16. */
typedef struct { uint8_t scales[QK_K / 16]; uint8_t qs[QK_K / 4]; uint16_t d, dmin; } qk_q2_k;
/* Low two bits as in Q2_K; bit j of hmask[l] is bit 2 of element 32j + l; q - 4; sixteen 6-bit scales - 32. */
typedef struct { uint8_t hmask[QK_K / 8]; uint8_t qs[QK_K / 4]; uint8_t scales[QK_K_SCALES]; uint16_t d; } qk_q3_k;
typedef struct { uint16_t d; uint8_t qs[QK_BLOCK / 2]; } qk_iq4_nl;                /* x = d * qk_iq4_values[q], nibbles as in Q4_0 */
typedef struct { uint16_t d, scales_h; uint8_t scales_l[QK_K / 64]; uint8_t qs[QK_K / 2]; } qk_iq4_xs;
/* Five trits a byte (qs), four in qh: trit n of byte q is ((q * 3^n mod 256) * 3) >> 8; x = d * (trit - 1). */
typedef struct { uint8_t qs[48]; uint8_t qh[4]; uint16_t d; } qk_tq1_0;
typedef struct { uint8_t qs[QK_K / 4]; uint16_t d; } qk_tq2_0;                     /* bits as in Q2_K, x = d * (q - 1) */
/* Element j of a block in byte j % 32, bits 6 - 2 * (j / 32) and up; q - 1 times a scale of the whole tensor. */
typedef struct { uint8_t qs[QK_I2S_BLOCK / 4]; } qk_i2_s;
typedef struct { uint16_t d, m; uint8_t qs[QK_QSF_BLOCK / 4]; } qk_qsf2;           /* x = d * q + m; byte i/4, bits 2(i%4) */
typedef struct { uint16_t d, m; uint8_t qs[QK_QSF_BLOCK / 8 * 3]; } qk_qsf3;       /* little-endian bit stream */
typedef struct { uint16_t d, m; uint8_t qs[QK_QSF_BLOCK / 2]; } qk_qsf4;           /* byte i/2, low nibble first */
typedef struct { uint16_t d; uint8_t sign[QK_QSF_BLOCK / 8], zero[QK_QSF_BLOCK / 8]; } qk_qsft; /* bit i%8 of byte i/8: 1 = negative, 1 = zero */
/* Sixteen words of 7 bits, one for 16 elements, and the codes, both little-endian bit streams: kernels/books.h. */
typedef struct { uint16_t d; uint8_t words[14], qs[QK_K / 4]; } qk_qsb2;
typedef struct { uint16_t d; uint8_t words[14], qs[QK_K / 8 * 3]; } qk_qsb3;
typedef struct { uint16_t d; uint8_t words[14], qs[QK_K / 2]; } qk_qsb4;

/* What the nibbles of IQ4_NL and IQ4_XS stand for. */
extern const int8_t qk_iq4_values[16];

_Static_assert(sizeof(qk_q8_0) == 34, "Q8_0 block");
_Static_assert(sizeof(qk_q4_0) == 18, "Q4_0 block");
_Static_assert(sizeof(qk_q4_1) == 20, "Q4_1 block");
_Static_assert(sizeof(qk_q5_0) == 22, "Q5_0 block");
_Static_assert(sizeof(qk_q5_1) == 24, "Q5_1 block");
_Static_assert(sizeof(qk_q4_k) == 144, "Q4_K block");
_Static_assert(sizeof(qk_q5_k) == 176, "Q5_K block");
_Static_assert(sizeof(qk_q6_k) == 210, "Q6_K block");
_Static_assert(sizeof(qk_q2_k) == 84, "Q2_K block");
_Static_assert(sizeof(qk_q3_k) == 110, "Q3_K block");
_Static_assert(sizeof(qk_iq4_nl) == 18, "IQ4_NL block");
_Static_assert(sizeof(qk_iq4_xs) == 136, "IQ4_XS block");
_Static_assert(sizeof(qk_tq1_0) == 54, "TQ1_0 block");
_Static_assert(sizeof(qk_tq2_0) == 66, "TQ2_0 block");
_Static_assert(sizeof(qk_i2_s) == 32, "I2_S block");
_Static_assert(sizeof(qk_qsf2) == 20, "QSF 2-bit block");
_Static_assert(sizeof(qk_qsf3) == 28, "QSF 3-bit block");
_Static_assert(sizeof(qk_qsf4) == 36, "QSF 4-bit block");
_Static_assert(sizeof(qk_qsft) == 18, "QSF ternary block");
_Static_assert(sizeof(qk_qsb2) == 80, "QSF 2-bit block with books");
_Static_assert(sizeof(qk_qsb3) == 112, "QSF 3-bit block with books");
_Static_assert(sizeof(qk_qsb4) == 144, "QSF 4-bit block with books");

/* Elements and bytes of one block; 1 element for the float types. */
unsigned qk_type_elems(qk_type t);
unsigned qk_type_bytes(qk_type t);

/* Numbers for the QSF formats, which GGML has none for. */
#define QK_GGML_QSF 0x51530000u
/* QK_NONE when no kernel knows this GGML type number. */
qk_type qk_type_of(uint32_t ggml_type);
/* GGML type number of a kernel type. */
uint32_t qk_type_ggml(qk_type t);

#endif
