/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sizes are checked when the file is opened; rows are read in pieces. */
#include "src/measure/klfile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/bytes.h"
#include "src/base/checked.h"
#include "src/base/crc32.h"

static int damaged(const QsfKlReader *r, uint64_t at, const char *what, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: not written by --kl-save: %s (byte offset %llu)", r->file.path,
                       what, (unsigned long long)at);
}

/* Reads the two counts and computes where the rows end. */
static int read_head(QsfKlReader *r, uint64_t *end, QsfErr *err) {
    unsigned char b[QSF_KL_HEAD];
    QsfKlAbout *a = &r->about;
    uint64_t bytes;
    if (r->file.size < sizeof b) return damaged(r, r->file.size, "it ends in the first 8 bytes", err);
    int rc = qsf_file_pread(&r->file, b, sizeof b, 0, err);
    if (rc != QSF_OK) return rc;
    a->n_rows = qsf_get_le32(b);
    a->n_vocab = qsf_get_le32(b + 4);
    if (a->n_rows == 0) return damaged(r, 0, "it has no tokens", err);
    if (a->n_vocab == 0) return damaged(r, 4, "its vocabulary is empty", err);
    if (qsf_mul_u64((uint64_t)a->n_rows * a->n_vocab, sizeof(float), &bytes) &&
        qsf_add_u64(bytes, QSF_KL_HEAD, end) && *end <= r->file.size)
        return QSF_OK;
    return qsf_err_set(
        err, QSF_E_MODEL,
        "%s: %llu bytes are too few for %u tokens x %u vocabulary x 4 (counts at byte offset 0)",
        r->file.path, (unsigned long long)r->file.size, (unsigned)a->n_rows, (unsigned)a->n_vocab);
}

static uint64_t row_at(const QsfKlReader *r, uint64_t row) {
    return QSF_KL_HEAD + row * r->about.n_vocab * sizeof(float);
}

/* Continues *crc with the bytes [at, end). */
static int add_crc(const QsfKlReader *r, uint64_t at, uint64_t end, uint32_t *crc, QsfErr *err) {
    unsigned char b[16384];
    int rc = QSF_OK;
    for (size_t n; rc == QSF_OK && at < end; at += n) {
        n = end - at < sizeof b ? (size_t)(end - at) : sizeof b;
        rc = qsf_file_pread(&r->file, b, n, at, err);
        if (rc == QSF_OK) *crc = qsf_crc32(*crc, b, n);
    }
    return rc;
}

static int different(const QsfKlReader *r, uint64_t at, uint32_t have, uint64_t want_at, uint32_t want,
                     QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: damaged from byte offset %llu: checksum %08lX, expected %08lX (byte offset %llu)",
                       r->file.path, (unsigned long long)at, (unsigned long)have, (unsigned long)want,
                       (unsigned long long)want_at);
}

static int read_checksum(const QsfKlReader *r, uint64_t at, uint32_t *out, QsfErr *err) {
    unsigned char b[4];
    int rc = qsf_file_pread(&r->file, b, sizeof b, at, err);
    *out = rc == QSF_OK ? qsf_get_le32(b) : 0;
    return rc;
}

/* Checks everything except the rows, which lie between QSF_KL_HEAD and rows_end. */
static int check_rest(const QsfKlReader *r, uint64_t rows_end, QsfErr *err) {
    const uint64_t end = r->file.size - 4;
    uint32_t have = 0, want = 0;
    int rc = add_crc(r, 0, QSF_KL_HEAD, &have, err);
    if (rc == QSF_OK) rc = add_crc(r, rows_end, end, &have, err);
    if (rc == QSF_OK) rc = read_checksum(r, end, &want, err);
    return rc != QSF_OK || have == want ? rc : different(r, rows_end, have, end, want, err);
}

static void copy_name(QsfKlAbout *a, const unsigned char *name, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) a->name[i] = name[i] < 0x20 || name[i] > 0x7E ? '?' : (char)name[i];
    a->name[n] = '\0';
}

/* Reads the description of the rows at byte offset at. */
static int read_about(QsfKlReader *r, uint64_t at, QsfErr *err) {
    unsigned char b[QSF_KL_ABOUT], name[QSF_KL_NAME];
    QsfKlAbout *a = &r->about;
    if (r->file.size - at < sizeof b)
        return damaged(r, r->file.size, "it ends in what follows the rows", err);
    int rc = qsf_file_pread(&r->file, b, sizeof b, at, err);
    if (rc != QSF_OK) return rc;
    if (memcmp(b, QSF_KL_MAGIC, 8) != 0) return damaged(r, at, "no QSFDISTR after the rows", err);
    if (qsf_get_le32(b + 8) != QSF_KL_VERSION && qsf_get_le32(b + 8) != QSF_KL_PLAIN)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: file version %u is not supported, expected %u or %u (byte offset %llu)",
                           r->file.path, (unsigned)qsf_get_le32(b + 8), QSF_KL_PLAIN, QSF_KL_VERSION,
                           (unsigned long long)at + 8);
    r->checksums = qsf_get_le32(b + 8) == QSF_KL_VERSION;
    a->n_ids = qsf_get_le32(b + 12);
    a->window = qsf_get_le32(b + 16);
    a->stride = qsf_get_le32(b + 20);
    a->flags = qsf_get_le32(b + 24);
    uint32_t n_name = qsf_get_le32(b + 28);
    if (a->n_ids <= a->n_rows) return damaged(r, at + 12, "more scored tokens than the text can have", err);
    if (a->window < 2 || a->window > QSF_KL_WINDOW) return damaged(r, at + 16, "an impossible window", err);
    if (a->stride < 1 || a->stride > a->window) return damaged(r, at + 20, "an impossible stride", err);
    if (n_name > QSF_KL_NAME) return damaged(r, at + 28, "a name that is too long", err);
    r->ids_at = at + sizeof b + n_name;
    const uint64_t sums = r->checksums ? ((uint64_t)a->n_rows + 1) * 4 : 0;
    if (r->file.size - at - sizeof b != (uint64_t)n_name + (uint64_t)a->n_ids * sizeof(int32_t) + sums)
        return damaged(r, at + 12, "its size does not match its counts", err);
    if (r->checksums) rc = check_rest(r, at, err);
    if (rc == QSF_OK) rc = qsf_file_pread(&r->file, name, n_name, at + sizeof b, err);
    if (rc == QSF_OK) copy_name(a, name, n_name);
    a->complete = true;
    return rc;
}

