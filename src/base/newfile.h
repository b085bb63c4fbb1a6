/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file that is written completely or not at all. Until it is committed it has no name (O_TMPFILE) where the file
 * system can do that, so that a process that is killed leaves nothing behind. Elsewhere it is PATH.xxxxxxxx.qsf-part,
 * which its process holds locked: the next file created for PATH removes those that no process holds. One thread. */
#ifndef QSF_BASE_NEWFILE_H
#define QSF_BASE_NEWFILE_H

#include <stdbool.h>

#include "src/base/err.h"

typedef struct QsfNewFile {
    int fd;     /* for reading and writing, while path is not NULL */
    char *path; /* NULL: nothing is open */
    char *temp; /* its name until it is committed; NULL: it has none */
} QsfNewFile;

/* Creates a file that will replace what is at path, and removes what killed processes left of one. QSF_E_RUNTIME names
 * path; then nothing is open. */
int qsf_newfile_create(QsfNewFile *f, const char *path, QsfErr *err);
/* Makes sure that the file is on the disk, gives it its name, and makes sure of that too. In every case nothing is open
 * afterwards. QSF_E_RUNTIME names path; but for an error in the last step nothing has changed there. */
int qsf_newfile_commit(QsfNewFile *f, QsfErr *err);
/* Removes the file. A zeroed, committed or discarded one is allowed. */
void qsf_newfile_discard(QsfNewFile *f);

/* For files with other writers, or that are only needed for a while: a name for one beside path that is removed like
 * those above once no process holds it. The caller frees it; NULL without memory. */
char *qsf_newfile_part(const char *path);
/* Holds such a file; -1 where it is gone. Closing the descriptor ends that. */
int qsf_newfile_hold(const char *part);

/* Test hook: as if no file system could hide files. */
void qsf_newfile_always_named(bool on);

#endif
