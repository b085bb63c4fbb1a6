/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sizes are checked when the file is opened; rows are read in pieces: implements klread.h. */
#include "src/measure/klread.h"

#include <math.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/base/crc32.h"

static uint32_t le32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

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
    a->n_rows = le32(b);
    a->n_vocab = le32(b + 4);
    if (a->n_rows == 0) return damaged(r, 0, "it promises no tokens", err);
    if (a->n_vocab == 0) return damaged(r, 4, "it promises no vocabulary", err);
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
    *out = rc == QSF_OK ? le32(b) : 0;
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
    if (le32(b + 8) != QSF_KL_VERSION && le32(b + 8) != QSF_KL_PLAIN)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: file version %u is not supported, expected %u or %u (byte offset %llu)",
                           r->file.path, (unsigned)le32(b + 8), QSF_KL_PLAIN, QSF_KL_VERSION,
                           (unsigned long long)at + 8);
    r->checksums = le32(b + 8) == QSF_KL_VERSION;
    a->n_ids = le32(b + 12);
    a->window = le32(b + 16);
    a->stride = le32(b + 20);
    a->flags = le32(b + 24);
    uint32_t n_name = le32(b + 28);
    if (a->n_ids <= a->n_rows) return damaged(r, at + 12, "more scored tokens than the text can have", err);
    if (a->window < 2 || a->window > QSF_KL_WINDOW)
        return damaged(r, at + 16, "a window that cannot be", err);
    if (a->stride < 1 || a->stride > a->window) return damaged(r, at + 20, "a stride that cannot be", err);
    if (n_name > QSF_KL_NAME) return damaged(r, at + 28, "a name that is too long", err);
    r->ids_at = at + sizeof b + n_name;
    const uint64_t sums = r->checksums ? ((uint64_t)a->n_rows + 1) * 4 : 0;
    if (r->file.size - at - sizeof b != (uint64_t)n_name + (uint64_t)a->n_ids * sizeof(int32_t) + sums)
        return damaged(r, at + 12, "its size is not what the counts promise", err);
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
        if (le32(b + 4 * i) != (uint32_t)ids[from + i])
            rc = qsf_err_set(
                err, QSF_E_MODEL,
                "%s: was saved for a different text or vocabulary: token %zu is %ld in the file, %ld in "
                "this text "
                "(byte offset %llu)",
                r->file.path, from + i, (long)(int32_t)le32(b + 4 * i), (long)ids[from + i],
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
