/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requantizes the rows of a tensor: reads, dequantizes, handles outliers, quantizes and measures, in pieces
 * of bounded memory on all threads; search and statistics use the column weights of the item. The result does
 * not depend on the number of threads. Called from one thread. */
#ifndef QSF_CONVERT_PACK_ENCODE_ROWS_H
#define QSF_CONVERT_PACK_ENCODE_ROWS_H

#include <stdatomic.h>

#include "src/base/pool.h"
#include "src/convert/pack/items.h"
#include "src/convert/pack/tensor_rows.h"
#include "src/convert/quant/outliers.h"

typedef struct QsfEncoder {
    const QsfSource *s;
    const atomic_int *cancel; /* NULL, or a nonzero value cancels */
    QsfPool *pool;            /* owned by the caller */
    qk_table kernels;         /* plain C: the same file on any machine */
    QsfQuantRule rule;
    uint32_t block; /* as in QsfQuant */
    /* Buffers for one piece, grown as needed. */
    float *x, *y;
    uint8_t *raw, *out;
    size_t cap_x, cap_raw, cap_out;
} QsfEncoder;

/* Never fails; s, pool and cancel outlive e. */
void qsf_encoder_init(QsfEncoder *e, const QsfSource *s, QsfPool *pool, const atomic_int *cancel,
                      QsfQuantRule rule);
/* Frees the buffers. */
void qsf_encoder_free(QsfEncoder *e);

/* Returns QSF_E_INTERRUPTED if cancelled. */
int qsf_encoder_check(const QsfEncoder *e, QsfErr *err);

/* Computes mean, limits and number of outliers of the whole tensor, which is read twice. Errors as
 * qsf_encode. */
int qsf_encode_outliers(QsfEncoder *e, const QsfItem *i, QsfOutlierLimits *limits, uint64_t *n, QsfErr *err);
/* Packs all rows in format f and passes them to sink; fills stats, outliers and clamped of the item. Outliers
 * are clamped if they are fewer than 0.1 %, the format has at most 4 bits and the rule is minmax. QSF_E_MODEL
 * names tensor, row and column of a value that is not a number; QSF_E_RUNTIME, QSF_E_INTERRUPTED. */
int qsf_encode(QsfEncoder *e, QsfItem *i, const QsfQuantFormat *f, QsfEncodeSink sink, void *arg,
               QsfErr *err);
/* Measures the error of format f on up to 256 evenly spaced rows; discards the packed data. */
int qsf_encode_sample(QsfEncoder *e, const QsfItem *i, const QsfQuantFormat *f, QsfQuantStats *stats,
                      QsfErr *err);

#endif
