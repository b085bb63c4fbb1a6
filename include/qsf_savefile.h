/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Atomic file creation: the data is written to an unnamed file (or one with a hidden temporary name, where
 * the file system has no unnamed files), which gets its name when all data is on the disk. A program that is
 * killed before that leaves nothing under the final name. Functions return 0 or an errno value; the caller
 * makes the message. Shared by the programs; not installed. One thread per file. */
#ifndef QSF_SAVEFILE_H
#define QSF_SAVEFILE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct QSFSaveFile {
    int fd;        /* for reading and writing; locked with flock(LOCK_EX) where the file system supports it */
    int dir;       /* the folder */
    char temp[32]; /* temporary name in it, "" = none */
} QSFSaveFile;

/* Creates a file with mode 0600 in the folder of path; path itself is not touched. After a failure nothing
 * needs to be closed. Removes temporary files that killed programs left under the names it needs. */
int qsf_savefile_open(QSFSaveFile *f, const char *path);
/* Writes all len bytes at the current file position. */
int qsf_savefile_write(QSFSaveFile *f, const void *data, size_t len);
/* Syncs the file to disk and gives it the name path, which must be in the folder given to qsf_savefile_open.
 * EEXIST when that name exists, unless overwrite is set: then a regular file is replaced and its permissions
 * are kept, a symbolic link is replaced, and anything else fails with EINVAL. f stays open: after EEXIST a
 * different name can be tried. */
int qsf_savefile_publish(QSFSaveFile *f, const char *path, bool overwrite);
/* Closes f; without a successful qsf_savefile_publish the file is gone. keep_fd: f->fd stays open and belongs
 * to the caller. */
void qsf_savefile_close(QSFSaveFile *f, bool keep_fd);
/* Opens, writes data[0..len), publishes and closes. With overwrite, path may be a symbolic link: the file it
 * points to is replaced. */
int qsf_savefile_save(const char *path, const void *data, size_t len, bool overwrite);

#endif
