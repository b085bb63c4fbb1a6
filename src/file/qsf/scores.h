/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer scores, which a QSF file stores twice: as measured in the metadata, and as importance in the
 * index. */
#ifndef QSF_FILE_QSF_SCORES_H
#define QSF_FILE_QSF_SCORES_H

#include "src/file/qsf/layout.h"
#include "src/file/source_impl.h"

#define QSF_CAL_PREFIX  "qsf.calibration."       /* of all keys of a calibration, all in qsf-format.5 */
#define QSF_KEY_SKIP_KL QSF_CAL_PREFIX "skip_kl" /* f32 array: nats that leaving out each layer costs */

/* Returns the importance of a layer for the index: 1 - exp(-skip_kl), 0 to 1. */
float qsf_scores_importance(float skip_kl);
/* Reads the f32 metadata array `key` with one number, `low` or more, for each of n layers to out (n).
 * *present: whether the key exists; if not, out is unchanged. QSF_E_MODEL: wrong number of elements or type,
 * or a number below low or not a number. */
int qsf_scores_read(const QsfSource *s, const char *key, uint32_t n, float low, float *out, bool *present,
                    QsfErr *err);
/* Checks the n entries of an index at index_off against qsf.calibration.skip_kl, if the metadata of s has it.
 * QSF_E_MODEL: as qsf_scores_read, or an importance that differs by more than float rounding; names layer and
 * byte offset. */
int qsf_scores_check(const QsfSource *s, const QsfIndexEntry *e, uint32_t n, uint64_t index_off, QsfErr *err);

#endif
