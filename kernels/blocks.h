/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packed weight blocks as they lie in files. Layouts are those of ggml-org/ggml
 * (src/ggml-common.h): facts of the format. All little-endian, unaligned in memory. */
#ifndef QSF_KERNELS_BLOCKS_H
#define QSF_KERNELS_BLOCKS_H

#include <stdint.h>

/* Dense index of the weight types that kernels know; GGML type numbers map to it by qk_type_of. */
typedef enum qk_type {
    QK_F32, QK_F16, QK_BF16, QK_Q8_0, QK_Q4_0, QK_Q4_1, QK_Q5_0, QK_Q5_1, QK_Q4_K, QK_Q5_K, QK_Q6_K,
    QK_TYPE_N,
    QK_NONE = -1
} qk_type;

#define QK_BLOCK 32       /* elements of a simple block */
#define QK_K 256          /* elements of a K-quant super-block */
#define QK_K_SCALES 12

typedef struct { uint16_t d; int8_t qs[QK_BLOCK]; } qk_q8_0;                       /* x = d * q */
typedef struct { uint16_t d; uint8_t qs[QK_BLOCK / 2]; } qk_q4_0;                  /* x = d * (q - 8); byte j holds elements j (low) and j+16 (high) */
typedef struct { uint16_t d, m; uint8_t qs[QK_BLOCK / 2]; } qk_q4_1;               /* x = d * q + m */
typedef struct { uint16_t d; uint8_t qh[4]; uint8_t qs[QK_BLOCK / 2]; } qk_q5_0;   /* x = d * (q - 16); bit j of qh is bit 4 of element j */
typedef struct { uint16_t d, m; uint8_t qh[4]; uint8_t qs[QK_BLOCK / 2]; } qk_q5_1;
typedef struct { uint16_t d, dmin; uint8_t scales[QK_K_SCALES]; uint8_t qs[QK_K / 2]; } qk_q4_k;
typedef struct { uint16_t d, dmin; uint8_t scales[QK_K_SCALES]; uint8_t qh[QK_K / 8]; uint8_t qs[QK_K / 2]; } qk_q5_k;
typedef struct { uint8_t ql[QK_K / 2]; uint8_t qh[QK_K / 4]; int8_t scales[QK_K / 16]; uint16_t d; } qk_q6_k;

_Static_assert(sizeof(qk_q8_0) == 34, "Q8_0 block");
_Static_assert(sizeof(qk_q4_0) == 18, "Q4_0 block");
_Static_assert(sizeof(qk_q4_1) == 20, "Q4_1 block");
_Static_assert(sizeof(qk_q5_0) == 22, "Q5_0 block");
_Static_assert(sizeof(qk_q5_1) == 24, "Q5_1 block");
_Static_assert(sizeof(qk_q4_k) == 144, "Q4_K block");
_Static_assert(sizeof(qk_q5_k) == 176, "Q5_K block");
_Static_assert(sizeof(qk_q6_k) == 210, "Q6_K block");

/* QK_NONE when no kernel knows this GGML type number. */
qk_type qk_type_of(uint32_t ggml_type);
/* GGML type number of a kernel type. */
uint32_t qk_type_ggml(qk_type t);

#endif
