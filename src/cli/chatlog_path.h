/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the reading and the writing half of the conversation files share. */
#ifndef QSF_CLI_CHATLOG_PATH_H
#define QSF_CLI_CHATLOG_PATH_H

#include "qsf_chatlog.h"
#include "src/base/paths.h"

/* Folder of the conversations; false without a home directory. */
bool qsf_chatlog_dir(char out[QSF_PATH_MAX]);
/* Path of one, malloc'ed; NULL, and err says why, for a bad name, without a home directory or without memory. */
char *qsf_chatlog_path(const char *name, char *err, size_t cap);
/* Opens the file for reading, without waiting. -1 with errno; EINVAL when it is not a regular file: a link
 * to a device or a pipe would be read for ever. */
int qsf_chatlog_open_regular(const char *path);
/* Word of a kind in the file. */
const char *qsf_chatlog_kind_name(QSFLogKind k);

#endif
