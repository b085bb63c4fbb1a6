/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks of 32 with one scale, as ggml-org/ggml src/ggml-common.h lays them out: Q8_0 (the 8 bits of QSF too)
 * and Q4_0, whose byte j holds elements j (low nibble) and j + 16. And single halves. */
#include <math.h>
#include <string.h>

#include "src/base/half.h"
#include "src/convert/quant/blocks.h"
#include "src/convert/quant/fit.h"

enum { BLOCK = 32, HEAD = 2, NIBBLES = BLOCK / 2, CENTRE = 8, BYTES_MAX = HEAD + BLOCK };

static void keep_better(const QsfBlockIn *b, uint8_t *out, const uint8_t *other, size_t bytes,
                        qsf_block_decode decode) {
    float mine[BLOCK], its[BLOCK];
    decode(out, BLOCK, mine);
    decode(other, BLOCK, its);
    if (qsf_fit_error(b->x, b->w, its, BLOCK) < qsf_fit_error(b->x, b->w, mine, BLOCK))
        memcpy(out, other, bytes);
}

/* Returns the value with the largest magnitude, signed. */
static float largest(const QsfBlockIn *b) {
    float max = 0;
    for (size_t i = 0; i < b->n; i++)
        if (fabsf(b->x[i]) > fabsf(max)) max = b->x[i];
    return max;
}

static double searched(const QsfBlockIn *b, int low, int high) {
    QsfFit f;
    qsf_fit_begin(&f, b->x, b->w, b->n);
    return qsf_scale_search_half(&f, low, high);
}

/* ---- Q8_0 */

static void put_q8(const QsfBlockIn *b, double d, uint8_t *out) {
    int8_t q[BLOCK];
    const uint16_t half = qsf_half_bits(d);
    qsf_half_put(out, half);
    qsf_scale_codes(b->x, BLOCK, (double)qsf_half_value(half), -127, 127, q);
    memcpy(out + HEAD, q, BLOCK);
}

static void decode_q8(const uint8_t *in, size_t n, float *x) {
    const float d = qsf_half_get(in);
    for (size_t i = 0; i < n; i++) x[i] = d * (float)(int8_t)in[HEAD + i];
}

static void plain_q8(const QsfBlockIn *b, uint8_t *out) { put_q8(b, (double)fabsf(largest(b)) / 127, out); }

static void search_q8(const QsfBlockIn *b, uint8_t *out) {
    uint8_t other[BYTES_MAX];
    plain_q8(b, out);
    put_q8(b, searched(b, -127, 127), other);
    keep_better(b, out, other, HEAD + BLOCK, decode_q8);
}

/* ---- Q4_0: codes -8 ... 7, stored as 0 ... 15 */

static void put_q4(const QsfBlockIn *b, double d, uint8_t *out) {
    int8_t q[BLOCK];
    const uint16_t half = qsf_half_bits(d);
    qsf_half_put(out, half);
    qsf_scale_codes(b->x, BLOCK, (double)qsf_half_value(half), -CENTRE, CENTRE - 1, q);
    for (size_t i = 0; i < NIBBLES; i++)
        out[HEAD + i] = (uint8_t)((q[i] + CENTRE) | (q[i + NIBBLES] + CENTRE) << 4);
}

static void decode_q4(const uint8_t *in, size_t n, float *x) {
    const float d = qsf_half_get(in);
    for (size_t i = 0; i < n; i++)
        x[i] = d * (float)((in[HEAD + i % NIBBLES] >> i / NIBBLES * 4 & 15) - CENTRE);
}

/* Maps the value with the largest magnitude to the code without a counterpart. */
static void plain_q4(const QsfBlockIn *b, uint8_t *out) { put_q4(b, (double)largest(b) / -CENTRE, out); }

static void search_q4(const QsfBlockIn *b, uint8_t *out) {
    uint8_t other[BYTES_MAX];
    plain_q4(b, out);
    put_q4(b, searched(b, -CENTRE, CENTRE - 1), other);
    keep_better(b, out, other, HEAD + NIBBLES, decode_q4);
}

/* ---- half precision */

static void encode_f16(const QsfBlockIn *b, uint8_t *out) {
    for (size_t i = 0; i < b->n; i++) qsf_half_put(out + 2 * i, qsf_half_bits((double)b->x[i]));
}

static void decode_f16(const uint8_t *in, size_t n, float *x) {
    for (size_t i = 0; i < n; i++) x[i] = qsf_half_get(in + 2 * i);
}

const QsfBlockOps qsf_block_q8_0 = { search_q8, plain_q8, decode_q8 };
const QsfBlockOps qsf_block_q4_0 = { search_q4, plain_q4, decode_q4 };
const QsfBlockOps qsf_block_f16 = { encode_f16, encode_f16, decode_f16 };
