/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory layout of activation columns: private to kernels/, the same at every level.
 *
 * Q8:  int8 q[k], padded with zeros to 64; then, each array starting at a multiple of 64 bytes,
 *      float d[nb], int16 sum16[2 * nb] = sums of 16 q, float ds[nb] = d * sum of q, with nb = k / 32.
 *      d = max|x| / 127, q = x * (127 / max|x|) rounded to nearest, ties to even.
 * Q8K: int8 q[k]; float d[nk]; int16 sum32[nk * 8]; int16 sum16[nk * 16], with nk = k / 256: sums
 *      of 32 and of 16 consecutive q. Same rule, one scale per 256.
 *
 * A block whose largest |x| is below 2^-100 is zero; one that holds an infinity or a NaN gets a
 * NaN scale, so the output shows it. Integer parts are exact everywhere, and every kernel of these
 * formats adds its blocks in ascending order with a separate multiply and add, so a quantized
 * matmul gives the same bits at every level. */
#ifndef QSF_KERNELS_ACT_H
#define QSF_KERNELS_ACT_H

#include <math.h>

#include "kernels/matmul.h"

#define QK_ACT_TINY 0x1p-100f
#define QK_ACT_MAX  127.0f

/* Parts of one column. The quantizers write through these pointers, all other code only reads. */
typedef struct qk_col_q8 {
    int8_t *q;      /* (k), zeros up to a multiple of 64 */
    float *d;       /* (k / 32) */
    int16_t *sum16; /* (k / 16) */
    float *ds;      /* (k / 32) */
} qk_col_q8;

typedef struct qk_col_q8k {
    int8_t *q;      /* (k) */
    float *d;       /* (k / 256) */
    int16_t *sum32; /* (k / 32) */
    int16_t *sum16; /* (k / 16) */
} qk_col_q8k;

static inline size_t qk_pad64(size_t n) { return (n + 63) & ~(size_t)63; }

static inline qk_col_q8 qk_col_q8_at(const void *col, size_t k) {
    char *p = (char *)col;
    const size_t step = qk_pad64(k / QK_BLOCK * sizeof(float));
    qk_col_q8 x;
    x.q = (int8_t *)col;
    p += qk_pad64(k);
    x.d = (float *)(void *)p;
    x.sum16 = (int16_t *)(void *)(p + step);
    x.ds = (float *)(void *)(p + 2 * step);
    return x;
}

/* The sum of the q of block b. */
static inline int qk_col_sum(const qk_col_q8 *x, size_t b) { return x->sum16[2 * b] + x->sum16[2 * b + 1]; }

static inline qk_col_q8k qk_col_q8k_at(const void *col, size_t k) {
    char *p = (char *)col;
    const size_t nk = k / QK_K;
    qk_col_q8k x;
    x.q = (int8_t *)col;
    p += qk_pad64(k);
    x.d = (float *)(void *)p;
    p += qk_pad64(nk * sizeof(float));
    x.sum32 = (int16_t *)(void *)p;
    p += qk_pad64(nk * 16);
    x.sum16 = (int16_t *)(void *)p;
    return x;
}

static inline const void *qk_mm_col(const qk_mm *m, size_t c) { return (const char *)m->x + c * m->x_stride; }

static inline const uint8_t *qk_mm_row(const qk_mm *m, size_t r) {
    return (const uint8_t *)m->w + r * m->row_bytes;
}

/* Scale of a block with largest magnitude amax; *inv is the factor for x, 0 for a block that becomes all
 * zeros. */
static inline float qk_act_scale(float amax, float *inv) {
    *inv = 0.0f;
    if (!(amax < INFINITY)) return NAN;
    if (amax < QK_ACT_TINY) return 0.0f;
    *inv = QK_ACT_MAX / amax;
    return amax / QK_ACT_MAX;
}

#endif
