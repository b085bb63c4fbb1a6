/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pointers of Git LFS, which a clone contains instead of large files until they are fetched. */
#ifndef QSF_FILE_LFS_H
#define QSF_FILE_LFS_H

#include "src/base/file.h"

/* Checks that f is not a pointer. QSF_E_MODEL names the file, says that it is one and how to fetch it; a file
 * that cannot be read is not an error here: the caller reads it next. */
int qsf_lfs_check(const QsfFile *f, QsfErr *err);
/* The same for the first n bytes of the file at path. */
int qsf_lfs_check_bytes(const char *path, const void *bytes, size_t n, QsfErr *err);

#endif
