/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ternary blocks (man/qsf-format.5): 2 bytes d, a sign bit per value, a zero bit per value. The sign bit of a
 * zero is 0. */
#include <math.h>
#include <string.h>

#include "src/base/half.h"
#include "src/convert/quant/blocks.h"
#include "src/convert/quant/fit.h"

enum { HEAD = 2, BYTES_MAX = HEAD + QSF_FIT_MAX / 4 };

/* Values with a magnitude below this become zero; those equal to it only if `closed`. */
typedef struct Cut {
    double size;
    bool closed;
} Cut;

static void put(uint8_t *out, const QsfBlockIn *b, double d, Cut cut) {
    uint8_t *sign = out + HEAD, *zero = sign + b->n / 8;
    qsf_half_put(out, qsf_half_bits(d));
    memset(sign, 0, b->n / 4);
    for (size_t i = 0; i < b->n; i++) {
        const double size = fabs((double)b->x[i]);
        const uint8_t bit = (uint8_t)(1u << i % 8);
        if (size < cut.size || (cut.closed && size <= cut.size) || size == 0)
            zero[i / 8] |= bit;
        else if (b->x[i] < 0)
            sign[i / 8] |= bit;
    }
}

static void decode(const uint8_t *in, size_t n, float *x) {
    const uint8_t *sign = in + HEAD, *zero = sign + n / 8;
    const float d = qsf_half_get(in);
    for (size_t i = 0; i < n; i++) {
        const bool none = zero[i / 8] >> i % 8 & 1, negative = sign[i / 8] >> i % 8 & 1;
        x[i] = none ? 0.0f : negative ? -d : d;
    }
}

/* The scale is the mean magnitude; values below 0.3 of it become zero. */
static void plain(const QsfBlockIn *b, uint8_t *out) {
    double sum = 0;
    for (size_t i = 0; i < b->n; i++) sum += fabs((double)b->x[i]);
    const double scale = sum / (double)b->n;
    put(out, b, scale, (Cut){ 0.3 * scale, false });
}

static double cost(const QsfBlockIn *b, const uint8_t *block) {
    float y[QSF_FIT_MAX];
    decode(block, b->n, y);
    return qsf_fit_error(b->x, b->w, y, b->n);
}

/* With a given scale, values closer to zero than to the scale become zero. */
static void search(const QsfBlockIn *b, uint8_t *out) {
    uint8_t other[BYTES_MAX];
    QsfFit f;
    qsf_fit_begin(&f, b->x, b->w, b->n);
    const uint16_t d = qsf_half_bits(qsf_levels_search(&f, 0, 1));
    plain(b, out);
    for (int step = -1; step <= 1; step++) {
        const double near = (double)qsf_half_value(qsf_half_step(d, step));
        if (near < 0) continue;
        put(other, b, near, (Cut){ near / 2, true });
        if (cost(b, other) < cost(b, out)) memcpy(out, other, HEAD + b->n / 4);
    }
}

const QsfBlockOps qsf_block_ternary = { search, plain, decode };
