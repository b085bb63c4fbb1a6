/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads small files, and headers of big ones, into memory while a model is opened; charged to QSF_MEM_META
 * until closed. One thread. */
#ifndef QSF_FILE_WHOLE_H
#define QSF_FILE_WHOLE_H

#include "src/base/json.h"
#include "src/file/source_impl.h"

/* A file that was opened and read; text is NULL if it does not exist. */
typedef struct QsfWhole {
    QsfFile f;
    char *text; /* (f.size), followed by a NUL */
} QsfWhole;

/* Reads the first len bytes of f and appends a NUL. QSF_E_BUDGET, QSF_E_MODEL if the file is shorter,
 * QSF_E_RUNTIME. */
int qsf_whole_map(QsfSource *s, const QsfFile *f, uint64_t len, char **out, QsfErr *err);
/* len must be that given to qsf_whole_map; text may be NULL. */
void qsf_whole_unmap(QsfSource *s, char *text, uint64_t len);

/* Opens and reads the file at path; if it does not exist, succeeds with w->text NULL. QSF_E_MODEL if it is
 * longer than max bytes, a Git LFS pointer or not UTF-8 by its mark, else as above. Close it
 * after success. */
int qsf_whole_open(QsfSource *s, const char *path, uint64_t max, QsfWhole *w, QsfErr *err);
/* Checks that a text does not begin with the mark of another encoding. QSF_E_MODEL names the
 * file and the encoding. */
int qsf_whole_check_utf8(const char *path, const char *text, size_t len, QsfErr *err);
/* May be called more than once. */
void qsf_whole_close(QsfSource *s, QsfWhole *w);
/* Parses the file as JSON; the caller frees the tree. QSF_E_MODEL with path, line and column. */
int qsf_whole_json(const QsfWhole *w, QsfJson **out, QsfErr *err);

#endif
