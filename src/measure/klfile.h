/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of whole distributions, which are read and written in pieces of a row, so that no whole row needs
 * memory. Every byte of a file is untrusted. One thread. */
#ifndef QSF_MEASURE_KLFILE_H
#define QSF_MEASURE_KLFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/file.h"
#include "src/base/newfile.h"

/* The format of files of whole distributions (qsf-run --kl-save, --kl-base; docs/QUANTIZATION.md).
 * Little-endian:
 *
 *   u32 rows, u32 vocabulary           rows = scored tokens
 *   f32 log-probability [rows][vocabulary], natural logarithm
 *   description of the rows (a file may end before it):
 *   u8  magic[8] = "QSFDISTR", u32 version = 2, u32 tokens, u32 window, u32 stride, u32 flags, u32 name bytes
 *   u8  name[name bytes]               of the model file
 *   i32 id[tokens]                     the whole text, BOS included
 *   u32 checksum[rows]                 CRC-32 of each row; version 1 has neither this nor the next
 *   u32 checksum                       CRC-32 of all bytes except the rows and this checksum */

#define QSF_KL_MAGIC   "QSFDISTR"
#define QSF_KL_VERSION 2u
#define QSF_KL_PLAIN   1u        /* the version without checksums */
#define QSF_KL_HEAD    8u        /* bytes before the rows */
#define QSF_KL_ABOUT   32u       /* bytes from the magic to the name */
#define QSF_KL_NAME    255u      /* maximum bytes of the name */
#define QSF_KL_WINDOW  16777216u /* the longest context that --ctx accepts */
#define QSF_KL_PIECE   16384u    /* maximum floats that are read or written at once */

enum { QSF_KL_BOS = 1 }; /* flags: every window begins with BOS */

typedef struct QsfKlAbout {
    uint32_t n_rows, n_vocab;
    bool complete; /* the file has a description of the rows; otherwise the rest is 0 */
    uint32_t n_ids, window, stride, flags;
    char name[QSF_KL_NAME + 1]; /* reduced to printable ASCII */
} QsfKlAbout;

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

/* Writes a file of distributions sequentially to a new file (newfile.h), which gets its name when it is
 * complete. One thread. */

typedef struct QsfKlWriter {
    const char *path; /* the caller's */
    QsfNewFile out;
    float *piece; /* (QSF_KL_PIECE) not written yet */
    size_t n;     /* floats in it */
    uint32_t rows_left;
    uint32_t row_crc, table_crc; /* of the row so far; of the checksums of rows so far */
    QsfKlAbout about;
} QsfKlWriter;

/* Creates the file. QSF_E_USAGE when path exists and is neither such a file nor empty: it is not overwritten.
 * QSF_E_RUNTIME names the file: it cannot be created, or the disk does not have enough space. */
int qsf_kl_create(QsfKlWriter *w, const char *path, const QsfKlAbout *about, QsfErr *err);
/* Writes the next row, from logits (n_vocab) and their qsf_score_log_sum. Each entry is the difference in
 * double, rounded to float32. QSF_E_RUNTIME. */
int qsf_kl_write_row(QsfKlWriter *w, const float *logits, double log_sum, QsfErr *err);
/* Writes the description of the rows, then names the file. about.n_rows rows must have been written. On
 * QSF_E_RUNTIME path is unchanged. */
int qsf_kl_finish(QsfKlWriter *w, const int32_t *ids, QsfErr *err);
/* Frees everything; without qsf_kl_finish the new file is removed. A zeroed one is allowed. */
void qsf_kl_discard(QsfKlWriter *w);

#endif
