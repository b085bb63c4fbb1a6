/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows and their checksums are written as they come, the description last: implements klwrite.h. */
#include "src/measure/klwrite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/crc32.h"
#include "src/measure/klread.h"

#define SMALL (10u << 20) /* bytes, below which they are counted in KB */

static int failed(const QsfKlWriter *w, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", w->path, strerror(errno));
}

static int write_all(QsfKlWriter *w, const void *bytes, size_t len, QsfErr *err) {
    for (const char *p = bytes; len > 0;) {
        ssize_t n = write(w->out.file.fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed(w, err);
        p += n;
        len -= (size_t)n;
    }
    return QSF_OK;
}

static void put32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> 8 * i);
}

static void put_head(const QsfKlWriter *w, unsigned char head[QSF_KL_HEAD]) {
    put32(head, w->about.n_rows);
    put32(head + 4, w->about.n_vocab);
}

/* A mistyped name must not overwrite a model. */
static int check_overwrite(const char *path, QsfErr *err) {
    struct stat st;
    QsfKlReader old;
    if (stat(path, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0)) return QSF_OK;
    if (S_ISREG(st.st_mode) && qsf_kl_open(&old, path, NULL) == QSF_OK) {
        bool ours = old.about.complete;
        qsf_kl_close(&old);
        if (ours) return QSF_OK;
    }
    return qsf_err_set(err, QSF_E_USAGE, "%s: exists and was not written by --kl-save; not overwritten",
                       path);
}

static uint64_t rows_end(const QsfKlWriter *w) {
    return QSF_KL_HEAD + (uint64_t)w->about.n_rows * w->about.n_vocab * sizeof(float);
}

/* Where the checksum of row lies: after the ids. */
static uint64_t checksum_at(const QsfKlWriter *w, uint32_t row) {
    return rows_end(w) + QSF_KL_ABOUT + strlen(w->about.name) + ((uint64_t)w->about.n_ids + row) * 4;
}

static int check_space(const QsfKlWriter *w, QsfErr *err) {
    struct statvfs v;
    uint64_t need = checksum_at(w, w->about.n_rows);
    if (fstatvfs(w->out.file.fd, &v) != 0 || v.f_blocks == 0) return QSF_OK; /* free space not known */
    uint64_t space = (uint64_t)v.f_bavail * (v.f_frsize ? v.f_frsize : v.f_bsize);
    if (need <= space) return QSF_OK;
    const bool small = need < SMALL; /* rounded so that what is needed is not what is free */
    const uint64_t unit = small ? 1024 : 1u << 20;
    return qsf_err_set(err, QSF_E_RUNTIME,
                       "%s: the distributions of %u tokens need %llu %s, but only %llu %s are free", w->path,
                       (unsigned)w->about.n_rows, (unsigned long long)((need + unit - 1) / unit),
                       small ? "KB" : "MB", (unsigned long long)(space / unit), small ? "KB" : "MB");
}

static int make_file(QsfKlWriter *w, QsfErr *err) {
    w->piece = malloc(QSF_KL_PIECE * sizeof *w->piece);
    return w->piece != NULL ? qsf_newfile_create(&w->out, w->path, err) : qsf_err_memory(err, "%s", w->path);
}

int qsf_kl_create(QsfKlWriter *w, const char *path, const QsfKlAbout *about, QsfErr *err) {
    unsigned char head[QSF_KL_HEAD];
    *w = (QsfKlWriter){ .path = path, .rows_left = about->n_rows, .about = *about };
    put_head(w, head);
    int rc = check_overwrite(path, err);
    if (rc == QSF_OK) rc = make_file(w, err);
    if (rc == QSF_OK) rc = check_space(w, err);
    return rc == QSF_OK ? write_all(w, head, sizeof head, err) : rc;
}

/* Writes the checksum immediately, so that memory use does not grow with the rows. */
static int write_row_checksum(QsfKlWriter *w, uint32_t row, QsfErr *err) {
    unsigned char b[4];
    ssize_t n;
    put32(b, w->row_crc);
    w->table_crc = qsf_crc32(w->table_crc, b, sizeof b);
    w->row_crc = 0;
    do n = pwrite(w->out.file.fd, b, sizeof b, (off_t)checksum_at(w, row));
    while (n < 0 && errno == EINTR);
    if (n >= 0 && n < (ssize_t)sizeof b) errno = ENOSPC;
    return n == (ssize_t)sizeof b ? QSF_OK : failed(w, err);
}

static int flush(QsfKlWriter *w, QsfErr *err) {
    int rc = write_all(w, w->piece, w->n * sizeof *w->piece, err);
    w->row_crc = qsf_crc32(w->row_crc, w->piece, w->n * sizeof *w->piece);
    w->n = 0;
    return rc;
}

int qsf_kl_write_row(QsfKlWriter *w, const float *logits, double log_sum, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < w->about.n_vocab; i++) {
        w->piece[w->n++] = (float)((double)logits[i] - log_sum);
        if (w->n == QSF_KL_PIECE) rc = flush(w, err);
    }
    if (rc == QSF_OK) rc = flush(w, err);
    if (rc == QSF_OK) rc = write_row_checksum(w, w->about.n_rows - w->rows_left, err);
    w->rows_left--;
    return rc;
}

/* Writes the description of the rows and the last checksum. The checksums of the rows are already written. */
static int write_about(QsfKlWriter *w, const int32_t *ids, QsfErr *err) {
    unsigned char head[QSF_KL_HEAD], b[QSF_KL_ABOUT] = QSF_KL_MAGIC, last[4];
    const QsfKlAbout *a = &w->about;
    const size_t n_name = strlen(a->name), n_ids = (size_t)a->n_ids * sizeof *ids;
    const uint32_t words[] = { QSF_KL_VERSION, a->n_ids, a->window, a->stride, a->flags, (uint32_t)n_name };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) put32(b + 8 + 4 * i, words[i]);
    put_head(w, head);
    uint32_t crc = qsf_crc32(
        qsf_crc32(qsf_crc32(qsf_crc32(0, head, sizeof head), b, sizeof b), a->name, n_name), ids, n_ids);
    put32(last, qsf_crc32_shift(crc, (uint64_t)a->n_rows * 4) ^ w->table_crc);
    int rc = write_all(w, b, sizeof b, err);
    if (rc == QSF_OK) rc = write_all(w, a->name, n_name, err);
    if (rc == QSF_OK) rc = write_all(w, ids, n_ids, err);
    if (rc == QSF_OK && lseek(w->out.file.fd, (off_t)checksum_at(w, a->n_rows), SEEK_SET) < 0)
        rc = failed(w, err);
    return rc == QSF_OK ? write_all(w, last, sizeof last, err) : rc;
}

int qsf_kl_finish(QsfKlWriter *w, const int32_t *ids, QsfErr *err) {
    if (w->rows_left != 0)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: %u rows of %s are missing", (unsigned)w->rows_left,
                           w->path);
    int rc = write_about(w, ids, err);
    return rc == QSF_OK ? qsf_newfile_commit(&w->out, err) : rc;
}

void qsf_kl_discard(QsfKlWriter *w) {
    qsf_newfile_discard(&w->out);
    free(w->piece);
    *w = (QsfKlWriter){ 0 };
}
