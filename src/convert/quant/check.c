/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rejects values that no block layout can store, with their position. */
#include <math.h>

#include "src/base/half.h"
#include "src/convert/quant/formats.h"

static int check_weights(const QsfQuantRows *rows, QsfErr *err) {
    for (size_t c = 0; rows->importance && c < rows->cols; c++) {
        const double w = (double)rows->importance[c];
        if (!isfinite(w) || w < 0)
            return qsf_err_set(err, QSF_E_MODEL, "the importance of column %zu is %g, expected 0 or more", c,
                               w);
    }
    return QSF_OK;
}

static int refuse(const QsfQuantRows *rows, size_t r, size_t c, QsfErr *err) {
    const double v = (double)rows->x[r * rows->cols + c];
    const unsigned long long row = rows->first + r;
    if (isnan(v)) return qsf_err_set(err, QSF_E_MODEL, "row %llu, column %zu is not a number (NaN)", row, c);
    if (isinf(v)) return qsf_err_set(err, QSF_E_MODEL, "row %llu, column %zu is infinite", row, c);
    return qsf_err_set(err, QSF_E_MODEL,
                       "row %llu, column %zu is %g, beyond the half precision maximum of 65504", row, c, v);
}

int qsf_quant_check(const QsfQuantRows *rows, QsfErr *err) {
    const int rc = check_weights(rows, err);
    if (rc) return rc;
    for (size_t r = 0; r < rows->n_rows; r++)
        for (size_t c = 0; c < rows->cols; c++)
            if (!(fabsf(rows->x[r * rows->cols + c]) <= QSF_HALF_MAX)) return refuse(rows, r, c, err);
    return QSF_OK;
}
