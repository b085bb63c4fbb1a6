/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packed weight blocks as stored in files. The layouts are those of ggml-org/ggml (src/ggml-common.h), of
 * microsoft/BitNet (src/ggml-bitnet-mad.cpp) for I2_S, and of QSF v1 for the last seven. All are
 * little-endian and may be unaligned. */
#ifndef QSF_KERNELS_BLOCKS_H
#define QSF_KERNELS_BLOCKS_H

#include <stdint.h>

#include "kernels/formats.h"

/* Dense index of the weight types that have kernels; qk_type_of maps GGML type numbers to it. */
#define QK_INDEX(a, fmt, TYPE, ...) QK_##TYPE,
typedef enum qk_type { QK_FORMATS(QK_INDEX, ) QK_TYPE_N, QK_NONE = -1 } qk_type;
#undef QK_INDEX

/* The columns of kernels/formats.h as constants: QK_GGML_Q4_K, QK_ELEMS_Q4_K, QK_BYTES_Q4_K,
 * QK_PLANES_Q4_K. */
#define QK_NUMBERS(a, fmt, TYPE, ggml, elems, bytes, planes, ...) \
    QK_GGML_##TYPE = ggml, QK_ELEMS_##TYPE = elems, QK_BYTES_##TYPE = bytes, QK_PLANES_##TYPE = planes,
enum { QK_FORMATS(QK_NUMBERS, ) };
#undef QK_NUMBERS

#define QK_BLOCK       32  /* elements of a simple block */
#define QK_K           256 /* elements of a K-quant super-block */
#define QK_K_SCALES    12
#define QK_I2S_BLOCK   128 /* elements of an I2_S block */
#define QK_QSF_BLOCK   64  /* elements of a QSF block */
#define QK_NVFP4_BLOCK 64
#define QK_Q1_BLOCK    128
#define QK_Q2_BLOCK    64
#define QK_STATE_TILE  32 /* columns of a tile of a recurrent matrix */

typedef float qk_f32;
typedef uint16_t qk_f16, qk_bf16;
typedef uint8_t qk_f8_e4m3, qk_f8_e5m2; /* a sign, and the bits of exponent and fraction in the name */
typedef struct {
    uint16_t d;
    int8_t qs[QK_BLOCK];
} qk_q8_0; /* x = d * q */
typedef struct {
    uint16_t d;
    uint8_t qs[QK_BLOCK / 2];
} qk_q4_0; /* x = d * (q - 8); byte j holds elements j (low) and j+16 (high) */
typedef struct {
    uint16_t d, m;
    uint8_t qs[QK_BLOCK / 2];
} qk_q4_1; /* x = d * q + m */
typedef struct {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[QK_BLOCK / 2];
} qk_q5_0; /* x = d * (q - 16); bit j of qh is bit 4 of element j */
typedef struct {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[QK_BLOCK / 2];
} qk_q5_1;
typedef struct {
    uint16_t d, dmin;
    uint8_t scales[QK_K_SCALES];
    uint8_t qs[QK_K / 2];
} qk_q4_k;
typedef struct {
    uint16_t d, dmin;
    uint8_t scales[QK_K_SCALES];
    uint8_t qh[QK_K / 8];
    uint8_t qs[QK_K / 2];
} qk_q5_k;
typedef struct {
    uint8_t ql[QK_K / 2];
    uint8_t qh[QK_K / 4];
    int8_t scales[QK_K / 16];
    uint16_t d;
} qk_q6_k;
/* Bits 2j and 2j+1 of qs[32c + l] hold element 128c + 32j + l; a byte of scales holds the scale (low nibble)
 * and the minimum (high) of 16 elements. */
typedef struct {
    uint8_t scales[QK_K / 16];
    uint8_t qs[QK_K / 4];
    uint16_t d, dmin;
} qk_q2_k;
/* Low two bits as in Q2_K; bit j of hmask[l] is bit 2 of element 32j + l; q - 4; sixteen 6-bit
 * scales - 32. */
typedef struct {
    uint8_t hmask[QK_K / 8];
    uint8_t qs[QK_K / 4];
    uint8_t scales[QK_K_SCALES];
    uint16_t d;
} qk_q3_k;
typedef struct {
    uint16_t d;
    uint8_t qs[QK_BLOCK / 2];
} qk_iq4_nl; /* x = d * qk_iq4_values[q], nibbles as in Q4_0 */
typedef struct {
    uint16_t d, scales_h;
    uint8_t scales_l[QK_K / 64];
    uint8_t qs[QK_K / 2];
} qk_iq4_xs;
/* Five trits a byte (qs), four in qh: trit n of byte q is ((q * 3^n mod 256) * 3) >> 8; x =
 * d * (trit - 1). */
typedef struct {
    uint8_t qs[48];
    uint8_t qh[4];
    uint16_t d;
} qk_tq1_0;
typedef struct {
    uint8_t qs[QK_K / 4];
    uint16_t d;
} qk_tq2_0; /* bits as in Q2_K, x = d * (q - 1) */
/* Element j of a block is in byte j % 32, at bits 6 - 2 * (j / 32) and up; x = (q - 1) * the scale of the
 * whole tensor. */
