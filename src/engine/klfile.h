/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of whole distributions (qsf-run --kl-save, --kl-base; docs/QUANTIZATION.md): written sequentially and read in
 * pieces of a row, so that neither needs memory for more. Little-endian:
 *
 *   u32 rows, u32 vocabulary           rows = scored tokens
 *   f32 log-probability [rows][vocabulary], natural logarithm
 *   description of the rows (a file may end before it):
 *   u8  magic[8] = "QSFDISTR", u32 version = 2, u32 tokens, u32 window, u32 stride, u32 flags, u32 name bytes
 *   u8  name[name bytes]               of the model file
 *   i32 id[tokens]                     the whole text, BOS included
 *   u32 checksum[rows]                 CRC-32 of each row; version 1 has neither this nor the next
 *   u32 checksum                       CRC-32 of all bytes except the rows and this checksum
 *
 * Every byte of a file that is read is untrusted. */
#ifndef QSF_ENGINE_KLFILE_H
#define QSF_ENGINE_KLFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/file.h"
#include "src/base/newfile.h"

#define QSF_KL_HEAD  8u     /* bytes before the rows */
#define QSF_KL_NAME  255u   /* longest name */
#define QSF_KL_PIECE 16384u /* floats handed out, or gathered, at once */

enum { QSF_KL_BOS = 1 }; /* flags: every window begins with BOS */

typedef struct QsfKlAbout {
    uint32_t n_rows, n_vocab;
    bool complete; /* the file has a description of the rows; otherwise the rest is 0 */
    uint32_t n_ids, window, stride, flags;
    char name[QSF_KL_NAME + 1]; /* reduced to printable ASCII */
} QsfKlAbout;

/* --- reading. One thread. --- */
typedef struct QsfKlReader {
    QsfFile file;
    QsfKlAbout about;
    uint64_t ids_at;  /* byte offset of the ids, when complete */
    bool checksums;   /* the file has them */
    uint64_t read_to; /* where the pieces read one after the other from the start of a row end, and their
                         checksum */
    uint32_t crc;
} QsfKlReader;

/* Checks every size against the file's, and the checksum of what is no row. QSF_E_MODEL names file and byte
 * offset. On failure nothing stays open. */
int qsf_kl_open(QsfKlReader *r, const char *path, QsfErr *err);
void qsf_kl_close(QsfKlReader *r); /* a zeroed one is allowed */
/* Entries [first, first + n) of a row, which must lie in it, to dst. QSF_E_MODEL for what is no
 * log-probability (not finite, or above 0), QSF_E_RUNTIME when reading fails; both name file and offset. */
int qsf_kl_read(QsfKlReader *r, uint32_t row, uint32_t first, uint32_t n, float *dst, QsfErr *err);
/* After all of row was read from first to last, whatever the pieces: QSF_E_MODEL when its checksum is another
 * one. Fine when the file has none. */
int qsf_kl_check_row(const QsfKlReader *r, uint32_t row, QsfErr *err);
/* Checks that the file was saved for these ids. QSF_E_MODEL when they differ; QSF_OK when the file has none. */
int qsf_kl_same_ids(const QsfKlReader *r, const int32_t *ids, size_t n, QsfErr *err);

/* --- writing: to a new file (newfile.h), which gets its name when it is complete. One thread. --- */
typedef struct QsfKlWriter {
    const char *path; /* the caller's */
    QsfNewFile out;
    float *piece; /* (QSF_KL_PIECE) waiting to be written */
    size_t n;     /* floats in it */
    uint32_t rows_left;
    uint32_t row_crc, table_crc; /* of the row so far; of the checksums of rows so far */
    QsfKlAbout about;
} QsfKlWriter;

/* Creates the file. QSF_E_USAGE when path exists and is neither such a file nor empty: it is not overwritten.
 * QSF_E_RUNTIME names the file: it cannot be created, or the disk has not enough space. */
int qsf_kl_create(QsfKlWriter *w, const char *path, const QsfKlAbout *about, QsfErr *err);
/* The next row: logits (n_vocab) and qsf_score_log_sum of them. Each entry is the difference in double,
 * rounded to float32. QSF_E_RUNTIME. */
int qsf_kl_write_row(QsfKlWriter *w, const float *logits, double log_sum, QsfErr *err);
/* What the rows belong to, then the name. about.n_rows rows have been written. QSF_E_RUNTIME: nothing is at
 * path that was not there before. */
int qsf_kl_finish(QsfKlWriter *w, const int32_t *ids, QsfErr *err);
/* Frees everything; without qsf_kl_finish the new file is removed. A zeroed one is allowed. */
void qsf_kl_discard(QsfKlWriter *w);

#endif
