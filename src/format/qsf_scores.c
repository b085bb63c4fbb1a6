/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The importance of layers against the scores it comes from (man/qsf-format.5, LAYER SCORES). */
#include "src/format/qsf_scores.h"

#include <inttypes.h>
#include <math.h>

#define IMPORTANCE_AT 24u /* in an index entry */
#define ROUNDING      1e-6f

float qsf_scores_importance(float skip_kl) { return (float)-expm1(-(double)skip_kl); }

static int check_importance(const QsfSource *s, const QsfIndexEntry *e, uint32_t layer, uint64_t at, float skip_kl, QsfErr *err) {
    const float want = qsf_scores_importance(skip_kl);
    if (fabsf(e->importance - want) <= ROUNDING) return QSF_OK; /* false for NaN */
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: the importance of layer %" PRIu32 " at byte offset %" PRIu64 " is %g, but %g by its " QSF_KEY_SKIP_KL " of %g",
                       qsf_source_path(s), layer, at, (double)e->importance, (double)want, (double)skip_kl);
}

int qsf_scores_check(const QsfSource *s, const QsfIndexEntry *e, uint32_t n, uint64_t index_off, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(s, QSF_KEY_SKIP_KL, QSF_META_F32, &a, &present, err);
    if (rc != QSF_OK || !present) return rc;
    if (a.count != n)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: metadata key '%s' has %" PRIu64 " elements, expected one for each of %" PRIu32 " layers",
                         qsf_source_path(s), QSF_KEY_SKIP_KL, a.count, n);
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++) {
        float skip_kl;
        rc = qsf_meta_array_f32(&a, &skip_kl, err);
        if (rc == QSF_OK) rc = check_importance(s, &e[i], i, index_off + (uint64_t)i * QSFF_INDEX_BYTES + IMPORTANCE_AT, skip_kl, err);
    }
    qsf_meta_array_close(&a);
    return rc;
}
