/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checksums of weights as they are read for the first time. A section of the file (a layer) is read in
 * pieces, pinned ones and streamed ones, in whatever order; what each contributes is summed
 * (qsf_crc32_shift), and when all bytes were there the sum must be the file's. Headers and padding between
 * the matrices are read at the start. Rows may be added by the loader's thread and by the one that streams
 * experts; what is read again later is not looked at. */
#ifndef QSF_STREAM_CHECKSUMS_H
#define QSF_STREAM_CHECKSUMS_H

#include <pthread.h>

#include "src/stream/loader.h"

typedef struct QsfSum QsfSum;

typedef struct QsfChecksums {
    const QsfSource *src;
    const QsfChecksumPart *part; /* (n), the source's */
    QsfSum *sum;                 /* (n) */
    uint32_t n;
    pthread_mutex_t lock; /* of the sums; valid if n > 0 */
} QsfChecksums;

/* For the matrices of these units, nothing of which has been read yet; nothing where the file
 * has no checksums. Reads what lies between them. QSF_E_RUNTIME; QSF_E_MODEL when a section
 * without matrices is damaged. */
int qsf_checksums_open(QsfChecksums *s, const QsfSource *src, QsfWeightUnit *units, uint32_t n_units,
                       QsfErr *err);
void qsf_checksums_close(QsfChecksums *s); /* a zeroed one is allowed */

/* Rows [row0, row1) of tensor t of the unit have arrived at p, as the file has them, for the first time.
 * QSF_E_MODEL, which names the section, when they complete a section that is damaged, or belong to one. */
int qsf_checksums_add(QsfChecksums *s, const QsfWeightUnit *u, unsigned t, uint32_t row0, uint32_t row1,
                      const uint8_t *p, QsfErr *err);

#endif
