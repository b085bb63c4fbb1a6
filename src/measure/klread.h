/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads a file of distributions in pieces of a row, so that no whole row needs memory. Every byte of the file
 * is untrusted. One thread. */
#ifndef QSF_MEASURE_KLREAD_H
#define QSF_MEASURE_KLREAD_H

#include "src/base/file.h"
#include "src/measure/klformat.h"

typedef struct QsfKlReader {
    QsfFile file;
    QsfKlAbout about;
    uint64_t ids_at; /* byte offset of the ids, when complete */
    bool checksums;  /* the file has them */
    uint64_t
        read_to;  /* end of the pieces that were read in order from the start of a row; 0 = not in order */
    uint32_t crc; /* checksum of those pieces */
} QsfKlReader;

/* Checks every size against the file's, and the checksum of everything but the rows. QSF_E_MODEL names file
 * and byte offset. On failure nothing stays open. */
int qsf_kl_open(QsfKlReader *r, const char *path, QsfErr *err);
void qsf_kl_close(QsfKlReader *r); /* a zeroed one is allowed */
/* Reads entries [first, first + n) of a row, which must lie in it, into dst. QSF_E_MODEL when one is not a
 * log-probability (not finite, or above 0), QSF_E_RUNTIME when reading fails; both name file and offset. */
int qsf_kl_read(QsfKlReader *r, uint32_t row, uint32_t first, uint32_t n, float *dst, QsfErr *err);
/* Checks the checksum of row after all of it was read in order, in pieces of any size. QSF_E_MODEL when it
 * differs; QSF_OK when the file has no checksums. */
int qsf_kl_check_row(const QsfKlReader *r, uint32_t row, QsfErr *err);
/* Checks that the file was saved for these ids. QSF_E_MODEL when they differ; QSF_OK when the
 * file has none. */
int qsf_kl_same_ids(const QsfKlReader *r, const int32_t *ids, size_t n, QsfErr *err);

#endif
