/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scores of layers that stand in a QSF file twice: in the metadata as measured, in the index as importance. */
#ifndef QSF_FORMAT_QSF_SCORES_H
#define QSF_FORMAT_QSF_SCORES_H

#include "src/format/qsf_layout.h"
#include "src/format/source_impl.h"

#define QSF_CAL_PREFIX "qsf.calibration." /* of all keys of a calibration, all in qsf-format.5 */
#define QSF_KEY_SKIP_KL QSF_CAL_PREFIX "skip_kl" /* f32 array: nats that leaving out each layer costs */

/* 1 - exp(-skip_kl), 0 to 1: what the index says of a layer. */
float qsf_scores_importance(float skip_kl);
/* One number from `low` on for each of n layers, out (n), from the metadata's f32 array `key`; *present: whether there is one, else
 * out is left alone. QSF_E_MODEL: another number of elements, another type, a smaller number or none. */
int qsf_scores_read(const QsfSource *s, const char *key, uint32_t n, float low, float *out, bool *present, QsfErr *err);
/* Each of the n entries of an index at index_off against qsf.calibration.skip_kl, where the metadata of s has it. QSF_E_MODEL:
 * as qsf_scores_read, and an importance that is another one (by more than a float's rounding); names layer and byte offset. */
int qsf_scores_check(const QsfSource *s, const QsfIndexEntry *e, uint32_t n, uint64_t index_off, QsfErr *err);

#endif