typedef struct {
    uint8_t qs[QK_I2S_BLOCK / 4];
} qk_i2_s;
typedef struct {
    uint16_t d, m;
    uint8_t qs[QK_QSF_BLOCK / 4];
} qk_qsf2; /* x = d * q + m; byte i/4, bits 2(i%4) */
typedef struct {
    uint16_t d, m;
    uint8_t qs[QK_QSF_BLOCK / 8 * 3];
} qk_qsf3; /* little-endian bit stream */
typedef struct {
    uint16_t d, m;
    uint8_t qs[QK_QSF_BLOCK / 2];
} qk_qsf4; /* byte i/2, low nibble first */
typedef struct {
    uint16_t d;
    uint8_t sign[QK_QSF_BLOCK / 8], zero[QK_QSF_BLOCK / 8];
} qk_qsft; /* bit i%8 of byte i/8: 1 = negative, 1 = zero */
/* Sixteen words of 7 bits, one for each 16 elements, and the codes; both are little-endian bit streams:
 * kernels/books.h. */
typedef struct {
    uint16_t d;
    uint8_t words[14], qs[QK_K / 4];
} qk_qsb2;
typedef struct {
    uint16_t d;
    uint8_t words[14], qs[QK_K / 8 * 3];
} qk_qsb3;
typedef struct {
    uint16_t d;
    uint8_t words[14], qs[QK_K / 2];
} qk_qsb4;
/* x = 2^(e - 128) * qk_fp4_values[q], nibbles as in Q4_0: twice the values of E2M1, half the
 * scale of E8M0. */
typedef struct {
    uint8_t e;
    uint8_t qs[QK_BLOCK / 2];
} qk_mxfp4;
/* Four sub-blocks of 16, nibbles of each as in Q4_0; d: without a sign, four bits of exponent,
 * three of fraction (E4M3). */
typedef struct {
    uint8_t d[QK_NVFP4_BLOCK / 16];
    uint8_t qs[QK_NVFP4_BLOCK / 2];
} qk_nvfp4;
typedef struct {
    uint16_t d;
    uint8_t qs[QK_Q1_BLOCK / 8];
} qk_q1_0; /* x = d where bit i%8 of byte i/8 is set, else -d */
typedef struct {
    uint16_t d;
    uint8_t qs[QK_Q2_BLOCK / 4];
} qk_q2_0; /* x = d * (q - 1); byte i/4, bits 2(i%4) */
/* Indices into a codebook, signs and scales of 256 elements: kernels/grids.h. */
typedef struct {
    uint16_t d;
    uint16_t qs[QK_K / 8];
} qk_iq2_xxs; /* pairs of words make a dword */
typedef struct {
    uint16_t d;
    uint16_t qs[QK_K / 8];
    uint8_t scales[QK_K / 32];
} qk_iq2_xs;
typedef struct {
    uint16_t d;
    uint8_t qs[QK_K / 8], signs[QK_K / 8], qh[QK_K / 32], scales[QK_K / 32];
} qk_iq2_s;
typedef struct {
    uint16_t d;
    uint8_t qs[QK_K / 4], signs[QK_K / 8];
} qk_iq3_xxs; /* signs: dwords */
typedef struct {
    uint16_t d;
    uint8_t qs[QK_K / 4], qh[QK_K / 32], signs[QK_K / 8], scales[QK_K / 64];
} qk_iq3_s;
typedef struct {
    uint16_t d;
    uint8_t qs[QK_K / 8];
    uint16_t qh[QK_K / 32];
} qk_iq1_s;
typedef struct {
    uint8_t qs[QK_K / 8], qh[QK_K / 16];
    uint16_t scales[QK_K / 64];
} qk_iq1_m;
/* Layouts of I2_S that other programs write (src/file/gguf/i2s.h): values -2, -1, +1, +2; byte
 * i/4, bits 2(i%4). */
typedef struct {
    uint8_t qs[QK_K / 4];
} qk_i2_256;
typedef struct {
    uint8_t qs[QK_BLOCK / 4];
    uint16_t d;
} qk_i2_32;

/* The values that the nibbles of MXFP4 and NVFP4 represent: twice those of E2M1. */
extern const int8_t qk_fp4_values[16];
/* The values that the nibbles of IQ4_NL and IQ4_XS represent. */
extern const int8_t qk_iq4_values[16];

#define QK_CHECK_SIZE(a, fmt, TYPE, ggml, elems, bytes, ...) \
    _Static_assert(sizeof(qk_##fmt) == bytes, #TYPE " block");
QK_FORMATS(QK_CHECK_SIZE, )
#undef QK_CHECK_SIZE

/* Elements and bytes of one block; 1 element for the float types. */
unsigned qk_type_elems(qk_type t);
unsigned qk_type_bytes(qk_type t);
/* Planes of a block when 16 rows are interleaved (kernels/x16/x16.h); 0 for the float types, whose rows are
 * not interleaved. */
unsigned qk_type_planes(qk_type t);
/* Whether the planes of a group are in the order of their use instead of that of the block
 * (kernels/x16/x16.h). */
int qk_type_by_use(qk_type t);

/* Returns the weight type of a GGML type number; QK_NONE if it has no kernels. */
qk_type qk_type_of(uint32_t ggml_type);
/* GGML type number of a kernel type. */
uint32_t qk_type_ggml(qk_type t);

#endif
