/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Formatting of messages: only the format decides where lines end, never a name or text from outside. */
#ifndef QSF_BASE_LINES_H
#define QSF_BASE_LINES_H

#include <stdarg.h>
#include <stddef.h>

/* Formats like vsnprintf. The newlines of fmt (less than QSF_LINES_FORMAT bytes, otherwise it has none)
 * become the control character *line, which no argument contains, so that '\n' in the result is always from
 * an argument. *line is 0 if fmt has no newline. */
#define QSF_LINES_FORMAT 1024u
int qsf_lines_format(char *out, size_t cap, const char *fmt, va_list ap, char *line);

#endif
