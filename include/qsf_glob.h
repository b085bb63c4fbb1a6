/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files that a pattern names. Looks at the file system, changes nothing. Shared by the programs; not
 * installed. Any thread. */
#ifndef QSF_GLOB_H
#define QSF_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#define QSF_GLOB_FILES   64     /* files that a pattern may name */
#define QSF_GLOB_ENTRIES 100000 /* entries of folders that are compared with it */
#define QSF_GLOB_DEPTH   16     /* parts of it with *, ? or [ */

typedef struct QSFGlob {
    char *paths[QSF_GLOB_FILES]; /* (n), sorted; files of any kind, but no folders */
    size_t n;
    bool folders;  /* folders have such a name, too */
    bool many;     /* there are more than QSF_GLOB_FILES */
    bool large;    /* there are more entries than QSF_GLOB_ENTRIES: not all were looked at */
    size_t looked; /* at entries */
} QSFGlob;

/* Finds the files that an argument means: the one of that name, which may be missing, or, of a pattern that
 * is not a name, those whose path matches: in each of its parts between slashes, * stands for any characters,
 * ? for one, [...] for one of a set, as in fnmatch(3). A name that begins with a dot needs a dot in the
 * pattern. false with a message in err if a pattern is not supported, or names none or too many. Release g
 * with qsf_glob_free in any case. */
bool qsf_glob_files(QSFGlob *g, const char *arg, char *err, size_t cap);
void qsf_glob_free(QSFGlob *g);

#endif