int qsf_kl_open(QsfKlReader *r, const char *path, QsfErr *err) {
    uint64_t end = 0;
    memset(r, 0, sizeof *r);
    int rc = qsf_file_open(&r->file, path, err);
    if (rc != QSF_OK) return rc;
    rc = read_head(r, &end, err);
    if (rc == QSF_OK && end < r->file.size) rc = read_about(r, end, err);
    if (rc != QSF_OK) qsf_kl_close(r);
    return rc;
}

void qsf_kl_close(QsfKlReader *r) {
    if (r->file.path != NULL) qsf_file_close(&r->file);
    memset(r, 0, sizeof *r);
}

/* The rounded logarithm of a probability of 1 may be slightly above 0. */
#define ABOVE_ZERO 1e-4f

int qsf_kl_read(QsfKlReader *r, uint32_t row, uint32_t first, uint32_t n, float *dst, QsfErr *err) {
    uint64_t at = row_at(r, row) + (uint64_t)first * sizeof *dst, end = at + (uint64_t)n * sizeof *dst;
    int rc = qsf_file_pread(&r->file, dst, (size_t)n * sizeof *dst, at, err);
    const bool follows = first == 0 || at == r->read_to;
    if (rc == QSF_OK) r->crc = qsf_crc32(first == 0 ? 0 : r->crc, dst, (size_t)n * sizeof *dst);
    r->read_to = rc == QSF_OK && follows ? end : 0;
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++)
        if (!isfinite(dst[i]) || dst[i] > ABOVE_ZERO)
            rc = qsf_err_set(err, QSF_E_MODEL, "%s: not a log-probability at byte offset %llu", r->file.path,
                             (unsigned long long)(at + (uint64_t)i * sizeof *dst));
    return rc;
}

int qsf_kl_check_row(const QsfKlReader *r, uint32_t row, QsfErr *err) {
    const uint64_t want_at = r->ids_at + (uint64_t)r->about.n_ids * sizeof(int32_t) + (uint64_t)row * 4;
    uint32_t want;
    if (!r->checksums) return QSF_OK;
    if (r->read_to != row_at(r, (uint64_t)row + 1))
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: %s: row %u was not read in order", r->file.path,
                           (unsigned)row);
    int rc = read_checksum(r, want_at, &want, err);
    return rc != QSF_OK || r->crc == want ? rc : different(r, row_at(r, row), r->crc, want_at, want, err);
}

static int same_piece(const QsfKlReader *r, const int32_t *ids, size_t from, size_t n, QsfErr *err) {
    unsigned char b[4096];
    uint64_t at = r->ids_at + (uint64_t)from * sizeof *ids;
    int rc = qsf_file_pread(&r->file, b, n * sizeof *ids, at, err);
    for (size_t i = 0; rc == QSF_OK && i < n; i++)
        if (qsf_get_le32(b + 4 * i) != (uint32_t)ids[from + i])
            rc = qsf_err_set(
                err, QSF_E_MODEL,
                "%s: was saved for a different text or vocabulary: token %zu is %ld in the file, %ld in "
                "this text "
                "(byte offset %llu)",
                r->file.path, from + i, (long)(int32_t)qsf_get_le32(b + 4 * i), (long)ids[from + i],
                (unsigned long long)(at + 4 * i));
    return rc;
}

int qsf_kl_same_ids(const QsfKlReader *r, const int32_t *ids, size_t n, QsfErr *err) {
    if (!r->about.complete) return QSF_OK;
    if (n != r->about.n_ids)
        return qsf_err_set(err, QSF_E_MODEL, "%s: was saved for a text of %u tokens, this one has %zu",
                           r->file.path, (unsigned)r->about.n_ids, n);
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < n; i += 1024)
        rc = same_piece(r, ids, i, n - i < 1024 ? n - i : 1024, err);
    return rc;
}

/* --- rows and their checksums are written as they come, the description last --- */

#define SMALL (10u << 20) /* bytes, below which they are counted in KB */

static int failed(const QsfKlWriter *w, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", w->path, strerror(errno));
}

static int write_all(QsfKlWriter *w, const void *bytes, size_t len, QsfErr *err) {
    return qsf_write_all(w->out.file.fd, bytes, len) ? QSF_OK : failed(w, err);
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
