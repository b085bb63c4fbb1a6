/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packing a tensor's rows anew: read, unpacked, outliers, packed, measured, piece by piece in bounded memory on all
 * threads, with the item's weights of columns in search and statistics. The result does not depend on the number of
 * threads. One thread calls. */
#ifndef QSF_PACK_ENCODE_H
#define QSF_PACK_ENCODE_H

#include <stdatomic.h>

#include "src/base/pool.h"
#include "src/requantize/items.h"
#include "src/requantize/float_rows.h"
#include "src/quant/outliers.h"

typedef struct QsfEncoder {
    const QsfSource *s;
    const atomic_int *cancel;  /* NULL, or a value that is not 0 ends it */
    QsfPool *pool;             /* the caller's */
    qk_table kernels;          /* plain C: the same file on any machine */
    QsfQuantRule rule;
    uint32_t block;            /* as in QsfQuant */
    /* Buffers for one piece, grown as needed. */
    float *x, *y;
    uint8_t *raw, *out;
    size_t cap_x, cap_raw, cap_out;
} QsfEncoder;

/* Takes the packed bytes, in order. Its error ends the packing. */
typedef int (*QsfEncodeSink)(void *arg, const void *data, size_t len, QsfErr *err);

void qsf_encoder_init(QsfEncoder *e, const QsfSource *s, QsfPool *pool, const atomic_int *cancel, QsfQuantRule rule);
void qsf_encoder_free(QsfEncoder *e);

/* QSF_E_INTERRUPTED when it was cancelled. */
int qsf_encoder_check(const QsfEncoder *e, QsfErr *err);

/* Mean, limits and number of outliers of the whole tensor, which is read twice. Errors as qsf_encode. */
int qsf_encode_outliers(QsfEncoder *e, const QsfItem *i, QsfOutlierLimits *limits, uint64_t *n, QsfErr *err);
/* All rows in format f, through sink; fills stats, outliers and clamped of the item. Outliers are clamped where they are
 * fewer than 0.1 %, the format has at most 4 bits and the rule is minmax. QSF_E_MODEL names tensor, row and column of a value that is no
 * number; QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_encode(QsfEncoder *e, QsfItem *i, const QsfQuantFormat *f, QsfEncodeSink sink, void *arg, QsfErr *err);
/* What format f does to up to 256 rows that are evenly spread; nothing is kept. */
int qsf_encode_sample(QsfEncoder *e, const QsfItem *i, const QsfQuantFormat *f, QsfQuantStats *stats, QsfErr *err);

#endif
