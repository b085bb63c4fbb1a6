/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a file of distributions sequentially to a new file (newfile.h), which gets its name when it is
 * complete. One thread. */
#ifndef QSF_MEASURE_KLWRITE_H
#define QSF_MEASURE_KLWRITE_H

#include "src/base/newfile.h"
#include "src/measure/klformat.h"

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
