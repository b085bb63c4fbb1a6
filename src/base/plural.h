/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts in messages: "%u tokens are" with the value 1 is "1 token is". Any thread. */
#ifndef QSF_BASE_PLURAL_H
#define QSF_BASE_PLURAL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define QSF_PLURAL_FORMAT 1024 /* bytes of a format that can be changed */

/* Returns the format to use with these arguments in place of fmt: fmt itself, or a copy in buf where each
 * noun of the tables (plural.c) that follows the number 1 is singular, and so is the verb after it. A number
 * is an integer, or the string "1"; only the format decides what is a noun. ap is not changed. */
const char *qsf_plural_format(char buf[QSF_PLURAL_FORMAT], const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
/* vsnprintf, vfprintf, snprintf and fprintf with that format. */
int qsf_plural_vsnprintf(char *dst, size_t cap, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
int qsf_plural_vfprintf(FILE *to, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
int qsf_plural_snprintf(char *dst, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int qsf_plural_fprintf(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
