/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the reading and the writing half of the conversation files share. */
#ifndef QSF_CLI_CHATLOG_PATH_H
#define QSF_CLI_CHATLOG_PATH_H

#include "qsf_chatlog.h"

/* Folder of the conversations and path of one; malloc'ed, NULL without a home directory or for a bad
 * name (then err says why). */
char *qsf_chatlog_dir(void);
char *qsf_chatlog_path(const char *name, char *err, size_t cap);
/* Word of a kind in the file. */
const char *qsf_chatlog_kind_name(QSFLogKind k);

#endif
