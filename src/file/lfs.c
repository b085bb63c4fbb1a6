/* SPDX-License-Identifier: GPL-3.0-or-later */
/* git-lfs/git-lfs docs/spec.md: a pointer is a text of less than 1024 bytes whose first line
 * is its version. */
#include "src/file/lfs.h"

#include <string.h>

#define POINTER_MAX 1024u

static const char first[] = "version https://git-lfs.github.com/spec/";

int qsf_lfs_check_bytes(const char *path, const void *bytes, size_t n, QsfErr *err) {
    if (n < sizeof first - 1 || memcmp(bytes, first, sizeof first - 1) != 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: is a Git LFS pointer, not the file itself: fetch it with git lfs pull", path);
}

int qsf_lfs_check(const QsfFile *f, QsfErr *err) {
    char head[sizeof first - 1];
    QsfErr ignored = { 0 };
    if (f->size < sizeof head || f->size > POINTER_MAX ||
        qsf_file_pread(f, head, sizeof head, 0, &ignored) != QSF_OK)
        return QSF_OK;
    return qsf_lfs_check_bytes(f->path, head, sizeof head, err);
}
