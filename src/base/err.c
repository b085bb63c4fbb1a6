/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Error values: the first failure wins, messages are safe to print on a terminal. */
#include "src/base/err.h"

#include <stdio.h>
#include <string.h>

#include "src/base/plural.h"
#include "src/base/utf8.h"

/* Copies fmt with c instead of newlines. */
static void replace_newlines(char *dst, const char *fmt, char c) {
    do {
        *dst++ = *fmt == '\n' ? c : *fmt;
    } while (*fmt++ != '\0');
}

static size_t count(const char *s, char c) {
    size_t n = 0;
    for (; *s != '\0'; s++) n += *s == c;
    return n;
}

int qsf_lines_format(char *out, size_t cap, const char *fmt, va_list ap, char *line) {
    char lines[QSF_LINES_FORMAT], buf[QSF_PLURAL_FORMAT];
    fmt = qsf_plural_format(buf, fmt, ap);
    const size_t n = count(fmt, '\n');
    *line = 0;
    if (n == 0 || strlen(fmt) >= sizeof lines) return vsnprintf(out, cap, fmt, ap);
    int len = -1;
    for (char c = 1; c < '\t'; c++) { /* almost always the first one */
        va_list again;
        va_copy(again, ap);
        replace_newlines(lines, fmt, c);
        len = vsnprintf(out, cap, lines, again);
        va_end(again);
        *line = c;
        if (len < 0 || count(out, c) <= n) return len;
    }
    *line = 0; /* every one is in an argument: the lines are joined */
    return len;
}

/* Formats into out[cap], truncated at a whole character, and replaces control characters from the arguments.
 * Only newlines of the format itself are kept. */
static void format_clean(char *out, size_t cap, const char *fmt, va_list ap) {
    char line;
    int n = qsf_lines_format(out, cap, fmt, ap, &line);
    if (n < 0) {
        snprintf(out, cap, "error message could not be formatted");
        return;
    }
    size_t len = (size_t)n;
    if (len >= cap) {
        len = cap - 1;
        len -= qsf_utf8_incomplete_tail(out, len);
    }
    for (size_t i = 0; i < len; i++)
        if (out[i] == '\n')
            out[i] = '?';
        else if (line != 0 && out[i] == line)
            out[i] = '\n';
    len = qsf_utf8_clean(out, len, true);
    while (len > 0 && out[len - 1] == '\n') len--;
    out[len] = '\0';
}

int qsf_err_setv(QsfErr *err, int code, const char *fmt, va_list ap) {
    if (err == NULL || err->code != QSF_OK) return code;
    err->code = code;
    format_clean(err->msg, sizeof err->msg, fmt, ap);
    return code;
}

int qsf_err_set(QsfErr *err, int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    qsf_err_setv(err, code, fmt, ap);
    va_end(ap);
    return code;
}

int qsf_err_lines(QsfErr *err, int code, const char *text) {
    if (err == NULL || err->code != QSF_OK) return code;
    size_t len = strlen(text);
    err->code = code;
    if (len >= sizeof err->msg) {
        len = sizeof err->msg - 1;
        len -= qsf_utf8_incomplete_tail(text, len);
    }
    memcpy(err->msg, text, len);
    len = qsf_utf8_clean(err->msg, len, true);
    while (len > 0 && err->msg[len - 1] == '\n') len--;
    err->msg[len] = '\0';
    return code;
}

int qsf_err_memory(QsfErr *err, const char *fmt, ...) {
    if (err == NULL || err->code != QSF_OK) return QSF_E_RUNTIME;
    va_list ap;
    va_start(ap, fmt);
    qsf_err_setv(err, QSF_E_RUNTIME, fmt, ap);
    va_end(ap);
    err->memory = true;
    qsf_err_prefix(err, "out of memory");
    return QSF_E_RUNTIME;
}

int qsf_err_file(QsfErr *err, const char *fmt, ...) {
    if (err == NULL || err->code != QSF_OK) return QSF_E_RUNTIME;
    va_list ap;
    va_start(ap, fmt);
    qsf_err_setv(err, QSF_E_RUNTIME, fmt, ap);
    va_end(ap);
    err->file = true;
    return QSF_E_RUNTIME;
}

int qsf_err_pass(QsfErr *err, const QsfErr *why) {
    if (err != NULL && err->code == QSF_OK) *err = *why;
    return why->code;
}

int qsf_err_prefix(QsfErr *err, const char *fmt, ...) {
    if (err == NULL) return QSF_OK;
    if (err->code == QSF_OK) return QSF_OK;
    char old[QSF_ERR_MSG_MAX];
    memcpy(old, err->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    format_clean(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    size_t len = strlen(err->msg);
    snprintf(err->msg + len, sizeof err->msg - len, ": %s", old);
    len = strlen(err->msg);
    err->msg[len - qsf_utf8_incomplete_tail(err->msg, len)] = '\0';
    return err->code;
}

void qsf_err_clear(QsfErr *err) {
    if (err == NULL) return;
    err->code = QSF_OK;
    err->memory = err->file = err->numbers = false;
    err->msg[0] = '\0';
}
