/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of savefile.h for callers that report by QsfErr and replace an existing file: models and logits.
 * Their temporary name, where the file system needs one, is PATH.xxxxxxxx.qsf-part. One thread. */
#ifndef QSF_BASE_NEWFILE_H
#define QSF_BASE_NEWFILE_H

#include "src/base/err.h"
#include "src/base/savefile.h"

typedef struct QsfNewFile {
    QSFSaveFile file; /* file.fd is for reading and writing, while path is not NULL */
    char *path;       /* NULL: nothing is open */
} QsfNewFile;

/* Creates a file that will replace the one at path, and removes temporary files that killed processes left.
 * QSF_E_RUNTIME names path; then nothing is open. */
int qsf_newfile_create(QsfNewFile *f, const char *path, QsfErr *err);
/* Makes sure that the file is on the disk, gives it its name, and makes sure of that too. In every case
 * nothing is open afterwards. QSF_E_RUNTIME names path; but for an error in the last step nothing has changed
 * there. */
int qsf_newfile_commit(QsfNewFile *f, QsfErr *err);
/* Removes the file. A zeroed, committed or discarded one is allowed. */
void qsf_newfile_discard(QsfNewFile *f);

/* For files with other writers, or that are only needed for a while: a name for one beside path that is
 * removed like those above once no process holds it. The caller frees it; NULL without memory. */
char *qsf_newfile_part(const char *path);
/* Holds such a file; -1 where it is gone. Closing the descriptor ends that. */
int qsf_newfile_hold(const char *part);

#endif
