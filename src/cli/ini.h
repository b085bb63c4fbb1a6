/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only interface to inih; builds without it use ini_none.c, which refuses every file. What inih would cut
 * without a word is refused: long lines, long names of sections, text after one. One thread. */
#ifndef QSF_CLI_INI_H
#define QSF_CLI_INI_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

#define QSF_INI_FILE_MAX (1u << 20) /* bytes */
#define QSF_INI_SECTION  49u        /* bytes of the name of a section: inih has no space for more */

typedef struct QsfIniItem {
    unsigned line;       /* in the file, from 1 */
    const char *section; /* name, "" = before the first one */
    const char *name;    /* of a value; NULL: the section begins */
    const char *value;   /* without white space around it and without a comment */
    bool more;           /* it continues the value before: an indented line */
} QsfIniItem;

/* Returns false, with a message in why, to refuse the item, or what was before: *line is the line that is
 * named. */
typedef bool (*QsfIniHandler)(void *arg, const QsfIniItem *item, unsigned *line, QsfErr *why);

/* Calls fn for each section and each value of the file, in order; the strings are valid during the call.
 * QSF_E_RUNTIME with "PATH: " or "PATH:LINE: " and the reason if the file cannot be read, is not UTF-8
 * or not in this form, or when fn has refused: then err has the message of fn behind the place. *missing (may
 * be NULL) is set if there is no such file. */
int qsf_ini_read(const char *path, QsfIniHandler fn, void *arg, bool *missing, QsfErr *err);
/* The same for text[0..len), which is what the file `path` is to have. */
int qsf_ini_read_text(const char *path, const char *text, size_t len, QsfIniHandler fn, void *arg,
                      QsfErr *err);

#endif
