/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are written completely or not at all: the bytes go to a file without a name (or with a hidden
 * temporary name, where the file system has no such files), which gets its name when everything is on the
 * disk. A program that is killed before that leaves nothing under the final name. Functions return 0 or an
 * errno value; the caller makes the message. Shared by the programs; not installed. One thread per file. */
#ifndef QSF_SAVEFILE_H
#define QSF_SAVEFILE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct QSFSaveFile {
    int fd;         /* for reading and writing; locked with flock(LOCK_EX) where the file system can */
    int dir;        /* the folder */
    char temp[256]; /* temporary name in it, "" = none */
    char stem[256]; /* what temporary names begin with */
} QSFSaveFile;

/* Creates a file of mode 0600 in the folder of path; path itself is not touched. After a failure there is
 * nothing to close. Removes temporary files that killed programs left in this folder. */
int qsf_savefile_open(QSFSaveFile *f, const char *path);
/* Writes all len bytes at the file's position. */
int qsf_savefile_write(QSFSaveFile *f, const void *data, size_t len);
/* Writes the file to the disk and gives it the name path, which must be in the folder of qsf_savefile_open.
 * EEXIST when something has that name, unless overwrite is set: then a regular file is replaced and its
 * permissions are kept; anything else but a symbolic link is refused with EINVAL. f stays open: after
 * EEXIST another name can be tried. */
int qsf_savefile_publish(QSFSaveFile *f, const char *path, bool overwrite);
/* Closes it; without a successful qsf_savefile_publish nothing is left behind. keep_fd: f->fd stays open and
 * belongs to the caller. */
void qsf_savefile_close(QSFSaveFile *f, bool keep_fd);
/* All of this for data[0..len). With overwrite, path may be a symbolic link: the file it leads to is
 * replaced. */
int qsf_savefile_save(const char *path, const void *data, size_t len, bool overwrite);

#endif
