/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares the importance of layers with the scores it is derived from (man/qsf-format.5, LAYER SCORES). */
#include "src/file/qsf/scores.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define IMPORTANCE_AT 24u /* in an index entry */
#define ROUNDING      1e-6f

float qsf_scores_importance(float skip_kl) { return (float)-expm1(-(double)skip_kl); }

static int check_importance(const QsfSource *s, const QsfIndexEntry *e, uint32_t layer, uint64_t at,
                            float skip_kl, QsfErr *err) {
    const float want = qsf_scores_importance(skip_kl);
    if (fabsf(e->importance - want) <= ROUNDING) return QSF_OK; /* false for NaN */
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: the importance of layer %" PRIu32 " at byte offset %" PRIu64
                       " is %g, expected %g from its " QSF_KEY_SKIP_KL " of %g",
                       qsf_source_path(s), layer, at, (double)e->importance, (double)want, (double)skip_kl);
}

int qsf_scores_read(const QsfSource *s, const char *key, uint32_t n, float low, float *out, bool *present,
                    QsfErr *err) {
    QsfMetaArray a;
    int rc = qsf_meta_array_open(s, key, QSF_META_F32, &a, present, err);
    if (rc != QSF_OK || !*present) return rc;
    if (a.count != n)
        rc = qsf_err_set(err, QSF_E_MODEL,
                         "%s: metadata key '%s' has %" PRIu64 " elements, expected one for each of %" PRIu32
                         " layers",
                         qsf_source_path(s), key, a.count, n);
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++) {
        rc = qsf_meta_array_f32(&a, &out[i], err);
        if (rc == QSF_OK && (!isfinite(out[i]) || out[i] < low))
            rc = qsf_err_set(err, QSF_E_MODEL,
                             "%s: metadata key '%s': element %" PRIu32 " is %g, expected %g or more",
                             qsf_source_path(s), key, i, (double)out[i], (double)low);
    }
    qsf_meta_array_close(&a);
    return rc;
}

int qsf_scores_check(const QsfSource *s, const QsfIndexEntry *e, uint32_t n, uint64_t index_off,
                     QsfErr *err) {
    bool present;
    float *skip_kl = calloc(n, sizeof *skip_kl);
    if (skip_kl == NULL) return qsf_err_memory(err, "%s", qsf_source_path(s));
    int rc = qsf_scores_read(s, QSF_KEY_SKIP_KL, n, 0, skip_kl, &present, err);
    for (uint32_t i = 0; rc == QSF_OK && present && i < n; i++)
        rc = check_importance(s, &e[i], i, index_off + (uint64_t)i * QSFF_INDEX_BYTES + IMPORTANCE_AT,
                              skip_kl[i], err);
    free(skip_kl);
    return rc;
}
