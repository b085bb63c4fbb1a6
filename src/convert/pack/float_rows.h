/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads rows of any tensor as floats: the input of a conversion is often already quantized. */
#ifndef QSF_CONVERT_PACK_FLOAT_ROWS_H
#define QSF_CONVERT_PACK_FLOAT_ROWS_H

#include "src/convert/pack/tensor_rows.h"

typedef struct QsfWeights {
    const QsfSource *s;
    const QsfTensor *t;
    QsfRowReader rows;
    void (*unpack)(const void *row, float *dst, size_t k); /* dequantizes a row, without the tensor's scale */
    uint64_t row_bytes;                                    /* as stored */
    float scale;                                           /* of the whole tensor (I2_S) */
} QsfWeights;

/* Opens t for reading. Of kernels, only the unpack functions are used. QSF_E_MODEL: no kernel supports the
 * type; QSF_E_RUNTIME: it cannot be read. On failure there is nothing to close. */
int qsf_weights_open(QsfWeights *w, const QsfSource *s, const QsfTensor *t, const qk_table *kernels,
                     QsfErr *err);
void qsf_weights_close(QsfWeights *w);
/* Reads rows [first, first + n), as stored (GGUF's order), to raw (n, row_bytes). */
int qsf_weights_read(QsfWeights *w, uint64_t first, uint64_t n, uint8_t *raw, QsfErr *err);
/* Dequantizes n rows at raw to out (n, ne[0]). Any thread. */
void qsf_weights_unpack(const QsfWeights *w, const uint8_t *raw, size_t n, float *out);

#endif
