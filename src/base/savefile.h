/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are written completely or not at all: what newfile.h and the public qsf_savefile.h share. Until
 * it is published a file has no name (O_TMPFILE) where the file system can do that, so that a process that is
 * killed leaves nothing. Elsewhere it is STEM.xxxxxxxx.qsf-part in its folder, and its process holds it
 * locked: creating a file with the same stem removes those that no process holds. Functions return 0 or an
 * errno value. One thread per file. */
#ifndef QSF_BASE_SAVEFILE_H
#define QSF_BASE_SAVEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "qsf_savefile.h"

/* Bytes that a temporary name has in addition to its stem, the terminating 0 included. */
#define QSF_PART_EXTRA sizeof ".xxxxxxxx.qsf-part"

/* Creates a file of the given mode, less the umask, in the folder of path; path itself is not touched. stem
 * NULL: the last part of path. Removes temporary files that killed processes left under this stem. After a
 * failure there is nothing to close. */
int qsf_savefile_create(QSFSaveFile *f, const char *path, mode_t mode, const char *stem);
/* Writes the file to the disk. */
int qsf_savefile_sync(const QSFSaveFile *f);
/* Gives the file the name `name` in its folder, in place of the file that has it. After a failure f->temp is
 * "" if it could not be linked, and set if it could not be renamed. */
int qsf_savefile_replace(QSFSaveFile *f, const char *name);
/* Writes the folder to the disk, and so the name. */
int qsf_savefile_sync_folder(const QSFSaveFile *f);

/* Writes stem and a random ending to name, which has room for strlen(stem) + QSF_PART_EXTRA bytes. */
void qsf_savefile_part(char *name, const char *stem);

/* Test hook: as if no file system had files without a name. */
void qsf_savefile_always_named(bool on);

#endif
