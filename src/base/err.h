/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Errors as values: a code, which is also the exit status of the programs, and a one-sentence message that is
 * composed where the cause is known. The first failure is kept; callers can only add a prefix to it. */
#ifndef QSF_BASE_ERR_H
#define QSF_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    QSF_OK = 0,
    QSF_E_RUNTIME = 1,      /* I/O, out of memory, anything not caused by input */
    QSF_E_USAGE = 2,        /* bad option, argument or setting */
    QSF_E_MODEL = 3,        /* missing, damaged or unsupported model or file */
    QSF_E_BUDGET = 4,       /* the RAM budget cannot be met */
    QSF_E_CONTEXT = 5,      /* context full, or the prompt is longer than the context */
    QSF_E_INTERRUPTED = 130 /* cancelled by the user; not a fault */
};

#define QSF_ERR_MSG_MAX 2048

typedef struct QsfErr {
    int code;                  /* QSF_OK or one of the above */
    bool memory;               /* out of memory: not caused by input; the same call may succeed later */
    bool file;                 /* reading a file failed: the same call may succeed if it becomes readable */
    bool numbers;              /* the model computed numbers that are not finite: not caused by input */
    char msg[QSF_ERR_MSG_MAX]; /* one sentence, UTF-8, no newline at the end; "" when QSF_OK */
} QsfErr;

/* Records code and the formatted message unless err already holds a failure (err may be NULL).
 * Control and format characters in the arguments (file names, file contents), newlines too, are replaced by
 * '?'; only newlines of the format itself are kept. Returns code, so that a function can end with `return
 * qsf_err_set(err, ...)`. Any thread. */
int qsf_err_set(QsfErr *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with a va_list. */
int qsf_err_setv(QsfErr *err, int code, const char *fmt, va_list ap);

/* Records code and a text of several lines, whose names and texts from outside are already clean; other
 * control characters are replaced by '?'. Returns code. */
int qsf_err_lines(QsfErr *err, int code, const char *text);
/* Records an out-of-memory error: QSF_E_RUNTIME, "out of memory: " and the message; sets err->memory. */
int qsf_err_memory(QsfErr *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Records a failed read: QSF_E_RUNTIME; sets err->file. */
int qsf_err_file(QsfErr *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Copies the failure in why, if any. Returns why->code. */
int qsf_err_pass(QsfErr *err, const QsfErr *why);

/* Prepends "prefix: " to a recorded failure; does nothing if there is none. Returns err->code. */
int qsf_err_prefix(QsfErr *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes err ready for another call: no failure is recorded. */
void qsf_err_clear(QsfErr *err);

/* Formats like vsnprintf, so that only the format decides where lines end, never a name or text from outside:
 * the newlines of fmt (less than QSF_LINES_FORMAT bytes, otherwise it has none) become the control character
 * *line, which no argument contains; '\n' in the result is always from an argument. *line is 0 if fmt has no
 * newline. */
#define QSF_LINES_FORMAT 1024u
int qsf_lines_format(char *out, size_t cap, const char *fmt, va_list ap, char *line);

#endif
