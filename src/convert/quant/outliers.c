/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds, counts and extracts outliers. */
#include "src/convert/quant/outliers.h"

#include <math.h>

#include "src/base/half.h"

/* Computes mean and squares of one range in two passes, to avoid cancellation. */
int qsf_moments_add(QsfMoments *m, const QsfQuantRows *rows, QsfErr *err) {
    const size_t n = rows->n_rows * rows->cols;
    QsfMoments own = { n, 0, 0 };
    const int rc = qsf_quant_check(rows, err);
    if (rc || n == 0) return rc;
    for (size_t i = 0; i < n; i++) own.mean += (double)rows->x[i];
    own.mean /= (double)n;
    for (size_t i = 0; i < n; i++) {
        const double e = (double)rows->x[i] - own.mean;
        own.squares += e * e;
    }
    qsf_moments_merge(m, &own);
    return QSF_OK;
}

/* T. F. Chan, G. H. Golub, R. J. LeVeque: updating formulae for sample variances, 1979. */
void qsf_moments_merge(QsfMoments *m, const QsfMoments *other) {
    const double a = (double)m->n, b = (double)other->n, apart = other->mean - m->mean;
    if (other->n == 0) return;
    m->n += other->n;
    m->mean += apart * b / (a + b);
    m->squares += other->squares + apart * apart * a * b / (a + b);
}

QsfOutlierLimits qsf_outlier_limits(const QsfMoments *m) {
    const double reach = m->n ? QSF_OUTLIER_SIGMAS * sqrt(m->squares / (double)m->n) : 0;
    return (QsfOutlierLimits){ (float)(m->mean - reach), (float)(m->mean + reach), (float)m->mean };
}

static bool beyond(const QsfOutlierLimits *l, float x) { return x < l->low || x > l->high; }

uint64_t qsf_outlier_count(const QsfOutlierLimits *limits, const QsfQuantRows *rows) {
    uint64_t n = 0;
    for (size_t i = 0; i < rows->n_rows * rows->cols; i++) n += beyond(limits, rows->x[i]);
    return n;
}

QsfOutlierWay qsf_outlier_way(uint64_t outliers, uint64_t n) {
    const double part = n ? (double)outliers / (double)n : 0;
    if (outliers == 0) return QSF_OUTLIERS_NONE;
    if (part < QSF_OUTLIER_CLAMP_BELOW) return QSF_OUTLIERS_CLAMP;
    return part <= QSF_OUTLIER_BUMP_ABOVE ? QSF_OUTLIERS_LIST : QSF_OUTLIERS_BUMP;
}

size_t qsf_outlier_take(const QsfOutlierLimits *limits, QsfOutlierWay way, float *x, uint32_t first,
                        size_t n_rows, size_t cols, QsfOutlier *list) {
    size_t n = 0;
    if (way != QSF_OUTLIERS_CLAMP && way != QSF_OUTLIERS_LIST) return 0;
    for (size_t r = 0; r < n_rows; r++)
        for (size_t c = 0; c < cols; c++) {
            float *v = x + r * cols + c;
            if (!beyond(limits, *v)) continue;
            if (way == QSF_OUTLIERS_CLAMP) {
                *v = *v < limits->low ? limits->low : limits->high;
                continue;
            }
            list[n++] = (QsfOutlier){ first + (uint32_t)r, (uint32_t)c, qsf_half_bits((double)*v) };
            *v = limits->mean;
        }
    return n;
}
