/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The log of a program (--log-file): what it loads and answers, how long that takes, its notices and errors;
 * never the text of a conversation. One per process; one thread. Not installed. */
#ifndef QSF_LOG_H
#define QSF_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Begins to append to the file at path, which is created for its owner only if it does not exist; NULL: logs
 * nothing. Returns false, with a message that names the file in err, when it cannot be opened: nothing is
 * logged then, and the program continues. */
bool qsf_log_open(const char *program, const char *path, char *err, size_t cap);
/* Appends a line: the time (UTC), program and process, event (one word) and a text. Control characters and
 * newlines of it are made visible, and what is longer than 2000 bytes is cut. Does nothing without a file; a
 * line that cannot be written is lost. */
void qsf_log(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Closes it; qsf_log does nothing from then on. */
void qsf_log_close(void);

#endif
