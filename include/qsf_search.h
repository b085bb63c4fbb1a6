/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searching for a regular expression that a user has typed. Shared by the programs; not installed. One thread
 * for each search. */
#ifndef QSF_SEARCH_H
#define QSF_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct QSFSearch QSFSearch;

/* Compiles an expression of PCRE2's syntax; without a capital letter in it, case does not matter. NULL with a
 * message in err: it is not an expression, this build has no PCRE2, or out of memory. */
QSFSearch *qsf_search_new(const char *pattern, char *err, size_t cap);
void qsf_search_free(QSFSearch *s); /* NULL allowed */
/* First match at or after `from` in one line of well-formed UTF-8, text[0..len): true and its range [*begin,
 * *end), which may be empty. The time is limited: where an expression takes far too many steps, there is no
 * match. */
bool qsf_search_find(QSFSearch *s, const char *text, size_t len, size_t from, size_t *begin, size_t *end);

#endif
