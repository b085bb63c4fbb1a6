/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where conversation files are and what they are called, for writing (chatlog) and reading (chatlog_read). */
#ifndef QSF_CLI_CHATLOG_PATH_H
#define QSF_CLI_CHATLOG_PATH_H

#include "qsf_chatlog.h"
#include "src/base/paths.h"

#define QSF_CHATLOG_NO_HOME "no home directory for session files (set HOME or XDG_DATA_HOME)"

/* Returns the folder of the conversations; false without a home directory. */
bool qsf_chatlog_dir(char out[QSF_PATH_MAX]);
/* Returns the path of a conversation, malloc'ed; NULL with a message in err for a bad name, without a home
 * directory, or when out of memory. */
char *qsf_chatlog_path(const char *name, char *err, size_t cap);
#define QSF_CHATLOG_ENDING ".jsonl" /* suffix of conversation files */
/* The suffix of snapshots, which are in the same folder. */
#define QSF_CHATLOG_SNAPSHOT ".qsfsnap"
/* Opens the file for reading without blocking. -1 with errno; EINVAL when it is not a regular file: reading a
 * device or a pipe might never end. */
int qsf_chatlog_open_regular(const char *path);
/* Returns the name of a kind in the file. */
const char *qsf_chatlog_kind_name(QSFLogKind k);

#endif
