/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A new file that appears completely or not at all. Until it is committed it has no name (O_TMPFILE), so that
 * a killed process leaves nothing behind. If the file system does not support that, it is
 * PATH.xxxxxxxx.qsf-part, locked by its process; the next file created for PATH removes those that are not
 * locked. One thread. */
#ifndef QSF_BASE_NEWFILE_H
#define QSF_BASE_NEWFILE_H

#include <stdbool.h>

#include "src/base/err.h"

typedef struct QsfNewFile {
    int fd;     /* open for reading and writing if path is not NULL */
    char *path; /* NULL: not open */
    char *temp; /* its temporary name; NULL: it has none */
} QsfNewFile;

/* Creates a file that will replace the one at path, and removes temporary files that killed processes left.
 * On failure nothing is open; QSF_E_RUNTIME names path. */
int qsf_newfile_create(QsfNewFile *f, const char *path, QsfErr *err);
/* Syncs the file to disk, renames it to path, and syncs the directory. The file is closed in any case.
 * QSF_E_RUNTIME names path; unless the last step failed, the file at path is unchanged. */
int qsf_newfile_commit(QsfNewFile *f, QsfErr *err);
/* Removes the file. Does nothing if f is zeroed, committed or discarded. */
void qsf_newfile_discard(QsfNewFile *f);

/* Returns a name for a temporary file next to path, for files with other writers or that are needed only for
 * a while. The file is removed like those above when no process holds it. The caller frees the name; NULL if
 * out of memory. */
char *qsf_newfile_part(const char *path);
/* Locks such a file and returns a descriptor that holds it until it is closed; -1 if the file is gone. */
int qsf_newfile_hold(const char *part);

/* Test hook: behaves as if no file system supported O_TMPFILE. */
void qsf_newfile_always_named(bool on);

#endif
