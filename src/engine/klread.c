/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading a file of distributions: sizes first, then a piece at a time. */
#include <math.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/engine/klfile.h"
#include "src/engine/klformat.h"

static uint32_t le32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int damaged(const QsfKlReader *r, uint64_t at, const char *what, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: not a file of --kl-save: %s (byte offset %llu)", r->file.path, what,
                       (unsigned long long)at);
}

/* The two counts, and the end of the rows they promise. */
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
    if (qsf_mul_u64((uint64_t)a->n_rows * a->n_vocab, sizeof(float), &bytes) && qsf_add_u64(bytes, QSF_KL_HEAD, end) &&
        *end <= r->file.size)
        return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: %llu bytes are too few for %u tokens x %u vocabulary x 4 (promised at byte offset 0)",
                       r->file.path, (unsigned long long)r->file.size, (unsigned)a->n_rows, (unsigned)a->n_vocab);
}

static void take_name(QsfKlAbout *a, const unsigned char *name, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) a->name[i] = name[i] < 0x20 || name[i] > 0x7E ? '?' : (char)name[i];
    a->name[n] = '\0';
}

/* What the rows belong to, at byte `at`. */
static int read_about(QsfKlReader *r, uint64_t at, QsfErr *err) {
    unsigned char b[QSF_KL_ABOUT], name[QSF_KL_NAME];
    QsfKlAbout *a = &r->about;
    if (r->file.size - at < sizeof b) return damaged(r, r->file.size, "it ends in what follows the rows", err);
    int rc = qsf_file_pread(&r->file, b, sizeof b, at, err);
    if (rc != QSF_OK) return rc;
    if (memcmp(b, QSF_KL_MAGIC, 8) != 0) return damaged(r, at, "no QSFDISTR after the rows", err);
    if (le32(b + 8) != QSF_KL_VERSION)
        return qsf_err_set(err, QSF_E_MODEL, "%s: version %u of the file is not known, only %u (byte offset %llu)",
                           r->file.path, (unsigned)le32(b + 8), QSF_KL_VERSION, (unsigned long long)at + 8);
    a->n_ids = le32(b + 12);
    a->window = le32(b + 16);
    a->stride = le32(b + 20);
    a->flags = le32(b + 24);
    uint32_t n_name = le32(b + 28);
    if (a->n_ids <= a->n_rows) return damaged(r, at + 12, "more scored tokens than the text can have", err);
    if (a->window < 2 || a->window > QSF_KL_WINDOW) return damaged(r, at + 16, "a window that cannot be", err);
    if (a->stride < 1 || a->stride > a->window) return damaged(r, at + 20, "a stride that cannot be", err);
    if (n_name > QSF_KL_NAME) return damaged(r, at + 28, "a name that is too long", err);
    r->ids_at = at + sizeof b + n_name;
    if (r->file.size - at - sizeof b != (uint64_t)n_name + (uint64_t)a->n_ids * sizeof(int32_t))
        return damaged(r, at + 12, "its size is not what the counts promise", err);
    rc = qsf_file_pread(&r->file, name, n_name, at + sizeof b, err);
    if (rc == QSF_OK) take_name(a, name, n_name);
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

/* A rounded logarithm of a probability of 1 may lie a little above 0. */
#define ABOVE_ZERO 1e-4f

int qsf_kl_read(const QsfKlReader *r, uint32_t row, uint32_t first, uint32_t n, float *dst, QsfErr *err) {
    uint64_t at = QSF_KL_HEAD + ((uint64_t)row * r->about.n_vocab + first) * sizeof *dst;
    int rc = qsf_file_pread(&r->file, dst, (size_t)n * sizeof *dst, at, err);
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++)
        if (!isfinite(dst[i]) || dst[i] > ABOVE_ZERO)
            rc = qsf_err_set(err, QSF_E_MODEL, "%s: no log-probability at byte offset %llu", r->file.path,
                             (unsigned long long)(at + (uint64_t)i * sizeof *dst));
    return rc;
}

static int same_piece(const QsfKlReader *r, const int32_t *ids, size_t from, size_t n, QsfErr *err) {
    unsigned char b[4096];
    uint64_t at = r->ids_at + (uint64_t)from * sizeof *ids;
    int rc = qsf_file_pread(&r->file, b, n * sizeof *ids, at, err);
    for (size_t i = 0; rc == QSF_OK && i < n; i++)
        if (le32(b + 4 * i) != (uint32_t)ids[from + i])
            rc = qsf_err_set(err, QSF_E_MODEL,
                             "%s: was saved for another text or vocabulary: token %zu is %ld there, %ld here "
                             "(byte offset %llu)",
                             r->file.path, from + i, (long)(int32_t)le32(b + 4 * i), (long)ids[from + i],
                             (unsigned long long)(at + 4 * i));
    return rc;
}

int qsf_kl_same_ids(const QsfKlReader *r, const int32_t *ids, size_t n, QsfErr *err) {
    if (!r->about.complete) return QSF_OK;
    if (n != r->about.n_ids)
        return qsf_err_set(err, QSF_E_MODEL, "%s: was saved for a text of %u tokens, this one has %zu", r->file.path,
                           (unsigned)r->about.n_ids, n);
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < n; i += 1024) rc = same_piece(r, ids, i, n - i < 1024 ? n - i : 1024, err);
    return rc;
}
