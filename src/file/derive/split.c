/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derived tensors of type I2_32: blocks of codes and their scales, which are two tensors. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/base/half.h"
#include "src/file/derive/derive.h"
#include "src/file/rows.h"

#define MOST       4096u /* blocks at a time */
#define CODE_BYTES (QK_BLOCK / 4u)

_Static_assert(MOST *(CODE_BYTES + sizeof(float)) <= QSF_DERIVE_SCRATCH, "codes and scales of a piece");

static const char *name_of(const QsfSource *s, const QsfDerived *d) {
    for (uint64_t i = 0; i < s->n_tensors; i++)
        if (s->tensors[i].file == s->n_files && s->tensors[i].offset == d->off) return s->tensors[i].name;
    return "";
}

/* Puts the scale of block i of the tensor as a half. One that a half represents less exactly than a normal
 * one would give other answers without a word. */
static int put_scale(const QsfDeriveRead *r, uint64_t i, const unsigned char *from, unsigned char *out) {
    if (r->d->scale_dtype == QK_GGML_F16) {
        memcpy(out, from, 2);
        return QSF_OK;
    }
    const float x = qsf_float_of(QK_GGML_F32, from);
    const uint16_t half = qsf_half_bits((double)x);
    if (!(fabsf(qsf_half_value(half) - x) <= fabsf(x) / 2048.0f) || isinf(x))
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%s': the scale of block %" PRIu64 " is %g, expected a value that "
                           "float16 can represent",
                           r->s->files[r->p->scale_file].path, name_of(r->s, r->d), i, (double)x);
    qsf_half_put(out, half);
    return QSF_OK;
}

/* Makes blocks [first, first + n); bytes of them outside the read are left out. */
static int make_blocks(const QsfDeriveRead *r, uint64_t first, uint64_t n) {
    const uint64_t each = r->d->scale_dtype == QK_GGML_F32 ? 4 : 2, end = r->at + r->len;
    unsigned char *codes = r->scratch, *scales = r->scratch + (size_t)MOST * CODE_BYTES;
    int rc = qsf_derive_stored(r, first * CODE_BYTES, codes, n * CODE_BYTES);
    if (rc == QSF_OK) rc = qsf_derive_scales(r, first * each, scales, n * each);
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) {
        unsigned char block[sizeof(qk_i2_32)];
        const uint64_t at = (first + i) * sizeof block, from = at > r->at ? at : r->at,
                       to = at + sizeof block < end ? at + sizeof block : end;
        memcpy(block, codes + i * CODE_BYTES, CODE_BYTES);
        rc = put_scale(r, first + i, scales + i * each, block + CODE_BYTES);
        memcpy(r->dst + (from - r->at), block + (from - at), (size_t)(to - from));
    }
    return rc;
}

int qsf_derive_split32(const QsfDeriveRead *r) {
    const uint64_t end = (r->at + r->len + sizeof(qk_i2_32) - 1) / sizeof(qk_i2_32);
    int rc = QSF_OK;
    for (uint64_t i = r->at / sizeof(qk_i2_32); rc == QSF_OK && i < end; i += MOST)
        rc = make_blocks(r, i, end - i < MOST ? end - i : MOST);
    return rc;
}
