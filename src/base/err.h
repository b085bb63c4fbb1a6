/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An error travels as a value: a code that is also the exit status of the programs
 * (design §12) and one sentence made where the fact is known. The first failure wins;
 * callers on the way up may only put context in front of it. */
#ifndef QSF_BASE_ERR_H
#define QSF_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

enum {
    QSF_OK = 0,
    QSF_E_RUNTIME = 1,      /* I/O, out of memory, anything that is nobody's input */
    QSF_E_USAGE = 2,        /* bad option, argument or setting */
    QSF_E_MODEL = 3,        /* missing, damaged or unsupported model or file */
    QSF_E_BUDGET = 4,       /* the RAM budget cannot be met */
    QSF_E_CONTEXT = 5,      /* context full, or the prompt is longer than it */
    QSF_E_INTERRUPTED = 130 /* cancelled by the user; not a fault */
};

#define QSF_ERR_MSG_MAX 512

typedef struct QsfErr {
    int code;                  /* QSF_OK or one of the above */
    bool memory;               /* out of memory: no input is at fault, and the same call may work later */
    bool file;                 /* reading a file failed: the same call may work when the file can be read */
    char msg[QSF_ERR_MSG_MAX]; /* one sentence, UTF-8, no newline at the end; "" when QSF_OK */
} QsfErr;

/* Records code and the formatted message unless err already holds a failure (err may be NULL).
 * Control characters that the arguments carry (file names, file contents) are replaced by '?'.
 * Messages may hold newlines only from the format itself. Returns code, so that a function can
 * end with `return qsf_err_set(err, ...)`. Any thread. */
int qsf_err_set(QsfErr *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int qsf_err_setv(QsfErr *err, int code, const char *fmt, va_list ap);

/* The same for want of memory: QSF_E_RUNTIME, "out of memory: " and what it was for, err->memory. */
int qsf_err_memory(QsfErr *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for a failed read: QSF_E_RUNTIME, err->file. */
int qsf_err_file(QsfErr *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Records what another one holds; nothing where that holds no failure. Returns why->code. */
int qsf_err_pass(QsfErr *err, const QsfErr *why);

/* Puts "prefix: " in front of a recorded failure; does nothing on success. Returns err->code. */
int qsf_err_prefix(QsfErr *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void qsf_err_clear(QsfErr *err);

#endif
